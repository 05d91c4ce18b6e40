//! Waiting for messages or a flush: look, spin, yield, sleep until somebody rings.

use std::time::Duration;

use lpf_core::wait::{Patience, Waiter};
use lpf_core::waits::Consult;
use lpf_core::{Awaited, Result};

use super::asking::Asking;
use super::receive::report_aloud;
use crate::futex;
use crate::sync::Ordering;
use crate::threads::Threads;

/// So many looks follow each other without a pause, which takes up to 40 ns, as long as a message: a look
/// takes long enough not to disturb the sender (AMD EPYC: a broadcast of 8 bytes 118 ns with pauses, 100
/// without).
const AT_ONCE: u32 = 64;

impl Threads {
    /// Progress, and whether the awaited is there.
    #[inline]
    pub(crate) fn poll_links(&mut self, awaited: Awaited<'_>) -> Result<bool> {
        self.progress()?;
        let ready = match awaited {
            Awaited::Flushed => self.links.busy().all(|link| link.is_flushed()),
            Awaited::FlushedOn(links) => self.is_flushed_on(links)?,
            Awaited::Messages(messages) => {
                let mut ready = true;
                for expect in messages {
                    ready &= self.take_arrivals(expect.link)?;
                }
                if ready {
                    self.links.finish(messages);
                }
                ready
            }
        };
        if !ready && self.comm.failure.is_set() {
            return Err(self.die());
        }
        Ok(ready)
    }

    /// Waits until `awaited` is there: spin, yield, sleep.
    pub(crate) fn wait_for(&mut self, awaited: Awaited<'_>) -> Result<()> {
        let patience = self.patience();
        let at_once = if patience.spins > 0 { AT_ONCE } else { 1 };
        for _ in 0..at_once {
            if self.poll_links(awaited)? {
                return Ok(());
            }
        }
        let mut is_rung = None;
        let result = self.wait_long(awaited, patience, &mut is_rung);
        if is_rung.is_some() {
            self.comm.peers[self.local.pid as usize].bell.asleep.store(0, Ordering::Relaxed);
        }
        result
    }

    /// `is_rung` is whether others are sure to ring, once they have been asked to.
    fn wait_long(
        &mut self,
        awaited: Awaited<'_>,
        patience: Patience,
        is_rung: &mut Option<bool>,
    ) -> Result<()> {
        let mut waiter = Waiter::new(patience);
        let mut asking = Asking::default();
        loop {
            if let Some(time) = waiter.pause() {
                self.sleep_for_bell(awaited, time, is_rung)?;
                asking.look(self, &|process| process.links.wants(awaited))?;
            }
            if self.poll_links(awaited)? {
                asking.end(self);
                return Ok(());
            }
        }
    }

    /// Waits until `found` finds what it looks for on the board.
    pub(crate) fn consult_board<R>(
        &mut self,
        wait: Consult<'_>,
        mut found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        let call = self.links.call;
        let comm = self.comm.clone();
        self.links.known.join(call);
        let mut waiter = Waiter::new(self.patience());
        let mut asking = Asking::default();
        loop {
            match found() {
                Ok(Some(found)) => {
                    asking.end(self);
                    return Ok(found);
                }
                Ok(None) => {}
                Err(error) if error.is_fatal() => return Err(self.die()),
                Err(error) => return Err(error),
            }
            self.progress()?;
            if comm.failure.is_set() {
                return Err(self.die());
            }
            if let Some(time) = waiter.pause() {
                self.report_releases();
                std::thread::sleep(time.min(wait.look_every));
                asking.look(self, &|process| wait.wants(call, &process.links.known))?;
            }
        }
    }

    pub(super) fn patience(&self) -> Patience {
        let cores = self.comm.environment.cores;
        Patience::for_processes(self.local.nprocs as usize, cores)
    }

    /// Sleeps until another process rings. The word that asks for it is set before the last look, and a barrier on
    /// all threads lies between: a process that sends after the look sees the word. It is set until the wait ends,
    /// because the barrier interrupts all cores. No process sleeps on releases that it has not reported: their
    /// sender may be what the awaited process waits for.
    #[cold]
    fn sleep_for_bell(
        &mut self,
        awaited: Awaited<'_>,
        time: Duration,
        is_rung: &mut Option<bool>,
    ) -> Result<()> {
        let comm = self.comm.clone();
        let bell = &comm.peers[self.local.pid as usize].bell;
        let rings = bell.rings.load(Ordering::Acquire);
        self.report_releases();
        let is_rung = *is_rung.get_or_insert_with(|| {
            bell.asleep.store(1, Ordering::SeqCst);
            futex::barrier_everywhere()
        });
        let ready = self.poll_links(awaited)?;
        if !ready {
            let time = if is_rung { comm.barrier.longest_sleep() } else { time };
            futex::sleep(&bell.rings, rings, time);
        }
        Ok(())
    }

    pub(crate) fn report_releases(&mut self) {
        let Threads { links, comm, .. } = self;
        let Ok(()) = links.for_unreported(|open| {
            report_aloud(open, comm);
            Ok::<_, std::convert::Infallible>(())
        });
    }

    /// Before a full sync or the end of a section: everything leaves, every release is reported.
    pub(crate) fn settle_links(&mut self) -> Result<()> {
        self.expect_messages(&[])?;
        self.report_releases();
        self.wait_for(Awaited::Flushed)
    }
}
