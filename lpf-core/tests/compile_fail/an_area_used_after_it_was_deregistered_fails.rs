// Deregistering takes the handle: the memory goes at the end of the next full sync.

#![allow(dead_code)]

use lpf_core::{Context, Lpf, Result};

fn read<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<u64> {
    let area = ctx.area::<u64>(1)?;
    let _ = ctx.deregister(area);
    Ok(ctx.read(&area)[0])
}

fn with_a_slice_alive<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<u64> {
    let area = ctx.area::<u64>(1)?;
    let slice = ctx.read(&area);
    let _ = ctx.deregister(area);
    Ok(slice[0])
}

fn main() {}
