// The same holds for a section inside a section; the closure of `lpf::exec` runs on threads alone, and may capture.

fn main() -> lpf::Result<()> {
    let greeting = String::from("hello");
    lpf::exec(2, |ctx| {
        let outer = ctx.pid();
        println!("{greeting} from {outer}");
        ctx.exec(1, lpf::Args::none(), |_ctx, _args| {
            println!("hello from inside {outer}");
            Ok(())
        })
    })
}
