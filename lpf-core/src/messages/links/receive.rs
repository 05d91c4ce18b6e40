//! The receiver's side: what is awaited, what has come, what is released, where landings go.

use super::super::meeting::nonsense;
use super::super::process::Process;
use super::super::tags;
use super::super::transport::{Piece, Transport};
use super::super::watch::Stop;
use super::send::LANDED;
use super::{Arrived, Links, Offer, OpenLink};
use crate::arrivals::{Arrival, Call, Expect, Link};
use crate::error::{AtCaller, Cause, Error, Result};
use crate::lpf::Awaited;
use crate::runtime::LocalState;
use crate::slot::Slot;

impl<T: Transport> Process<T> {
    /// Releases what finished waits were for and nobody holds, and adds what this one awaits.
    pub(in super::super) fn expect_messages(&mut self, messages: &[Expect]) -> Result<()> {
        self.alive()?;
        let (local, links) = (&self.local, &mut self.links);
        // Everything is checked before anything changes: a misuse has no effect.
        for expect in messages {
            let open = links.link(local, expect.link)?;
            let may = open.incoming.may_await(expect.link, messages, open.shape.window);
            may.map_err(|cause| local.misuse(cause))?;
        }
        for open in links.places.iter_mut().filter_map(|place| place.link.as_deref_mut()) {
            open.incoming.release_unheld();
            open.outgoing.made_at_sync = open.outgoing.made;
        }
        let call = links.call;
        for expect in messages {
            let open = links.link_mut(local, expect.link)?;
            open.incoming.awaited += u64::from(expect.messages);
            open.call = call;
        }
        Ok(())
    }

    pub(in super::super) fn arrived(&self, link: Link, nth: u64) -> Result<Arrival> {
        let open = self.links.link(&self.local, link)?;
        if !open.incoming.is_readable(nth) {
            return Err(self.not_readable(link, nth));
        }
        let Arrived { bytes, landing } =
            open.arrived[(nth % u64::from(open.shape.window)) as usize];
        let (data, offer) = match landing {
            Some((offer, address)) => (address.cast_const(), offer),
            None => {
                let inbox = || self.links.inboxes[open.inbox].as_ref();
                let cell = match &open.here {
                    Some(ring) => Some(ring.data(nth, bytes)),
                    None => inbox().map(|inbox| inbox.cell(open.ring, nth)[1].base),
                };
                (cell.unwrap_or(std::ptr::null_mut()).cast_const(), 0)
            }
        };
        Ok(Arrival { data, bytes, landed: landing.is_some(), offer })
    }

    #[cold]
    fn not_readable(&self, link: Link, nth: u64) -> Error {
        let text = format!("message {nth} on {link} was not awaited, or is released");
        self.local.arrivals_misuse(text)
    }

    pub(in super::super) fn landing_pays_from_on(&self, link: Link) -> Result<usize> {
        let open = self.links.link(&self.local, link)?;
        Ok(if open.is_near { usize::MAX } else { open.shape.cell_bytes.saturating_add(1) })
    }

    pub(in super::super) fn longest_part_on(&self, link: Link) -> Result<usize> {
        Ok(self.links.link(&self.local, link)?.shape.cell_bytes)
    }

    pub(in super::super) fn awaited_on(&self, link: Link) -> Result<u64> {
        Ok(self.links.link(&self.local, link)?.incoming.awaited)
    }

    pub(in super::super) fn hold_message(&mut self, link: Link, nth: u64) -> Result<()> {
        let open = self.links.link_mut(&self.local, link)?;
        if !open.incoming.is_readable(nth) {
            return Err(self.not_readable(link, nth));
        }
        if open.incoming.hold(nth) {
            return Ok(());
        }
        Err(self.local.arrivals_misuse(format!("a message on {link} is held already")))
    }

    pub(in super::super) fn release_message(
        &mut self,
        link: Link,
        nth: u64,
        held: bool,
    ) -> Result<()> {
        let incoming = &mut self.links.link_mut(&self.local, link)?.incoming;
        if if held { incoming.release_held(nth) } else { incoming.release(nth) } {
            return Ok(());
        }
        let text = format!("message {nth} on {link} was not awaited, is released, or is held");
        Err(self.local.arrivals_misuse(text))
    }

    #[track_caller]
    pub(in super::super) fn offer_on(
        &mut self,
        link: Link,
        slot: Slot,
        offset: usize,
        bytes: usize,
    ) -> Result<u64> {
        self.alive()?;
        let local = &self.local;
        let Some(entry) = local.slots.local_side(slot) else {
            return Err(local.unknown(slot)).at_caller();
        };
        let Some(address) = entry.range(offset, bytes) else {
            return Err(local.out_of_range(slot, offset, bytes)).at_caller();
        };
        let network = self.network.clone();
        let mut shared = network.lock();
        let net = &mut shared.net;
        let links = &mut self.links;
        let open = links.link(local, link)?;
        if open.offers.len() >= open.shape.window as usize {
            let text = format!("more than {} open offers on {link}", open.shape.window);
            return Err(local.arrivals_misuse(text));
        }
        let ring =
            links.inboxes[open.inbox].as_ref().map_or(0, |inbox| inbox.first_ring + open.ring);
        let rank = links.members[open.peer as usize];
        let tag = tags::landings(links.context, ring);
        // SAFETY: the memory is the runtime's until the sync that awaited the message, or a fatal
        // error, which cancels the receive.
        let posted = unsafe { net.receive(rank, tag, &[Piece { base: address, bytes }]) };
        let told = posted.map_err(Stop::Broken).and_then(|ticket| {
            // Known before it is told: whatever fails then gives the receive up.
            let open = links.link_mut(local, link).map_err(Stop::Fatal)?;
            open.offers.push_back(Offer { slot, address, ticket, done: false });
            open.offered += 1;
            let nth = open.offered - 1;
            links.tell_offer(net, links.link(local, link).map_err(Stop::Fatal)?, bytes)?;
            Ok(nth)
        });
        told.map_err(|stop| {
            let error = self.watch.stopped(net.control(), self.local.superstep, stop);
            self.die(net, error)
        })
    }
}

