// While the inner section runs, the outer context is on hold: rehook has it borrowed.

#![allow(dead_code)]

use lpf_core::{Context, Lpf, Result};

fn sync<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ctx.rehook(|_inner| ctx.sync())
}

fn read<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let area = ctx.area::<u64>(1)?;
    ctx.rehook(|_inner| {
        assert_eq!(ctx.read(&area)[0], 0);
        Ok(())
    })
}

fn slice<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let area = ctx.area::<u64>(1)?;
    let slice = ctx.read(&area);
    ctx.rehook(|_inner| {
        assert_eq!(slice[0], 0);
        Ok(())
    })
}

fn main() {}
