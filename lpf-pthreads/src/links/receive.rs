//! The receiver's side: what is awaited, what has come, what is released, where landings go.

use lpf_core::arrivals::{Arrival, Call, Expect, Link, never_awaited};
use lpf_core::{Cause, Error, Pid, Result, Slot};

use super::ring::{self, LANDED, LENT, offer};
use super::{Links, OpenLink};
use crate::comm::Comm;
use crate::sync::Ordering;
use crate::threads::Threads;

/// A landing takes no longer than a message in a cell from this many bytes on.
const LANDING: usize = 4097;

impl OpenLink {
    /// Tells the peer what was released.
    #[inline]
    pub(super) fn report(&mut self) {
        self.own.owner(self.ring).released.store(self.incoming.released, Ordering::Release);
        self.incoming.reported = self.incoming.released;
    }

    /// Whether the peer may depend on what was released and not reported.
    #[inline]
    pub(super) fn must_report(&self) -> bool {
        self.incoming.must_report(self.window(), self.incoming.awaited)
    }

    /// Tells it, and wakes the peer.
    #[inline]
    pub(super) fn report_aloud(&mut self, comm: &Comm) {
        self.report();
        comm.peers[self.peer as usize].ring();
    }

    /// Whether the first message in the ring is this link's, and not one of the link before that nobody
    /// awaited. (Its sender says whose messages come before it sends the first.)
    pub(super) fn is_served(&self) -> bool {
        let served = self.own.sender(self.ring).served.load(Ordering::Relaxed);
        served == ring::end(self.peer, self.received_before.opened)
    }

    /// Takes the credit that message `nth`, which is there, carries.
    #[inline]
    pub(super) fn learn_credit(&mut self, nth: u64) {
        // Before that nothing was sent into the peer's ring.
        if self.granted {
            let credit = self.own.cell(self.ring, nth).credit.load(Ordering::Relaxed);
            let known = self.outgoing.released;
            let more = ring::more_credit(credit, self.peer_ring, known);
            self.outgoing.released = more.unwrap_or(known);
        }
    }
}

