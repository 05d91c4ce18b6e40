// Requests and collectives need registered memory: an area, and not the result of the call that makes one.

#![allow(dead_code, unused_mut)]

use lpf_collectives::{Collectives, Sum};
use lpf_core::{Context, Lpf, Result};

fn a_vec<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let numbers = vec![1u32; 4];
    let area = ctx.area::<u32>(4)?;
    ctx.sync()?;
    ctx.put(&numbers, .., 0, &area, 0)
}

fn a_result<L: Lpf>(ctx: &mut Context<'_, L>) {
    let mut area = ctx.area::<u32>(4);
    ctx.write(&mut area)[0] = 1;
}

fn several<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let (x, y) = (vec![1u32], ctx.local::<u32>(1)?);
    ctx.access((&x, &y));
    Ok(())
}

fn a_collective<'s, L: Lpf>(ctx: &mut Context<'s, L>, all: &mut Collectives<'s>) -> Result<()> {
    let (x, mut y) = (vec![1.0; 4], vec![0.0; 4]);
    all.allreduce(ctx, &Sum, &x, &mut y)
}

fn main() {}