impl Links {
    /// Whether an open offer names `slot`.
    pub(in super::super) fn is_offered(&self, slot: Slot) -> bool {
        self.open_links().any(|link| link.offers.iter().any(|offer| offer.slot == slot))
    }

    /// Whether a put on a link that has not left names `slot`.
    pub(in super::super) fn is_leaving(&self, slot: Slot) -> bool {
        let names = |link: &OpenLink| {
            link.queue.names(slot) || link.in_flight.iter().any(|sent| sent.slot == slot)
        };
        self.open_links().any(names)
    }

    /// Whether all links that a wait names are open.
    pub(super) fn check_links(&self, local: &LocalState, awaited: Awaited<'_>) -> Result<()> {
        match awaited {
            Awaited::Flushed => Ok(()),
            Awaited::FlushedOn(links) => {
                links.iter().try_for_each(|&link| self.link(local, link).map(|_| ()))
            }
            Awaited::Messages(messages) => {
                messages.iter().try_for_each(|expect| self.link(local, expect.link).map(|_| ()))
            }
        }
    }

    /// Whether the awaited is there; what has come of messages is told to their owner then.
    pub(super) fn is_there<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        awaited: Awaited<'_>,
    ) -> std::result::Result<bool, Stop> {
        match awaited {
            Awaited::Flushed => {
                let open = self.places.iter_mut().filter_map(|place| place.link.as_deref_mut());
                Self::are_flushed(net, open)
            }
            Awaited::FlushedOn(links) => {
                for &link in links {
                    if !Self::are_flushed(net, self.find_mut(link))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Awaited::Messages(messages) => {
                let mut ready = true;
                for expect in messages {
                    ready &= self.take_arrivals(net, local, expect.link)?;
                }
                if ready {
                    for expect in messages {
                        if let Some(open) = self.find_mut(expect.link) {
                            open.incoming.finished = open.incoming.awaited;
                        }
                    }
                }
                Ok(ready)
            }
        }
    }

    fn are_flushed<'a, T: Transport>(
        net: &mut T,
        links: impl IntoIterator<Item = &'a mut OpenLink>,
    ) -> std::result::Result<bool, Stop> {
        for link in links {
            Self::finish_sends(net, link)?;
            if !link.is_flushed() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all awaited messages of a link are there; checks their stamps.
    fn take_arrivals<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        link: Link,
    ) -> std::result::Result<bool, Stop> {
        self.on(link.number(), |links, open| links.take_from(net, local, open)).unwrap_or(Ok(true))
    }

    /// The length and the stamp of the next message, if it has come.
    #[inline]
    pub(super) fn head<T: Transport>(
        &self,
        net: &mut T,
        open: &mut OpenLink,
        message: u64,
    ) -> std::result::Result<Option<(u64, u64)>, Stop> {
        if let Some(ring) = &open.here {
            return Ok(ring.come(message));
        }
        if !open.head_came {
            // The receive of the next message: cells that were released are posted with the report,
            // which `progress` has made if this wait depends on it.
            let Some(ticket) = open.cells.front() else { return Ok(None) };
            if net.test(ticket)?.is_none() {
                return Ok(None);
            }
            open.cells.pop_front();
            open.head_came = true;
        }
        let Some(inbox) = &self.inboxes[open.inbox] else { return Ok(None) };
        let head = inbox.head(open.ring, message);
        let word = |at: usize| {
            let bytes = head[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        Ok(Some((word(0), word(8))))
    }

    fn take_from<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        open: &mut OpenLink,
    ) -> std::result::Result<bool, Stop> {
        while open.incoming.seen < open.incoming.awaited {
            let message = open.incoming.seen;
            let slot = (message % u64::from(open.shape.window)) as usize;
            let Some((length, stamp)) = self.head(net, open, message)? else { return Ok(false) };
            let bytes = (length & !LANDED) as usize;
            let mut landing = None;
            if length & LANDED != 0 {
                let Some(offer) = open.offers.front_mut() else {
                    return Err(Stop::Fatal(nonsense(open.peer)));
                };
                if !offer.done {
                    offer.done = net.test(&offer.ticket)?.is_some();
                }
                if !offer.done {
                    return Ok(false);
                }
                landing = Some((open.offers_used, offer.address));
                open.offers_used += 1;
                open.offers.pop_front();
            } else if bytes > open.shape.cell_bytes {
                return Err(Stop::Fatal(nonsense(open.peer)));
            }
            open.arrived[slot] = Arrived { bytes, landing };
            open.head_came = false;
            open.incoming.seen += 1;
            if open.call.word() != 0 && stamp != open.call.word() {
                return Err(Stop::Fatal(stamps_differ(local, open.call, open.peer, stamp)));
            }
        }
        Ok(true)
    }
}

#[cold]
fn stamps_differ(local: &LocalState, call: Call, peer: crate::Pid, stamp: u64) -> Error {
    let text = call.differs(local.pid, peer, stamp);
    Error::fatal(peer, local.superstep, Cause::Deadlock(text))
}
