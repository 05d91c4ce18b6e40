// The right form of the programs beside this one. That it is built, and not only checked, has them built, too: whether a
// closure captures variables is found when its code is generated.

fn main() -> lpf::Result<()> {
    let greeting = String::from("hello");
    let processes = lpf::exec(2, |ctx| {
        println!("{greeting} from {}", ctx.pid());
        ctx.exec(1, lpf::Args::none(), |inner, _args| inner.sync())?;
        Ok(ctx.nprocs())
    })?;
    assert_eq!(processes, 2);
    lpf::run(|ctx| ctx.sync())
}
