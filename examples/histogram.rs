//! Reduce-scatter and exscan: how often each value occurs, and its position if all values were sorted.

use lpf::Result;
use lpf::collectives::{Collectives, Sum};

/// Values are 0 to 15, a quarter of them counted by each of four processes.
const VALUES: usize = 16;

lpf::program! { fn Histogram(ctx, _args) {
    let mut all = Collectives::new(ctx)?;
    let (s, p) = (ctx.pid() as usize, ctx.nprocs() as usize);
    let part = VALUES.div_ceil(p);
    ctx.resize(4, 0).and_then(|()| ctx.sync())?;
    let (mut seen, mut counts) = (ctx.local::<u64>(p * part)?, ctx.local::<u64>(part)?);
    for i in 0..10_000 {
        let value = (i * i + 7 * i * s + s) % VALUES;
        ctx.write(&mut seen)[value] += 1;
    }
    all.reduce_scatter(ctx, &Sum, &seen, &mut counts)?;
    let own: u64 = ctx.read(&counts).iter().sum();

    // The values that all processes before this one have counted are in front.
    let (mut sums, mut before) = (ctx.local::<u64>(1)?, ctx.local::<u64>(1)?);
    ctx.write(&mut sums)[0] = own;
    all.exscan(ctx, &Sum, &sums, &mut before)?;
    let mut first = ctx.read(&before)[0];
    for (value, &count) in (s * part..).zip(ctx.read(&counts)) {
        println!("value {value:2}: {count:5} of them, from place {first:5} on");
        first += count;
    }
    Ok(())
} }

fn main() -> Result<()> {
    lpf::run(Histogram)
}
