//! What carries the messages of an engine's links, under a name that does not depend on the engine.

use lpf_core::arrivals::Queued;
use lpf_core::runtime::links::{LinkTable, OpenLink};
use lpf_core::runtime::{Carrier, Former, Head, LinkCall, LinkMedium, LocalState, Tables};
use lpf_core::waits::{Status, Stream};
use lpf_core::{Error, Pid, Result};

/// A step with what carries the messages of a process's links.
pub(crate) struct OnPlain<F>(pub(crate) F);

impl<R, F> LinkCall for OnPlain<F>
where
    F: FnOnce(&mut dyn Carrier<Stop = Error>, &LocalState, &mut LinkTable) -> Result<R>,
{
    type Output = R;

    #[inline]
    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<R> {
        let Tables { local, links } = tables;
        let mut plain = Plain { carrier: medium.carrier(), local };
        (self.0)(&mut plain, local, links)
    }
}

/// A carrier whose calls end with plain errors.
struct Plain<'a, C> {
    carrier: C,
    local: &'a LocalState,
}

impl<C: Carrier> Plain<'_, C> {
    #[inline]
    fn plain<R>(&self, done: std::result::Result<R, C::Stop>) -> Result<R> {
        done.map_err(|stop| self.carrier.error(self.local, stop))
    }
}

impl<C: Carrier> Carrier for Plain<'_, C> {
    type Stop = Error;

    fn error(&self, _local: &LocalState, stop: Error) -> Error {
        stop
    }

    fn look(&mut self) -> Result<()> {
        let done = self.carrier.look();
        self.plain(done)
    }

    fn hear(&mut self, links: &mut LinkTable) -> Result<()> {
        let done = self.carrier.hear(links);
        self.plain(done)
    }

    fn grant(&mut self, local: &LocalState, link: &mut OpenLink, known: &Status) -> Result<()> {
        let done = self.carrier.grant(local, link, known);
        self.plain(done)
    }

    fn former_sender(&self, owner: Pid, to_me: Stream, ring: usize, known: &Status) -> Former {
        self.carrier.former_sender(owner, to_me, ring, known)
    }

    fn take_ring(&mut self, link: &OpenLink) -> Result<Option<u64>> {
        let done = self.carrier.take_ring(link);
        self.plain(done)
    }

    fn learn_credit(&mut self, link: &mut OpenLink) {
        self.carrier.learn_credit(link);
    }

    fn finish_sends(&mut self, link: &mut OpenLink) -> Result<()> {
        let done = self.carrier.finish_sends(link);
        self.plain(done)
    }

    fn offered(&mut self, link: &OpenLink) -> Option<usize> {
        self.carrier.offered(link)
    }

    unsafe fn send(&mut self, link: &mut OpenLink, message: &Queued) -> Result<bool> {
        // SAFETY: the caller's promises are the same.
        let done = unsafe { self.carrier.send(link, message) };
        self.plain(done)
    }

    fn has_sent(&mut self, link: &OpenLink) {
        self.carrier.has_sent(link);
    }

    fn report(&mut self, link: &mut OpenLink) -> Result<()> {
        let done = self.carrier.report(link);
        self.plain(done)
    }

    fn has_arrived(&mut self, link: &OpenLink) -> Result<bool> {
        let done = self.carrier.has_arrived(link);
        self.plain(done)
    }

    fn take(&mut self, local: &LocalState, link: &mut OpenLink) -> Result<Option<Head>> {
        let done = self.carrier.take(local, link);
        self.plain(done)
    }

    unsafe fn offer(
        &mut self,
        link: &OpenLink,
        number: u64,
        address: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promises are the same.
        let done = unsafe { self.carrier.offer(link, number, address, bytes) };
        self.plain(done)
    }

    fn close(&mut self, link: OpenLink) -> Result<()> {
        let done = self.carrier.close(link);
        self.plain(done)
    }
}
