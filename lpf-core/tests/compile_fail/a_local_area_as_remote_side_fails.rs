// Only a global area has a name at the other processes: a local one is no remote side, of a put as
// little as of a get.

#![allow(dead_code)]

use lpf_core::{Context, Lpf, Result};

fn put<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let (x, y) = (ctx.area::<u64>(1)?, ctx.local::<u64>(1)?);
    ctx.put(&x, .., 0, &y, 0)
}

fn get<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let (x, y) = (ctx.area::<u64>(1)?, ctx.local::<u64>(1)?);
    ctx.get(0, &y, .., &x, 0)
}

fn main() {}
