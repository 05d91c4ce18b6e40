//! Expected arrivals on shared memory: the source copies straight into the peer's cell or landing,
//! then publishes the message's number.
//!
//! The rules (credits, releases, what waits for what) are those of `lpf_core::arrivals`; the memory
//! is [`ring`].

mod asking;
pub(crate) mod ring;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lpf_core::arrivals::{
    Arrival, Call, Expect, InboxShape, InboxSlot, Incoming, Link, MAX_WINDOW, Outgoing,
};
use lpf_core::wait::Waiter;
use lpf_core::{Awaited, Cause, Error, Pid, Result, Slot};

use crate::futex;
use crate::sync::Ordering;
use crate::threads::Threads;
use asking::Asking;
use ring::{InboxMemory, LANDED, copy_to_landing, offer};

/// The links of one process.
#[derive(Debug, Default)]
pub(crate) struct Links {
    places: Vec<Place>,
    open: usize,
    call: Call,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    link: Option<OpenLink>,
}

#[derive(Debug)]
pub(crate) struct OpenLink {
    peer: Pid,
    inbox: u32,
    ring: u32,
    peer_ring: u32,
    own: Arc<InboxMemory>,
    theirs: Arc<InboxMemory>,
    outgoing: Outgoing,
    incoming: Incoming,
    queue: VecDeque<Queued>,
    /// Landings sent, and offers made, over the rings' lives.
    landed: u64,
    offered: u64,
    /// Landings among the messages awaited.
    offers_used: u64,
}

/// A put on a link that has not left.
#[derive(Debug)]
struct Queued {
    address: *const u8,
    bytes: usize,
    landing: bool,
    stamp: u64,
}

// SAFETY: the address names memory of the put's slot, which its process keeps until the flush.
unsafe impl Send for Queued {}

impl OpenLink {
    fn window(&self) -> u32 {
        self.own.shape.window
    }

    /// Learns what the peer released: from its messages, else from its line.
    #[inline]
    fn has_credit(&mut self) -> bool {
        let window = self.window();
        if self.outgoing.may_send(window) {
            return true;
        }
        let released = self.theirs.owner(self.peer_ring).released.load(Ordering::Acquire);
        self.outgoing.released = self.outgoing.released.max(released);
        self.outgoing.may_send(window)
    }

    /// Tells the peer what was released.
    #[inline]
    fn report(&mut self) {
        self.own.owner(self.ring).released.store(self.incoming.released, Ordering::Release);
        self.incoming.reported = self.incoming.released;
    }

