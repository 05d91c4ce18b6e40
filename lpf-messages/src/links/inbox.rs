//! An inbox: the rings of cells that other processes send to.

use super::super::memory::Memory;
use super::super::transport::{Piece, Rank, Transport};
use super::layout::{HEAD, Layout};
use super::near::NearRing;
use lpf_core::Pid;
use lpf_core::arrivals::InboxShape;

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
    pub(super) fn new<T: Transport>(
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
