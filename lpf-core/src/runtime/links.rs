//! The links of one process: what is equal on all backends. The rules are those of [`arrivals`](crate::arrivals).
//!
//! Counts are those of a link, from 0, also if its rings had other links before.

mod ends;
mod link;
mod marks;

use std::collections::VecDeque;

use super::LocalState;
use crate::Pid;
use crate::arrivals::{
    Call, CallNames, Expect, InboxShape, InboxSlot, Incoming, Link, MAX_WINDOW, Outgoing, Queue,
    Queued, Travel,
};
use crate::error::{Cause, Error, Result};
use crate::lpf::Awaited;
use crate::slot::Slot;
use crate::waits::{Status, Stream, Want};

pub use ends::Ends;
pub use link::{FormerSenders, OpenLink};
use marks::Marks;

/// A place for links, one at a time.
#[derive(Debug)]
struct Place {
    generation: u32,
    link: Option<OpenLink>,
}

/// A link to be opened, as [`Links::open`](crate::Links::open) has it.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The inbox, at both processes.
    pub inbox: InboxSlot,
    /// Its shape.
    pub shape: InboxShape,
    /// The ring here.
    pub ring: usize,
    /// The other process.
    pub peer: Pid,
    /// The ring there.
    pub peer_ring: usize,
    /// The streams on which it sends and receives, by the names that both ends know. If a process stands for others, the
    /// names are those of the process that opens the link and of its peer.
    pub streams: [Stream; 2],
    /// Whether the ring is granted by the process of a node that opens the link, and not by the progress of the node.
    pub is_withheld: bool,
}

/// The inboxes and links of one process.
#[derive(Debug, Default)]
pub struct LinkTable {
    places: Vec<Place>,
    open: usize,
    /// The links that a wait looks at: used in this superstep or the one before, or not done with an earlier one. A
    /// process can have a link with each other one. A link in constant use keeps its mark, since what was just
    /// stored is slow to load.
    busy: Marks,
    /// Those that became idle while a release was not reported. A process that sleeps reports them as well.
    owing: Marks,
    /// The call that this process is in.
    pub call: Call,
    /// The names of the calls that this process has made: those of the last group.
    names: Option<&'static CallNames>,
    /// What was done on every stream so far, open links left out.
    pub known: Status,
    /// Waits that found what they awaited since there was progress on all links.
    pub(super) at_once: u32,
    /// By number; `None` if it is deregistered.
    inboxes: Vec<Option<InboxShape>>,
    /// Inboxes below this number are active.
    active: usize,
}

impl LinkTable {
    /// This process enters a call.
    #[inline]
    pub(super) fn enter(&mut self, call: Call) {
        self.call = call;
        self.names = call.names.or(self.names);
    }

    /// The call that a message with this stamp was sent in, if it was sent in one.
    pub fn call_of(&self, stamp: u64) -> Option<Call> {
        let call = Call::of_word(stamp);
        (call.number > 0).then_some(Call { names: self.names, ..call })
    }

    /// Whether any link is open.
    #[inline]
    pub fn are_open(&self) -> bool {
        self.open > 0
    }

    /// Whether there are active inboxes: the same at all processes, which register them together.
    #[inline]
    pub fn are_in_use(&self) -> bool {
        self.active > 0
    }

    /// A full sync has brought registrations into force.
    pub fn activate(&mut self) {
        self.active = self.inboxes.len();
    }

    /// Whether an inbox may have this shape.
    ///
    /// # Errors
    /// *Misuse* if not.
    pub(super) fn check_shape(local: &LocalState, shape: InboxShape) -> Result<()> {
        let InboxShape { rings, window, .. } = shape;
        let text = if window == 0 || window > MAX_WINDOW {
            format!("an inbox's window is 1 to {MAX_WINDOW} cells, not {window}")
        } else if u32::try_from(rings).is_err() {
            format!("an inbox has at most {} rings, not {rings}", u32::MAX)
        } else {
            return Ok(());
        };
        Err(local.link_misuse(text))
    }

