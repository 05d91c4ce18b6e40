//! The receiver's side: what is awaited, what has come, what is released, where landings go.

use super::super::meeting::nonsense;
use super::super::process::{Messages, Tables};
use super::super::tags;
use super::super::transport::{Piece, Transport};
use super::super::watch::Stop;
use super::send::{LANDED, finish_sends};
use super::{Arrived, Links, Offer, OpenLink, Rings};
use lpf_core::Awaited;
use lpf_core::arrivals::{Arrival, Call, Link};
use lpf_core::error::{Cause, Error, Result};
use lpf_core::runtime::LocalState;
use lpf_core::slot::Slot;

impl<T: Transport> Messages<T> {
    pub(in super::super) fn offer_on(
        &mut self,
        tables: &mut Tables,
        link: Link,
        slot: Slot,
        offset: usize,
        bytes: usize,
    ) -> Result<u64> {
        let Messages { network, rings, watch, .. } = self;
        let Tables { local, links: table } = tables;
        let net = &mut network.lock().net;
        let (open, number, address) = table.offer(local, link, slot, offset, bytes)?;
        let inbox = rings.inboxes[open.inbox].as_ref();
        let ring = inbox.map_or(0, |inbox| inbox.first_ring + open.ring);
        let rank = rings.members[open.peer as usize];
        let tag = tags::landings(rings.context, ring);
        // SAFETY: the memory is the runtime's until the sync that awaited the message, or a fatal
        // error, which cancels the receive.
        let posted = unsafe { net.receive(rank, tag, &[Piece { base: address, bytes }]) };
        let told = posted.map_err(Stop::Broken).and_then(|ticket| {
            // Known before it is told: whatever fails then gives the receive up.
            open.end.offers.push_back(Offer { address, ticket, done: false });
            rings.tell_offer(net, open, bytes)
        });
        let stopped = |stop| watch.stopped(net.control(), local.superstep, stop);
        told.map(|()| number).map_err(stopped)
    }
}

impl Rings {
    /// A message that was awaited and is not released.
    pub(in super::super) fn arrival(&self, open: &OpenLink, nth: u64) -> Arrival {
        let Arrived { bytes, landing } =
            open.end.arrived[(nth % u64::from(open.shape.window)) as usize];
        let (data, offer) = match landing {
            Some((offer, address)) => (address.cast_const(), offer),
            None => {
                let inbox = || self.inboxes[open.inbox].as_ref();
                let cell = match &open.end.here {
                    Some(ring) => Some(ring.data(nth, bytes)),
                    None => inbox().map(|inbox| inbox.cell(open.ring, nth)[1].base),
                };
                (cell.unwrap_or(std::ptr::null_mut()).cast_const(), 0)
            }
        };
        Arrival { data, bytes, landed: landing.is_some(), offer }
    }
}

impl Links<'_> {
    /// Whether the awaited is there; what has come of messages is told to their owner then.
    pub(super) fn is_there<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        awaited: Awaited<'_>,
    ) -> std::result::Result<bool, Stop> {
        let Links { table, rings, .. } = self;
        match awaited {
            Awaited::Flushed => {
                let mut all = true;
                table.for_busy(|link, _| {
                    finish_sends(net, link)?;
                    all &= link.is_flushed();
                    Ok::<_, Stop>(())
                })?;
                Ok(all)
            }
            Awaited::FlushedOn(links) => {
                for &link in links {
                    let Some(link) = table.find_mut(link) else { continue };
                    finish_sends(net, link)?;
                    if !link.is_flushed() {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Awaited::Messages(messages) => {
                let mut ready = true;
                for expect in messages {
                    let Some(open) = table.find_mut(expect.link) else { continue };
                    ready &= rings.take_from(net, local, open)?;
                }
                if ready {
                    table.finish(messages);
                }
                Ok(ready)
            }
        }
    }
}

impl Rings {
    /// The length and the stamp of the next message, if it has come.
    #[inline]
    pub(super) fn head<T: Transport>(
        &self,
        net: &mut T,
        open: &mut OpenLink,
        message: u64,
    ) -> std::result::Result<Option<(u64, u64)>, Stop> {
        if let Some(ring) = &open.end.here {
            return Ok(ring.come(message));
        }
        if !open.end.head_came {
            // The receive of the next message: cells that were released are posted with the report,
            // which `progress` has made if this wait depends on it.
            let Some(ticket) = open.end.cells.front() else { return Ok(None) };
            if net.test(ticket)?.is_none() {
                return Ok(None);
            }
            open.end.cells.pop_front();
            open.end.head_came = true;
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
                let Some(offer) = open.end.offers.front_mut() else {
                    return Err(Stop::Fatal(nonsense(open.peer)));
                };
                if !offer.done {
                    offer.done = net.test(&offer.ticket)?.is_some();
                }
                if !offer.done {
                    return Ok(false);
                }
                landing = Some((open.offers_used, offer.address));
                open.end.offers.pop_front();
                open.use_offer();
            } else if bytes > open.shape.cell_bytes {
                return Err(Stop::Fatal(nonsense(open.peer)));
            }
            open.end.arrived[slot] = Arrived { bytes, landing };
            open.end.head_came = false;
            open.incoming.seen += 1;
            if open.call.word() != 0 && stamp != open.call.word() {
                return Err(Stop::Fatal(stamps_differ(local, open.call, open.peer, stamp)));
            }
        }
        Ok(true)
    }
}

#[cold]
fn stamps_differ(local: &LocalState, call: Call, peer: lpf_core::Pid, stamp: u64) -> Error {
    let text = call.differs(local.pid, peer, stamp);
    Error::fatal(peer, local.superstep, Cause::Disagreement(text))
}
