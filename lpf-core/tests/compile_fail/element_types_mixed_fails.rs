// Both sides of a request have one element type, and so have an outbox part, its channel and the
// message that comes out.

#![allow(dead_code)]

use lpf_core::{Channel, Context, Lpf, Part, Result};

fn put<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let (x, y) = (ctx.area::<u64>(1)?, ctx.area::<f64>(1)?);
    ctx.put(&x, .., 0, &y, 0)
}

fn get<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let (x, y) = (ctx.area::<u64>(1)?, ctx.local::<i64>(1)?);
    ctx.get(0, &x, .., &y, 0)
}

fn send<'s, L: Lpf>(ctx: &mut Context<'s, L>, to: &mut Channel<'s, u64>, part: Part<'s, f64>) {
    let _sent = ctx.send(to, part, ..);
}

fn main() {}
