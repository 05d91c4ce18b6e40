//! Messages that are read where they lie, in their sender's memory: those of puts in parts.
//!
//! To copy a part into a cell costs its sender as much as to combine it costs its receiver, and both cores
//! have better to do where each sends and receives: in place of the bytes the cell carries their address. The
//! memory is the borrower's until it releases the message, which is reported at once, and the lender's flush
//! waits for that.

use lpf_core::runtime::links::{Ends, LinkTable, OpenLink};

use super::End;
use super::ring::LENT;
use crate::sync::{Ordering, yield_now};

/// Whether the release of a message that was read at the peer is not reported.
#[inline]
pub(crate) fn must_return(ends: &Ends<End>, open: &OpenLink) -> bool {
    !open.incoming.is_reported() && ends.of(open).borrowed > open.incoming.reported
}

impl End {
    /// Whether the peer reads message `nth` here, in a failed section; if it has not begun it never does.
    fn is_read_at_peer(&self, nth: u64) -> bool {
        let number = self.number_there(nth);
        let length = self.theirs.cell(self.peer_ring, number).length.load(Ordering::Relaxed);
        length & LENT != 0
            && !self.theirs.loan(self.peer_ring, number).revoke()
            && self.released_at_peer() < nth
    }
}

/// In a failed section: reads no more of others' memory, and waits until nobody reads of this one's. In
/// this order, or two that end would wait for each other.
pub(crate) fn end_loans(links: &LinkTable, ends: &Ends<End>) {
    for (open, end) in ends.iter(links) {
        for nth in open.incoming.released + 1..=end.borrowed {
            if end.cell(nth).length.load(Ordering::Relaxed) & LENT != 0 {
                end.loan(nth).give_up();
            }
        }
    }
    for (open, end) in ends.iter(links) {
        for nth in end.released_at_peer() + 1..=open.lent {
            while end.is_read_at_peer(nth) {
                yield_now();
            }
        }
    }
}
