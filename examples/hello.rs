//! Processes say hello; each learns its left neighbour's number in one superstep. They are threads, or
//! processes of a launcher: `lpf run -n 4 target/release/examples/hello`.

lpf::program! {
    fn Hello(ctx, _args) {
        // Room for 2 slots and 2 requests (the put made here and the one that arrives).
        ctx.resize(2, 2)?;
        ctx.sync()?;
        let (mut own, left) = (ctx.area::<u32>(1)?, ctx.area::<u32>(1)?);
        // After this sync the other processes can name the areas.
        ctx.sync()?;
        ctx.write(&mut own)[0] = ctx.pid();
        let right = (ctx.pid() + 1) % ctx.nprocs();
        ctx.put(&own, .., right, &left, 0)?;
        // Nothing has moved yet; when sync returns, everything has.
        ctx.sync()?;
        let left = ctx.read(&left)[0];
        println!("hello from {} of {}, right of {left}", ctx.pid(), ctx.nprocs());
        Ok(())
    }
}

fn main() -> lpf::Result<()> {
    lpf::run(Hello)
}
