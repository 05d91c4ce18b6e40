// Memory of the program's own is registered under duties that the compiler cannot check.

#![allow(dead_code)]

use lpf_core::{Context, Lpf, Result};

fn local<L: Lpf>(ctx: &mut Context<'_, L>, bytes: &mut [u8]) -> Result<()> {
    ctx.raw().register_local(bytes.as_mut_ptr(), bytes.len())?;
    Ok(())
}

fn global<L: Lpf>(ctx: &mut Context<'_, L>, bytes: &mut [u8]) -> Result<()> {
    ctx.raw().register_global(bytes.as_mut_ptr(), bytes.len())?;
    Ok(())
}

fn main() {}