    /// Adds an inbox whose memory the backend has.
    pub fn add_inbox(&mut self, local: &mut LocalState, shape: InboxShape) -> InboxSlot {
        self.inboxes.push(Some(shape));
        local.note_inbox(shape.fingerprint() ^ 1);
        InboxSlot::new(self.inboxes.len() as u32 - 1)
    }

    /// Removes an inbox, whose memory the backend keeps until the next full sync is over.
    ///
    /// # Errors
    /// *Misuse* if it is unknown or has open links.
    pub(super) fn remove_inbox(&mut self, local: &mut LocalState, inbox: InboxSlot) -> Result<()> {
        let number = inbox.number();
        if self.shape(number).is_none() {
            return Err(local.link_misuse(format!("inbox {number} is not registered")));
        }
        if self.iter().any(|link| link.inbox == number) {
            let text = format!("inbox {number} has open links; close them first");
            return Err(local.link_misuse(text));
        }
        self.inboxes[number] = None;
        local.note_inbox(number as u64 ^ 2 << 32);
        Ok(())
    }

    fn shape(&self, inbox: usize) -> Option<InboxShape> {
        self.inboxes.get(inbox).copied().flatten()
    }

    /// The link that a call opens, if it can.
    ///
    /// # Errors
    /// *Misuse*, as [`Links::open`](crate::Links::open).
    pub(super) fn may_open(
        &self,
        local: &LocalState,
        inbox: InboxSlot,
        ring: usize,
        peer: Pid,
        peer_ring: usize,
    ) -> Result<Opening> {
        if peer >= local.nprocs {
            return Err(local.no_such_process(peer));
        }
        let number = inbox.number();
        if number >= self.active {
            let text = format!("inbox {number} is not active; register it and sync first");
            return Err(local.link_misuse(text));
        }
        let Some(shape) = self.shape(number) else {
            return Err(local.link_misuse(format!("inbox {number} was deregistered")));
        };
        if ring >= shape.rings || peer_ring >= shape.rings {
            let last = shape.rings.saturating_sub(1);
            return Err(local.link_misuse(format!("inbox {number} has rings 0 to {last}")));
        }
        if self.iter().any(|link| link.inbox == number && link.ring == ring) {
            let text = format!("ring {ring} of inbox {number} carries a link already");
            return Err(local.link_misuse(text));
        }
        let streams = [
            Stream::new(local.pid, peer, inbox, peer_ring),
            Stream::new(peer, local.pid, inbox, ring),
        ];
        Ok(Opening { inbox, shape, ring, peer, peer_ring, streams, is_withheld: false })
    }

    /// Opens a link, with [`has_granted`](OpenLink::has_granted) as the engine says.
    pub fn add(&mut self, opening: Opening, has_granted: bool) -> (Link, &mut OpenLink) {
        let Opening { inbox, shape, ring, peer, peer_ring, streams, is_withheld } = opening;
        let [to_peer, to_me] = streams;
        let sent = &mut self.known.on_mut(to_peer).sent;
        sent.opened += 1;
        let sent_before = *sent;
        let received = &mut self.known.on_mut(to_me).received;
        received.opened += 1;
        let received_before = *received;
        let is_free = |place: &Place| place.link.is_none() && place.generation < u32::MAX;
        let is_any_free = self.open < self.places.len();
        let free = if is_any_free { self.places.iter().position(is_free) } else { None };
        let number = free.unwrap_or_else(|| {
            self.places.push(Place { generation: 0, link: None });
            self.busy.grow(self.places.len());
            self.owing.grow(self.places.len());
            self.places.len() - 1
        });
        if !has_granted {
            self.busy.add(number);
        }
        self.open += 1;
        let window = shape.window as usize;
        let place = &mut self.places[number];
        place.generation += 1;
        let open = place.link.insert(OpenLink {
            number,
            peer,
            inbox: inbox.number(),
            ring,
            peer_ring,
            to_peer,
            to_me,
            shape,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            queue: Queue::with_capacity(2 * window),
            landed: 0,
            offers: VecDeque::with_capacity(window),
            offered: 0,
            offers_used: 0,
            sent_before,
            received_before,
            call: Call::default(),
            is_granted: false,
            has_granted,
            is_withheld,
            former_sender: None,
            lent: 0,
            in_flight: VecDeque::new(),
        });
        (Link::new(number as u32, place.generation), open)
    }

