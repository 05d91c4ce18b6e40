// A slice borrows the context and sync needs the context mutably: memory changes only in a sync,
// so no slice may see one.

#![allow(dead_code)]

use lpf_core::{Context, Lpf, Result};

fn held<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<u64> {
    let area = ctx.area::<u64>(1)?;
    let slice = ctx.read(&area);
    ctx.sync()?;
    Ok(slice[0])
}

fn held_for_writing<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let mut area = ctx.area::<u64>(1)?;
    let slice = ctx.write(&mut area);
    ctx.sync()?;
    slice[0] = 1;
    Ok(())
}

fn held_out_of_a_tuple<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let (mut x, y) = (ctx.area::<u64>(1)?, ctx.local::<u64>(1)?);
    let (x, y) = ctx.access((&mut x, &y));
    ctx.sync()?;
    x[0] = y[0];
    Ok(())
}

fn main() {}
