//! The sender's side: puts leave as credits and offers allow.

use lpf_core::arrivals::{Link, Queued, Travel, never_awaited};
use lpf_core::check::Place;
use lpf_core::{Awaited, Cause, Error, Pid, Result, Slot};

use super::ring::{FREE, InboxMemory, LANDED, LENT, copy_to_landing, credit, offer};
use super::{Links, OpenLink};
use crate::sync::Ordering;
use crate::threads::Threads;

impl OpenLink {
    /// Takes the peer's ring, once the peer has opened it for this link and its former sender has
    /// closed. `Err` says how many messages of that one the peer never awaited.
    #[cold]
    fn take_ring(&mut self) -> std::result::Result<bool, u64> {
        let (sender, owner) =
            (self.theirs.sender(self.peer_ring), self.theirs.owner(self.peer_ring));
        if owner.granted.load(Ordering::Acquire) != self.end {
            return Ok(false);
        }
        let claim =
            sender.claim.compare_exchange(FREE, self.end, Ordering::Acquire, Ordering::Relaxed);
        if claim.is_err() {
            return Ok(false);
        }
        // Counts go on where the ring's last link ended.
        let sent = sender.sent.load(Ordering::Relaxed);
        let released = owner.released.load(Ordering::Acquire);
        if sent != released {
            return Err(sent - released);
        }
        sender.served.store(self.end, Ordering::Relaxed);
        self.outgoing.start_at(sent);
        self.landed = sender.landed.load(Ordering::Relaxed);
        (self.first_sent, self.first_landed) = (sent, self.landed);
        self.granted = true;
        Ok(true)
    }

    /// Whether a cell is free; looks for more credit where the window known of is used up.
    #[inline]
    fn has_credit(&mut self) -> bool {
        self.outgoing.may_send(self.window()) || self.has_more_credit()
    }

    #[cold]
    fn has_more_credit(&mut self) -> bool {
        let mut nth = self.incoming.seen + 1;
        if nth > self.incoming.first + 1 || self.is_served() {
            while self.own.has_arrived(self.ring, nth) {
                self.learn_credit(nth);
                nth += 1;
            }
        }
        self.look_for_releases();
        self.outgoing.may_send(self.window())
    }

    #[inline]
    fn look_for_releases(&mut self) {
        self.outgoing.released = self.outgoing.released.max(self.released_at_peer());
    }

    /// Lets queued puts leave as credits and offers allow. True if any left.
    #[inline]
    pub(super) fn send(&mut self, pid: Pid, superstep: u64) -> Result<bool> {
        let mut any = false;
        if !self.granted && !self.queue.is_empty() {
            match self.take_ring() {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(left) => {
                    let cause = never_awaited(left, self.inbox as usize, self.peer_ring, pid);
                    return Err(Error::fatal(self.peer, superstep, cause));
                }
            }
        }
        while !self.queue.is_empty() && self.has_credit() {
            let Some(next) = self.queue.next() else { break };
            if next.is_landing() {
                match land(&self.theirs, self.peer_ring, self.landed + 1, &next) {
                    Landing::NoOffer => break,
                    Landing::TooShort(room) => {
                        let text = format!(
                            "process {pid} sends {} bytes to process {}, which has room for {room}: the two do not agree on the length",
                            next.bytes, self.peer
                        );
                        return Err(Error::fatal(pid, superstep, Cause::Arrivals(text)));
                    }
                    Landing::Done => {
                        self.landed += 1;
                        let line = self.theirs.sender(self.peer_ring);
                        line.landed.store(self.landed, Ordering::Relaxed);
                    }
                }
                self.announce(next.bytes as u64 | LANDED, next.stamp);
            } else {
                // SAFETY: the put checked the source and the length, and there is credit.
                unsafe { self.fill(&next) };
            }
            self.queue.pop(&next);
            any = true;
        }
        Ok(any)
    }

    /// A put of one message leaves before it was ever queued, if it can.
    ///
    /// # Safety
    /// As [`fill`](Self::fill), but for the credit.
    #[inline]
    unsafe fn send_at_once(&mut self, put: &Queued) -> bool {
        let is_message = match put.travel {
            Travel::Cell => true,
            Travel::Parts(part) => put.bytes <= part,
            Travel::Landing => false,
        };
        if !(is_message && self.granted && self.queue.is_empty() && self.has_credit()) {
            return false;
        }
        // SAFETY: the caller's promise.
        unsafe { self.fill(put) };
        true
    }

    /// The next message goes into its cell, or the cell says where it is.
    ///
    /// # Safety
    /// The source is valid for reads, until the flush, the cell long enough, and this sender's: there is credit.
    #[inline]
    unsafe fn fill(&mut self, message: &Queued) {
        let Queued { address, bytes, stamp, travel, .. } = *message;
        let nth = self.outgoing.sent + 1;
        if let Travel::Parts(_) = travel {
            self.theirs.loan(self.peer_ring, nth).open(address);
            self.lent = nth;
            return self.announce(bytes as u64 | LENT, stamp);
        }
        // SAFETY: the caller's promise.
        unsafe { self.theirs.fill(self.peer_ring, nth, address, bytes) };
        self.announce(bytes as u64, stamp);
    }