    /// An open link, if everything awaited on it is released and everything put is flushed.
    ///
    /// # Errors
    /// *Misuse* if not.
    pub fn may_close(&mut self, local: &LocalState, link: Link) -> Result<&mut OpenLink> {
        let open = self.get_mut(local, link)?;
        open.incoming.release_unheld();
        let (unreleased, offers) = (open.incoming.unreleased(), open.open_offers());
        if unreleased > 0 || !open.is_flushed() || offers > 0 {
            let text = format!(
                "{link} has {unreleased} unreleased messages, {} puts that have not left and {offers} open offers",
                open.outgoing.made - open.outgoing.sent
            );
            return Err(local.link_misuse(text));
        }
        Ok(open)
    }

    /// Closes a link, and keeps its counts.
    pub fn remove(&mut self, link: Link) -> Option<OpenLink> {
        let open = self.places[link.number()].link.take()?;
        open.note(FormerSenders::default(), &mut self.known);
        self.known.on_mut(open.to_peer).sent.closed = open.sent_before.opened;
        let received = &mut self.known.on_mut(open.to_me).received;
        (received.closed, received.held_by) = (open.received_before.opened, None);
        self.busy.remove(link.number());
        self.owing.remove(link.number());
        self.open -= 1;
        Some(open)
    }

    /// All open links are given up.
    pub fn clear(&mut self) {
        self.busy.clear();
        self.owing.clear();
        self.open = 0;
        self.places.iter_mut().for_each(|place| place.link = None);
    }

    /// All open links.
    pub fn iter(&self) -> impl Iterator<Item = &OpenLink> {
        self.places.iter().filter_map(|place| place.link.as_ref())
    }

    /// As [`iter`](Self::iter).
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut OpenLink> {
        self.places.iter_mut().filter_map(|place| place.link.as_mut())
    }

    /// The links that a wait looks at.
    #[inline]
    pub fn busy(&self) -> impl Iterator<Item = &OpenLink> {
        self.busy.iter().filter_map(|place| self.places[place].link.as_ref())
    }

    /// Calls `visit` for the links that a wait looks at, with what was done on every stream by links that are closed.
    ///
    /// # Errors
    /// The first of `visit`; the links behind are not visited then.
    #[inline]
    pub fn for_busy<S>(
        &mut self,
        mut visit: impl FnMut(&mut OpenLink, &Status) -> std::result::Result<(), S>,
    ) -> std::result::Result<(), S> {
        let LinkTable { places, busy, known, .. } = self;
        for place in busy.iter() {
            if let Some(link) = &mut places[place].link {
                visit(link, known)?;
            }
        }
        Ok(())
    }

    /// Calls `report` for the links whose releases are not all reported.
    ///
    /// # Errors
    /// The first of `report`.
    #[inline]
    pub fn for_unreported<S>(
        &mut self,
        mut report: impl FnMut(&mut OpenLink) -> std::result::Result<(), S>,
    ) -> std::result::Result<(), S> {
        let LinkTable { places, busy, owing, .. } = self;
        for place in busy.iter().chain(owing.iter()) {
            if let Some(link) = &mut places[place].link
                && !link.incoming.is_reported()
            {
                report(link)?;
            }
        }
        owing.clear();
        Ok(())
    }

    /// An open link.
    #[inline]
    pub fn find(&self, link: Link) -> Option<&OpenLink> {
        let place = self.places.get(link.number())?;
        place.link.as_ref().filter(|_| place.generation == link.generation())
    }

    /// As [`find`](Self::find).
    #[inline]
    pub fn find_mut(&mut self, link: Link) -> Option<&mut OpenLink> {
        find_mut(&mut self.places, link)
    }

