//! A library function allocates in a context of its own. The caller's slots, queue and pending
//! requests do not change.

use lpf::{Context, Lpf, Result};

/// The sum over all processes, as a library function. Collective.
fn sum<L: Lpf>(ctx: &mut Context<'_, L>, own: u64) -> Result<u64> {
    ctx.rehook(|ctx| {
        let (mut mine, all) = ctx.alloc((1, ctx.nprocs()))?;
        ctx.write(&mut mine)[0] = own;
        for to in 0..ctx.nprocs() {
            ctx.put(&mine, .., to, &all, ctx.pid())?;
        }
        ctx.sync()?;
        Ok(ctx.read(&all).iter().sum())
    })
}

fn main() -> Result<()> {
    lpf::exec(4, |ctx| {
        let (mut own, left) = ctx.alloc((1, 1))?;
        ctx.write(&mut own)[0] = 10 * ctx.pid();
        let right = (ctx.pid() + 1) % ctx.nprocs();
        ctx.put(&own, .., right, &left, 0)?;
        // The put is pending here, and stays so.
        let total = sum(ctx, 10)?;
        ctx.sync()?;
        println!("process {}: sum {total}, left {}", ctx.pid(), ctx.read(&left)[0]);
        Ok(())
    })
}
