//! One open link: its counts, its queue, its offers.

use std::collections::VecDeque;

use crate::Pid;
use crate::arrivals::{Call, InboxShape, Incoming, Outgoing, Queue};
use crate::slot::Slot;
use crate::waits::{QueuedLanding, ReceiverCounts, SenderCounts, Status, Stream, Want, What};

/// The processes that have the two rings of a link before it does, each with the number of its opening.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormerSenders {
    /// Of the ring here, which was opened for another process.
    pub here: Option<(Pid, u64)>,
    /// Of the peer's ring, if the peer has opened it for this link and that is known here.
    pub there: Option<(Pid, u64)>,
}

/// An open link.
#[derive(Debug)]
pub struct OpenLink {
    /// Its number among the links of its process, under which the engine keeps its own part.
    pub number: usize,
    /// The other process.
    pub peer: Pid,
    /// The number of the inbox, at both.
    pub inbox: usize,
    /// The ring here.
    pub ring: usize,
    /// The ring at the peer.
    pub peer_ring: usize,
    /// The stream on which it sends.
    pub to_peer: Stream,
    /// The stream on which it receives.
    pub to_me: Stream,
    /// Of the inbox.
    pub shape: InboxShape,
    /// The messages sent on it.
    pub outgoing: Outgoing,
    /// The messages that arrive on it.
    pub incoming: Incoming,
    /// Puts that have not left.
    pub queue: Queue,
    /// Landings sent.
    pub landed: u64,
    /// The slots that the open offers name, the oldest first.
    pub(super) offers: VecDeque<Slot>,
    /// Offers made.
    pub offered: u64,
    /// Of these, used by messages that were awaited.
    pub offers_used: u64,
    /// What earlier links did on the same streams.
    pub sent_before: SenderCounts,
    /// As above.
    pub received_before: ReceiverCounts,
    /// The call whose messages were awaited last.
    pub call: Call,
    /// Whether the peer's ring is this link's.
    pub is_granted: bool,
    /// Whether the peer may know of its ring here, so that nothing is left to do for it. The engine sets it.
    pub has_granted: bool,
    /// As [`Opening`](super::Opening) has it, until its process lets go.
    pub is_withheld: bool,
    /// The process that still has the ring here, as the engine last found it; and the number of its opening.
    pub former_sender: Option<(Pid, u64)>,
    /// The last message, counted from 1, that the peer reads in this process's memory; 0 if there is none.
    pub lent: u64,
    /// The slots of the puts that have left the queue and are still read here, the oldest first.
    pub in_flight: VecDeque<Slot>,
}

impl OpenLink {
    /// Whether the peer reads a message in this process's memory.
    #[inline]
    pub fn is_lending(&self) -> bool {
        self.lent > self.outgoing.released
    }

    /// Whether everything put here has left this process's memory.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.outgoing.is_flushed()
            && self.lent <= self.outgoing.released
            && self.in_flight.is_empty()
    }

    /// Whether the peer may depend on what was released and not reported.
    #[inline]
    pub fn must_report(&self) -> bool {
        self.incoming.must_report(self.shape.window, self.incoming.awaited)
    }

    /// Whether a wait has to look at it: it was used since the last sync, or is not done with what it was used for.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        let Outgoing { made, made_at_sync, .. } = self.outgoing;
        made != made_at_sync
            || self.incoming.unreleased() > 0
            || !self.is_flushed()
            || !self.has_granted
    }

    /// Offers that no message has used.
    pub fn open_offers(&self) -> u64 {
        self.offered - self.offers_used
    }

    /// The message that was taken last has used an offer.
    #[inline]
    pub fn use_offer(&mut self) {
        self.offers_used += 1;
        self.offers.pop_front();
    }

    /// Writes what it has done to its process's status.
    pub(super) fn note(&self, former: FormerSenders, status: &mut Status) {
        let (sent, received) = (&self.sent_before, &self.received_before);
        let left = sent.made + self.outgoing.sent;
        let landed = sent.landed + self.landed;
        let before_landing = self.queue.before_landing();
        status.on_mut(self.to_peer).sent = SenderCounts {
            made: sent.made + self.outgoing.made,
            landed,
            queued: before_landing
                .map(|before| QueuedLanding { message: left + before + 1, landing: landed + 1 }),
            barred: (!self.is_granted && !self.queue.is_empty()).then_some(left + 1),
            ..*sent
        };
        status.on_mut(self.to_me).received = ReceiverCounts {
            released: received.released + self.incoming.released,
            offered: received.offered + self.offered,
            held_by: former.here,
            ..*received
        };
    }

    /// What its flush waits for: the ring, credit, an offer, or the peer that reads here.
    pub(super) fn wants_to_send(&self, former: FormerSenders) -> Option<Want> {
        let stream = self.to_peer;
        let before = self.sent_before.made;
        let have = before + self.outgoing.released;
        let releases =
            |need| (have < need).then_some(Want { what: What::Releases, stream, have, need });
        let Some(next) = self.queue.next() else { return releases(before + self.lent) };
        if !self.is_granted {
            return Some(self.wants_ring(stream, former));
        }
        let window = u64::from(self.shape.window);
        releases(before + (self.outgoing.sent + 1).saturating_sub(window)).or_else(|| {
            let have = self.sent_before.landed + self.landed;
            let want = Want { what: What::Offers, stream, have, need: have + 1 };
            next.is_landing().then_some(want)
        })
    }

    /// The peer opens its end, or the ring's former sender closes.
    fn wants_ring(&self, stream: Stream, former: FormerSenders) -> Want {
        let (what, stream, need) = match former.there {
            Some((from, opened)) => (What::Closing, Stream { from, ..stream }, opened),
            None => (What::Opening, stream, self.sent_before.opened),
        };
        Want { what, stream, have: need - 1, need }
    }

    /// The messages that it awaits and that have not arrived.
    pub(super) fn wants_messages(&self) -> Option<Want> {
        let before = self.received_before.released;
        let (have, need) = (before + self.incoming.seen, before + self.incoming.awaited);
        let want = Want { what: What::Messages, stream: self.to_me, have, need };
        (have < need).then_some(want)
    }
}
