// Bytes of an area are written by other processes: its element type has to make sense for any bytes
// and hold no address.

#![allow(dead_code)]

use lpf_core::{Context, Lpf, Result};

fn addresses<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ctx.area::<&'static u64>(1)?;
    Ok(())
}

fn forbidden_bytes<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ctx.local::<bool>(1)?;
    Ok(())
}

fn main() {}
