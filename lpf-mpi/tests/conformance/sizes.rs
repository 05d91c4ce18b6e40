//! One program at every size: both ways of the first exchange, in strict mode and not, checked and not.

use lpf_conformance::{Harness, Mode};
use lpf_core::settings::Exchange;
use lpf_core::{Args, Context, InboxShape, Lpf, Pid, Result};

use super::harness::OnMpi;

const SIZES: [Pid; 5] = [1, 2, 3, 4, 7];

/// Lengths of puts: in a unit, in the first part of the message, beyond it, and beyond a frame.
const LENGTHS: [usize; 4] = [8, 600, 4_000, 100_000];

/// What a process puts to another.
fn byte(from: Pid, to: Pid, at: usize) -> u8 {
    (at * 7 + from * 31 + to * 57) as u8
}

/// Total exchanges of every length, then messages round a ring of channels.
fn exchange_and_ring<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    let (me, p) = (ctx.pid(), ctx.nprocs());
    ctx.resize(3, 2 * p)?;
    ctx.sync()?;
    for bytes in LENGTHS {
        let (mut out, into) = (ctx.area::<u8>(bytes * p)?, ctx.area::<u8>(bytes * p)?);
        ctx.sync()?;
        let source = ctx.write(&mut out);
        for to in 0..p {
            let part = &mut source[bytes * to..][..bytes];
            part.iter_mut().enumerate().for_each(|(at, own)| *own = byte(me, to, at));
        }
        for to in 0..p {
            let start = bytes * to;
            ctx.put(&out, start..start + bytes, to, &into, bytes * me)?;
        }
        ctx.sync()?;
        for from in 0..p {
            let part = &ctx.read(&into)[bytes * from..][..bytes];
            let is_right = |(at, &got): (usize, &u8)| got == byte(from, me, at);
            assert!(part.iter().enumerate().all(is_right), "{bytes} bytes from process {from}");
        }
        ctx.deregister(out)?;
        ctx.deregister(into)?;
        ctx.sync()?;
    }
    if p == 1 {
        return Ok(());
    }
    // Round and round.
    let inbox = ctx.inbox(InboxShape { rings: p, window: 2, cell_bytes: 8 })?;
    let mut parts = ctx.outbox::<u64>(1, 1)?;
    ctx.sync()?;
    let (left, right) = ((me + p - 1) % p, (me + 1) % p);
    let mut from = ctx.open::<u64>(inbox, left, left, me)?;
    // Of two, one is the neighbour on both sides.
    let to = (left != right).then(|| ctx.open::<u64>(inbox, right, right, me));
    let mut to = to.transpose()?;
    for round in 0..ROUNDS {
        let mut part = parts.pop().expect("the one part");
        part[0] = round * 100 + me as u64;
        let right = to.as_mut().unwrap_or(&mut from);
        let sent = ctx.send(right, part, ..1)?;
        let [message] = ctx.expect([&mut from])?;
        assert_eq!(message[0], round * 100 + left as u64);
        let flushed = ctx.flush()?;
        parts.push(sent.part(&flushed).expect("flushed since"));
    }
    ctx.sync()
}

const ROUNDS: u64 = 50;

#[test]
fn every_size_in_both_ways_strict_and_checked() {
    for way in [Exchange::Direct, Exchange::Bruck] {
        for procs in SIZES {
            for (strict, check) in [(false, false), (true, false), (false, true), (true, true)] {
                let mode = Mode { check, strict, timeout: None };
                let result = OnMpi(way).exec(mode, procs, exchange_and_ring, Args::none());
                result.unwrap_or_else(|error| {
                    panic!("{way:?}, {procs} processes, {mode:?}: {error}")
                });
            }
        }
    }
}
