//! Carries a random exchange out on every process.

use lpf_core::{Args, Context, Error, LocalSlot, Lpf, Pid, Result, SyncAttr};

use super::exchange::{Exchange, LONGEST, Message, Step};
use crate::memory::{Buffer, bury};
use crate::primitives::arrivals::{Mesh, body, expect, message, send, send_landing};
use crate::random::broadcast;

/// The random exchange in process 0's input.
pub(super) fn random_exchange<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    bury();
    let bytes = broadcast(ctx, args.input)?;
    let exchange = Exchange::from_bytes(&bytes);
    assert_eq!(ctx.nprocs(), exchange.procs, "too few processes for a random exchange");
    let mut ends = Ends::open(ctx, &exchange)?;
    for step in &exchange.steps {
        superstep(ctx, &exchange, step, &mut ends)?;
    }
    ctx.sync()
}

/// Message `number` from `from` to `to`.
fn body_of(from: Pid, to: Pid, number: usize, bytes: usize) -> Vec<u8> {
    body(number * 64 + (from * 8 + to), bytes)
}

/// What one process has with one other.
struct End {
    peer: Pid,
    /// All that goes to the peer, one message behind the other, registered as this slot.
    sources: LocalSlot,
    /// Where the next message to the peer begins.
    at: usize,
    /// Room for a window of landings, registered as this slot.
    landings: LocalSlot,
    /// Messages that may have come, awaited ones included: the offers already made for them.
    offered: usize,
    /// All messages of the peer.
    incoming: Vec<Message>,
    awaited: usize,
}

struct Ends {
    mesh: Mesh,
    ends: Vec<End>,
}

impl Ends {
    fn open<L: Lpf>(ctx: &mut Context<'_, L>, exchange: &Exchange) -> Result<Self> {
        let (me, window) = (ctx.pid(), exchange.window);
        let slots = 2 * exchange.procs;
        let mesh = Mesh::open(ctx, slots, 0, window, exchange.cell_bytes)?;
        let mut ends = Vec::new();
        for peer in (0..exchange.procs).filter(|&peer| peer != me) {
            let sent = exchange.messages(me, peer).enumerate();
            let bodies: Vec<u8> =
                sent.flat_map(|(number, m)| body_of(me, peer, number, m.bytes)).collect();
            ends.push(End {
                peer,
                sources: Buffer::of(&bodies).local(ctx)?,
                at: 0,
                landings: Buffer::zeroed(window as usize * LONGEST).local(ctx)?,
                offered: 0,
                incoming: exchange.messages(peer, me).collect(),
                awaited: 0,
            });
        }
        Ok(Ends { mesh, ends })
    }
}

fn superstep<L: Lpf>(
    ctx: &mut Context<'_, L>,
    exchange: &Exchange,
    step: &Step,
    ends: &mut Ends,
) -> Result<()> {
    let me = ctx.pid();
    let traffic = |from: Pid, to: Pid| &step.traffic[from * exchange.procs + to];
    let Ends { mesh, ends } = ends;
    for end in ends.iter_mut() {
        offer(ctx, exchange, mesh, end, traffic(end.peer, me).sent.len())?;
        for message in &traffic(me, end.peer).sent {
            let (range, link) = (end.at..end.at + message.bytes, mesh.with(end.peer));
            end.at = range.end;
            if message.is_landing {
                send_landing(ctx, end.sources, range, link)?;
            } else {
                send(ctx, end.sources, range, link)?;
            }
        }
    }
    if step.syncs.flush_before {
        ctx.sync_with(SyncAttr::Flush)?;
    }
    let awaited: Vec<_> = ends
        .iter()
        .map(|end| (mesh.with(end.peer), traffic(end.peer, me).awaited as u32))
        .collect();
    expect(ctx, &awaited)?;
    for (end, &(_, count)) in ends.iter_mut().zip(&awaited) {
        for _ in 0..count {
            check(ctx, mesh, end, step.syncs.releases)?;
        }
    }
    if step.syncs.flush_after {
        ctx.sync_with(SyncAttr::Flush)?;
    }
    if step.syncs.full_after {
        ctx.sync()?;
    }
    Ok(())
}

/// Offers memory for the landings among the next `count` messages of the peer. The place of a
/// message is free: the one a window before it was awaited in an earlier superstep.
fn offer<L: Lpf>(
    ctx: &mut Context<'_, L>,
    exchange: &Exchange,
    mesh: &Mesh,
    end: &mut End,
    count: usize,
) -> Result<()> {
    for _ in 0..count {
        let place = end.offered % exchange.window as usize * LONGEST;
        if end.incoming[end.offered].is_landing {
            let link = mesh.with(end.peer);
            // SAFETY: nothing touches the place until the sync that awaits its message.
            unsafe { ctx.raw().offer(link, end.landings, place, LONGEST)? };
        }
        end.offered += 1;
    }
    Ok(())
}

/// Checks the next message of the peer.
fn check<L: Lpf>(
    ctx: &mut Context<'_, L>,
    mesh: &Mesh,
    end: &mut End,
    release: bool,
) -> Result<()> {
    let (link, number) = (mesh.with(end.peer), end.awaited);
    let expected = end.incoming[number];
    let landed = ctx.raw().arrival(link, number as u64)?.landed;
    let got = message(ctx, link, number as u64)?;
    if landed != expected.is_landing || got != body_of(end.peer, ctx.pid(), number, expected.bytes)
    {
        return Err(Error::program(format!(
            "message {number} from process {} to process {} differs: {expected:?}, came {} bytes{}",
            end.peer,
            ctx.pid(),
            got.len(),
            if landed { " in a landing" } else { "" }
        )));
    }
    end.awaited += 1;
    if release { ctx.raw().release(link, number as u64) } else { Ok(()) }
}
