//! The sender's side: a ring taken, a message put into its cell or landing.

use lpf_core::arrivals::{Queued, Travel};
use lpf_core::runtime::links::OpenLink;

use super::End;
use super::ring::{FREE, LANDED, LENT, copy_to_landing, credit, offer};
use crate::sync::Ordering;

impl End {
    /// Takes the peer's ring, once the peer has opened it for this link and its former sender has closed: the number of
    /// that one's messages that the peer never awaited.
    #[cold]
    pub(super) fn take_ring(&mut self) -> Option<u64> {
        let (sender, owner) =
            (self.theirs.sender(self.peer_ring), self.theirs.owner(self.peer_ring));
        if owner.granted.load(Ordering::Acquire) != self.name {
            return None;
        }
        let claim =
            sender.claim.compare_exchange(FREE, self.name, Ordering::Acquire, Ordering::Relaxed);
        claim.ok()?;
        // Counts go on where the ring's last link ended.
        let sent = sender.sent.load(Ordering::Relaxed);
        let left = sent - owner.released.load(Ordering::Acquire);
        if left == 0 {
            sender.served.store(self.name, Ordering::Relaxed);
            (self.first_sent, self.first_landed) = (sent, sender.landed.load(Ordering::Relaxed));
        }
        Some(left)
    }

    /// The next message is in its place.
    #[inline]
    fn announce(&self, open: &mut OpenLink, length: u64, stamp: u64) {
        let number = self.number_there(open.outgoing.sent + 1);
        let cell = self.theirs.cell(open.peer_ring, number);
        cell.length.store(length, Ordering::Relaxed);
        cell.stamp.store(stamp, Ordering::Relaxed);
        let released = self.first_received + open.incoming.released;
        cell.credit.store(credit(open.ring, released), Ordering::Relaxed);
        open.incoming.reported = open.incoming.released;
        self.theirs.sender(open.peer_ring).sent.store(number, Ordering::Relaxed);
        cell.sequence.store(number, Ordering::Release);
    }

    /// Copies a landing into the peer's offer: whether it has.
    fn land(&self, open: &OpenLink, put: &Queued) -> bool {
        let number = self.first_landed + open.landed + 1;
        let place = self.theirs.offer(open.peer_ring, number);
        let taken = place.state.compare_exchange(
            offer::OPEN,
            offer::TAKEN,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if taken.is_err() {
            return false;
        }
        let to = place.address.load(Ordering::Relaxed);
        // SAFETY: the put checked its source; the offer's memory is the runtime's while it is TAKEN:
        // its owner waits for DONE before it leaves.
        unsafe { copy_to_landing(put.address, to, put.bytes) };
        place.state.store(offer::DONE, Ordering::Release);
        self.theirs.sender(open.peer_ring).landed.store(number, Ordering::Relaxed);
        true
    }

    /// Learns how many messages the peer has released: from its messages that have not been taken, and from its line.
    #[cold]
    pub(super) fn learn_all_credit(&self, open: &mut OpenLink) {
        let mut nth = open.incoming.seen + 1;
        if nth > 1 || self.is_served() {
            while self.has_arrived(nth) {
                self.learn_credit(nth, open);
                nth += 1;
            }
        }
        open.outgoing.released = open.outgoing.released.max(self.released_at_peer());
    }

    /// The length of the peer's next offer, if it has shown one.
    pub(super) fn next_offer(&self, open: &OpenLink) -> Option<usize> {
        let number = self.first_landed + open.landed + 1;
        let place = self.theirs.offer(open.peer_ring, number);
        let is_shown = place.number.load(Ordering::Acquire) == number;
        is_shown.then(|| place.bytes.load(Ordering::Relaxed))
    }

    /// The next message goes into its cell or landing, or the cell says where it is. False if its offer was taken back.
    ///
    /// # Safety
    /// As [`Carrier::send`](lpf_core::runtime::Carrier::send).
    #[inline]
    pub(super) unsafe fn fill(&self, open: &mut OpenLink, message: &Queued) -> bool {
        let Queued { address, bytes, stamp, travel, .. } = *message;
        let nth = open.outgoing.sent + 1;
        let number = self.number_there(nth);
        let kind = match travel {
            Travel::Cell => {
                // SAFETY: the source is valid and no longer than a cell, which is this sender's: there is credit.
                unsafe { self.theirs.fill(open.peer_ring, number, address, bytes) };
                0
            }
            Travel::Parts(_) => {
                self.theirs.loan(open.peer_ring, number).open(address);
                open.lent = nth;
                LENT
            }
            Travel::Landing => {
                if !self.land(open, message) {
                    return false;
                }
                LANDED
            }
        };
        self.announce(open, bytes as u64 | kind, stamp);
        true
    }
}
