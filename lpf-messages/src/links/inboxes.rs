//! Inboxes, and how links are opened and given up.

use super::super::memory::Memory;
use super::super::process::Messages;
use super::super::tags;
use super::super::transport::{Piece, Rank, Transport};
use super::near::NearRing;
use super::{Arrived, End, Rings};
use lpf_core::Pid;
use lpf_core::arrivals::{InboxShape, InboxSlot, Link};
use lpf_core::error::Result;
use lpf_core::runtime::links::Opening;
use lpf_core::runtime::{LocalState, Tables};
use std::collections::VecDeque;

/// The words before a message: its length, and its stamp.
pub(super) const HEAD: usize = 16;
/// Cells begin on a line, and their bytes on the next.
const LINE: usize = 64;

/// The positions of the cells of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) window: u32,
    /// From one cell to the next, and from one ring to the next.
    stride: usize,
    pub(super) ring: usize,
}

impl Layout {
    /// From a cell's line to its bytes.
    pub(super) const DATA: usize = LINE;
    /// The owner's line, and one that processors fetch with it.
    const OWNER: usize = 2 * LINE;

    /// `None` if a ring is longer than memory.
    pub(super) fn of(shape: InboxShape) -> Option<Self> {
        let stride = shape.cell_bytes.checked_next_multiple_of(LINE)?.checked_add(Self::DATA)?;
        let ring = stride.checked_mul(shape.window as usize)?.checked_add(Self::OWNER)?;
        Some(Layout { window: shape.window, stride, ring })
    }

    /// The offset of a message's cell in its ring.
    #[inline]
    pub(super) fn cell(&self, message: u64) -> usize {
        Self::OWNER + (message % u64::from(self.window)) as usize * self.stride
    }
}

#[derive(Debug)]
pub(super) struct Inbox {
    shape: InboxShape,
    memory: Memory,
    layout: Layout,
    /// The number of its ring 0 among those of the context.
    pub(super) first_ring: usize,
    /// By ring, the process that it was granted to last, and the number of that process's link.
    pub(super) senders: Vec<Option<(Pid, u64)>>,
}

impl Inbox {
    /// Rings without messages, in shared memory if there is any.
    ///
    /// # Errors
    /// The bytes that were refused.
    fn new<T: Transport>(
        net: &mut T,
        shape: InboxShape,
        first_ring: usize,
    ) -> std::result::Result<Self, usize> {
        let layout = Layout::of(shape).ok_or(usize::MAX)?;
        let bytes = layout.ring.checked_mul(shape.rings).ok_or(usize::MAX)?;
        let memory = match net.share(bytes).and_then(Memory::shared) {
            Some(memory) => memory,
            None => Memory::new(bytes)?,
        };
        let senders = vec![None; shape.rings];
        Ok(Inbox { shape, memory, layout, first_ring, senders })
    }

    fn ring_at(&self, ring: usize) -> usize {
        ring * self.layout.ring
    }

    fn cell_at(&self, ring: usize, message: u64) -> usize {
        self.ring_at(ring) + self.layout.cell(message)
    }

    /// A ring here with its offset in shared memory, if it is there.
    pub(super) fn near<T: Transport>(
        &self,
        net: &T,
        ring: usize,
        sender: Rank,
    ) -> Option<(NearRing, u64)> {
        let at = self.ring_at(ring);
        let base = self.memory.piece(at..at + self.layout.ring).base;
        let place = self.memory.place()? + at as u64;
        net.reach(sender, 0, 0)?;
        // SAFETY: the inbox lives until its links are closed, or is leaked. A ring has one sender at a time, which receives
        // the offset in a grant.
        Some((unsafe { NearRing::new(base, self.layout) }, place))
    }

    /// The ring of another process at this offset. Its inboxes have the same shape as those here.
    pub(super) fn at<T: Transport>(&self, net: &T, owner: Rank, place: u64) -> Option<NearRing> {
        let base = net.reach(owner, place, self.layout.ring)?;
        // SAFETY: its owner has granted it to this process alone, and keeps it until this process has closed its link.
        Some(unsafe { NearRing::new(base, self.layout) })
    }

    /// Whether other processes may write to it without the network.
    pub(super) fn is_shared(&self) -> bool {
        self.memory.place().is_some()
    }

    /// The memory for head and bytes of message `message` of a ring.
    pub(super) fn cell(&self, ring: usize, message: u64) -> [Piece; 2] {
        let at = self.cell_at(ring, message);
        let data = at + Layout::DATA;
        [self.memory.piece(at..at + HEAD), self.memory.piece(data..data + self.shape.cell_bytes)]
    }

    /// The head of a message that has arrived.
    pub(super) fn head(&self, ring: usize, message: u64) -> &[u8] {
        let at = self.cell_at(ring, message);
        // SAFETY: its receive is finished, and posted again only when it is released.
        unsafe { self.memory.bytes(at..at + HEAD) }
    }
}

impl<T: Transport> Messages<T> {
    pub(in super::super) fn new_inbox(
        &mut self,
        local: &LocalState,
        shape: InboxShape,
    ) -> Result<()> {
        let rings = &mut self.protocol.rings;
        let count = rings.count.saturating_add(shape.rings);
        let room = tags::RINGS.min(self.ring_limit);
        if count > room {
            let text =
                format!("the inboxes of a context have at most {room} rings on this network");
            return Err(local.link_misuse(text));
        }
        let net = self.network.net();
        let made = rings.postbox.prepare().and_then(|()| rings.prepare_count());
        let made = made.and_then(|()| Inbox::new(net, shape, rings.count));
        let inbox = made.map_err(|bytes| local.refused("an inbox", bytes))?;
        rings.count = count;
        rings.inboxes.push(Some(inbox));
        Ok(())
    }

    pub(in super::super) fn open_link(
        &mut self,
        tables: &mut Tables,
        opening: Opening,
    ) -> Result<Link> {
        let rings = &mut self.protocol.rings;
        let Tables { local, links: table } = &mut *tables;
        let Opening { shape, peer, .. } = opening;
        let window = shape.window as usize;
        let heads = Memory::new(window * HEAD);
        let heads = heads.map_err(|bytes| local.refused("a link", bytes))?;
        let is_near = self.network.net().reach(rings.members[peer], 0, 0).is_some();
        let (link, open) = table.add(opening, false);
        open.in_flight.reserve(window);
        let end = End {
            grant: None,
            is_near,
            there: None,
            here: None,
            in_flight: VecDeque::with_capacity(window),
            heads,
            peer_offers: VecDeque::with_capacity(window),
            cells: VecDeque::with_capacity(window),
            head_came: false,
            posted: 0,
            arrived: vec![Arrived { bytes: 0, landing: None }; window],
            offers: VecDeque::with_capacity(window),
        };
        rings.ends.add(open, end);
        rings.take_early(open);
        Ok(link)
    }
}

impl Rings {
    /// Keeps the memory of a deregistered inbox until no process writes to it.
    pub(in super::super) fn remove(&mut self, inbox: InboxSlot, is_quiet: bool) {
        let removed = self.inboxes[inbox.number()].take();
        if !is_quiet {
            // The network may still write a message that was not awaited into one of its cells.
            lpf_core::leaked::leak(removed);
        } else if removed.as_ref().is_some_and(Inbox::is_shared) {
            // So may a process that has not closed its link yet: all have closed theirs before the next full sync.
            self.removed.extend(removed);
        }
    }
}
