//! The links of a process as the runtime sees them.

use super::super::transport::Transport;
use super::super::watch::{OnNetwork, Stop};
use super::super::wire::nonsense;
use super::rings::{OnNet, Rings};
use lpf_core::Pid;
use lpf_core::arrivals::Queued;
use lpf_core::error::{Cause, Error};
use lpf_core::runtime::links::{LinkTable, OpenLink};
use lpf_core::runtime::{Carrier, Former, Head, LinkMedium, LocalState};
use lpf_core::waits::{Status, Stream};

impl<T: Transport> Carrier for OnNet<'_, T> {
    type Stop = Stop;

    #[cold]
    fn error(&self, local: &LocalState, stop: Stop) -> Error {
        match stop {
            Stop::Fatal(error) => error,
            Stop::Invalid(from) => nonsense(local.known_as(from), local.superstep),
            Stop::Broken(broken) => {
                let members = &self.rings.members;
                let peer = broken.peer.and_then(|rank| members.iter().position(|&one| one == rank));
                let pid = local.known_as(peer.unwrap_or(local.pid));
                Error::fatal(pid, local.superstep, Cause::Died { reason: broken.reason })
            }
        }
    }

    fn look(&mut self) -> Result<(), Stop> {
        Ok(self.net.progress()?)
    }

    #[inline]
    fn hear(&mut self, links: &mut LinkTable) -> Result<(), Stop> {
        self.hear_all(links)
    }

    fn grant(
        &mut self,
        local: &LocalState,
        link: &mut OpenLink,
        known: &Status,
    ) -> Result<(), Stop> {
        self.rings.grant(self.net, local, link, known)
    }

    fn former_sender(&self, _owner: Pid, to_me: Stream, ring: usize, known: &Status) -> Former {
        match self.rings.last_sender(to_me, ring, known) {
            None => Former::None,
            Some((from, opening, None)) => Former::Holds(from, opening),
            Some((from, _, Some(left))) => Former::Left(from, left),
        }
    }

    /// The peer grants it by a message, with the place of the ring if this process can reach it.
    fn take_ring(&mut self, link: &OpenLink) -> Result<Option<u64>, Stop> {
        let Rings { ends, inboxes, members, .. } = &mut *self.rings;
        let end = ends.of_mut(link);
        let Some(grant) = end.grant else { return Ok(None) };
        if grant > 0 {
            let inbox = inboxes[link.inbox].as_ref();
            let owner = members[link.peer];
            end.there = inbox.and_then(|inbox| inbox.at(self.net, owner, grant - 1));
            if end.there.is_none() {
                return Err(Stop::Invalid(link.peer));
            }
        }
        Ok(Some(0))
    }

    /// The owner of a ring within reach writes it there; else it is heard.
    #[inline]
    fn learn_credit(&mut self, link: &mut OpenLink) {
        if let Some(ring) = &self.rings.ends.of(link).there {
            link.outgoing.released = ring.released();
        }
    }

    /// The oldest first.
    #[inline]
    fn finish_sends(&mut self, link: &mut OpenLink) -> Result<(), Stop> {
        while !link.in_flight.is_empty() {
            let end = self.rings.ends.of_mut(link);
            let Some(ticket) = end.in_flight.front() else { break };
            if self.net.test(ticket)?.is_none() {
                break;
            }
            end.in_flight.pop_front();
            link.in_flight.pop_front();
        }
        Ok(())
    }

    fn offered(&mut self, link: &OpenLink) -> Option<usize> {
        self.rings.ends.of(link).peer_offers.front().copied()
    }

    unsafe fn send(&mut self, link: &mut OpenLink, message: &Queued) -> Result<bool, Stop> {
        // SAFETY: the caller's promises are the same.
        unsafe { self.send_one(link, message) }
    }

    #[inline]
    fn has_sent(&mut self, link: &OpenLink) {
        if self.rings.ends.of(link).there.is_some() {
            self.net.wake(self.rings.members[link.peer]);
        }
    }

    fn report(&mut self, link: &mut OpenLink) -> Result<(), Stop> {
        self.rings.report(self.net, link)
    }

    fn has_arrived(&mut self, link: &OpenLink) -> Result<bool, Stop> {
        Ok(self.head(link)?.is_some())
    }

    fn take(&mut self, _local: &LocalState, link: &mut OpenLink) -> Result<Option<Head>, Stop> {
        self.take_one(link)
    }

    unsafe fn offer(
        &mut self,
        link: &OpenLink,
        _number: u64,
        address: *mut u8,
        bytes: usize,
    ) -> Result<(), Stop> {
        // SAFETY: the caller's promises are the same.
        unsafe { self.post_offer(link, address, bytes) }
    }

    fn close(&mut self, link: OpenLink) -> Result<(), Stop> {
        let told = self.rings.tell_closed(self.net, &link);
        let end = self.rings.ends.remove(&link);
        self.rings.is_quiet &= end.is_none_or(|end| end.give_up(self.net));
        told
    }
}

impl<T: Transport> LinkMedium for OnNetwork<'_, T, &mut Rings> {
    fn carrier(&mut self) -> impl Carrier + '_ {
        OnNet { rings: self.rings, net: self.net }
    }

    fn is_long(&self) -> bool {
        self.is_long()
    }
}
