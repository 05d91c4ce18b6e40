//! The receiver's side: arrivals, releases and landings.

use super::super::tags;
use super::super::transport::{Piece, Transport};
use super::super::watch::Stop;
use super::rings::{Arrived, Offer, OnNet, Rings};
use super::send::LANDED;
use lpf_core::arrivals::Arrival;
use lpf_core::runtime::Head;
use lpf_core::runtime::links::OpenLink;

impl Rings {
    /// A message that was awaited and is not released.
    pub(in super::super) fn arrival(&self, open: &OpenLink, nth: u64) -> Arrival {
        let end = self.ends.of(open);
        let Arrived { bytes, landing } = end.arrived[(nth % u64::from(open.shape.window)) as usize];
        let (data, offer) = match landing {
            Some((offer, address)) => (address.cast_const(), offer),
            None => {
                let inbox = || self.inboxes[open.inbox].as_ref();
                let cell = match &end.here {
                    Some(ring) => Some(ring.data(nth, bytes)),
                    None => inbox().map(|inbox| inbox.cell(open.ring, nth)[1].base),
                };
                (cell.unwrap_or(std::ptr::null_mut()).cast_const(), 0)
            }
        };
        Arrival { data, bytes, landed: landing.is_some(), offer }
    }
}

impl<T: Transport> OnNet<'_, T> {
    /// The length and the stamp of the message after those seen, if it has arrived.
    #[inline]
    pub(super) fn head(&mut self, open: &OpenLink) -> Result<Option<(u64, u64)>, Stop> {
        let OnNet { rings, net } = self;
        let (message, end) = (open.incoming.seen, rings.ends.of_mut(open));
        if let Some(ring) = &end.here {
            return Ok(ring.come(message));
        }
        if !end.head_came {
            // The receive of the next message. Receives for released cells are posted with the report, which `progress` has
            // made if this wait depends on it.
            let Some(ticket) = end.cells.front() else { return Ok(None) };
            if net.test(ticket)?.is_none() {
                return Ok(None);
            }
            end.cells.pop_front();
            end.head_came = true;
        }
        let Some(inbox) = &rings.inboxes[open.inbox] else { return Ok(None) };
        let head = inbox.head(open.ring, message);
        let word = |at: usize| {
            let bytes = head[at..at + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(bytes)
        };
        Ok(Some((word(0), word(8))))
    }

    /// The message after those seen, if it has arrived.
    #[inline]
    pub(super) fn take_one(&mut self, open: &OpenLink) -> Result<Option<Head>, Stop> {
        let Some((length, stamp)) = self.head(open)? else { return Ok(None) };
        let is_landing = length & LANDED != 0;
        let bytes = (length & !LANDED) as usize;
        let end = self.rings.ends.of_mut(open);
        let mut landing = None;
        if is_landing {
            let Some(offer) = end.offers.front_mut() else {
                return Err(Stop::Invalid(open.peer));
            };
            if !offer.done {
                offer.done = self.net.test(&offer.ticket)?.is_some();
            }
            if !offer.done {
                return Ok(None);
            }
            landing = Some((open.offers_used, offer.address));
            end.offers.pop_front();
        } else if bytes > open.shape.cell_bytes {
            return Err(Stop::Invalid(open.peer));
        }
        let slot = (open.incoming.seen % u64::from(open.shape.window)) as usize;
        end.arrived[slot] = Arrived { bytes, landing };
        end.head_came = false;
        Ok(Some(Head { stamp, is_landing }))
    }

    /// Posts the receive of a landing, and sends the offer.
    ///
    /// # Safety
    /// As [`Carrier::offer`](lpf_core::runtime::Carrier::offer).
    pub(super) unsafe fn post_offer(
        &mut self,
        open: &OpenLink,
        address: *mut u8,
        bytes: usize,
    ) -> Result<(), Stop> {
        let OnNet { rings, net } = self;
        let inbox = rings.inboxes[open.inbox].as_ref();
        let ring = inbox.map_or(0, |inbox| inbox.first_ring + open.ring);
        let rank = rings.members[open.peer];
        let tag = tags::landings(rings.context, ring);
        // SAFETY: the caller promises that the memory stays valid until the message is awaited or the engine gives up, which
        // cancels the receive.
        let ticket = unsafe { net.receive(rank, tag, &[Piece { base: address, bytes }]) }?;
        // Stored before the offer is sent: if sending fails, giving up cancels the receive.
        rings.ends.of_mut(open).offers.push_back(Offer { address, ticket, done: false });
        rings.tell_offer(*net, open, bytes)
    }
}
