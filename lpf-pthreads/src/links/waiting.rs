//! Waiting for messages or a flush: look, spin, yield, sleep until somebody rings.

use lpf_core::arrivals::Link;
use lpf_core::runtime::{ForBoard, ForLinks, wait};
use lpf_core::wait::Patience;
use lpf_core::waits::Consult;
use lpf_core::{Awaited, Result};

use super::receive::report_aloud;
use super::{LinkTable, OpenLink};
use crate::long_wait::OnThread;
use crate::threads::{Tables, ThreadEngine};

/// So many looks follow each other without a pause, which takes up to 40 ns, as long as a message: a look
/// takes long enough not to disturb the sender (AMD EPYC: a broadcast of 8 bytes 118 ns with pauses, 100
/// without).
const AT_ONCE: u32 = 64;

impl ThreadEngine {
    /// Progress, and whether the awaited is there.
    #[inline]
    pub(crate) fn poll_links(&self, tables: &mut Tables, awaited: Awaited<'_>) -> Result<bool> {
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

    /// Waits until `awaited` is there.
    pub(crate) fn wait(&self, tables: &mut Tables, awaited: Awaited<'_>) -> Result<()> {
        if matches!(awaited, Awaited::Flushed) && self.is_flushed_at_once(tables) {
            return Ok(());
        }
        let at_once = if self.patience().spins > 0 { AT_ONCE } else { 1 };
        for _ in 0..at_once {
            if self.poll_links(tables, awaited)? {
                return Ok(());
            }
        }
        let mut medium = OnThread::new(self, tables.local.pid);
        wait(&mut medium, &mut ForLinks { tables, awaited }, |what, medium| {
            if medium.is_sleepy() {
                self.report_all(&mut what.tables.links);
            }
            self.poll_links(what.tables, awaited)
        })
    }

    /// Waits until `found` finds what it looks for on the board.
    pub(crate) fn consult_board<R>(
        &self,
        tables: &mut Tables,
        consult: Consult<'_>,
        mut found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        tables.links.known.join(tables.links.call);
        let mut medium = OnThread::at_board(self, tables.local.pid);
        let mut answer = None;
        wait(&mut medium, &mut ForBoard { tables, wait: consult }, |what, medium| {
            match found() {
                Ok(None) => {}
                Err(error) if error.is_fatal() => return Err(error),
                other => {
                    answer = Some(other);
                    return Ok(true);
                }
            }
            if medium.is_sleepy() {
                self.report_all(&mut what.tables.links);
            }
            self.progress(what.tables).map(|()| false)
        })?;
        let answer = answer.transpose()?.flatten();
        answer.ok_or_else(|| unreachable!("the wait ends with an answer or an error"))
    }

    pub(crate) fn patience(&self) -> Patience {
        let cores = self.comm.environment.cores;
        Patience::for_processes(self.comm.processes(), cores)
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
