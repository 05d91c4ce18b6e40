//! Messages that are read where they lie, in their sender's memory: those of puts in parts.
//!
//! To copy a part into a cell costs its sender as much as to combine it costs its receiver, and both cores
//! have better to do where each sends and receives: in place of the bytes the cell carries their address. The
//! memory is the borrower's until it releases the message, which is reported at once, and the lender's flush
//! waits for that.

use super::OpenLink;
use super::ring::LENT;
use crate::sync::{Ordering, yield_now};
use crate::threads::Threads;

impl OpenLink {
    /// Whether everything put here has left this process's memory, what is read here included.
    #[inline]
    pub(super) fn is_flushed(&self) -> bool {
        self.outgoing.is_flushed() && self.outgoing.released >= self.lent
    }

    /// Whether the release of a message that was read at the peer is not reported.
    #[inline]
    pub(super) fn must_return(&self) -> bool {
        self.borrowed > self.incoming.reported && !self.incoming.is_reported()
    }

    /// What the peer has reported in its line.
    #[inline]
    pub(super) fn released_at_peer(&self) -> u64 {
        self.theirs.owner(self.peer_ring).released.load(Ordering::Acquire)
    }

    /// Whether the peer reads message `nth` here, in a failed section; if it has not begun it never does.
    fn is_read_at_peer(&self, nth: u64) -> bool {
        let length = self.theirs.cell(self.peer_ring, nth).length.load(Ordering::Relaxed);
        length & LENT != 0
            && !self.theirs.loan(self.peer_ring, nth).revoke()
            && self.released_at_peer() < nth
    }
}

impl Threads {
    /// In a failed section: reads no more of others' memory, and waits until nobody reads of this one's. In
    /// this order, or two that end would wait for each other.
    pub(crate) fn end_loans(&mut self) {
        let links = || self.links.places.iter().filter_map(|place| place.link.as_ref());
        for open in links() {
            for nth in open.incoming.released + 1..=open.borrowed {
                if open.own.cell(open.ring, nth).length.load(Ordering::Relaxed) & LENT != 0 {
                    open.own.loan(open.ring, nth).give_up();
                }
            }
        }
        for open in links() {
            for nth in open.released_at_peer() + 1..=open.lent {
                while open.is_read_at_peer(nth) {
                    yield_now();
                }
            }
        }
    }
}
