// The closure may run in other processes, which do not have the variables of this one.

fn main() -> lpf::Result<()> {
    let greeting = String::from("hello");
    lpf::run(|ctx| {
        println!("{greeting} from {}", ctx.pid());
        Ok(())
    })
}
