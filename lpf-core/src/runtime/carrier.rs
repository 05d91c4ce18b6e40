//! What carries the messages of links, and the order in which core asks for it.

use super::LocalState;
use super::engine::Tables;
use super::links::{LinkTable, OpenLink};
use super::waiting::{ForBoard, ForLinks, Medium, wait};
use crate::Pid;
use crate::arrivals::{Call, InboxShape, Link, Queued, Travel, not_awaited};
use crate::check::Place;
use crate::error::{Cause, Error, Result};
use crate::lpf::Awaited;
use crate::slot::Slot;
use crate::waits::{Consult, Status};

/// The end of a call that cannot go on, of some carrier.
pub type Stopped<C, R> = std::result::Result<R, <C as Carrier>::Stop>;

/// A message that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The stamp of the call in which it was sent.
    pub stamp: u64,
    /// Whether it went to a landing.
    pub is_landing: bool,
}

/// The engine's part of the links of one process: the rings between two processes. Every method returns at once.
///
/// Core decides when a message may leave, when releases are reported, and what has arrived in order.
pub trait Carrier {
    /// Why a call cannot go on.
    type Stop: From<Error>;

    /// The error that this is for the section.
    fn error(&self, local: &LocalState, stop: Self::Stop) -> Error;

    /// Takes what the peers have reported, if that arrives as messages: grants, releases, offers, closings.
    ///
    /// # Errors
    /// A peer that cannot be heard.
    #[inline]
    fn hear(&mut self, _links: &mut LinkTable) -> Stopped<Self, ()> {
        Ok(())
    }

    /// Gives the ring of a link to its peer, unless its former sender still has it; then
    /// [`has_granted`](OpenLink::has_granted) is true. `known` are the counts of the links before.
    ///
    /// # Errors
    /// Messages of the former sender were not awaited.
    #[inline]
    fn grant(
        &mut self,
        local: &LocalState,
        link: &mut OpenLink,
        known: &Status,
    ) -> Stopped<Self, ()> {
        let _ = (local, link, known);
        Ok(())
    }

    /// Takes the peer's ring if the peer has granted it; then [`is_granted`](OpenLink::is_granted) is true.
    ///
    /// # Errors
    /// Messages of the former sender were not awaited.
    fn take_ring(&mut self, local: &LocalState, link: &mut OpenLink) -> Stopped<Self, ()>;

    /// Learns how many messages the peer has released, if that is not heard.
    fn learn_credit(&mut self, link: &mut OpenLink);

    /// Takes the puts that have left this process's memory out of [`in_flight`](OpenLink::in_flight).
    ///
    /// # Errors
    /// A put that cannot leave.
    #[inline]
    fn finish_sends(&mut self, link: &mut OpenLink) -> Stopped<Self, ()> {
        let _ = link;
        Ok(())
    }

    /// The length of the peer's oldest offer that no landing has used, if there is one.
    fn offered(&mut self, link: &OpenLink) -> Option<usize>;

    /// Sends the next message. Whether it has left: else it can later.
    ///
    /// # Errors
    /// The peer cannot be reached.
    ///
    /// # Safety
    /// The link has the ring, and credit for one message. The source is valid for reads until the flush, and no longer than
    /// a cell, or for a landing than the offer.
    unsafe fn send(&mut self, link: &mut OpenLink, message: &Queued) -> Stopped<Self, bool>;

    /// Messages were sent: wakes the peer.
    fn has_sent(&mut self, link: &OpenLink);

    /// Reports to the peer what is released here.
    ///
    /// # Errors
    /// The peer cannot be reached.
    fn report(&mut self, link: &mut OpenLink) -> Stopped<Self, ()>;

    /// Whether the message after those [seen](crate::arrivals::Incoming::seen) has arrived.
    ///
    /// # Errors
    /// It cannot arrive.
    fn has_arrived(&mut self, link: &OpenLink) -> Stopped<Self, bool>;

    /// The message after those seen, if it has arrived, with its landing.
    ///
    /// # Errors
    /// It cannot arrive, or is not a message of this link.
    fn take(&mut self, local: &LocalState, link: &mut OpenLink) -> Stopped<Self, Option<Head>>;

