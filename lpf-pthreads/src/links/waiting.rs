//! Waiting for messages or a flush: look, spin, yield, sleep until somebody rings.

use std::time::Duration;

use lpf_core::arrivals::Link;
use lpf_core::wait::{Patience, Waiter};
use lpf_core::waits::Consult;
use lpf_core::{Awaited, Result};

use super::asking::Asking;
use super::receive::report_aloud;
use super::{LinkTable, OpenLink};
use crate::futex;
use crate::sync::Ordering;
use crate::threads::{Tables, ThreadEngine};

/// So many looks follow each other without a pause, which takes up to 40 ns, as long as a message: a look
/// takes long enough not to disturb the sender (AMD EPYC: a broadcast of 8 bytes 118 ns with pauses, 100
/// without).
const AT_ONCE: u32 = 64;

impl ThreadEngine {
    /// Progress, and whether the awaited is there.
    #[inline]
    pub(crate) fn poll_links(&mut self, tables: &mut Tables, awaited: Awaited<'_>) -> Result<bool> {
        self.progress(tables)?;
        let ready = match awaited {
            Awaited::Flushed => tables.links.busy().all(|link| link.is_flushed()),
            Awaited::FlushedOn(links) => is_flushed_on(tables, links)?,
            Awaited::Messages(messages) => {
                let mut ready = true;
                for expect in messages {
                    ready &= self.take_arrivals(tables, expect.link)?;
                }
                if ready {
                    tables.links.finish(messages);
                }
                ready
            }
        };
        if !ready {
            if self.comm.failure.is_set() {
                return Err(self.report(&tables.local));
            }
            self.check_process(&tables.local)?;
        }
        Ok(ready)
    }

    /// Waits until `awaited` is there: spin, yield, sleep.
    pub(crate) fn wait(&mut self, tables: &mut Tables, awaited: Awaited<'_>) -> Result<()> {
        if matches!(awaited, Awaited::Flushed) && self.is_flushed_at_once(tables) {
            return Ok(());
        }
        let patience = self.patience();
        let at_once = if patience.spins > 0 { AT_ONCE } else { 1 };
        for _ in 0..at_once {
            if self.poll_links(tables, awaited)? {
                return Ok(());
            }
        }
        let mut is_rung = None;
        let result = self.wait_long(tables, awaited, patience, &mut is_rung);
        if is_rung.is_some() {
            self.peer(&tables.local).bell.asleep.store(0, Ordering::Relaxed);
        }
        result
    }

    /// `is_rung` is whether others are sure to ring, once they have been asked to.
    fn wait_long(
        &mut self,
        tables: &mut Tables,
        awaited: Awaited<'_>,
        patience: Patience,
        is_rung: &mut Option<bool>,
    ) -> Result<()> {
        let mut waiter = Waiter::new(patience);
        let mut asking = Asking::default();
        loop {
            if let Some(time) = waiter.pause() {
                self.sleep_for_bell(tables, awaited, time, is_rung)?;
                asking.look(self, tables, &|tables| tables.links.wants(awaited))?;
            }
            if self.poll_links(tables, awaited)? {
                asking.end(self, tables);
                return Ok(());
            }
        }
    }

    /// Waits until `found` finds what it looks for on the board.
    pub(crate) fn consult_board<R>(
        &mut self,
        tables: &mut Tables,
        wait: Consult<'_>,
        mut found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        let call = tables.links.call;
        tables.links.known.join(call);
        let mut waiter = Waiter::new(self.patience());
        let mut asking = Asking::default();
        loop {
            match found() {
                Ok(Some(found)) => {
                    asking.end(self, tables);
                    return Ok(found);
                }
                Ok(None) => {}
                Err(error) if error.is_fatal() => return Err(self.report(&tables.local)),
                Err(error) => return Err(error),
            }
            self.progress(tables)?;
            if self.comm.failure.is_set() {
                return Err(self.report(&tables.local));
            }
            if let Some(time) = waiter.pause() {
                self.report_all(&mut tables.links);
                std::thread::sleep(time.min(wait.look_every));
                asking.look(self, tables, &|tables| wait.wants(call, &tables.links.known))?;
            }
        }
    }

    fn patience(&self) -> Patience {
        let cores = self.comm.environment.cores;
        Patience::for_processes(self.comm.processes(), cores)
    }

    /// Sleeps until another process rings. The word that asks for it is set before the last look, and a barrier on
    /// all threads lies between: a process that sends after the look sees the word. It is set until the wait ends,
    /// because the barrier interrupts all cores. No process sleeps on releases that it has not reported: their
    /// sender may be what the awaited process waits for.
    #[cold]
    fn sleep_for_bell(
        &mut self,
        tables: &mut Tables,
        awaited: Awaited<'_>,
        time: Duration,
        is_rung: &mut Option<bool>,
    ) -> Result<()> {
        let comm = self.comm.clone();
        let bell = &comm.peers[tables.local.pid as usize].bell;
        let rings = bell.rings.load(Ordering::Acquire);
        self.report_all(&mut tables.links);
        let is_rung = *is_rung.get_or_insert_with(|| {
            bell.asleep.store(1, Ordering::SeqCst);
            futex::barrier_everywhere()
        });
        let ready = self.poll_links(tables, awaited)?;
        if !ready {
            let time = if is_rung { comm.barrier.longest_sleep() } else { time };
            futex::sleep(&bell.rings, rings, time);
        }
        Ok(())
    }

    pub(crate) fn report_all(&self, links: &mut LinkTable) {
        let Ok(()) = links.for_unreported(|open| {
            report_aloud(open, &self.comm);
            Ok::<_, std::convert::Infallible>(())
        });
    }
}

fn is_flushed_on(tables: &Tables, links: &[Link]) -> Result<bool> {
    links.iter().try_fold(true, |all, &link| {
        Ok(all & tables.links.get(&tables.local, link).map(OpenLink::is_flushed)?)
    })
}
