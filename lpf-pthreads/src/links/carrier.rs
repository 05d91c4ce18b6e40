//! The links of a process as the runtime sees them.

use lpf_core::Pid;
use lpf_core::arrivals::Queued;
use lpf_core::runtime::links::OpenLink;
use lpf_core::runtime::{Carrier, Former, Head, LocalState};
use lpf_core::waits::{Status, Stream};
use lpf_core::{Error, Result};

use super::Links;
use super::receive::left_over;
use super::ring::{FREE, LANDED, LENT, process_of};
use crate::sync::Ordering;

impl Carrier for Links<'_> {
    type Stop = Error;

    #[inline]
    fn error(&self, _local: &LocalState, stop: Error) -> Error {
        stop
    }

    fn grant(&mut self, _local: &LocalState, link: &mut OpenLink, _known: &Status) -> Result<()> {
        let end = self.ends.of(link);
        end.own.owner(link.ring).granted.store(end.peer_name, Ordering::Release);
        link.has_granted = true;
        self.comm.peer(link.peer).ring();
        Ok(())
    }

    fn former_sender(&self, owner: Pid, to_me: Stream, ring: usize, _known: &Status) -> Former {
        let Some(own) = self.comm.peer(owner).inbox(to_me.inbox) else { return Former::None };
        let (sender, owner) = (own.sender(ring), own.owner(ring));
        let claim = sender.claim.load(Ordering::Acquire);
        if claim != FREE {
            let (pid, opening) = process_of(claim);
            return Former::Holds(pid, opening);
        }
        let sent = sender.sent.load(Ordering::Relaxed);
        let (from, _) = process_of(sender.served.load(Ordering::Relaxed));
        Former::Left(from, sent.saturating_sub(owner.released.load(Ordering::Relaxed)))
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
        self.comm.peer(link.peer).ring();
    }

    #[inline]
    fn report(&mut self, link: &mut OpenLink) -> Result<()> {
        self.ends.of(link).report(&mut link.incoming);
        self.comm.peer(link.peer).ring();
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
        self.comm.peer(link.peer).ring();
        Ok(())
    }

    fn close(&mut self, link: OpenLink) -> Result<()> {
        if let Some(end) = self.ends.remove(&link) {
            self.give_back(&link, &end);
        }
        Ok(())
    }
}
