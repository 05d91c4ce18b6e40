//! The receiver's side: what is awaited, what has come, what is released, where landings go.

use lpf_core::Error;
use lpf_core::arrivals::{Arrival, never_awaited};
use lpf_core::runtime::LocalState;
use lpf_core::runtime::links::{Ends, LinkTable, OpenLink};
use lpf_core::waits::Stream;

use super::End;
use super::ring::{self, LANDED, LENT, offer};
use crate::sync::Ordering;

/// A landing takes no longer than a message in a cell from this many bytes on.
pub(crate) const LANDING: usize = 4097;

impl End {
    /// Takes the credit that message `nth`, which has arrived, carries.
    #[inline]
    pub(super) fn learn_credit(&self, nth: u64, open: &mut OpenLink) {
        // Before that nothing was sent into the peer's ring.
        if open.is_granted {
            let credit = self.cell(nth).credit.load(Ordering::Relaxed);
            let (before, known) = (self.first_sent, &mut open.outgoing.released);
            if let Some(more) = ring::more_credit(credit, self.peer_ring, before + *known) {
                *known = more - before;
            }
        }
    }

    /// Shows the peer offer `number`, counted from 0.
    pub(super) fn show_offer(&self, open: &OpenLink, number: u64, address: *mut u8, bytes: usize) {
        let offered = self.first_offer + number + 1;
        let place = self.own.offer(open.ring, offered);
        place.address.store(address, Ordering::Relaxed);
        place.bytes.store(bytes, Ordering::Relaxed);
        place.state.store(offer::OPEN, Ordering::Relaxed);
        place.number.store(offered, Ordering::Release);
        self.own.owner(open.ring).offered.store(offered, Ordering::Relaxed);
    }
}

/// What came before this link is there, and nobody awaited it.
#[cold]
pub(super) fn left_over(local: &LocalState, open: &OpenLink, end: &End) -> Error {
    let End { own, first_received, .. } = end;
    let sent = own.sender(open.ring).sent.load(Ordering::Relaxed);
    let left = sent.saturating_sub(*first_received).max(1);
    let Stream { from, to, inbox, ring } = open.to_me;
    Error::fatal(to, local.superstep, never_awaited(left, inbox, ring, from))
}

/// A message that was awaited and is not released.
#[inline]
pub(crate) fn arrival(ends: &Ends<End>, open: &OpenLink, nth: u64) -> Arrival {
    let (end, nth) = (ends.of(open), nth + 1);
    let length = end.cell(nth).length.load(Ordering::Relaxed);
    let (landed, bytes) = (length & LANDED != 0, (length & !(LANDED | LENT)) as usize);
    if !landed {
        let data = match length & LENT {
            0 => end.own.data(open.ring, end.first_received + nth, bytes).cast_const(),
            _ => end.loan(nth).address(),
        };
        return Arrival { data, bytes, landed, offer: 0 };
    }
    // Landings are used in the order of the offers: count back from the last one seen.
    let later = (nth + 1..=open.incoming.seen)
        .filter(|&n| end.cell(n).length.load(Ordering::Relaxed) & LANDED != 0)
        .count() as u64;
    let number = open.offers_used - later;
    let place = end.own.offer(open.ring, end.first_offer + number);
    let data = place.address.load(Ordering::Relaxed).cast_const();
    Arrival { data, bytes, landed, offer: number - 1 }
}

/// Takes open offers back, or waits for the copy that is under way: nobody writes to this
/// process's memory after it.
pub(crate) fn revoke_offers(links: &LinkTable, ends: &Ends<End>) {
    for (open, end) in ends.iter(links) {
        for number in open.offers_used + 1..=open.offered {
            let place = end.own.offer(open.ring, end.first_offer + number);
            let revoked = place.state.compare_exchange(
                offer::OPEN,
                offer::REVOKED,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            while revoked.is_err() && place.state.load(Ordering::Acquire) == offer::TAKEN {
                crate::sync::yield_now();
            }
        }
    }
}