    /// An open link.
    ///
    /// # Errors
    /// *Misuse* if it is not open.
    #[inline]
    pub fn get(&self, local: &LocalState, link: Link) -> Result<&OpenLink> {
        self.find(link).ok_or_else(|| is_not_open(local, link))
    }

    /// As [`get`](Self::get).
    ///
    /// # Errors
    /// *Misuse* if it is not open.
    #[inline]
    pub fn get_mut(&mut self, local: &LocalState, link: Link) -> Result<&mut OpenLink> {
        self.find_mut(link).ok_or_else(|| is_not_open(local, link))
    }

    /// Releases what the last sync awaited and no process holds, and adds what this one awaits. `released` is called for
    /// the links that a wait looked at.
    ///
    /// # Errors
    /// *Misuse* for a link that is not open, or more unreleased messages than the window. It has no effect.
    #[inline]
    pub fn expect(
        &mut self,
        local: &LocalState,
        messages: &[Expect],
        mut released: impl FnMut(&mut OpenLink),
    ) -> Result<()> {
        // Everything is checked before anything changes.
        for expect in messages {
            let open = self.get(local, expect.link)?;
            let may = open.incoming.may_await(expect.link, messages, open.shape.window);
            may.map_err(|cause| local.misuse(cause))?;
        }
        let LinkTable { places, busy, owing, call, .. } = self;
        busy.retain(|place| {
            let Some(open) = &mut places[place].link else { return false };
            let is_busy = open.is_busy();
            open.incoming.release_unheld();
            open.outgoing.made_at_sync = open.outgoing.made;
            released(open);
            if !is_busy && !open.incoming.is_reported() {
                owing.add(place);
            }
            is_busy
        });
        for expect in messages {
            // Looked up above.
            let Some(open) = &mut places[expect.link.number()].link else { continue };
            open.incoming.awaited += u64::from(expect.messages);
            open.call = *call;
            busy.add(expect.link.number());
        }
        Ok(())
    }

    /// All messages awaited by a wait have arrived.
    #[inline]
    pub fn finish(&mut self, messages: &[Expect]) {
        for expect in messages {
            if let Some(open) = self.find_mut(expect.link) {
                open.incoming.finished = open.incoming.awaited;
            }
        }
    }

    /// An open link, for its message `nth`, counted from 0.
    ///
    /// # Errors
    /// *Misuse* if the message cannot be read.
    #[inline]
    pub fn readable(&self, local: &LocalState, link: Link, nth: u64) -> Result<&OpenLink> {
        let open = self.get(local, link)?;
        if open.incoming.is_readable(nth) {
            return Ok(open);
        }
        let text = format!("message {nth} on {link} was not awaited, or is released");
        Err(local.link_misuse(text))
    }

    /// As [`Links::hold`](crate::Links::hold).
    ///
    /// # Errors
    /// *Misuse* if the message cannot be read or is held.
    pub fn hold(&mut self, local: &LocalState, link: Link, nth: u64) -> Result<()> {
        self.readable(local, link, nth)?;
        if self.get_mut(local, link)?.incoming.hold(nth) {
            return Ok(());
        }
        Err(local.link_misuse(format!("a message on {link} is held already")))
    }

    /// As [`Links::release`](crate::Links::release), or [`Links::release_held`](crate::Links::release_held) if `held`.
    ///
    /// # Errors
    /// *Misuse* if the message cannot be released.
    #[inline]
    pub fn release(
        &mut self,
        local: &LocalState,
        link: Link,
        nth: u64,
        held: bool,
    ) -> Result<&mut OpenLink> {
        let open = self.get_mut(local, link)?;
        let incoming = &mut open.incoming;
        if !(if held { incoming.release_held(nth) } else { incoming.release(nth) }) {
            let text = format!("message {nth} on {link} was not awaited, is released, or is held");
            return Err(local.link_misuse(text));
        }
        Ok(open)
    }

