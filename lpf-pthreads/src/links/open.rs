//! Inboxes and links: made and given up.

use std::collections::VecDeque;
use std::sync::Arc;

use lpf_core::arrivals::{InboxShape, InboxSlot, Incoming, Link, MAX_WINDOW, Outgoing};
use lpf_core::{Cause, Error, Pid, Result};

use super::ring::{FREE, InboxMemory};
use super::{OpenLink, Place};
use crate::sync::Ordering;
use crate::threads::Threads;

impl Threads {
    pub(crate) fn add_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot> {
        if shape.window == 0 || shape.window > MAX_WINDOW {
            let text =
                format!("an inbox's window is 1 to {MAX_WINDOW} cells, not {}", shape.window);
            return Err(self.arrivals_misuse(text));
        }
        let memory = InboxMemory::new(shape).map_err(|bytes| {
            let cause = Cause::OutOfMemory { what: "an inbox", bytes };
            Error::mitigable(self.pid, self.superstep, cause)
        })?;
        let number = self.comm.peers[self.pid as usize].add_inbox(Arc::new(memory));
        self.note_inbox(shape.fingerprint() ^ 1);
        self.capacity.inboxes = number + 1;
        Ok(InboxSlot::new(number as u32))
    }

    fn note_inbox(&mut self, what: u64) {
        self.capacity.inbox_calls += 1;
        let hash = self.capacity.inbox_hash.rotate_left(9) ^ what;
        self.capacity.inbox_hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.capacity.registered = true;
        self.dirty = true;
    }

    pub(crate) fn remove_inbox(&mut self, inbox: InboxSlot) -> Result<()> {
        let number = inbox.number();
        let own = &self.comm.peers[self.pid as usize];
        if own.inbox(number).is_none() {
            let text = format!("inbox {number} is not registered");
            return Err(self.arrivals_misuse(text));
        }
        let open =
            |place: &Place| place.link.as_ref().is_some_and(|link| link.inbox as usize == number);
        if self.links.places.iter().any(open) {
            let text = format!("inbox {number} has open links; close them first");
            return Err(self.arrivals_misuse(text));
        }
        own.remove_inbox(number);
        self.note_inbox(number as u64 ^ 2 << 32);
        Ok(())
    }

    pub(crate) fn open_link(
        &mut self,
        inbox: InboxSlot,
        ring: u32,
        peer: Pid,
        peer_ring: u32,
    ) -> Result<Link> {
        let number = inbox.number();
        if number >= self.capacity.active_inboxes {
            let text = format!("inbox {number} is not active; register it and sync first");
            return Err(self.arrivals_misuse(text));
        }
        let find = |who: Pid| self.comm.peers[who as usize].inbox(number);
        let (Some(own), Some(theirs)) = (find(self.pid), find(peer)) else {
            let text = format!("inbox {number} was deregistered");
            return Err(self.arrivals_misuse(text));
        };
        if theirs.shape != own.shape {
            let text = format!("inbox {number} has another shape at process {peer}");
            return Err(self.arrivals_misuse(text));
        }
        let rings = own.shape.rings;
        if ring >= rings || peer_ring >= rings {
            let text = format!("inbox {number} has rings 0 to {}", rings.saturating_sub(1));
            return Err(self.arrivals_misuse(text));
        }
        let taken = |place: &Place| {
            place
                .link
                .as_ref()
                .is_some_and(|link| link.inbox as usize == number && link.ring == ring)
        };
        if self.links.places.iter().any(taken) {
            let text = format!("ring {ring} of inbox {number} carries a link already");
            return Err(self.arrivals_misuse(text));
        }
        // Two senders of one ring would overwrite each other's messages.
        let (sender, owner) = (theirs.sender(peer_ring), own.owner(ring));
        let claim =
            sender.claim.compare_exchange(FREE, self.pid + 1, Ordering::Acquire, Ordering::Relaxed);
        if let Err(holder) = claim {
            let text = format!(
                "ring {peer_ring} of inbox {number} at process {peer} still has the link of process {}",
                holder - 1
            );
            return Err(self.arrivals_misuse(text));
        }
        // Counts go on where the rings' last links ended.
        let sent = sender.sent.load(Ordering::Acquire);
        let released = owner.released.load(Ordering::Relaxed);
        let outgoing = Outgoing {
            made: sent,
            sent,
            released: theirs.owner(peer_ring).released.load(Ordering::Acquire),
            made_at_sync: sent,
        };
        let open = OpenLink {
            peer,
            inbox: number as u32,
            ring,
            peer_ring,
            outgoing,
            incoming: Incoming::starting_at(released),
            queue: VecDeque::with_capacity(2 * own.shape.window as usize),
            landed: sender.landed.load(Ordering::Relaxed),
            offered: owner.offered.load(Ordering::Relaxed),
            first_offer: owner.offered.load(Ordering::Relaxed),
            offers_used: owner.offered.load(Ordering::Relaxed),
            own,
            theirs,
        };
        let places = &mut self.links.places;
        let is_free = |place: &Place| place.link.is_none() && place.generation < u32::MAX;
        let number = places.iter().position(is_free).unwrap_or_else(|| {
            places.push(Place { generation: 0, link: None });
            places.len() - 1
        });
        let place = &mut places[number];
        place.generation += 1;
        place.link = Some(open);
        self.links.open += 1;
        Ok(Link::new(number as u32, place.generation))
    }

    pub(crate) fn close_link(&mut self, link: Link) -> Result<()> {
        let open = self.link_mut(link)?;
        open.incoming.release_unheld();
        let open_offers = open.offered - open.offers_used;
        if open.incoming.unreleased() > 0 || !open.outgoing.is_flushed() || open_offers > 0 {
            let text = format!(
                "{link} has {} unreleased messages, {} puts that have not left and {open_offers} open offers",
                open.incoming.unreleased(),
                open.outgoing.made - open.outgoing.sent
            );
            return Err(self.arrivals_misuse(text));
        }
        open.report();
        open.theirs.sender(open.peer_ring).claim.store(FREE, Ordering::Release);
        self.keep_counts(link);
        self.links.places[link.number()].link = None;
        self.links.open -= 1;
        Ok(())
    }
}
