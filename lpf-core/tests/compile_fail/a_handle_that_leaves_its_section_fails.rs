// A handle ends with its section: its memory is freed there. The section's lifetime is shorter than
// anything outside.

#![allow(dead_code)]

use lpf_core::{Area, Context, InboxSlot, Lpf, Message, Part, Result};

fn area<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let mut kept: Option<Area<'_, u64>> = None;
    ctx.rehook(|inner| {
        kept = Some(inner.area::<u64>(1)?);
        Ok(())
    })
}

fn part<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let mut kept: Vec<Part<'_, u64>> = Vec::new();
    ctx.rehook(|inner| {
        kept = inner.outbox::<u64>(1, 1)?;
        Ok(())
    })?;
    kept[0][0] = 1;
    Ok(())
}

fn message<L: Lpf>(ctx: &mut Context<'_, L>, inbox: InboxSlot) -> Result<u64> {
    let mut kept: Option<Message<'_, u64>> = None;
    ctx.rehook(|inner| {
        let mut channel = inner.open::<u64>(inbox, 0, 0, 0)?;
        let [message] = inner.expect([&mut channel])?;
        kept = Some(message);
        Ok(())
    })?;
    Ok(kept.map_or(0, |message| message[0]))
}

fn slice<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<u64> {
    let mut kept: &[u64] = &[];
    ctx.rehook(|inner| {
        let area = inner.area::<u64>(1)?;
        kept = inner.read(&area);
        Ok(())
    })?;
    Ok(kept[0])
}

fn main() {}
