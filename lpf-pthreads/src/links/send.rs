//! The sender's side: puts leave as credits and offers allow.

use lpf_core::arrivals::{Link, Queued, Travel, never_awaited};
use lpf_core::check::Place;
use lpf_core::{Cause, Error, Pid, Result, Slot};

use super::receive::report_aloud;
use super::ring::{FREE, InboxMemory, LANDED, LENT, copy_to_landing, credit, offer};
use super::{End, OpenLink};
use crate::sync::Ordering;
use crate::threads::{Tables, ThreadEngine};

impl End {
    /// Takes the peer's ring, once the peer has opened it for this link and its former sender has
    /// closed. `Err` says how many messages of that one the peer never awaited.
    #[cold]
    fn take_ring(&mut self) -> std::result::Result<bool, u64> {
        let (sender, owner) =
            (self.theirs.sender(self.peer_ring), self.theirs.owner(self.peer_ring));
        if owner.granted.load(Ordering::Acquire) != self.name {
            return Ok(false);
        }
        let claim =
            sender.claim.compare_exchange(FREE, self.name, Ordering::Acquire, Ordering::Relaxed);
        if claim.is_err() {
            return Ok(false);
        }
        // Counts go on where the ring's last link ended.
        let sent = sender.sent.load(Ordering::Relaxed);
        let released = owner.released.load(Ordering::Acquire);
        if sent != released {
            return Err(sent - released);
        }
        sender.served.store(self.name, Ordering::Relaxed);
        (self.first_sent, self.first_landed) = (sent, sender.landed.load(Ordering::Relaxed));
        self.granted = true;
        Ok(true)
    }
}

/// Whether a cell is free; looks for more credit where the window known of is used up.
#[inline]
fn has_credit(open: &mut OpenLink) -> bool {
    open.outgoing.may_send(open.shape.window) || has_more_credit(open)
}

#[cold]
fn has_more_credit(open: &mut OpenLink) -> bool {
    let mut nth = open.incoming.seen + 1;
    if nth > 1 || open.end.is_served() {
        while open.end.has_arrived(nth) {
            open.end.learn_credit(nth, &mut open.outgoing.released);
            nth += 1;
        }
    }
    look_for_releases(open);
    open.outgoing.may_send(open.shape.window)
}

#[inline]
fn look_for_releases(open: &mut OpenLink) {
    open.outgoing.released = open.outgoing.released.max(open.end.released_at_peer());
}

/// Lets queued puts leave as credits and offers allow. True if any left.
#[inline]
fn send(open: &mut OpenLink, pid: Pid, superstep: u64) -> Result<bool> {
    let mut any = false;
    if !open.end.granted && !open.queue.is_empty() {
        match open.end.take_ring() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(left) => {
                let cause = never_awaited(left, open.inbox, open.peer_ring, pid);
                return Err(Error::fatal(open.peer, superstep, cause));
            }
        }
    }
    while !open.queue.is_empty() && has_credit(open) {
        let Some(next) = open.queue.next() else { break };
        if next.is_landing() {
            let End { theirs, first_landed, .. } = &open.end;
            match land(theirs, open.peer_ring, first_landed + open.landed + 1, &next) {
                Landing::NoOffer => break,
                Landing::TooShort(room) => {
                    let text = format!(
                        "process {pid} sends {} bytes to process {}, which has room for {room}: the two do not agree on the length",
                        next.bytes, open.peer
                    );
                    return Err(Error::fatal(pid, superstep, Cause::Disagreement(text)));
                }
                Landing::Done => {
                    open.landed += 1;
                    let line = theirs.sender(open.peer_ring);
                    line.landed.store(first_landed + open.landed, Ordering::Relaxed);
                }
            }
            announce(open, next.bytes as u64 | LANDED, next.stamp);
        } else {
            // SAFETY: the put checked the source and the length, and there is credit.
            unsafe { fill(open, &next) };
        }
        open.queue.pop(&next);
        any = true;
    }
    Ok(any)
}

/// A put of one message leaves before it was ever queued, if it can.
///
/// # Safety
/// As [`fill`], but for the credit.
#[inline]
unsafe fn send_at_once(open: &mut OpenLink, put: &Queued) -> bool {
    let is_message = match put.travel {
        Travel::Cell => true,
        Travel::Parts(part) => put.bytes <= part,
        Travel::Landing => false,
    };
    if !(is_message && open.end.granted && open.queue.is_empty() && has_credit(open)) {
        return false;
    }
    // SAFETY: the caller's promise.
    unsafe { fill(open, put) };
    true
}

/// The next message goes into its cell, or the cell says where it is.
///
/// # Safety
/// The source is valid for reads, until the flush, the cell long enough, and this sender's: there is credit.
#[inline]
unsafe fn fill(open: &mut OpenLink, message: &Queued) {
    let Queued { address, bytes, stamp, travel, .. } = *message;
    let nth = open.outgoing.sent + 1;
    let number = open.end.number_there(nth);
    if let Travel::Parts(_) = travel {
        open.end.theirs.loan(open.peer_ring, number).open(address);
        open.end.lent = nth;
        return announce(open, bytes as u64 | LENT, stamp);
    }
    // SAFETY: the caller's promise.
    unsafe { open.end.theirs.fill(open.peer_ring, number, address, bytes) };
    announce(open, bytes as u64, stamp);
}

