//! Inboxes and links: made and given up.

use std::sync::Arc;

use lpf_core::arrivals::{InboxShape, InboxSlot, Link};
use lpf_core::runtime::Tables;
use lpf_core::runtime::links::{LinkTable, OpenLink};
use lpf_core::{Pid, Result};

use super::ring::{self, FREE, InboxMemory, process_of};
use super::{End, Links};
use crate::sync::Ordering;
use crate::threads::ThreadEngine;

impl ThreadEngine {
    pub(crate) fn new_inbox(&self, tables: &mut Tables, shape: InboxShape) -> Result<InboxSlot> {
        let Tables { local, links } = tables;
        LinkTable::check_shape(local, shape)?;
        let memory = InboxMemory::new(shape);
        let memory = memory.map_err(|bytes| local.refused("an inbox", bytes))?;
        self.peer(local).add_inbox(Arc::new(memory));
        Ok(links.add_inbox(local, shape))
    }

    pub(crate) fn open_link(
        &mut self,
        tables: &mut Tables,
        inbox: InboxSlot,
        ring: usize,
        peer: Pid,
        peer_ring: usize,
    ) -> Result<Link> {
        let Tables { local, links } = tables;
        let shape = links.may_open(local, inbox, ring, peer, peer_ring)?;
        let number = inbox.number();
        let find = |who: Pid| self.comm.peers[who].inbox(number);
        let (Some(own), Some(theirs)) = (find(local.pid), find(peer)) else {
            let text = format!("inbox {number} was deregistered");
            return Err(local.link_misuse(text));
        };
        if theirs.shape != own.shape {
            let text = format!("inbox {number} has another shape at process {peer}");
            return Err(local.link_misuse(text));
        }
        // This process alone grants it, and takes it back.
        if own.owner(ring).granted.load(Ordering::Relaxed) != FREE {
            return Err(LinkTable::ring_is_taken(local, inbox, ring));
        }
        let (link, open) = links.add(shape, inbox, ring, peer, peer_ring, true);
        let owner = own.owner(ring);
        // The ring's counts go on where its last link ended; the peer's are read when it grants.
        let first_received = owner.released.load(Ordering::Relaxed);
        let first_offer = owner.offered.load(Ordering::Relaxed);
        let peer_name = ring::end(peer, open.received_before.opened);
        owner.granted.store(peer_name, Ordering::Release);
        let end = End {
            own,
            theirs,
            ring,
            peer_ring,
            name: ring::end(local.pid, open.sent_before.opened),
            peer_name,
            first_sent: 0,
            first_landed: 0,
            first_received,
            first_offer,
            borrowed: 0,
        };
        self.ends.add(open, end);
        self.comm.peers[peer].ring();
        Ok(link)
    }
}

impl Links<'_> {
    /// Gives the two rings back.
    pub(super) fn give_back(&self, open: &OpenLink, end: &End) {
        let End { own, theirs, .. } = end;
        own.owner(open.ring).granted.store(FREE, Ordering::Relaxed);
        if open.is_granted {
            theirs.sender(open.peer_ring).claim.store(FREE, Ordering::Release);
            let next = theirs.owner(open.peer_ring).granted.load(Ordering::Relaxed);
            let (next, _) = process_of(next);
            if let Some(next) = self.comm.peers.get(next) {
                next.ring();
            }
        }
    }
}
