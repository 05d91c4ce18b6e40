// Bytes of an area are written by other processes: its element type has to make sense for any bytes
// and hold no address.

#![allow(dead_code)]

use lpf_core::{Context, Lpf, Result};

#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

fn addresses<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ctx.area::<&'static u64>(1)?;
    Ok(())
}

fn any_bytes<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ctx.local::<bool>(1)?;
    Ok(())
}

fn of_ones_own<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ctx.area::<Point>(1)?;
    Ok(())
}

fn in_messages<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ctx.outbox::<(u32, u32)>(1, 1)?;
    Ok(())
}

fn main() {}
