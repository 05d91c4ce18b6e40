// A message comes out of the sync that awaited it. Before that there is only the channel, which has
// no elements, and an offered area belongs to the runtime.

#![allow(dead_code)]

use lpf_core::{Channel, Context, Local, Lpf, Result};

fn in_a_cell<'s, L: Lpf>(ctx: &mut Context<'s, L>, from: &mut Channel<'s, u64>) -> Result<u64> {
    let first = from[0];
    ctx.expect([from])?;
    Ok(first)
}

fn in_a_landing<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    from: &mut Channel<'s, u64>,
    area: Local<'s, u64>,
) -> u64 {
    let _landing = ctx.offer(from, area);
    ctx.read(&area)[0]
}

fn through_the_landing<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    from: &mut Channel<'s, u64>,
    area: Local<'s, u64>,
) -> u64 {
    let landing = ctx.offer(from, area).unwrap();
    landing[0]
}

fn main() {}