    /// Shows the peer offer `number`, counted from 0.
    ///
    /// # Errors
    /// The peer cannot be reached.
    ///
    /// # Safety
    /// The memory is valid for writes until the message is awaited or the engine gives up.
    unsafe fn offer(
        &mut self,
        link: &OpenLink,
        number: u64,
        address: *mut u8,
        bytes: usize,
    ) -> Stopped<Self, ()>;

    /// Gives the two rings back. Everything is flushed, released and reported.
    ///
    /// # Errors
    /// The peer cannot be reached.
    fn close(&mut self, link: OpenLink) -> Stopped<Self, ()>;
}

/// A medium for waits on links.
pub trait LinkMedium: Medium {
    /// What carries their messages.
    fn carrier(&mut self) -> impl Carrier + '_;

    /// Whether this wait has become so long that its process owes every report: another process may wait for one while
    /// this one waits for it.
    fn is_long(&self) -> bool;
}

/// Waits that find what they await at once, one after the other, before there is progress on all links: a process that
/// waits for a report of this one must not wait for ever.
const AT_ONCE: u32 = 64;

/// As [`Links::send`](crate::Links::send), with the longest part of a put in parts.
///
/// # Errors
/// As there.
#[inline]
#[allow(clippy::too_many_arguments)]
pub fn send<C: Carrier>(
    carrier: &mut C,
    tables: &mut Tables,
    link: Link,
    src: Slot,
    offset: usize,
    bytes: usize,
    travel: Travel,
    longest_part: impl FnOnce(InboxShape) -> usize,
) -> Result<()> {
    let Tables { local, links } = tables;
    let (open, put) = links.put(local, link, src, offset, bytes, travel, longest_part)?;
    let sent = match send_at_once(carrier, open, &put) {
        Ok(false) => {
            open.queue.push(put);
            send_on(carrier, local, links, link)
        }
        sent => sent.map(drop),
    };
    sent.map_err(|stop| carrier.error(local, stop))
}

/// Lets the queued puts of a link leave if they can.
fn send_on<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    links: &mut LinkTable,
    link: Link,
) -> Stopped<C, ()> {
    let call = links.call;
    for has_heard in [false, true] {
        let Some(open) = links.find_mut(link) else { break };
        if send_queued(carrier, local, call, open)? || has_heard {
            break;
        }
        // What they wait for may have arrived.
        carrier.hear(links)?;
    }
    Ok(())
}

/// A put of one message leaves before it was ever queued, if it can: whether it has.
#[inline]
fn send_at_once<C: Carrier>(
    carrier: &mut C,
    link: &mut OpenLink,
    put: &Queued,
) -> Stopped<C, bool> {
    let is_message = match put.travel {
        Travel::Cell => true,
        Travel::Parts(part) => put.bytes <= part,
        Travel::Landing => false,
    };
    if !(is_message && link.is_granted && link.queue.is_empty() && has_credit(carrier, link)) {
        return Ok(false);
    }
    // SAFETY: there is the ring and credit; the put checked its source and length.
    let has_left = unsafe { carrier.send(link, put) }?;
    if has_left {
        link.outgoing.sent += 1;
        carrier.has_sent(link);
    }
    Ok(has_left)
}

#[inline]
fn has_credit<C: Carrier>(carrier: &mut C, link: &mut OpenLink) -> bool {
    if link.outgoing.may_send(link.shape.window) {
        return true;
    }
    carrier.learn_credit(link);
    link.outgoing.may_send(link.shape.window)
}

/// Lets queued puts leave as ring, credit and offers allow: whether all have left.
fn send_queued<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    call: Call,
    link: &mut OpenLink,
) -> Stopped<C, bool> {
    if !link.is_granted {
        carrier.take_ring(local, link)?;
    }
    let before = link.outgoing.sent;
    while link.is_granted
        && let Some(next) = link.queue.next()
        && has_credit(carrier, link)
    {
        if next.is_landing() {
            match carrier.offered(link) {
                None => break,
                Some(room) if next.bytes > room => {
                    return Err(too_long(local, call, link.peer, next.bytes, room).into());
                }
                Some(_) => {}
            }
        }
        // SAFETY: there is the ring and credit, and an offer as long; the put checked its source and length.
        if !unsafe { carrier.send(link, &next) }? {
            break;
        }
        link.outgoing.sent += 1;
        link.landed += u64::from(next.is_landing());
        link.queue.pop(&next);
    }
    if link.outgoing.sent > before {
        carrier.has_sent(link);
    }
    Ok(link.queue.is_empty())
}

