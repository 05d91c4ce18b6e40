// The right form of every program beside this one: it compiles, so that none of those fails for
// its setting.

#![allow(dead_code)]

use lpf_core::{Args, Channel, Context, InboxSlot, Lpf, Memory, Message, Part, Result};

fn areas<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let (mut x, mut y, z) = (ctx.area::<u64>(4)?, ctx.area::<u64>(4)?, ctx.local::<u64>(4)?);
    ctx.sync()?;
    ctx.write(&mut x)[0] = 1;
    let (from, to) = ctx.access((&x, &mut y));
    to.copy_from_slice(from);
    ctx.put(&z, .., 0, &x, 0)?;
    ctx.get(0, &x, .., &y, 0)?;
    ctx.sync()?;
    let sum = ctx.read(&x)[0] + ctx.read(&y)[0];
    assert_eq!(sum, 2);
    ctx.raw().put(z.slot(), 0, 0, x.global_slot(), 0, 8)?;
    ctx.sync()?;
    ctx.deregister(x)
}

fn arrays<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let mut areas = [ctx.area::<[f64; 37]>(2)?, ctx.area::<[f64; 37]>(2)?];
    let [x, y] = ctx.access(areas.each_mut());
    x[0] = y[1];
    let mut areas = Vec::from(areas);
    let slices = ctx.access(areas.iter_mut().collect::<Vec<_>>());
    assert_eq!(slices[0][0], slices[1][1]);
    Ok(())
}

fn waits<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    ctx.sync()
}

fn sections<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<Vec<usize>> {
    ctx.exec(2, Args::none(), waits)?;
    ctx.exec(2, Args::none(), |ctx, _args| Ok(vec![ctx.pid()]))
}

fn library<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    let mut sum = 0;
    ctx.rehook(|inner| {
        inner.resize(1, 2)?;
        inner.sync()?;
        let area = inner.area::<u64>(1)?;
        inner.sync()?;
        sum += inner.read(&area)[0];
        Ok(())
    })?;
    assert_eq!(sum, 0);
    Ok(())
}

fn messages<'s, L: Lpf>(ctx: &mut Context<'s, L>, inbox: InboxSlot) -> Result<()> {
    let mut channel: Channel<'s, u64> = ctx.open(inbox, 0, 0, 0)?;
    let mut part: Part<'s, u64> = ctx.outbox(1, 1)?.remove(0);
    part[0] = 3;
    let sent = ctx.send(&mut channel, part, ..)?;
    let [message]: [Message<'s, u64>; 1] = ctx.expect([&mut channel])?;
    let flushed = ctx.flush()?;
    let mut part = sent.part(&flushed).unwrap();
    part[0] += message[0];
    drop(message);
    let landing = ctx.local::<u64>(1)?;
    let landing = ctx.offer(&mut channel, landing)?;
    let sent = ctx.send_landing(&mut channel, part, ..)?;
    let (area, _) = ctx.land(&mut channel, landing)?;
    assert_eq!(ctx.read(&area)[0], 6);
    drop(sent);
    ctx.close(channel).map_err(|(error, _)| error)
}

fn main() {}
