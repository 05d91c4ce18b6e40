// The backend of a context is a type parameter; closures as sections need one whose processes share memory.

#![allow(dead_code)]

use lpf_core::{Args, Context, Lpf, Result, SharedMemory};

fn without_a_bound<L>(_ctx: &mut Context<'_, L>) -> Result<()> {
    Ok(())
}

fn on_threads<L: SharedMemory>(_ctx: &mut Context<'_, L>) {}

fn on_any_backend<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    on_threads(ctx);
    ctx.exec_closure(2, Args::none(), |_ctx, _args| Ok(()))
}

fn main() {}