#[cold]
fn too_long(local: &LocalState, call: Call, peer: Pid, bytes: usize, room: usize) -> Error {
    let pid = local.pid;
    let text = format!(
        "process {pid} sends {bytes} bytes to process {peer}, which has room for {room}: the two do not agree on the length"
    );
    let error = Error::fatal(pid, local.superstep, Cause::Disagreement(text));
    error.at_known(call.place.map(Place::from))
}

/// Progress on all links: what peers report, what can leave, what must be reported. Never blocks.
///
/// # Errors
/// Those of the carrier.
#[inline]
pub fn progress<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    links: &mut LinkTable,
) -> Stopped<C, ()> {
    if !links.are_in_use() {
        return Ok(());
    }
    links.at_once = 0;
    carrier.hear(links)?;
    let call = links.call;
    links.for_busy(|link, known| {
        if !link.has_granted {
            carrier.grant(local, link, known)?;
        }
        if link.must_report() {
            carrier.report(link)?;
        }
        carrier.finish_sends(link)?;
        if !link.queue.is_empty() {
            send_queued(carrier, local, call, link)?;
        } else if link.is_lending() {
            carrier.learn_credit(link);
        }
        // A process that waits for credit reports all its releases. Else two full windows wait for each other.
        if !link.incoming.is_reported() && (!link.queue.is_empty() || link.is_lending()) {
            carrier.report(link)?;
        }
        Ok(())
    })
}

/// Reports all releases.
///
/// # Errors
/// Those of the carrier.
#[inline]
pub fn report_all<C: Carrier>(carrier: &mut C, links: &mut LinkTable) -> Stopped<C, ()> {
    links.for_unreported(|link| carrier.report(link))
}

/// As [`report_all`], for an engine.
///
/// # Errors
/// *Fatal*.
pub fn report_releases<C: Carrier>(carrier: &mut C, tables: &mut Tables) -> Result<()> {
    let reported = report_all(carrier, &mut tables.links);
    reported.map_err(|stop| carrier.error(&tables.local, stop))
}

/// As [`Links::offer`](crate::Links::offer).
///
/// # Errors
/// As there.
pub fn offer<C: Carrier>(
    carrier: &mut C,
    tables: &mut Tables,
    link: Link,
    slot: Slot,
    offset: usize,
    bytes: usize,
) -> Result<u64> {
    let Tables { local, links } = tables;
    let (open, number, address) = links.offer(local, link, slot, offset, bytes)?;
    // SAFETY: the memory is a slot's, which cannot be deregistered before the message is awaited.
    let offered = unsafe { carrier.offer(open, number, address, bytes) };
    offered.map(|()| number).map_err(|stop| carrier.error(local, stop))
}

/// As [`Links::close`](crate::Links::close).
///
/// # Errors
/// As there.
pub fn close<C: Carrier>(carrier: &mut C, tables: &mut Tables, link: Link) -> Result<()> {
    let Tables { local, links } = tables;
    let moved = progress(carrier, local, links);
    moved.map_err(|stop| carrier.error(local, stop))?;
    let open = links.may_close(local, link)?;
    let mut report = || {
        if carrier.has_arrived(open)? {
            let cause = not_awaited(open.peer);
            return Err(Error::fatal(local.pid, local.superstep, cause).into());
        }
        carrier.report(open)
    };
    let closed =
        report().and_then(|()| links.remove(link).map_or(Ok(()), |open| carrier.close(open)));
    closed.map_err(|stop| carrier.error(local, stop))
}

/// As [`Links::poll`](crate::Links::poll).
///
/// # Errors
/// As there.
pub fn poll<M: LinkMedium>(
    medium: &mut M,
    tables: &mut Tables,
    awaited: Awaited<'_>,
) -> Result<bool> {
    let Tables { local, links } = &mut *tables;
    let polled = {
        let mut carrier = medium.carrier();
        let polled = progress(&mut carrier, local, links).and_then(|()| {
            let has_arrived = have_arrived(&mut carrier, local, links, awaited)?;
            if !has_arrived {
                // As in a wait: the process that polls may be waiting.
                report_all(&mut carrier, links)?;
            }
            Ok(has_arrived)
        });
        polled.map_err(|stop| carrier.error(local, stop))?
    };
    if polled { Ok(true) } else { medium.failure().map_or(Ok(false), Err) }
}

