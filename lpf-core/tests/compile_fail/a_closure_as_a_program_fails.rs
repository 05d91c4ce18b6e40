// Between processes a program travels by the name of its type: a closure or a function has none that another process
// could look up.

#![allow(dead_code)]

use lpf_core::{Args, Context, Lpf, Result};

fn hello<L: Lpf>(_ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    Ok(())
}

fn a_closure<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let n = 5;
    ctx.exec(2, move |_ctx, _args| drop(n), Args::none())
}

fn a_function<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ctx.exec(2, hello, Args::none())
}

fn main() {}
