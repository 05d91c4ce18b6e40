//! Expected arrivals: links, cells, credits, landings, stamps, and who waits for what.

use lpf_core::{
    Channel, Context, Expect, InboxShape, Link, Lpf, Pid, Result, Slot, SyncAttr, Travel,
};

use crate::memory::Buffer;

pub(super) mod channels;
pub(super) mod collectives;
pub(super) mod credits;
pub(super) mod landings;
pub(super) mod mismatches;
pub(super) mod mixed;
pub(super) mod opening;
pub(super) mod parts;
pub(super) mod unread;

/// Links between every two processes; this one's, by peer.
pub(super) struct Mesh {
    links: Vec<Option<Link>>,
}

impl Mesh {
    /// Room for `slots` slots and `requests` requests, an inbox of this window and cell size, and
    /// a link with every other process. Collective; one full sync.
    pub(super) fn open<L: Lpf>(
        ctx: &mut Context<'_, L>,
        slots: usize,
        requests: usize,
        window: u32,
        cell_bytes: usize,
    ) -> Result<Self> {
        ctx.resize(slots, requests)?;
        let inbox = ctx.inbox(InboxShape { rings: ctx.nprocs(), window, cell_bytes })?;
        ctx.sync()?;
        let me = ctx.pid();
        let links = (0..ctx.nprocs()).map(|peer| {
            let link = (peer != me).then(|| ctx.raw().open(inbox, peer, peer, me));
            link.transpose()
        });
        Ok(Mesh { links: links.collect::<Result<_>>()? })
    }

    /// The link with `peer`.
    pub(super) fn with(&self, peer: Pid) -> Link {
        self.links[peer].expect("a process has no link with itself")
    }
}

/// As [`Mesh`], with typed channels for messages of up to `len` elements.
pub(super) fn channels<'s, L: Lpf, T: bytemuck::Pod>(
    ctx: &mut Context<'s, L>,
    slots: usize,
    window: u32,
    len: usize,
) -> Result<Vec<Option<Channel<'s, T>>>> {
    ctx.resize(slots, 8)?;
    let cell_bytes = len * size_of::<T>();
    let inbox = ctx.inbox(InboxShape { rings: ctx.nprocs(), window, cell_bytes })?;
    ctx.sync()?;
    let me = ctx.pid();
    let all = (0..ctx.nprocs())
        .map(|peer| (peer != me).then(|| ctx.open(inbox, peer, peer, me)).transpose());
    all.collect()
}

/// Sends the next message of `link`, through a cell.
pub(super) fn send<L: Lpf>(
    ctx: &mut Context<'_, L>,
    source: impl Into<Slot>,
    range: std::ops::Range<usize>,
    link: Link,
) -> Result<()> {
    send_as(ctx, source, range, link, Travel::Cell)
}

/// Sends the next message of `link` into the area that the peer offers.
pub(super) fn send_landing<L: Lpf>(
    ctx: &mut Context<'_, L>,
    source: impl Into<Slot>,
    range: std::ops::Range<usize>,
    link: Link,
) -> Result<()> {
    send_as(ctx, source, range, link, Travel::Landing)
}

fn send_as<L: Lpf>(
    ctx: &mut Context<'_, L>,
    source: impl Into<Slot>,
    range: std::ops::Range<usize>,
    link: Link,
    travel: Travel,
) -> Result<()> {
    // SAFETY: a case rewrites its sources after a flush or a full sync only.
    unsafe { ctx.raw().send(link, source, range.start, range.len(), travel) }
}

/// Waits for these many messages of these links.
pub(super) fn expect<L: Lpf>(ctx: &mut Context<'_, L>, messages: &[(Link, u32)]) -> Result<()> {
    let expected: Vec<Expect> =
        messages.iter().map(|&(link, messages)| Expect { link, messages }).collect();
    ctx.sync_with(SyncAttr::Expected(&expected))
}

/// Message `nth` of `link`, copied.
pub(super) fn message<L: Lpf>(ctx: &mut Context<'_, L>, link: Link, nth: u64) -> Result<Vec<u8>> {
    let arrival = ctx.raw().arrival(link, nth)?;
    if arrival.bytes == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the message was awaited and is not released: its cell or landing is not written.
    Ok(unsafe { std::slice::from_raw_parts(arrival.data, arrival.bytes) }.to_vec())
}

/// The message of `link` awaited last, copied.
pub(super) fn latest<L: Lpf>(ctx: &mut Context<'_, L>, link: Link) -> Result<Vec<u8>> {
    let nth = ctx.raw().awaited(link)? - 1;
    message(ctx, link, nth)
}

/// A buffer with message `number` of `bytes` bytes in it: other bytes for every message.
pub(super) fn body(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (number * 31 + at * 7 + (number >> 8) + 1) as u8).collect()
}

/// `count` messages of `bytes` bytes, one behind the other, registered as a local slot.
pub(super) fn bodies<L: Lpf>(
    ctx: &mut Context<'_, L>,
    count: usize,
    bytes: usize,
) -> Result<(Buffer, lpf_core::LocalSlot)> {
    let all: Vec<u8> = (0..count).flat_map(|number| body(number, bytes)).collect();
    let buffer = Buffer::of(&all);
    let slot = buffer.local(ctx)?;
    Ok((buffer, slot))
}
