//! Inboxes and links: made and given up.

use std::sync::Arc;

use lpf_core::arrivals::{InboxShape, InboxSlot, Link, not_awaited};
use lpf_core::{Error, Pid, Result};

use super::ring::{self, FREE, InboxMemory, process_of};
use super::{End, LinkTable};
use crate::sync::Ordering;
use crate::threads::Threads;

impl Threads {
    pub(crate) fn add_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot> {
        LinkTable::check_shape(&self.local, shape)?;
        let memory = InboxMemory::new(shape);
        let memory = memory.map_err(|bytes| self.local.refused("an inbox", bytes))?;
        self.own_peer().add_inbox(Arc::new(memory));
        Ok(self.links.add_inbox(&mut self.local, shape))
    }

    pub(crate) fn remove_inbox(&mut self, inbox: InboxSlot) -> Result<()> {
        self.links.remove_inbox(&mut self.local, inbox)?;
        let memory = self.own_peer().remove_inbox(inbox.number());
        self.removed.extend(memory.map(|memory| (inbox.number(), memory)));
        Ok(())
    }

    pub(crate) fn open_link(
        &mut self,
        inbox: InboxSlot,
        ring: u32,
        peer: Pid,
        peer_ring: u32,
    ) -> Result<Link> {
        let shape = self.links.may_open(&self.local, inbox, ring, peer, peer_ring)?;
        let number = inbox.number();
        let find = |who: Pid| self.comm.peers[who as usize].inbox(number);
        let (Some(own), Some(theirs)) = (find(self.local.pid), find(peer)) else {
            let text = format!("inbox {number} was deregistered");
            return Err(self.local.link_misuse(text));
        };
        if theirs.shape != own.shape {
            let text = format!("inbox {number} has another shape at process {peer}");
            return Err(self.local.link_misuse(text));
        }
        // This process alone grants it, and takes it back.
        if own.owner(ring).granted.load(Ordering::Relaxed) != FREE {
            return Err(LinkTable::ring_is_taken(&self.local, inbox, ring));
        }
        let pid = self.local.pid;
        let link = self.links.add(shape, inbox, ring, peer, peer_ring, |sent, received| {
            let owner = own.owner(ring);
            // The ring's counts go on where its last link ended; the peer's are read when it grants.
            let first_received = owner.released.load(Ordering::Relaxed);
            let first_offer = owner.offered.load(Ordering::Relaxed);
            owner.granted.store(ring::end(peer, received.opened), Ordering::Release);
            End {
                own,
                theirs,
                ring,
                peer_ring,
                name: ring::end(pid, sent.opened),
                granted: false,
                peer_name: ring::end(peer, received.opened),
                first_sent: 0,
                first_landed: 0,
                first_received,
                first_offer,
                lent: 0,
                borrowed: 0,
            }
        });
        self.comm.peers[peer as usize].ring();
        Ok(link)
    }

    pub(crate) fn close_link(&mut self, link: Link) -> Result<()> {
        let open = self.links.may_close(&self.local, link)?;
        if open.end.has_arrived(open.incoming.seen + 1) && open.end.is_served() {
            let cause = not_awaited(open.peer);
            let error = Error::fatal(self.local.pid, self.local.superstep, cause);
            return Err(self.fail_before(self.meeting + 1, error));
        }
        open.end.report(&mut open.incoming);
        let End { own, theirs, granted, .. } = &open.end;
        own.owner(open.ring).granted.store(FREE, Ordering::Relaxed);
        if *granted {
            theirs.sender(open.peer_ring).claim.store(FREE, Ordering::Release);
            let next = theirs.owner(open.peer_ring).granted.load(Ordering::Relaxed);
            let (next, _) = process_of(next);
            if let Some(next) = self.comm.peers.get(next as usize) {
                next.ring();
            }
        }
        self.links.remove(link);
        Ok(())
    }
}