/// The next message is in its place.
#[inline]
fn announce(open: &mut OpenLink, length: u64, stamp: u64) {
    let nth = open.outgoing.sent + 1;
    let end = &open.end;
    let number = end.number_there(nth);
    let cell = end.theirs.cell(open.peer_ring, number);
    cell.length.store(length, Ordering::Relaxed);
    cell.stamp.store(stamp, Ordering::Relaxed);
    let released = end.first_received + open.incoming.released;
    cell.credit.store(credit(open.ring, released), Ordering::Relaxed);
    open.incoming.reported = open.incoming.released;
    end.theirs.sender(open.peer_ring).sent.store(number, Ordering::Relaxed);
    cell.sequence.store(number, Ordering::Release);
    open.outgoing.sent = nth;
}

enum Landing {
    NoOffer,
    TooShort(usize),
    Done,
}

/// Copies a put into the peer's offer number `number`, if it is there.
fn land(theirs: &InboxMemory, ring: u32, number: u64, put: &Queued) -> Landing {
    let place = theirs.offer(ring, number);
    if place.number.load(Ordering::Acquire) != number {
        return Landing::NoOffer;
    }
    let room = place.bytes.load(Ordering::Relaxed);
    if put.bytes > room {
        return Landing::TooShort(room);
    }
    let taken = place.state.compare_exchange(
        offer::OPEN,
        offer::TAKEN,
        Ordering::AcqRel,
        Ordering::Relaxed,
    );
    if taken.is_err() {
        return Landing::NoOffer;
    }
    let to = place.address.load(Ordering::Relaxed);
    // SAFETY: the put checked its source; the offer's memory is the runtime's while it is TAKEN:
    // its owner waits for DONE before it leaves.
    unsafe { copy_to_landing(put.address, to, put.bytes) };
    place.state.store(offer::DONE, Ordering::Release);
    Landing::Done
}

impl ThreadEngine {
    /// Queues a put on a link and lets it leave if it can.
    #[inline]
    pub(crate) fn put_on(
        &self,
        tables: &mut Tables,
        link: Link,
        src: Slot,
        offset: usize,
        bytes: usize,
        travel: Travel,
    ) -> Result<()> {
        let (Tables { local, links }, comm) = (&mut *tables, &self.comm);
        let put = links.put(local, link, src, offset, bytes, travel, |_| usize::MAX);
        let (open, put) = put?;
        // SAFETY: the source is a slot's, and a message is as long as a cell at most.
        let sent = if unsafe { send_at_once(open, &put) } {
            Ok(true)
        } else {
            open.queue.push(put);
            send(open, local.pid, local.superstep)
        };
        match sent {
            Ok(true) => comm.peers[open.peer as usize].ring(),
            Ok(false) => {}
            Err(error) => return Err(place_in_call(tables, error)),
        }
        Ok(())
    }

    /// Lets everything leave that can, and reports releases where it is time. Never blocks.
    #[inline]
    pub(crate) fn progress(&self, tables: &mut Tables) -> Result<()> {
        let (Tables { local, links }, comm) = (&mut *tables, &self.comm);
        let mut failed = None;
        let Ok(()) = links.for_busy(|open, _| {
            if open.must_report() {
                report_aloud(open, comm);
            }
            if !open.queue.is_empty() {
                match send(open, local.pid, local.superstep) {
                    Ok(true) => comm.peers[open.peer as usize].ring(),
                    Ok(false) => {
                        // Who waits for credit reports all it owes: else two full windows wait
                        // for each other.
                        if !open.incoming.is_reported() {
                            report_aloud(open, comm);
                        }
                    }
                    Err(error) => failed = Some(error),
                }
            } else if !open.is_flushed() {
                look_for_releases(open);
                // As who waits for credit.
                if !open.is_flushed() && !open.incoming.is_reported() {
                    report_aloud(open, comm);
                }
            }
            Ok::<_, std::convert::Infallible>(())
        });
        match failed {
            None => Ok(()),
            Some(error) => Err(place_in_call(tables, error)),
        }
    }

    /// Whether all puts have left, as mostly they have; releases are reported where it is time.
    #[inline]
    pub(super) fn is_flushed_at_once(&self, tables: &mut Tables) -> bool {
        let mut has_left = true;
        let Ok(()) = tables.links.for_busy(|open, _| {
            has_left &= open.is_flushed();
            if open.must_report() {
                report_aloud(open, &self.comm);
            }
            Ok::<_, std::convert::Infallible>(())
        });
        has_left
    }
}

/// The place of an error that a put has found, if it names this process: it is of the call that this process is in.
#[cold]
fn place_in_call(tables: &Tables, error: Error) -> Error {
    let place = tables.links.call.place.filter(|_| error.process() == Some(tables.local.pid));
    error.at_known(place.map(Place::from))
}
