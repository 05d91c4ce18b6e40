//! The links of a process as the runtime sees them.

use lpf_core::arrivals::Queued;
use lpf_core::runtime::links::OpenLink;
use lpf_core::runtime::{Carrier, Head, LocalState};
use lpf_core::{Error, Result};

use super::Links;
use super::receive::left_over;
use super::ring::{LANDED, LENT};
use crate::sync::Ordering;

impl Carrier for Links<'_> {
    type Stop = Error;

    #[inline]
    fn error(&self, _local: &LocalState, stop: Error) -> Error {
        stop
    }

    fn take_ring(&mut self, link: &OpenLink) -> Result<Option<u64>> {
        Ok(self.ends.of_mut(link).take_ring())
    }

    fn learn_credit(&mut self, link: &mut OpenLink) {
        self.ends.of(link).learn_all_credit(link);
    }

    fn offered(&mut self, link: &OpenLink) -> Option<usize> {
        self.ends.of(link).next_offer(link)
    }

    #[inline]
    unsafe fn send(&mut self, link: &mut OpenLink, message: &Queued) -> Result<bool> {
        // SAFETY: the caller's promises are the same.
        Ok(unsafe { self.ends.of(link).fill(link, message) })
    }

    #[inline]
    fn has_sent(&mut self, link: &OpenLink) {
        self.comm.peers[link.peer].ring();
    }

    #[inline]
    fn report(&mut self, link: &mut OpenLink) -> Result<()> {
        self.ends.of(link).report(&mut link.incoming);
        self.comm.peers[link.peer].ring();
        Ok(())
    }

    fn has_arrived(&mut self, link: &OpenLink) -> Result<bool> {
        let end = self.ends.of(link);
        Ok(end.has_arrived(link.incoming.seen + 1) && end.is_served())
    }

    #[inline]
    fn take(&mut self, local: &LocalState, link: &mut OpenLink) -> Result<Option<Head>> {
        let end = self.ends.of_mut(link);
        let nth = link.incoming.seen + 1;
        if !end.has_arrived(nth) {
            return Ok(None);
        }
        if nth == 1 && !end.is_served() {
            return Err(left_over(local, link, end));
        }
        end.learn_credit(nth, link);
        let cell = end.cell(nth);
        let length = cell.length.load(Ordering::Relaxed);
        let stamp = cell.stamp.load(Ordering::Relaxed);
        if length & LENT != 0 {
            if !end.loan(nth).take() {
                return Err(self.comm.report(local));
            }
            end.borrowed = nth;
        }
        Ok(Some(Head { stamp, is_landing: length & LANDED != 0 }))
    }

    unsafe fn offer(
        &mut self,
        link: &OpenLink,
        number: u64,
        address: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        self.ends.of(link).show_offer(link, number, address, bytes);
        self.comm.peers[link.peer].ring();
        Ok(())
    }

    fn close(&mut self, link: OpenLink) -> Result<()> {
        if let Some(end) = self.ends.remove(&link) {
            self.give_back(&link, &end);
        }
        Ok(())
    }
}