    /// Checks and counts a put on a link, which the caller queues or sends at once. With `lends_parts` as
    /// [`Engine::lends_parts`](super::Engine::lends_parts).
    ///
    /// # Errors
    /// *Misuse*, as [`Links::send`](crate::Links::send).
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub fn put(
        &mut self,
        local: &LocalState,
        link: Link,
        slot: Slot,
        offset: usize,
        bytes: usize,
        travel: Travel,
        lends_parts: bool,
    ) -> Result<(&mut OpenLink, Queued)> {
        let address = local.range(slot, offset, bytes)?;
        let LinkTable { places, busy, call, .. } = self;
        let Some(open) = find_mut(places, link) else { return Err(is_not_open(local, link)) };
        let shape = (open.shape, open.shape.longest_part(lends_parts));
        let made = open.outgoing.make(link, bytes, travel, shape, open.queue.len());
        made.map_err(|cause| local.misuse(cause))?;
        busy.add(link.number());
        Ok((open, Queued { slot, address, bytes, travel, stamp: call.word() }))
    }

    /// Notes an offer of `bytes` bytes at `offset` of a slot, and gives the link, the number of the offer and the address.
    ///
    /// # Errors
    /// *Misuse* for an unknown slot or link, a range outside it, or more than W offers open.
    pub fn offer(
        &mut self,
        local: &LocalState,
        link: Link,
        slot: Slot,
        offset: usize,
        bytes: usize,
    ) -> Result<(&mut OpenLink, u64, *mut u8)> {
        let address = local.range(slot, offset, bytes)?;
        let open = self.get_mut(local, link)?;
        let window = open.shape.window;
        if open.open_offers() >= u64::from(window) {
            return Err(local.link_misuse(format!("more than {window} open offers on {link}")));
        }
        let number = open.offered;
        open.offered += 1;
        open.offers.push_back(slot);
        Ok((open, number, address))
    }

    /// Whether a slot may be deregistered as far as links are concerned.
    ///
    /// # Errors
    /// *Misuse* if an open offer names it, or a put that has not left.
    pub fn check_unused(&self, local: &LocalState, slot: Slot) -> Result<()> {
        let name = || slot.to_string();
        if self.iter().any(|link| link.offers.contains(&slot)) {
            return Err(local.misuse(Cause::SlotOffered { slot: name() }));
        }
        if self.iter().any(|link| link.queue.names(slot) || link.in_flight.contains(&slot)) {
            return Err(local.misuse(Cause::SlotBusy { slot: name() }));
        }
        Ok(())
    }

    /// The counts of this process on all streams, its superstep and its call; the caller adds its activity.
    pub fn status(
        &self,
        local: &LocalState,
        former_senders: impl Fn(&OpenLink) -> FormerSenders,
    ) -> Status {
        let mut status = self.known.clone();
        for link in self.iter() {
            link.note(former_senders(link), &mut status);
        }
        status.superstep = local.superstep;
        status.enter(self.call);
        status
    }

    /// The counts that a wait needs and that are short.
    pub fn wants(
        &self,
        awaited: Awaited<'_>,
        former_senders: impl Fn(&OpenLink) -> FormerSenders,
    ) -> Vec<Want> {
        let sends = |link: &OpenLink| link.wants_to_send(former_senders(link));
        match awaited {
            Awaited::Flushed => self.iter().filter_map(sends).collect(),
            Awaited::FlushedOn(links) => {
                links.iter().filter_map(|&link| self.find(link).and_then(sends)).collect()
            }
            Awaited::Messages(messages) => messages
                .iter()
                .filter_map(|expect| self.find(expect.link)?.wants_messages())
                .collect(),
        }
    }
}

#[inline]
fn find_mut(places: &mut [Place], link: Link) -> Option<&mut OpenLink> {
    let place = places.get_mut(link.number())?;
    place.link.as_mut().filter(|_| place.generation == link.generation())
}

#[cold]
fn is_not_open(local: &LocalState, link: Link) -> Error {
    local.link_misuse(format!("{link} is not open (never was, or was closed)"))
}
