//! The calls on the links of a process that an engine takes part in.

use super::carrier::{Carrier, LinkMedium};
use super::progress::{have_arrived, look, progress, report_all, send_at_once, send_on};
use super::tables::Tables;
use super::waiting::{ForBoard, ForLinks, wait};
use crate::arrivals::{CallValues, Link, Travel, not_awaited};
use crate::error::{Error, Result};
use crate::lpf::Awaited;
use crate::slot::Slot;
use crate::waits::Consult;

/// A call on the links of a process.
///
/// It is a value, so that an engine has one method for all calls ([`Engine::on_links`](super::Engine::on_links)), and
/// an engine that contains others passes them on with one branch.
pub trait LinkCall {
    /// What the call returns.
    type Output;

    /// Carries it out.
    ///
    /// # Errors
    /// Those of the call.
    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<Self::Output>;
}

/// As [`Links::send`](crate::Links::send).
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    pub(super) link: Link,
    pub(super) src: Slot,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    pub(super) travel: Travel,
    /// As [`Engine::lends_parts`](super::Engine::lends_parts).
    pub(super) lends_parts: bool,
}

impl LinkCall for Put {
    type Output = ();

    #[inline]
    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<()> {
        let Put { link, src, offset, bytes, travel, lends_parts } = self;
        let Tables { local, links } = tables;
        let (open, put) = links.put(local, link, src, offset, bytes, travel, lends_parts)?;
        let carrier = &mut medium.carrier();
        let sent = match send_at_once(carrier, local, open, &put) {
            Ok(false) => {
                open.queue.push(put);
                send_on(carrier, local, links, link)
            }
            sent => sent.map(drop),
        };
        sent.map_err(|stop| carrier.error(local, stop))
    }
}

/// As [`Links::offer`](crate::Links::offer).
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) link: Link,
    pub(super) slot: Slot,
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

impl LinkCall for Offer {
    type Output = u64;

    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<u64> {
        let Offer { link, slot, offset, bytes } = self;
        let Tables { local, links } = tables;
        let (open, number, address) = links.offer(local, link, slot, offset, bytes)?;
        let carrier = &mut medium.carrier();
        // SAFETY: the memory is a slot's, which cannot be deregistered before the message is awaited.
        let offered = unsafe { carrier.offer(open, number, address, bytes) };
        offered.map(|()| number).map_err(|stop| carrier.error(local, stop))
    }
}

/// As [`Links::close`](crate::Links::close).
#[derive(Clone, Copy, Debug)]
pub(super) struct Close(pub(super) Link);

impl LinkCall for Close {
    type Output = ();

    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<()> {
        let Tables { local, links } = tables;
        let carrier = &mut medium.carrier();
        let moved = progress(carrier, local, links);
        moved.map_err(|stop| carrier.error(local, stop))?;
        let open = links.may_close(local, self.0)?;
        let (peer, mut unread) = (open.peer, None);
        let mut report = || {
            if carrier.has_arrived(open)? {
                // It is taken for its stamp alone: the section is over.
                let head = carrier.take(local, open).ok().flatten();
                unread = Some(head.map_or(0, |head| head.stamp));
                return Ok(());
            }
            carrier.report(open)
        };
        let mut closed = report();
        if let Some(word) = unread {
            let cause = not_awaited(peer, links.call_of(word));
            closed = Err(Error::fatal(local.pid, local.superstep, cause).into());
        }
        let closed =
            closed.and_then(|()| links.remove(self.0).map_or(Ok(()), |open| carrier.close(open)));
        closed.map_err(|stop| carrier.error(local, stop))
    }
}

/// Progress on all links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress;

impl LinkCall for Progress {
    type Output = ();

    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<()> {
        let Tables { local, links } = tables;
        let carrier = &mut medium.carrier();
        progress(carrier, local, links).map_err(|stop| carrier.error(local, stop))
    }
}

/// Reports all releases.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportReleases;

impl LinkCall for ReportReleases {
    type Output = ();

    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<()> {
        let Tables { local, links } = tables;
        let carrier = &mut medium.carrier();
        report_all(carrier, links).map_err(|stop| carrier.error(local, stop))
    }
}

/// As [`Links::poll`](crate::Links::poll).
#[derive(Clone, Copy, Debug)]
pub(super) struct Poll<'a>(pub(super) Awaited<'a>);

impl LinkCall for Poll<'_> {
    type Output = bool;

    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<bool> {
        let Tables { local, links } = tables;
        let polled = {
            let carrier = &mut medium.carrier();
            let mut poll = || {
                carrier.look()?;
                progress(carrier, local, links)?;
                let has_arrived = have_arrived(carrier, local, links, self.0, None)?;
                if !has_arrived {
                    // As in a wait: the process that polls may be waiting.
                    report_all(carrier, links)?;
                }
                Ok(has_arrived)
            };
            poll().map_err(|stop| carrier.error(local, stop))?
        };
        if polled { Ok(true) } else { medium.failure().map_or(Ok(false), Err) }
    }
}

/// Waits until the awaited has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitFor<'a> {
    pub(super) awaited: Awaited<'a>,
    /// Those of the call that waits, if they are known.
    pub(super) values: Option<&'a dyn CallValues>,
}

impl LinkCall for WaitFor<'_> {
    type Output = ();

    #[inline]
    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<()> {
        let WaitFor { awaited, values } = self;
        wait(medium, &mut ForLinks { tables, awaited, values }, |what, medium| {
            let is_long = medium.is_long();
            let Tables { local, links } = &mut *what.tables;
            let carrier = &mut medium.carrier();
            let looked = look(carrier, local, links, awaited, values).and_then(|has_arrived| {
                if is_long && !has_arrived {
                    report_all(carrier, links)?;
                }
                Ok(has_arrived)
            });
            looked.map_err(|stop| carrier.error(local, stop))
        })
    }
}

/// As [`Runtime::consult`](crate::Runtime::consult).
#[derive(Debug)]
pub(super) struct ConsultBoard<'a, F> {
    pub(super) wait: Consult<'a>,
    pub(super) found: F,
}

impl<R, F: FnMut() -> Result<Option<R>>> LinkCall for ConsultBoard<'_, F> {
    type Output = R;

    fn run<M: LinkMedium>(mut self, medium: &mut M, tables: &mut Tables) -> Result<R> {
        medium.awaits_record();
        tables.links.known.join(tables.links.call);
        let mut answer = None;
        wait(medium, &mut ForBoard { tables, wait: self.wait }, |what, medium| {
            match (self.found)() {
                Ok(None) => {}
                Err(error) if error.is_fatal() => return Err(error),
                other => {
                    answer = Some(other);
                    return Ok(true);
                }
            }
            let is_long = medium.is_long();
            let Tables { local, links } = &mut *what.tables;
            let carrier = &mut medium.carrier();
            let moved = progress(carrier, local, links)
                .and_then(|()| if is_long { report_all(carrier, links) } else { Ok(()) });
            moved.map(|()| false).map_err(|stop| carrier.error(local, stop))
        })?;
        let answer = answer.transpose()?.flatten();
        answer.ok_or_else(|| unreachable!("the wait ends with an answer or an error"))
    }
}
