//! The sender's side: how one message leaves.

use std::mem::MaybeUninit;

use super::super::tags;
use super::super::transport::{Piece, Transport};
use super::super::watch::Stop;
use super::layout::HEAD;
use super::rings::OnNet;
use lpf_core::arrivals::Queued;
use lpf_core::runtime::Carrier;
use lpf_core::runtime::links::OpenLink;

/// Set in a head's length: the message went to a landing.
pub(super) const LANDED: u64 = 1 << 63;

/// A message of at most this length is copied, so that its source is free at once.
const COPIED: usize = 1 << 10;

/// The head of a message.
fn head(length: u64, stamp: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&length.to_le_bytes());
    head[8..].copy_from_slice(&stamp.to_le_bytes());
    head
}

impl<T: Transport> OnNet<'_, T> {
    /// Sends the next message. Returns false if too many messages of the link are in flight.
    ///
    /// # Safety
    /// As [`Carrier::send`].
    pub(super) unsafe fn send_one(
        &mut self,
        link: &mut OpenLink,
        put: &Queued,
    ) -> Result<bool, Stop> {
        if link.in_flight.len() >= link.shape.window as usize {
            // The memory of a head is used again a window later.
            self.finish_sends(link)?;
            if link.in_flight.len() >= link.shape.window as usize {
                return Ok(false);
            }
        }
        let OnNet { rings, net } = self;
        let Some(inbox) = &rings.inboxes[link.inbox] else { return Ok(true) };
        let end = rings.ends.of_mut(link);
        let rank = rings.members[link.peer];
        let ring = inbox.first_ring + link.peer_ring;
        let cells = tags::cells(rings.context, ring);
        let number = link.outgoing.sent;
        let flag = if put.is_landing() { LANDED } else { 0 };
        let length = put.bytes as u64 | flag;
        let source = Piece { base: put.address.cast_mut(), bytes: put.bytes };
        let head = || head(length, put.stamp);
        if put.is_landing() {
            match &end.there {
                Some(ring) => {
                    // SAFETY: no bytes.
                    unsafe { ring.send(number, length, put.stamp, Piece { bytes: 0, ..source }) };
                }
                None => net.send_copy(rank, cells, &head())?,
            }
            let landings = tags::landings(rings.context, ring);
            // SAFETY: the put's source is not written before the next flush, which waits for this send.
            let ticket = unsafe { net.send(rank, landings, &[source]) }?;
            end.in_flight.push_back(ticket);
            link.in_flight.push_back(put.slot);
            end.peer_offers.pop_front();
        } else if let Some(ring) = &end.there {
            // SAFETY: the put checked its source, a user's memory, and that a cell is as long.
            unsafe { ring.send(number, length, put.stamp, source) };
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
            let place = end.heads.piece(at..at + HEAD);
            // SAFETY: the head of the message a window earlier has left: fewer are in flight.
            unsafe { place.base.cast::<[u8; HEAD]>().write(head()) };
            // SAFETY: as for a landing; the head's memory goes with the link, which is flushed first.
            let ticket = unsafe { net.send(rank, cells, &[place, source]) }?;
            end.in_flight.push_back(ticket);
            link.in_flight.push_back(put.slot);
        }
        Ok(true)
    }
}
