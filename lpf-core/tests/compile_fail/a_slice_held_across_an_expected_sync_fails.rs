// An expected sync lets puts leave from this process's memory and lands messages in it, like any
// other: no slice is alive across it.

#![allow(dead_code)]

use lpf_core::{Channel, Context, Lpf, Result};

fn expected<'s, L: Lpf>(ctx: &mut Context<'s, L>, from: &mut Channel<'s, u64>) -> Result<u64> {
    let area = ctx.area::<u64>(1)?;
    let slice = ctx.read(&area);
    let [message] = ctx.expect([from])?;
    Ok(slice[0] + message[0])
}

fn flushed<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<u64> {
    let area = ctx.area::<u64>(1)?;
    let slice = ctx.read(&area);
    ctx.flush()?;
    Ok(slice[0])
}

fn main() {}
