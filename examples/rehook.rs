//! A library function reserves its room in a context of its own. The caller's slots, queue and
//! pending requests do not change.

use lpf::{Args, Context, Lpf, Result};

/// The sum over all processes, as a library function. Collective.
fn sum<L: Lpf>(ctx: &mut Context<'_, L>, own: u64) -> Result<u64> {
    let mut total = 0;
    ctx.rehook(Args::none(), |ctx, _args| {
        let (s, p) = (ctx.pid() as usize, ctx.nprocs());
        ctx.resize(2, 2 * p as usize)?;
        ctx.sync()?;
        let (mut mine, all) = (ctx.local::<u64>(1)?, ctx.area::<u64>(p as usize)?);
        ctx.sync()?;
        ctx.write(&mut mine)[0] = own;
        for to in 0..p {
            ctx.put(&mine, .., to, &all, s)?;
        }
        ctx.sync()?;
        total = ctx.read(&all).iter().sum();
        Ok(())
    })?;
    Ok(total)
}

fn main() -> Result<()> {
    lpf::exec(4, |ctx, _args| {
        ctx.resize(2, 2)?;
        ctx.sync()?;
        let (mut own, left) = (ctx.area::<u64>(1)?, ctx.area::<u64>(1)?);
        ctx.sync()?;
        ctx.write(&mut own)[0] = 10 * u64::from(ctx.pid());
        ctx.put(&own, .., (ctx.pid() + 1) % ctx.nprocs(), &left, 0)?;
        let total = sum(ctx, 10)?; // the put above is pending here, and stays so
        ctx.sync()?;
        println!("process {}: sum {total}, left {}", ctx.pid(), ctx.read(&left)[0]);
        Ok(())
    })
}