    /// Lets queued puts leave as credits and offers allow. True if any left.
    #[inline]
    fn send(&mut self, pid: Pid, superstep: u64) -> Result<bool> {
        let mut any = false;
        while !self.queue.is_empty() && self.has_credit() {
            let Some(next) = self.queue.front() else { break };
            let nth = self.outgoing.sent + 1;
            if next.landing {
                match land(&self.theirs, self.peer_ring, self.landed + 1, next) {
                    Landing::NoOffer => break,
                    Landing::TooShort(room) => {
                        let text = format!(
                            "process {pid} sends a landing of {} bytes to process {}, which offers {room}",
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
            } else {
                // SAFETY: the put checked the source and that the cell is long enough; the credit
                // says that the cell is this sender's.
                unsafe { self.theirs.fill(self.peer_ring, nth, next.address, next.bytes) };
            }
            let cell = self.theirs.cell(self.peer_ring, nth);
            let flag = if next.landing { LANDED } else { 0 };
            cell.length.store(next.bytes as u64 | flag, Ordering::Relaxed);
            cell.stamp.store(next.stamp, Ordering::Relaxed);
            cell.credit.store(self.incoming.released, Ordering::Relaxed);
            self.theirs.sender(self.peer_ring).sent.store(nth, Ordering::Relaxed);
            cell.sequence.store(nth, Ordering::Release);
            self.outgoing.sent = nth;
            self.queue.pop_front();
            any = true;
        }
        Ok(any)
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
    #[inline]
    pub(crate) fn has_links(&self) -> bool {
        self.links.open > 0
    }

    #[cold]
    fn arrivals_misuse(&self, text: String) -> Error {
        self.misuse(Cause::Arrivals(text))
    }

    #[cold]
    fn no_such_link(&self, link: Link) -> Error {
        self.arrivals_misuse(format!("{link} is not open (never was, or was closed)"))
    }

    #[inline]
    fn link(&self, link: Link) -> Result<&OpenLink> {
        match self.links.places.get(link.number()) {
            Some(Place { generation, link: Some(open) }) if *generation == link.generation() => {
                Ok(open)
            }
            _ => Err(self.no_such_link(link)),
        }
    }

    #[inline]
    fn link_mut(&mut self, link: Link) -> Result<&mut OpenLink> {
        self.link(link)?;
        let place = self.links.places[link.number()].link.as_mut();
        place.ok_or_else(|| unreachable!("looked up just now"))
    }

    pub(crate) fn add_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot> {
        if shape.window == 0 || shape.window > MAX_WINDOW {
            let text =
                format!("an inbox's window is 1 to {MAX_WINDOW} cells, not {}", shape.window);
            return Err(self.arrivals_misuse(text));
        }
        let memory = InboxMemory::new(shape).map_err(|bytes| {
            let cause = Cause::OutOfMemory { what: "an inbox", bytes };
            Error::mitigable(self.pid, self.superstep, cause)
        })?;
        let number = self.comm.peers[self.pid as usize].add_inbox(Arc::new(memory));
        self.note_inbox(shape.fingerprint() ^ 1);
        self.capacity.inboxes = number + 1;
        Ok(InboxSlot::new(number as u32))
    }

    fn note_inbox(&mut self, what: u64) {
        self.capacity.inbox_calls += 1;
        let hash = self.capacity.inbox_hash.rotate_left(9) ^ what;
        self.capacity.inbox_hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.capacity.registered = true;
        self.dirty = true;
    }

    pub(crate) fn remove_inbox(&mut self, inbox: InboxSlot) -> Result<()> {
        let number = inbox.number();
        let own = &self.comm.peers[self.pid as usize];
        if own.inbox(number).is_none() {
            let text = format!("inbox {number} is not registered");
            return Err(self.arrivals_misuse(text));
        }
        let open =
            |place: &Place| place.link.as_ref().is_some_and(|link| link.inbox as usize == number);
        if self.links.places.iter().any(open) {
            let text = format!("inbox {number} has open links; close them first");
            return Err(self.arrivals_misuse(text));
        }
        own.remove_inbox(number);
        self.note_inbox(number as u64 ^ 2 << 32);
        Ok(())
    }

    pub(crate) fn open_link(
        &mut self,
        inbox: InboxSlot,
        ring: u32,
        peer: Pid,
        peer_ring: u32,
    ) -> Result<Link> {
        let number = inbox.number();
        if number >= self.capacity.active_inboxes {
            let text = format!("inbox {number} is not active; register it and sync first");
            return Err(self.arrivals_misuse(text));
        }
        let find = |who: Pid| self.comm.peers[who as usize].inbox(number);
        let (Some(own), Some(theirs)) = (find(self.pid), find(peer)) else {
            let text = format!("inbox {number} was deregistered");
            return Err(self.arrivals_misuse(text));
        };
        let rings = own.shape.rings;
        if ring >= rings || peer_ring >= rings {
            let text = format!("inbox {number} has rings 0 to {}", rings.saturating_sub(1));
            return Err(self.arrivals_misuse(text));
        }
        let taken = |place: &Place| {
            place
                .link
                .as_ref()
                .is_some_and(|link| link.inbox as usize == number && link.ring == ring)
        };
        if self.links.places.iter().any(taken) {
            let text = format!("ring {ring} of inbox {number} carries a link already");
            return Err(self.arrivals_misuse(text));
        }
        // Counts go on where the rings' last links ended.
        let (sender, owner) = (theirs.sender(peer_ring), own.owner(ring));
        let sent = sender.sent.load(Ordering::Acquire);
        let released = owner.released.load(Ordering::Relaxed);
        let outgoing = Outgoing {
            made: sent,
            sent,
            released: theirs.owner(peer_ring).released.load(Ordering::Acquire),
            made_at_sync: sent,
        };
        let open = OpenLink {
            peer,
            inbox: number as u32,
            ring,
            peer_ring,
            outgoing,
            incoming: Incoming::starting_at(released),
            queue: VecDeque::with_capacity(2 * own.shape.window as usize),
            landed: sender.landed.load(Ordering::Relaxed),
            offered: owner.offered.load(Ordering::Relaxed),
            offers_used: owner.offered.load(Ordering::Relaxed),
            own,
            theirs,
        };
        let places = &mut self.links.places;
        let number = places.iter().position(|place| place.link.is_none()).unwrap_or_else(|| {
            places.push(Place { generation: 0, link: None });
            places.len() - 1
        });
        let place = &mut places[number];
        place.generation += 1;
        place.link = Some(open);
        self.links.open += 1;
        Ok(Link::new(number as u32, place.generation))
    }

    pub(crate) fn close_link(&mut self, link: Link) -> Result<()> {
        let open = self.link_mut(link)?;
        open.incoming.release_unheld();
        let open_offers = open.offered - open.offers_used;
        if open.incoming.unreleased() > 0 || !open.outgoing.is_flushed() || open_offers > 0 {
            let text = format!(
                "{link} has {} unreleased messages, {} puts that have not left and {open_offers} open offers",
                open.incoming.unreleased(),
                open.outgoing.made - open.outgoing.sent
            );
            return Err(self.arrivals_misuse(text));
        }
        open.report();
        self.keep_counts(link);
        self.links.places[link.number()].link = None;
        self.links.open -= 1;
        Ok(())
    }

    /// Queues a put on a link and lets it leave if it can.
    #[inline]
    pub(crate) fn put_on(
        &mut self,
        link: Link,
        src: Slot,
        offset: usize,
        bytes: usize,
        landing: bool,
    ) -> Result<()> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        let superstep = self.superstep;
        let Some(entry) = self.slots.local_side(src, superstep) else {
            return Err(self.unknown(src));
        };
        let Some(address) = entry.range(offset, bytes) else {
            let (len, slot) = (entry.len(), src.to_string());
            return Err(self.misuse(Cause::OutOfRange { slot, offset, bytes, len }));
        };
        let (pid, stamp) = (self.pid, self.links.call.word());
        let open = self.link_mut(link)?;
        let window = open.window();
        if !landing && bytes > open.theirs.shape.cell_bytes {
            let text = format!(
                "a message of {bytes} bytes does not fit the cells of {link}, which have {}; send it as a landing",
                open.theirs.shape.cell_bytes
            );
            return Err(self.arrivals_misuse(text));
        }
        if !open.outgoing.may_make(window) {
            let text = format!("more than {window} puts on {link} in one superstep");
            return Err(self.arrivals_misuse(text));
        }
        if open.queue.len() >= 2 * window as usize {
            let text = format!("{} puts on {link} wait for credit; flush first", open.queue.len());
            return Err(self.arrivals_misuse(text));
        }
        open.queue.push_back(Queued { address, bytes, landing, stamp });
        open.outgoing.made += 1;
        open.theirs.sender(open.peer_ring).made.store(open.outgoing.made, Ordering::Relaxed);
        let (sent, peer) = (open.send(pid, superstep), open.peer);
        match sent {
            Ok(true) => self.comm.peers[peer as usize].ring(),
            Ok(false) => {}
            Err(error) => return Err(self.fail(self.meeting + 1, error)),
        }
        Ok(())
    }

    pub(crate) fn offer_on(&mut self, link: Link, address: *mut u8, bytes: usize) -> Result<()> {
        // What is offered after a failure would never be taken back.
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        let open = self.link_mut(link)?;
        let window = open.window();
        if open.offered - open.offers_used >= u64::from(window) {
            let text = format!("more than {window} open offers on {link}");
            return Err(self.arrivals_misuse(text));
        }
        open.offered += 1;
        let place = open.own.offer(open.ring, open.offered);
        place.address.store(address, Ordering::Relaxed);
        place.bytes.store(bytes, Ordering::Relaxed);
        place.state.store(offer::OPEN, Ordering::Relaxed);
        place.number.store(open.offered, Ordering::Release);
        open.own.owner(open.ring).offered.store(open.offered, Ordering::Relaxed);
        let peer = open.peer;
        self.comm.peers[peer as usize].ring();
        Ok(())
    }

    /// Releases what the last sync awaited and nobody holds, and adds what this one awaits.
    #[inline]
    pub(crate) fn expect_messages(&mut self, messages: &[Expect]) -> Result<()> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        // Everything is checked before anything changes: a misuse has no effect.
        for expect in messages {
            let open = self.link(expect.link)?;
            let held = open.incoming.held_after_release();
            let more: u64 = messages
                .iter()
                .filter(|other| other.link == expect.link)
                .map(|other| u64::from(other.messages))
                .sum();
            if held + more > u64::from(open.window()) {
                let (link, window) = (expect.link, open.window());
                let text = format!("more than {window} unreleased messages on {link}");
                return Err(self.arrivals_misuse(text));
            }
        }
        for place in &mut self.links.places {
            if let Some(open) = &mut place.link {
                open.incoming.release_unheld();
                open.outgoing.made_at_sync = open.outgoing.made;
            }
        }
        for expect in messages {
            let open = self.link_mut(expect.link)?;
            open.incoming.awaited += u64::from(expect.messages);
            let awaited = open.incoming.awaited;
            open.own.owner(open.ring).awaited.store(awaited, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Lets everything leave that can, and reports releases where it is time. Never blocks.
    #[inline]
    pub(crate) fn progress(&mut self) -> Result<()> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        let (pid, superstep) = (self.pid, self.superstep);
        let mut failed = None;
        for place in &mut self.links.places {
            let Some(open) = &mut place.link else { continue };
            let window = open.window();
            let waits_for = open.incoming.awaited;
            if open.incoming.must_report(window, waits_for) {
                open.report();
                self.comm.peers[open.peer as usize].ring();
            }
            if !open.queue.is_empty() {
                match open.send(pid, superstep) {
                    Ok(true) => self.comm.peers[open.peer as usize].ring(),
                    Ok(false) => {
                        // Who waits for credit reports all it owes: else two full windows wait
                        // for each other.
                        if !open.incoming.is_reported() {
                            open.report();
                            self.comm.peers[open.peer as usize].ring();
                        }
                    }
                    Err(error) => failed = Some(error),
                }
            }
        }
        match failed {
            None => Ok(()),
            Some(error) => Err(self.fail(self.meeting + 1, error)),
        }
    }

    /// Progress, and whether the awaited is there.
    #[inline]
    pub(crate) fn poll_links(&mut self, awaited: Awaited<'_>) -> Result<bool> {
        self.progress()?;
        let ready = match awaited {
            Awaited::Flushed => self.is_flushed(),
            Awaited::Messages(messages) => {
                let mut ready = true;
                for expect in messages {
                    ready &= self.take_arrivals(expect.link)?;
                }
                ready
            }
        };
        if !ready && self.comm.failure.is_set() {
            return Err(self.die());
        }
        Ok(ready)
    }

    fn is_flushed(&self) -> bool {
        self.links.places.iter().all(|p| p.link.as_ref().is_none_or(|l| l.outgoing.is_flushed()))
    }

    /// Whether all awaited messages of a link are there; checks their stamps.
    #[inline]
    fn take_arrivals(&mut self, link: Link) -> Result<bool> {
        let call = self.links.call;
        let open = self.link_mut(link)?;
        let awaited = open.incoming.awaited;
        if awaited == 0 || open.incoming.seen == awaited {
            return Ok(true);
        }
        while open.incoming.seen < awaited {
            let nth = open.incoming.seen + 1;
            if !open.own.has_arrived(open.ring, nth) {
                return Ok(false);
            }
            let cell = open.own.cell(open.ring, nth);
            let credit = cell.credit.load(Ordering::Relaxed);
            open.outgoing.released = open.outgoing.released.max(credit);
            if cell.length.load(Ordering::Relaxed) & LANDED != 0 {
                open.offers_used += 1;
            }
            open.incoming.seen = nth;
            let stamp = cell.stamp.load(Ordering::Relaxed);
            if call.word() != 0 && stamp != call.word() {
                let peer = open.peer;
                return Err(self.stamps_differ(peer, stamp));
            }
        }
        Ok(true)
    }

    #[cold]
    fn stamps_differ(&mut self, peer: Pid, stamp: u64) -> Error {
        let (pid, call) = (self.pid, self.links.call);
        let text = format!(
            "process {pid} is in call {} ({}, stamp {:08x}), but a message of process {peer} is of call {} (stamp {:08x})",
            call.number,
            call.name,
            call.stamp,
            stamp >> 32,
            stamp as u32
        );
        let error = Error::fatal(peer, self.superstep, Cause::Deadlock(text));
        self.fail(self.meeting + 1, error)
    }

    /// Waits until `awaited` is there: spin, yield, sleep.
    pub(crate) fn wait_for(&mut self, awaited: Awaited<'_>) -> Result<()> {
        if self.poll_links(awaited)? {
            return Ok(());
        }
        let patience = self.patience();
        let mut waiter = Waiter::new(patience);
        let mut asking = Asking::default();
        loop {
            if let Some(time) = waiter.pause() {
                self.sleep_for_bell(awaited, time)?;
                asking.look(self, awaited)?;
            }
            if self.poll_links(awaited)? {
                return Ok(());
            }
        }
    }

    fn patience(&self) -> lpf_core::wait::Patience {
        let cores = self.comm.environment.cores;
        lpf_core::wait::Patience::for_processes(self.nprocs as usize, cores)
    }

    /// Sleeps until somebody rings. The word is set before the last look, and a barrier on all
    /// threads lies between: who sends after the look sees the word.
    #[cold]
    fn sleep_for_bell(&mut self, awaited: Awaited<'_>, time: Duration) -> Result<()> {
        let comm = self.comm.clone();
        let bell = &comm.peers[self.pid as usize].bell;
        let rings = bell.rings.load(Ordering::Acquire);
        bell.asleep.store(1, Ordering::SeqCst);
        futex::barrier_everywhere();
        let ready = self.poll_links(awaited);
        if let Ok(false) = ready {
            futex::sleep(&bell.rings, rings, time);
        }
        bell.asleep.store(0, Ordering::Relaxed);
        ready.map(|_| ())
    }

    /// Before a full sync or the end of a section: everything leaves, every release is reported.
    pub(crate) fn settle_links(&mut self) -> Result<()> {
        self.expect_messages(&[])?;
        for place in &mut self.links.places {
            let Some(open) = &mut place.link else { continue };
            if !open.incoming.is_reported() {
                open.report();
                self.comm.peers[open.peer as usize].ring();
            }
        }
        self.wait_for(Awaited::Flushed)
    }

    pub(crate) fn arrived(&self, link: Link, nth: u64) -> Result<Arrival> {
        let open = self.link(link)?;
        let nth = self.readable(open, link, nth)?;
        let length = open.own.cell(open.ring, nth + 1).length.load(Ordering::Relaxed);
        let (landed, bytes) = (length & LANDED != 0, (length & !LANDED) as usize);
        if !landed {
            let data = open.own.data(open.ring, nth + 1, bytes).cast_const();
            return Ok(Arrival { data, bytes, landed });
        }
        // Landings are used in the order of the offers: count back from the last one seen.
        let later = (nth + 2..=open.incoming.seen)
            .filter(|&n| open.own.cell(open.ring, n).length.load(Ordering::Relaxed) & LANDED != 0)
            .count() as u64;
        let place = open.own.offer(open.ring, open.offers_used - later);
        let data = place.address.load(Ordering::Relaxed).cast_const();
        Ok(Arrival { data, bytes, landed })
    }

    /// The ring's number, minus one, of message `nth` of a link, if it can be read.
    fn readable(&self, open: &OpenLink, link: Link, nth: u64) -> Result<u64> {
        let nth = nth.wrapping_add(open.incoming.first);
        if open.incoming.is_readable(nth) && nth < open.incoming.seen {
            return Ok(nth);
        }
        let nth = nth.wrapping_sub(open.incoming.first);
        Err(self
            .arrivals_misuse(format!("message {nth} on {link} was not awaited, or is released")))
    }

    pub(crate) fn awaited_on(&self, link: Link) -> Result<u64> {
        let open = self.link(link)?;
        Ok(open.incoming.awaited - open.incoming.first)
    }

    pub(crate) fn hold_message(&mut self, link: Link, nth: u64) -> Result<()> {
        let nth = self.readable(self.link(link)?, link, nth)?;
        self.link_mut(link)?.incoming.hold(nth);
        Ok(())
    }

    pub(crate) fn release_message(&mut self, link: Link, nth: u64, held: bool) -> Result<()> {
        let open = self.link_mut(link)?;
        let number = nth.wrapping_add(open.incoming.first);
        let incoming = &mut open.incoming;
        let done = number < incoming.seen
            && if held { incoming.release_held(number) } else { incoming.release(number) };
        if done {
            return Ok(());
        }
        let text = format!("message {nth} on {link} was not awaited, is released, or is held");
        Err(self.arrivals_misuse(text))
    }

    pub(crate) fn enter_call(&mut self, call: Call) {
        self.links.call = call;
    }

    /// Takes open offers back, or waits for the copy that is under way: nobody writes to this
    /// process's memory after it.
    pub(crate) fn revoke_offers(&mut self) {
        for place in &mut self.links.places {
            let Some(open) = &mut place.link else { continue };
            for number in open.offers_used + 1..=open.offered {
                let place = open.own.offer(open.ring, number);
                let revoked = place.state.compare_exchange(
                    offer::OPEN,
                    offer::REVOKED,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
                while revoked.is_err() && place.state.load(Ordering::Acquire) == offer::TAKEN {
                    crate::sync::yield_now();
                }
            }
        }
    }
}
