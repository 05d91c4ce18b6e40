//! Links: opened and closed.

use lpf_core::arrivals::Link;
use lpf_core::runtime::Tables;
use lpf_core::runtime::links::{OpenLink, Opening};
use lpf_core::{Pid, Result};

use super::ring::{self, FREE, process_of};
use super::{End, Links};
use crate::sync::Ordering;
use crate::threads::ThreadEngine;

impl ThreadEngine {
    pub(crate) fn open_link(&mut self, tables: &mut Tables, opening: Opening) -> Result<Link> {
        let Tables { local, links } = tables;
        let Opening { inbox, ring, peer, peer_ring, .. } = opening;
        let number = inbox.number();
        let find = |who: Pid| self.comm.peer(who).inbox(number);
        let (Some(own), Some(theirs)) = (find(local.pid), find(peer)) else {
            let text = format!("inbox {number} was deregistered");
            return Err(local.link_misuse(text));
        };
        if theirs.shape != own.shape {
            let text = format!("inbox {number} has another shape at process {peer}");
            return Err(local.link_misuse(text));
        }
        // With other nodes the ring may belong to a sender there: see the carrier's `grant`.
        let is_alone = self.comm.others.is_none() && !opening.is_withheld;
        let (link, open) = links.add(opening, is_alone);
        let owner = own.owner(ring);
        // The ring's counts go on where its last link ended; the peer's are read when it grants.
        let first_received = owner.released.load(Ordering::Relaxed);
        let first_offer = owner.offered.load(Ordering::Relaxed);
        let peer_name = ring::end(open.to_me.from, open.received_before.opened);
        if is_alone {
            owner.granted.store(peer_name, Ordering::Release);
        }
        let end = End {
            own,
            theirs,
            ring,
            peer_ring,
            name: ring::end(open.to_peer.from, open.sent_before.opened),
            peer_name,
            first_sent: 0,
            first_landed: 0,
            first_received,
            first_offer,
            borrowed: 0,
        };
        self.ends.add(open, end);
        self.comm.peer(peer).ring();
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
            if next != FREE {
                self.comm.peer_with(process_of(next).0).ring();
            }
        }
    }
}
