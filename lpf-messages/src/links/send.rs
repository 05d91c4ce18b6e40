//! The sender's side: puts leave as grants, credits and offers allow.

use std::mem::MaybeUninit;

use super::super::meeting::nonsense;
use super::super::process::{Messages, Tables};
use super::super::tags;
use super::super::transport::{Piece, Transport};
use super::super::watch::Stop;
use super::inboxes::HEAD;
use super::{InFlight, Links, OpenLink, Rings};
use lpf_core::arrivals::{Call, InboxShape, Link, Queued, Travel};
use lpf_core::check::Place;
use lpf_core::error::{Cause, Error, Result};
use lpf_core::runtime::LocalState;
use lpf_core::slot::Slot;

/// Set in a head's length: the message went to a landing.
pub(super) const LANDED: u64 = 1 << 63;

/// A message up to here is copied, and its source free at once.
const COPIED: usize = 1 << 10;

impl<T: Transport> Messages<T> {
    /// Queues a put on a link and lets it leave if it can.
    pub(in super::super) fn put_on(
        &mut self,
        tables: &mut Tables,
        link: Link,
        src: Slot,
        offset: usize,
        bytes: usize,
        travel: Travel,
    ) -> Result<()> {
        let Messages { network, rings, watch, .. } = self;
        let Tables { local, links: table } = tables;
        let longest_part = |shape: InboxShape| shape.cell_bytes;
        let put = table.put(local, link, src, offset, bytes, travel, longest_part);
        let (open, put) = put?;
        open.queue.push(put);
        let net = &mut network.lock().net;
        let mut links = Links { table, rings };
        let sent = links.send_on(net, local, link).and_then(|all| match all {
            true => Ok(true),
            // What it waits for may have come.
            false => links.hear(net).and_then(|()| links.send_on(net, local, link)),
        });
        sent.map(drop).map_err(|stop| watch.stopped(net.control(), local.superstep, stop))
    }
}

impl Links<'_> {
    fn send_on<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        link: Link,
    ) -> std::result::Result<bool, Stop> {
        let Links { table, rings, .. } = self;
        let call = table.call;
        table.find_mut(link).map_or(Ok(true), |open| rings.send_queued(net, local, call, open))
    }
}

impl Rings {
    /// Lets queued puts leave; whether the queue is empty then.
    pub(super) fn send_queued<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        call: Call,
        link: &mut OpenLink,
    ) -> std::result::Result<bool, Stop> {
        while let Some(granted) = link.end.granted
            && self.may_send(net, link, granted)?
        {
            let Some(next) = link.queue.next() else { break };
            if next.is_landing() {
                let Some(&room) = link.end.peer_offers.front() else { break };
                if next.bytes > room {
                    let text = format!(
                        "process {} sends {} bytes to process {}, which has room for {room}: the two do not agree on the length",
                        self.pid, next.bytes, link.peer
                    );
                    let error = Error::fatal(self.pid, local.superstep, Cause::Disagreement(text));
                    return Err(Stop::Fatal(error.at_known(call.place.map(Place::from))));
                }
            }
            if link.end.in_flight.len() >= link.shape.window as usize {
                // Heads are used again a window later.
                finish_sends(net, link)?;
                if link.end.in_flight.len() >= link.shape.window as usize {
                    break;
                }
            }
            self.send_one(net, link, &next)?;
            link.queue.pop(&next);
        }
        Ok(link.queue.is_empty())
    }

    /// Whether a granted link has credit; where there was none its owner may have said so meanwhile.
    #[inline]
    fn may_send<T: Transport>(
        &self,
        net: &T,
        link: &mut OpenLink,
        granted: u64,
    ) -> std::result::Result<bool, Stop> {
        if granted > 0 && link.end.there.is_none() {
            let owner = self.members[link.peer as usize];
            let inbox = self.inboxes[link.inbox].as_ref();
            link.end.there = inbox.and_then(|inbox| inbox.at(net, owner, granted - 1));
            if link.end.there.is_none() {
                return Err(Stop::Fatal(nonsense(link.peer)));
            }
        }
        let window = link.shape.window;
        if let Some(ring) = &link.end.there
            && !link.outgoing.may_send(window)
        {
            link.outgoing.released = ring.released();
        }
        Ok(link.outgoing.may_send(window))
    }

    fn send_one<T: Transport>(
        &mut self,
        net: &mut T,
        link: &mut OpenLink,
        put: &Queued,
    ) -> std::result::Result<(), Stop> {
        let Some(inbox) = &self.inboxes[link.inbox] else { return Ok(()) };
        let rank = self.members[link.peer as usize];
        let ring = inbox.first_ring + link.peer_ring;
        let cells = tags::cells(self.context, ring);
        let number = link.outgoing.sent;
        let flag = if put.is_landing() { LANDED } else { 0 };
        let length = put.bytes as u64 | flag;
        let source = Piece { base: put.address.cast_mut(), bytes: put.bytes };
        let head = || {
            let mut head = [0; HEAD];
            head[..8].copy_from_slice(&length.to_le_bytes());
            head[8..].copy_from_slice(&put.stamp.to_le_bytes());
            head
        };
        if put.is_landing() {
            match &link.end.there {
                Some(ring) => {
                    // SAFETY: no bytes.
                    unsafe { ring.send(number, length, put.stamp, Piece { bytes: 0, ..source }) };
                    net.wake(rank);
                }
                None => net.send_copy(rank, cells, &head())?,
            }
            let landings = tags::landings(self.context, ring);
            // SAFETY: the put's source is the runtime's until the next flush, which waits for this.
            let ticket = unsafe { net.send(rank, landings, &[source]) }?;
            link.end.in_flight.push_back(InFlight { slot: put.slot, ticket });
            link.end.peer_offers.pop_front();
            link.landed += 1;
        } else if let Some(ring) = &link.end.there {
            // SAFETY: the put checked its source, a user's memory, and that a cell is as long.
            unsafe { ring.send(number, length, put.stamp, source) };
            net.wake(rank);
        } else if put.bytes <= COPIED {
            let mut message = MaybeUninit::<[u8; HEAD + COPIED]>::uninit();
            let base = message.as_mut_ptr().cast::<u8>();
            // SAFETY: the put checked its source, which nobody writes before the flush; there is room for the
            // head and so many bytes, which are all that is read.
            let message = unsafe {
                base.cast::<[u8; HEAD]>().write(head());
                std::ptr::copy_nonoverlapping(put.address, base.add(HEAD), put.bytes);
                std::slice::from_raw_parts(base, HEAD + put.bytes)
            };
            net.send_copy(rank, cells, message)?;
        } else {
            let at = (number % u64::from(link.shape.window)) as usize * HEAD;
            let place = link.end.heads.piece(at..at + HEAD);
            // SAFETY: the head of the message a window earlier has left: fewer are in flight.
            unsafe { place.base.cast::<[u8; HEAD]>().write(head()) };
            // SAFETY: as for a landing; the head's memory goes with the link, which is flushed first.
            let ticket = unsafe { net.send(rank, cells, &[place, source]) }?;
            link.end.in_flight.push_back(InFlight { slot: put.slot, ticket });
        }
        link.outgoing.sent += 1;
        Ok(())
    }
}

/// Forgets the sends that are over, oldest first.
pub(super) fn finish_sends<T: Transport>(
    net: &mut T,
    link: &mut OpenLink,
) -> std::result::Result<(), Stop> {
    while let Some(InFlight { ticket, .. }) = link.end.in_flight.front() {
        if net.test(ticket)?.is_none() {
            break;
        }
        link.end.in_flight.pop_front();
    }
    Ok(())
}
