//! The receiver's side: what is awaited, what has come, what is released, where landings go.

use lpf_core::arrivals::{Arrival, Call, Link, never_awaited};
use lpf_core::runtime::LocalState;
use lpf_core::{Cause, Error, Pid, Result, Slot};

use super::ring::{self, LANDED, LENT, offer};
use super::{End, LinkTable, OpenLink};
use crate::comm::Comm;
use crate::sync::Ordering;
use crate::threads::{Tables, ThreadEngine};

/// A landing takes no longer than a message in a cell from this many bytes on.
pub(crate) const LANDING: usize = 4097;

/// Reports what was released, and wakes the peer.
#[inline]
pub(crate) fn report_aloud(open: &mut OpenLink, comm: &Comm) {
    open.end.report(&mut open.incoming);
    comm.peers[open.peer as usize].ring();
}

impl End {
    /// Takes the credit that message `nth`, which is there, carries; `known` is the peer's count of releases.
    #[inline]
    pub(super) fn learn_credit(&self, nth: u64, known: &mut u64) {
        // Before that nothing was sent into the peer's ring.
        if self.granted {
            let credit = self.cell(nth).credit.load(Ordering::Relaxed);
            let before = self.first_sent;
            if let Some(more) = ring::more_credit(credit, self.peer_ring, before + *known) {
                *known = more - before;
            }
        }
    }
}

impl ThreadEngine {
    /// Whether all awaited messages of a link are there; checks their stamps.
    #[inline]
    pub(super) fn take_arrivals(&self, tables: &mut Tables, link: Link) -> Result<bool> {
        let Tables { local, links } = tables;
        let open = links.get_mut(local, link)?;
        let awaited = open.incoming.awaited;
        while open.incoming.seen < awaited {
            let nth = open.incoming.seen + 1;
            if !open.end.has_arrived(nth) {
                return Ok(false);
            }
            if nth == 1 && !open.end.is_served() {
                return Err(left_over(local, open));
            }
            open.end.learn_credit(nth, &mut open.outgoing.released);
            let cell = open.end.cell(nth);
            let length = cell.length.load(Ordering::Relaxed);
            let stamp = cell.stamp.load(Ordering::Relaxed);
            if length & LANDED != 0 {
                open.use_offer();
            }
            if length & LENT != 0 {
                if !open.end.loan(nth).take() {
                    return Err(self.report(local));
                }
                open.end.borrowed = nth;
            }
            open.incoming.seen = nth;
            let call = open.call;
            if call.word() != 0 && stamp != call.word() {
                return Err(stamps_differ(local, call, open.peer, stamp));
            }
        }
        Ok(true)
    }

    /// Offers `bytes` bytes at `offset` of `slot`.
    pub(crate) fn offer_on(
        &self,
        tables: &mut Tables,
        link: Link,
        slot: Slot,
        offset: usize,
        bytes: usize,
    ) -> Result<u64> {
        let Tables { local, links } = tables;
        let (open, number, address) = links.offer(local, link, slot, offset, bytes)?;
        let End { own, first_offer, .. } = &open.end;
        let offered = first_offer + number + 1;
        let place = own.offer(open.ring, offered);
        place.address.store(address, Ordering::Relaxed);
        place.bytes.store(bytes, Ordering::Relaxed);
        place.state.store(offer::OPEN, Ordering::Relaxed);
        place.number.store(offered, Ordering::Release);
        own.owner(open.ring).offered.store(offered, Ordering::Relaxed);
        self.comm.peers[open.peer as usize].ring();
        Ok(number)
    }
}

/// What came before this link is there, and nobody awaited it.
#[cold]
fn left_over(local: &LocalState, open: &OpenLink) -> Error {
    let End { own, first_received, .. } = &open.end;
    let sent = own.sender(open.ring).sent.load(Ordering::Relaxed);
    let left = sent.saturating_sub(*first_received).max(1);
    let cause = never_awaited(left, open.inbox, open.ring, open.peer);
    Error::fatal(local.pid, local.superstep, cause)
}

#[cold]
fn stamps_differ(local: &LocalState, call: Call, peer: Pid, stamp: u64) -> Error {
    let text = call.differs(local.pid, peer, stamp);
    Error::fatal(peer, local.superstep, Cause::Disagreement(text))
}

/// A message that was awaited and is not released.
#[inline]
pub(crate) fn arrival(open: &OpenLink, nth: u64) -> Arrival {
    let (end, nth) = (&open.end, nth + 1);
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
pub(crate) fn revoke_offers(links: &LinkTable) {
    for open in links.iter() {
        for number in open.offers_used + 1..=open.offered {
            let place = open.end.own.offer(open.ring, open.end.first_offer + number);
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