impl Threads {
    /// Releases what the last sync awaited and nobody holds, and adds what this one awaits.
    #[inline]
    pub(crate) fn expect_messages(&mut self, messages: &[Expect]) -> Result<()> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        // Everything is checked before anything changes: a misuse has no effect.
        for expect in messages {
            let open = self.link(expect.link)?;
            let may = open.incoming.may_await(expect.link, messages, open.window());
            may.map_err(|cause| self.local.misuse(cause))?;
        }
        let Links { places, busy, owing, call, .. } = &mut self.links;
        busy.retain(|place| {
            let Some(open) = &mut places[place].link else { return false };
            let is_busy = open.is_busy();
            open.incoming.release_unheld();
            open.outgoing.made_at_sync = open.outgoing.made;
            if open.must_return() {
                open.report_aloud(&self.comm);
            }
            if !is_busy && !open.incoming.is_reported() {
                owing.add(place);
            }
            is_busy
        });
        let call = *call;
        for expect in messages {
            let open = self.link_mut(expect.link)?;
            open.incoming.awaited += u64::from(expect.messages);
            open.call = call;
            self.links.busy.add(expect.link.number());
        }
        Ok(())
    }

    /// Whether all awaited messages of a link are there; checks their stamps.
    #[inline]
    pub(super) fn take_arrivals(&mut self, link: Link) -> Result<bool> {
        let open = self.link_mut(link)?;
        let awaited = open.incoming.awaited;
        if awaited == 0 || open.incoming.seen == awaited {
            return Ok(true);
        }
        while open.incoming.seen < awaited {
            let nth = open.incoming.seen + 1;
            if !open.own.has_arrived(open.ring, nth) {
                return Ok(false);
            }
            if nth == open.incoming.first + 1 && !open.is_served() {
                return Err(self.left_over(link));
            }
            open.learn_credit(nth);
            let cell = open.own.cell(open.ring, nth);
            let length = cell.length.load(Ordering::Relaxed);
            if length & LANDED != 0 {
                open.offers_used += 1;
                open.offers.pop_front();
            }
            if length & LENT != 0 {
                if !open.own.loan(open.ring, nth).take() {
                    return Err(self.die());
                }
                open.borrowed = nth;
            }
            open.incoming.seen = nth;
            let stamp = cell.stamp.load(Ordering::Relaxed);
            let call = open.call;
            if call.word() != 0 && stamp != call.word() {
                let peer = open.peer;
                return Err(self.stamps_differ(call, peer, stamp));
            }
        }
        Ok(true)
    }

    /// What came before this link is there, and nobody awaited it.
    #[cold]
    fn left_over(&mut self, link: Link) -> Error {
        let open = match self.link(link) {
            Ok(open) => open,
            Err(error) => return error,
        };
        let sent = open.own.sender(open.ring).sent.load(Ordering::Relaxed);
        let left = sent.saturating_sub(open.incoming.first).max(1);
        let cause = never_awaited(left, open.inbox as usize, open.ring, open.peer);
        self.fail_before(
            self.meeting + 1,
            Error::fatal(self.local.pid, self.local.superstep, cause),
        )
    }

    #[cold]
    fn stamps_differ(&mut self, call: Call, peer: Pid, stamp: u64) -> Error {
        let text = call.differs(self.local.pid, peer, stamp);
        let error = Error::fatal(peer, self.local.superstep, Cause::Deadlock(text));
        self.fail_before(self.meeting + 1, error)
    }

    pub(crate) fn arrived(&self, link: Link, nth: u64) -> Result<Arrival> {
        let open = self.link(link)?;
        let nth = self.readable(open, link, nth)?;
        let length = open.own.cell(open.ring, nth + 1).length.load(Ordering::Relaxed);
        let (landed, bytes) = (length & LANDED != 0, (length & !(LANDED | LENT)) as usize);
        if !landed {
            let data = match length & LENT {
                0 => open.own.data(open.ring, nth + 1, bytes).cast_const(),
                _ => open.own.loan(open.ring, nth + 1).address(),
            };
            return Ok(Arrival { data, bytes, landed, offer: 0 });
        }
        // Landings are used in the order of the offers: count back from the last one seen.
        let later = (nth + 2..=open.incoming.seen)
            .filter(|&n| open.own.cell(open.ring, n).length.load(Ordering::Relaxed) & LANDED != 0)
            .count() as u64;
        let number = open.offers_used - later;
        let data = open.own.offer(open.ring, number).address.load(Ordering::Relaxed).cast_const();
        Ok(Arrival { data, bytes, landed, offer: number - open.first_offer - 1 })
    }

    /// The ring's number, minus one, of message `nth` of a link, if it can be read.
    fn readable(&self, open: &OpenLink, link: Link, nth: u64) -> Result<u64> {
        let nth = nth.wrapping_add(open.incoming.first);
        if open.incoming.is_readable(nth) {
            return Ok(nth);
        }
        let nth = nth.wrapping_sub(open.incoming.first);
        let text = format!("message {nth} on {link} was not awaited, or is released");
        Err(self.local.arrivals_misuse(text))
    }

    pub(crate) fn awaited_on(&self, link: Link) -> Result<u64> {
        let open = self.link(link)?;
        Ok(open.incoming.awaited - open.incoming.first)
    }

    /// The sender writes to the place, and an offer costs no more than a message.
    pub(crate) fn landing_pays_from_on(&self, link: Link) -> Result<usize> {
        self.link(link).map(|open| open.own.shape.cell_bytes.saturating_add(1).min(LANDING))
    }

    /// Parts are read where they lie.
    pub(crate) fn longest_part_on(&self, link: Link) -> Result<usize> {
        self.link(link).map(|_| usize::MAX)
    }

    pub(crate) fn hold_message(&mut self, link: Link, nth: u64) -> Result<()> {
        let nth = self.readable(self.link(link)?, link, nth)?;
        if self.link_mut(link)?.incoming.hold(nth) {
            return Ok(());
        }
        Err(self.local.arrivals_misuse(format!("a message on {link} is held already")))
    }

    pub(crate) fn release_message(&mut self, link: Link, nth: u64, held: bool) -> Result<()> {
        let open = self.link_mut(link)?;
        let number = nth.wrapping_add(open.incoming.first);
        let incoming = &mut open.incoming;
        let done = if held { incoming.release_held(number) } else { incoming.release(number) };
        if done {
            if open.must_return() {
                open.report();
                let peer = open.peer;
                self.comm.peers[peer as usize].ring();
            }
            return Ok(());
        }
        let text = format!("message {nth} on {link} was not awaited, is released, or is held");
        Err(self.local.arrivals_misuse(text))
    }

    /// Offers `bytes` bytes at `address`, which `slot` names.
    pub(crate) fn offer_on(
        &mut self,
        link: Link,
        slot: Slot,
        address: *mut u8,
        bytes: usize,
    ) -> Result<u64> {
        // What is offered after a failure would never be taken back.
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        let open = self.link_mut(link)?;
        let window = open.window();
        if open.offered - open.offers_used >= u64::from(window) {
            let text = format!("more than {window} open offers on {link}");
            return Err(self.local.arrivals_misuse(text));
        }
        open.offered += 1;
        open.offers.push_back(slot);
        let place = open.own.offer(open.ring, open.offered);
        place.address.store(address, Ordering::Relaxed);
        place.bytes.store(bytes, Ordering::Relaxed);
        place.state.store(offer::OPEN, Ordering::Relaxed);
        place.number.store(open.offered, Ordering::Release);
        open.own.owner(open.ring).offered.store(open.offered, Ordering::Relaxed);
        let (peer, number) = (open.peer, open.offered - open.first_offer - 1);
        self.comm.peers[peer as usize].ring();
        Ok(number)
    }

    /// Whether a put on a link that has not left names `slot`.
    pub(crate) fn is_leaving(&self, slot: Slot) -> bool {
        let mut links = self.links.places.iter().filter_map(|place| place.link.as_ref());
        links.any(|open| open.queue.names(slot))
    }

    /// Whether an open offer names `slot`.
    pub(crate) fn is_offered(&self, slot: Slot) -> bool {
        let mut links = self.links.places.iter().filter_map(|place| place.link.as_ref());
        links.any(|open| open.offers.contains(&slot))
    }

    /// Takes open offers back, or waits for the copy that is under way: nobody writes to this
    /// process's memory after it.
    pub(crate) fn revoke_offers(&mut self) {
        for place in &mut self.links.places {
            let Some(open) = &mut place.link else { continue };
            for number in open.offers_used + 1..=open.offered {
                let place = open.own.offer(open.ring, number);
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
}
