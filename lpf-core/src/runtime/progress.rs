//! The order in which core asks what carries the messages of links.

use super::LocalState;
use super::carrier::{Carrier, Head, Stopped};
use super::links::{LinkTable, OpenLink};
use crate::Pid;
use crate::arrivals::{Call, CallValues, Link, Queued, Travel, never_awaited};
use crate::check::Place;
use crate::error::{Cause, Error};
use crate::lpf::Awaited;

/// Waits that find what they await at once, one after the other, before there is progress on all links: a process that
/// waits for a report of this one must not wait for ever.
const AT_ONCE: u32 = 64;

/// Lets the queued puts of a link leave if they can.
pub(super) fn send_on<C: Carrier>(
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
pub(super) fn send_at_once<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    link: &mut OpenLink,
    put: &Queued,
) -> Stopped<C, bool> {
    let is_message = match put.travel {
        Travel::Cell => true,
        Travel::Parts(part) => put.bytes <= part,
        Travel::Landing => false,
    };
    if !(is_message && link.is_granted && link.queue.is_empty()) {
        return Ok(false);
    }
    if !has_credit(carrier, local, link)? {
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
fn has_credit<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    link: &mut OpenLink,
) -> Stopped<C, bool> {
    if link.outgoing.may_send(link.shape.window) {
        return Ok(true);
    }
    carrier.learn_credit(link);
    let checked = link.outgoing.check_released(link.peer);
    checked.map_err(|cause| Error::fatal(link.peer, local.superstep, cause))?;
    Ok(link.outgoing.may_send(link.shape.window))
}

/// Lets queued puts leave as ring, credit and offers allow: whether all have left.
fn send_queued<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    call: Call,
    link: &mut OpenLink,
) -> Stopped<C, bool> {
    if !link.is_granted
        && let Some(left) = carrier.take_ring(link)?
    {
        if left > 0 {
            let cause = never_awaited(left, link.inbox, link.peer_ring, local.pid);
            return Err(Error::fatal(link.peer, local.superstep, cause).into());
        }
        link.is_granted = true;
    }
    let before = link.outgoing.sent;
    while link.is_granted
        && let Some(next) = link.queue.next()
        && has_credit(carrier, local, link)?
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
        if !link.has_granted && !link.is_withheld {
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

/// One look of a wait: whether the awaited messages have arrived; else there is progress. `values` are those of the call
/// that waits.
///
/// # Errors
/// Those of the carrier.
#[inline]
pub fn look<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    links: &mut LinkTable,
    awaited: Awaited<'_>,
    values: Option<&dyn CallValues>,
) -> Stopped<C, bool> {
    // Asked first: a look at a network ends with what it finds then.
    if have_arrived(carrier, local, links, awaited, values)? {
        report_at_once(carrier, local, links, awaited)?;
        return Ok(true);
    }
    progress(carrier, local, links)?;
    Ok(false)
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
pub(super) fn have_arrived<C: Carrier>(
    carrier: &mut C,
    local: &LocalState,
    links: &mut LinkTable,
    awaited: Awaited<'_>,
    values: Option<&dyn CallValues>,
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
                all &= take_arrivals(carrier, local, link, values)?;
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
    values: Option<&dyn CallValues>,
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
            let differ = stamps_differ(local, (call, values), link.peer, stamp);
            return Err(differ.into());
        }
    }
    Ok(true)
}

#[cold]
fn stamps_differ(
    local: &LocalState,
    (call, values): (Call, Option<&dyn CallValues>),
    peer: Pid,
    stamp: u64,
) -> Error {
    let text = call.differs(local.pid, peer, stamp, values);
    Error::fatal(peer, local.superstep, Cause::Disagreement(text))
}