/// Waits until the awaited messages have arrived.
///
/// # Errors
/// As [`poll`]; *fatal* if the wait is hopeless or too long.
#[inline]
pub fn wait_for<M: LinkMedium>(
    medium: &mut M,
    tables: &mut Tables,
    awaited: Awaited<'_>,
) -> Result<()> {
    wait(medium, &mut ForLinks { tables, awaited }, |what, medium| {
        let is_long = medium.is_long();
        let Tables { local, links } = &mut *what.tables;
        let carrier = &mut medium.carrier();
        let looked = look(carrier, local, links, awaited).and_then(|has_arrived| {
            if is_long && !has_arrived {
                report_all(carrier, links)?;
            }
            Ok(has_arrived)
        });
        looked.map_err(|stop| carrier.error(local, stop))
    })
}

/// One look of a wait: whether the awaited messages have arrived; else there is progress.
///
/// # Errors
/// Those of the carrier.
#[inline]
pub fn look<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    links: &mut LinkTable,
    awaited: Awaited<'_>,
) -> Stopped<C, bool> {
    // Asked first: a look at a network ends with what it finds then.
    if have_arrived(carrier, local, links, awaited)? {
        report_at_once(carrier, local, links, awaited)?;
        return Ok(true);
    }
    progress(carrier, local, links)?;
    Ok(false)
}

/// Waits until `found` finds what it looks for on the board.
///
/// # Errors
/// Those of `found`; *fatal* if the wait is hopeless or too long.
pub fn consult<M: LinkMedium, R>(
    medium: &mut M,
    tables: &mut Tables,
    consult: Consult<'_>,
    mut found: impl FnMut() -> Result<Option<R>>,
) -> Result<R> {
    tables.links.known.join(tables.links.call);
    let mut answer = None;
    wait(medium, &mut ForBoard { tables, wait: consult }, |what, medium| {
        match found() {
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

/// After a wait that found what it awaited: progress on the links that it named, and from time to time on all.
#[inline]
fn report_at_once<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    links: &mut LinkTable,
    awaited: Awaited<'_>,
) -> Stopped<C, ()> {
    links.at_once += 1;
    if links.at_once >= AT_ONCE {
        return progress(carrier, local, links);
    }
    let Awaited::Messages(messages) = awaited else { return Ok(()) };
    for expect in messages {
        let Some(link) = links.find_mut(expect.link) else { continue };
        if link.must_report() {
            carrier.report(link)?;
        }
    }
    Ok(())
}

/// Whether what is awaited has arrived, as far as it was carried.
#[inline]
fn have_arrived<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    links: &mut LinkTable,
    awaited: Awaited<'_>,
) -> Stopped<C, bool> {
    let mut all = true;
    match awaited {
        Awaited::Flushed => links.for_busy(|link, _| {
            carrier.finish_sends(link)?;
            all &= link.is_flushed();
            Ok::<_, C::Stop>(())
        })?,
        Awaited::FlushedOn(some) => {
            for &link in some {
                let link = links.get_mut(local, link)?;
                carrier.finish_sends(link)?;
                all &= link.is_flushed();
            }
        }
        Awaited::Messages(messages) => {
            for expect in messages {
                let link = links.get_mut(local, expect.link)?;
                all &= take_arrivals(carrier, local, link)?;
            }
            if all {
                links.finish(messages);
            }
        }
    }
    Ok(all)
}

/// Takes the messages of a link that have arrived: whether all awaited ones have.
#[inline]
fn take_arrivals<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    link: &mut OpenLink,
) -> Stopped<C, bool> {
    while link.incoming.seen < link.incoming.awaited {
        let Some(Head { stamp, is_landing }) = carrier.take(local, link)? else {
            return Ok(false);
        };
        if is_landing {
            link.use_offer();
        }
        link.incoming.seen += 1;
        let call = link.call;
        if call.word() != 0 && stamp != call.word() {
            return Err(stamps_differ(local, call, link.peer, stamp).into());
        }
    }
    Ok(true)
}

#[cold]
fn stamps_differ(local: &LocalState, call: Call, peer: Pid, stamp: u64) -> Error {
    let text = call.differs(local.pid, peer, stamp);
    Error::fatal(peer, local.superstep, Cause::Disagreement(text))
}
