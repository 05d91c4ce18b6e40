//! Processes say hello; each learns its left neighbour's number in one superstep. They are threads, or
//! processes of a launcher: `lpf run -n 4 target/release/examples/hello`.

fn main() -> lpf::Result<()> {
    lpf::run(|ctx| {
        // Two areas of one element each, which the other processes can name from now on.
        let (mut own, left) = ctx.alloc((1, 1))?;
        ctx.write(&mut own)[0] = ctx.pid();
        let right = (ctx.pid() + 1) % ctx.nprocs();
        ctx.put(&own, .., right, &left, 0)?;
        // Nothing has moved yet; when sync returns, everything has.
        ctx.sync()?;
        let left = ctx.read(&left)[0];
        println!("hello from {} of {}, right of {left}", ctx.pid(), ctx.nprocs());
        Ok(())
    })
}