    /// The next message is in its place.
    #[inline]
    fn announce(&mut self, length: u64, stamp: u64) {
        let nth = self.outgoing.sent + 1;
        let cell = self.theirs.cell(self.peer_ring, nth);
        cell.length.store(length, Ordering::Relaxed);
        cell.stamp.store(stamp, Ordering::Relaxed);
        cell.credit.store(credit(self.ring, self.incoming.released), Ordering::Relaxed);
        self.incoming.reported = self.incoming.released;
        self.theirs.sender(self.peer_ring).sent.store(nth, Ordering::Relaxed);
        cell.sequence.store(nth, Ordering::Release);
        self.outgoing.sent = nth;
    }
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

impl Threads {
    /// Queues a put on a link and lets it leave if it can.
    #[inline]
    pub(crate) fn put_on(
        &mut self,
        link: Link,
        src: Slot,
        offset: usize,
        bytes: usize,
        travel: Travel,
    ) -> Result<()> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        let superstep = self.local.superstep;
        let Some(entry) = self.local.slots.local_side(src) else {
            return Err(self.local.unknown(src));
        };
        let Some(address) = entry.range(offset, bytes) else {
            let (len, slot) = (entry.len(), src.to_string());
            return Err(self.local.misuse(Cause::OutOfRange {
                slot,
                offset,
                bytes,
                len,
                element: 1,
            }));
        };
        let (pid, stamp) = (self.local.pid, self.links.call.word());
        let open = self.link_mut(link)?;
        let made = open.outgoing.make(
            link,
            bytes,
            travel,
            (open.theirs.shape, usize::MAX),
            open.queue.len(),
        );
        if let Err(cause) = made {
            return Err(self.local.misuse(cause));
        }
        let put = Queued { slot: src, address, bytes, travel, stamp };
        let peer = open.peer;
        // SAFETY: the source is a slot's, and a message is as long as a cell at most.
        let sent = if unsafe { open.send_at_once(&put) } {
            Ok(true)
        } else {
            open.queue.push(put);
            open.send(pid, superstep)
        };
        self.links.busy.add(link.number());
        match sent {
            Ok(true) => self.comm.peers[peer as usize].ring(),
            Ok(false) => {}
            Err(error) => return Err(self.fail_in_call(error)),
        }
        Ok(())
    }

    /// Fails for a reason that a put has found; one that names this process is of the call that it is in.
    #[cold]
    fn fail_in_call(&mut self, error: Error) -> Error {
        let place = self.links.call.place.filter(|_| error.process() == Some(self.local.pid));
        self.fail_before(self.meeting + 1, error.at_known(place.map(Place::from)))
    }

    /// Lets everything leave that can, and reports releases where it is time. Never blocks.
    #[inline]
    pub(crate) fn progress(&mut self) -> Result<()> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        let (pid, superstep) = (self.local.pid, self.local.superstep);
        let mut failed = None;
        let Links { places, busy, .. } = &mut self.links;
        for place in busy.iter() {
            let Some(open) = &mut places[place].link else { continue };
            if open.must_report() {
                open.report_aloud(&self.comm);
            }
            if !open.queue.is_empty() {
                match open.send(pid, superstep) {
                    Ok(true) => self.comm.peers[open.peer as usize].ring(),
                    Ok(false) => {
                        // Who waits for credit reports all it owes: else two full windows wait
                        // for each other.
                        if !open.incoming.is_reported() {
                            open.report_aloud(&self.comm);
                        }
                    }
                    Err(error) => failed = Some(error),
                }
            } else if !open.is_flushed() {
                open.look_for_releases();
                // As who waits for credit.
                if !open.is_flushed() && !open.incoming.is_reported() {
                    open.report_aloud(&self.comm);
                }
            }
        }
        match failed {
            None => Ok(()),
            Some(error) => Err(self.fail_in_call(error)),
        }
    }

    /// Begins a superstep that awaits nothing, and waits until all puts have left: mostly they have.
    #[inline]
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.expect_messages(&[])?;
        let mut has_left = true;
        let Links { places, busy, .. } = &mut self.links;
        for place in busy.iter() {
            let Some(open) = &mut places[place].link else { continue };
            has_left &= open.is_flushed();
            if open.must_report() {
                open.report_aloud(&self.comm);
            }
        }
        if has_left { Ok(()) } else { self.wait_for(Awaited::Flushed) }
    }

    pub(super) fn is_flushed(&self) -> bool {
        let Links { places, busy, .. } = &self.links;
        busy.iter().all(|place| places[place].link.as_ref().is_none_or(OpenLink::is_flushed))
    }

    pub(super) fn is_flushed_on(&self, links: &[Link]) -> Result<bool> {
        links.iter().try_fold(true, |all, &link| Ok(all & self.link(link)?.is_flushed()))
    }
}
