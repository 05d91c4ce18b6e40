//! Inboxes and links: made and given up.

use std::collections::VecDeque;
use std::sync::Arc;

use lpf_core::arrivals::{
    Call, InboxShape, InboxSlot, Incoming, Link, MAX_WINDOW, Outgoing, Queue, not_awaited,
};
use lpf_core::waits::Stream;
use lpf_core::{Error, Pid, Result};

use super::ring::{self, FREE, InboxMemory, process_of};
use super::{Links, OpenLink, Place};
use crate::sync::Ordering;
use crate::threads::Threads;

impl Threads {
    pub(crate) fn add_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot> {
        if shape.window == 0 || shape.window > MAX_WINDOW {
            let text =
                format!("an inbox's window is 1 to {MAX_WINDOW} cells, not {}", shape.window);
            return Err(self.local.arrivals_misuse(text));
        }
        let memory = InboxMemory::new(shape);
        let memory = memory.map_err(|bytes| self.local.refused("an inbox", bytes))?;
        let number = self.comm.peers[self.local.pid as usize].add_inbox(Arc::new(memory));
        self.local.note_inbox(shape.fingerprint() ^ 1);
        self.links.inboxes = number + 1;
        Ok(InboxSlot::new(number as u32))
    }

    pub(crate) fn remove_inbox(&mut self, inbox: InboxSlot) -> Result<()> {
        let number = inbox.number();
        let own = &self.comm.peers[self.local.pid as usize];
        let Some(inbox) = own.inbox(number) else {
            let text = format!("inbox {number} is not registered");
            return Err(self.local.arrivals_misuse(text));
        };
        let open =
            |place: &Place| place.link.as_ref().is_some_and(|link| link.inbox as usize == number);
        if self.links.places.iter().any(open) {
            let text = format!("inbox {number} has open links; close them first");
            return Err(self.local.arrivals_misuse(text));
        }
        own.remove_inbox(number);
        self.links.removed.push((number, inbox));
        self.local.note_inbox(number as u64 ^ 2 << 32);
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
        if number >= self.links.active_inboxes {
            let text = format!("inbox {number} is not active; register it and sync first");
            return Err(self.local.arrivals_misuse(text));
        }
        let find = |who: Pid| self.comm.peers[who as usize].inbox(number);
        let (Some(own), Some(theirs)) = (find(self.local.pid), find(peer)) else {
            let text = format!("inbox {number} was deregistered");
            return Err(self.local.arrivals_misuse(text));
        };
        if theirs.shape != own.shape {
            let text = format!("inbox {number} has another shape at process {peer}");
            return Err(self.local.arrivals_misuse(text));
        }
        let rings = own.shape.rings;
        if ring >= rings || peer_ring >= rings {
            let text = format!("inbox {number} has rings 0 to {}", rings.saturating_sub(1));
            return Err(self.local.arrivals_misuse(text));
        }
        let owner = own.owner(ring);
        // This process alone grants it, and takes it back.
        if owner.granted.load(Ordering::Relaxed) != FREE {
            let text = format!("ring {ring} of inbox {number} carries a link already");
            return Err(self.local.arrivals_misuse(text));
        }
        let (sent_before, received_before) = {
            let mut status = self.own_peer().lock_status();
            let sent = &mut status.on_mut(Stream::new(self.local.pid, peer, inbox, peer_ring)).sent;
            sent.opened += 1;
            let sent = *sent;
            let received =
                &mut status.on_mut(Stream::new(peer, self.local.pid, inbox, ring)).received;
            received.opened += 1;
            (sent, *received)
        };
        // The ring's counts go on where its last link ended; the peer's are read when it grants.
        let released = owner.released.load(Ordering::Relaxed);
        let offered = owner.offered.load(Ordering::Relaxed);
        owner.granted.store(ring::end(peer, received_before.opened), Ordering::Release);
        self.comm.peers[peer as usize].ring();
        let window = own.shape.window as usize;
        let open = OpenLink {
            peer,
            inbox: number as u32,
            ring,
            peer_ring,
            own,
            theirs,
            outgoing: Outgoing::default(),
            incoming: Incoming::starting_at(released),
            queue: Queue::with_capacity(2 * window),
            end: ring::end(self.local.pid, sent_before.opened),
            granted: false,
            sent_before,
            received_before,
            first_sent: 0,
            first_landed: 0,
            landed: 0,
            offered,
            first_offer: offered,
            offers_used: offered,
            offers: VecDeque::with_capacity(window),
            lent: 0,
            borrowed: 0,
            call: Call::default(),
        };
        let Links { places, open: is_open, busy, owing, .. } = &mut self.links;
        let is_free = |place: &Place| place.link.is_none() && place.generation < u32::MAX;
        let free = if *is_open < places.len() { places.iter().position(is_free) } else { None };
        let number = free.unwrap_or_else(|| {
            places.push(Place { generation: 0, link: None });
            busy.grow(places.len());
            owing.grow(places.len());
            places.len() - 1
        });
        let place = &mut places[number];
        place.generation += 1;
        place.link = Some(open);
        *is_open += 1;
        Ok(Link::new(number as u32, place.generation))
    }

    pub(crate) fn close_link(&mut self, link: Link) -> Result<()> {
        let open = self.link_mut(link)?;
        open.incoming.release_unheld();
        let open_offers = open.offered - open.offers_used;
        if open.incoming.unreleased() > 0 || !open.is_flushed() || open_offers > 0 {
            let text = format!(
                "{link} has {} unreleased messages, {} puts that have not left and {open_offers} open offers",
                open.incoming.unreleased(),
                open.outgoing.made - open.outgoing.sent
            );
            return Err(self.local.arrivals_misuse(text));
        }
        if open.own.has_arrived(open.ring, open.incoming.seen + 1) && open.is_served() {
            let cause = not_awaited(open.peer);
            let error = Error::fatal(self.local.pid, self.local.superstep, cause);
            return Err(self.fail_before(self.meeting + 1, error));
        }
        open.report();
        open.own.owner(open.ring).granted.store(FREE, Ordering::Relaxed);
        if open.granted {
            open.theirs.sender(open.peer_ring).claim.store(FREE, Ordering::Release);
            let (next, _) =
                process_of(open.theirs.owner(open.peer_ring).granted.load(Ordering::Relaxed));
            if let Some(next) = self.comm.peers.get(next as usize) {
                next.ring();
            }
        }
        self.keep_counts(link);
        let Links { places, open, busy, owing, .. } = &mut self.links;
        places[link.number()].link = None;
        busy.remove(link.number());
        owing.remove(link.number());
        *open -= 1;
        Ok(())
    }
}
