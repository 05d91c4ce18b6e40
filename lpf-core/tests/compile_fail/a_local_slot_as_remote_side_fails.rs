// In the raw layer too, the remote side is a GlobalSlot; a local slot cannot be made into one.

#![allow(dead_code)]

use lpf_core::{Context, GlobalSlot, LocalSlot, Lpf, Result};

fn put<L: Lpf>(ctx: &mut Context<'_, L>, x: LocalSlot) -> Result<()> {
    ctx.raw().put(x, 0, 0, x, 0, 8)
}

fn get<L: Lpf>(ctx: &mut Context<'_, L>, x: LocalSlot) -> Result<()> {
    ctx.raw().get(0, x, 0, x, 0, 8)
}

fn converted(x: LocalSlot) -> GlobalSlot {
    x.into()
}

fn main() {}
