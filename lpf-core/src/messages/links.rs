//! Expected arrivals on messages: cells, credits, landings, grants.
//!
//! A message of a link is matched by its sender and the ring that it ends in; the receiver has posted
//! a receive for every free cell before it gives credit for it, so nothing is ever sent that has no
//! place. A sender that reaches the ring needs no network: it writes the cells itself ([`near`]).
//! Credits, offers, grants and closings are messages of a few words on a channel of their own
//! for each pair of processes ([`control`]). The rules are those of `crate::arrivals`; the counts that
//! others are told are by stream, see `crate::waits`.

mod control;
mod inboxes;
mod near;
mod receive;
mod send;
mod unread;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::memory::Memory;
use super::process::Process;
use super::transport::{Rank, Ticket, Transport};
use super::watch::{Stop, Waiting};
use crate::Pid;
use crate::arrivals::{Call, InboxShape, Incoming, Link, Outgoing, Queue};
use crate::error::Result;
use crate::lpf::Awaited;
use crate::runtime::LocalState;
use crate::slot::Slot;
use crate::waits::{
    Consult, Doing, QueuedLanding, ReceiverCounts, SenderCounts, Status, Stream, Want, What,
};
use control::{Early, Postbox};
use inboxes::Inbox;
use near::NearRing;

/// So many waits at most find what they await before there is progress on everything: who has to be told
/// something waits for it no longer.
const AT_ONCE: u32 = 64;

/// A wait of more looks reports all releases. It does so before it sleeps.
const SHORT_WAIT: u32 = 32;

/// The links of one process of a section.
#[derive(Debug)]
pub(super) struct Links {
    pid: Pid,
    context: u32,
    pub(super) members: Box<[Rank]>,
    places: Vec<Place>,
    open: usize,
    /// Waits that found what they awaited since there was progress on everything.
    at_once: u32,
    call: Call,
    inboxes: Vec<Option<Inbox>>,
    /// Deregistered since the last full sync, and still within others' reach.
    removed: Vec<Inbox>,
    /// Inboxes below this number are active.
    active: usize,
    /// Rings of all inboxes so far.
    rings: u32,
    postbox: Postbox,
    /// This process is in the last meeting: who has met all others there may be gone, and has nothing to say.
    pub(super) ends: bool,
    /// What was done on every stream so far, open links left out.
    known: Status,
    /// What peers said to links that are not open yet.
    early: Vec<Early>,
    /// Which link of a stream into a ring here its sender closed last, and what it had sent on the stream.
    closed: HashMap<Stream, Closed>,
    /// Room for the counts of the section's end, by process.
    awaited: Vec<u16>,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    link: Option<Box<OpenLink>>,
}

#[derive(Debug)]
struct OpenLink {
    peer: Pid,
    inbox: usize,
    ring: u32,
    peer_ring: u32,
    shape: InboxShape,
    /// Which of the openings of the stream there and of the stream here this is, from 1.
    out_opening: u64,
    in_opening: u64,
    /// The grant of the peer's ring: where that is, plus one, nought where only the network gets there.
    granted: Option<u64>,
    /// Whether this one's ring is the peer's.
    has_granted: bool,
    /// Whether the two ends reach what the other shares. A ring may be elsewhere all the same.
    is_near: bool,
    /// The peer's ring and this link's own, where the sender reaches the cells.
    there: Option<NearRing>,
    here: Option<NearRing>,
    outgoing: Outgoing,
    incoming: Incoming,
    queue: Queue,
    /// Messages that the network still reads; heads of those sent by reference.
    in_flight: VecDeque<InFlight>,
    heads: Memory,
    /// Lengths of the peer's offers that are not used.
    peer_offers: VecDeque<usize>,
    landed: u64,
    /// Receives posted for cells, those of messages `posted - cells.len()` and on.
    cells: VecDeque<Ticket>,
    /// The head of the next message has come, its landing perhaps not.
    head_came: bool,
    posted: u64,
    /// What arrived in the cells, by message number modulo the window.
    arrived: Vec<Arrived>,
    offers: VecDeque<Offer>,
    offered: u64,
    offers_used: u64,
    /// What earlier links did on the same streams.
    sent_before: SenderCounts,
    received_before: ReceiverCounts,
    call: Call,
}

/// A message that the network still reads.
#[derive(Debug)]
struct InFlight {
    slot: Slot,
    ticket: Ticket,
}

/// The end of a link, as its sender told it.
#[derive(Clone, Copy, Debug, Default)]
struct Closed {
    opening: u64,
    made: u64,
}

/// A message in a cell or a landing.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    bytes: usize,
    /// The offer's number and address, where it went to a landing.
    landing: Option<(u64, *mut u8)>,
}

// SAFETY: an address is only a number here.
unsafe impl Send for Arrived {}

/// Memory offered for a landing.
#[derive(Debug)]
struct Offer {
    slot: Slot,
    address: *mut u8,
    ticket: Ticket,
    /// Its bytes have come before its head was looked at.
    done: bool,
}

// SAFETY: as above.
unsafe impl Send for Offer {}

impl OpenLink {
    fn to_peer(&self, pid: Pid) -> Stream {
        Stream { from: pid, to: self.peer, inbox: self.inbox, ring: self.peer_ring }
    }

    fn to_me(&self, pid: Pid) -> Stream {
        Stream { from: self.peer, to: pid, inbox: self.inbox, ring: self.ring }
    }

    fn is_flushed(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_empty()
    }

    /// Writes what this link has done to its process's status; `holder` still has its ring.
    fn note(&self, pid: Pid, holder: Option<(Pid, u64)>, status: &mut Status) {
        let (sent, received) = (&self.sent_before, &self.received_before);
        let before_landing = self.queue.before_landing();
        let landed = sent.landed + self.landed;
        status.on_mut(self.to_peer(pid)).sent = SenderCounts {
            made: sent.made + self.outgoing.made,
            landed,
            queued: before_landing.map(|before| QueuedLanding {
                message: sent.made + self.outgoing.sent + before + 1,
                landing: landed + 1,
            }),
            barred: (self.granted.is_none() && !self.queue.is_empty())
                .then_some(sent.made + self.outgoing.sent + 1),
            ..*sent
        };
        status.on_mut(self.to_me(pid)).received = ReceiverCounts {
            released: received.released + self.incoming.released,
            offered: received.offered + self.offered,
            held_by: holder,
            ..*received
        };
    }

    /// What the queue of this link waits for: the ring, credit, or an offer.
    fn wants_to_send(&self, pid: Pid) -> Option<Want> {
        let next = self.queue.next()?;
        let stream = self.to_peer(pid);
        if self.granted.is_none() {
            let need = self.out_opening;
            return Some(Want { what: What::Opening, stream, have: need - 1, need });
        }
        let before = self.sent_before.made;
        let need = before + (self.outgoing.sent + 1).saturating_sub(u64::from(self.shape.window));
        let have = before + self.outgoing.released;
        if have < need {
            return Some(Want { what: What::Releases, stream, have, need });
        }
        next.is_landing().then(|| {
            let have = self.sent_before.landed + self.landed;
            Want { what: What::Offers, stream, have, need: have + 1 }
        })
    }
}

impl Links {
    pub(super) fn new(pid: Pid, context: u32, members: Box<[Rank]>) -> Self {
        Links {
            pid,
            context,
            postbox: Postbox::new(members.len()),
            members,
            places: Vec::new(),
            open: 0,
            at_once: 0,
            call: Call::default(),
            inboxes: Vec::new(),
            removed: Vec::new(),
            active: 0,
            rings: 0,
            known: Status::default(),
            early: Vec::new(),
            ends: false,
            closed: HashMap::new(),
            awaited: Vec::new(),
        }
    }

    pub(super) fn enter(&mut self, call: Call) {
        self.call = call;
    }

    /// Registrations are in force.
    pub(super) fn activate(&mut self) {
        self.active = self.inboxes.len();
        self.removed.clear();
    }

    fn open_links(&self) -> impl Iterator<Item = &OpenLink> {
        self.places.iter().filter_map(|place| place.link.as_deref())
    }

    fn find(&self, link: Link) -> Option<&OpenLink> {
        let place = self.places.get(link.number())?;
        place.link.as_deref().filter(|_| place.generation == link.generation())
    }

    fn find_mut(&mut self, link: Link) -> Option<&mut OpenLink> {
        let place = self.places.get_mut(link.number())?;
        place.link.as_deref_mut().filter(|_| place.generation == link.generation())
    }

    /// What this process has done on all streams; what it is doing is the caller's to say.
    pub(super) fn status(&self, local: &LocalState) -> Status {
        let mut status = self.known.clone();
        for link in self.open_links() {
            let holder = if link.has_granted { None } else { self.holder(link) };
            link.note(self.pid, holder, &mut status);
        }
        status.superstep = local.superstep;
        status.enter(self.call);
        status
    }

    /// What a wait needs that is not there.
    fn wants(&self, awaited: Awaited<'_>) -> Vec<Want> {
        let sends = |link: &OpenLink| link.wants_to_send(self.pid);
        match awaited {
            Awaited::Flushed => self.open_links().filter_map(sends).collect(),
            Awaited::FlushedOn(links) => {
                links.iter().filter_map(|&link| self.find(link).and_then(sends)).collect()
            }
            Awaited::Messages(messages) => messages
                .iter()
                .filter_map(|expect| {
                    let link = self.find(expect.link)?;
                    let before = link.received_before.released;
                    let (have, need) =
                        (before + link.incoming.seen, before + link.incoming.awaited);
                    let stream = link.to_me(self.pid);
                    (have < need).then_some(Want { what: What::Messages, stream, have, need })
                })
                .collect(),
        }
    }

    /// Progress on everything: what peers say, what can leave, what must be reported. Never blocks.
    #[inline]
    pub(super) fn progress<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
    ) -> std::result::Result<(), Stop> {
        if self.active == 0 {
            return Ok(());
        }
        self.at_once = 0;
        self.hear(net)?;
        (0..self.places.len()).try_for_each(|place| {
            self.on(place, |links, link| links.move_on(net, local, link)).unwrap_or(Ok(()))
        })
    }

    /// What happens on the link of a place, if it has one.
    #[inline]
    fn on<D>(
        &mut self,
        place: usize,
        does: impl FnOnce(&mut Self, &mut OpenLink) -> D,
    ) -> Option<D> {
        let mut link = self.places[place].link.take()?;
        let done = does(self, &mut link);
        self.places[place].link = Some(link);
        Some(done)
    }

    fn move_on<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        link: &mut OpenLink,
    ) -> std::result::Result<(), Stop> {
        if !link.has_granted {
            self.grant(net, local, link)?;
        }
        if link.incoming.must_report(link.shape.window, link.incoming.awaited) {
            self.report(net, link)?;
        }
        Self::finish_sends(net, link)?;
        if !link.queue.is_empty() && !self.send_queued(net, local, link)? {
            // Who waits for credit reports all it owes: else two full windows wait for each other.
            self.report(net, link)?;
        }
        Ok(())
    }

    /// Whether a flush has nothing to wait for, as is known without the network.
    #[inline]
    fn is_flushed(&self, awaited: Awaited<'_>) -> bool {
        match awaited {
            Awaited::Flushed => self.open_links().all(OpenLink::is_flushed),
            Awaited::FlushedOn(links) => {
                links.iter().all(|&link| self.find(link).is_none_or(OpenLink::is_flushed))
            }
            Awaited::Messages(_) => false,
        }
    }

    /// After a wait that found what it awaited: progress on the links that it named, and from time to time
    /// on all, however many waits follow each other and find theirs.
    #[inline]
    fn at_once<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        awaited: Awaited<'_>,
    ) -> std::result::Result<(), Stop> {
        self.at_once += 1;
        if self.at_once >= AT_ONCE {
            return self.progress(net, local);
        }
        let Awaited::Messages(messages) = awaited else { return Ok(()) };
        for expect in messages {
            let Some(link) = self.find(expect.link) else { continue };
            if link.incoming.must_report(link.shape.window, link.incoming.awaited) {
                self.report_at(net, expect.link.number())?;
            }
        }
        Ok(())
    }

    /// Gives everything up. False where the network may still write to users' memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        let mut quiet = true;
        for link in self.places.iter_mut().filter_map(|place| place.link.take()) {
            quiet &= link.give_up(net);
        }
        quiet & self.postbox.close(net)
    }

    /// Keeps for ever what others write to.
    pub(super) fn keep(&mut self) {
        crate::leaked::leak(std::mem::take(&mut self.inboxes));
        self.postbox.keep();
    }

    /// Keeps for ever what others write to without the network: the section has failed, and they may not know
    /// yet.
    pub(super) fn keep_shared(&mut self) {
        self.removed.extend(self.inboxes.iter_mut().filter_map(Option::take));
        self.removed.retain(Inbox::is_shared);
        if !self.removed.is_empty() {
            crate::leaked::leak(std::mem::take(&mut self.removed));
        }
    }
}

impl OpenLink {
    fn give_up<T: Transport>(mut self: Box<Self>, net: &mut T) -> bool {
        let mut quiet = true;
        for ticket in self.cells.drain(..) {
            quiet &= net.cancel(ticket);
        }
        for offer in self.offers.drain(..).filter(|offer| !offer.done) {
            quiet &= net.cancel(offer.ticket);
        }
        for InFlight { ticket, .. } in self.in_flight.drain(..) {
            quiet &= net.cancel(ticket);
        }
        if !quiet {
            // Where puts that are in flight have their heads.
            crate::leaked::leak(std::mem::take(&mut self.heads));
        }
        quiet
    }
}

/// A process that waits for messages or a flush, as its waits see it.
struct InExpected<'a> {
    local: &'a LocalState,
    links: &'a mut Links,
    awaited: Awaited<'a>,
}

impl Waiting for InExpected<'_> {
    fn status(&self) -> Status {
        let mut status = self.links.status(self.local);
        status.doing = Doing::Waiting(self.links.wants(self.awaited));
        status
    }

    fn missing(&self) -> Pid {
        self.links.wants(self.awaited).first().map_or(self.local.pid, Want::awaited)
    }

    fn superstep(&self) -> u64 {
        self.local.superstep
    }
}

/// A process that waits for a record of the board, as its waits see it.
struct InConsulting<'a> {
    local: &'a LocalState,
    links: &'a mut Links,
    wait: Consult<'a>,
}

impl Waiting for InConsulting<'_> {
    fn status(&self) -> Status {
        let mut status = self.links.status(self.local);
        status.doing = Doing::Waiting(self.wait.wants(self.links.call, &status));
        status
    }

    fn missing(&self) -> Pid {
        self.wait.from
    }

    fn look_every(&self) -> Duration {
        self.wait.look_every
    }

    fn superstep(&self) -> u64 {
        self.local.superstep
    }
}

impl<T: Transport> Process<T> {
    /// Waits until `found` finds what it looks for on the board.
    pub(super) fn consult_board<R>(
        &mut self,
        wait: Consult<'_>,
        mut found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        self.alive()?;
        let network = self.network.clone();
        let mut shared = network.lock();
        let Process { local, links, watch, .. } = self;
        links.known.join(links.call);
        let mut what = InConsulting { local, links, wait };
        let (mut answer, mut looks) = (None, 0);
        let waited = watch.wait(&mut shared.net, &mut what, |what, net| {
            match found() {
                Ok(None) => {}
                Err(error) if error.is_fatal() => return Err(Stop::Fatal(error)),
                other => {
                    answer = Some(other);
                    return Ok(true);
                }
            }
            what.links.progress(net, what.local)?;
            looks += 1;
            if looks >= SHORT_WAIT {
                what.links.report_all(net)?;
            }
            Ok(false)
        });
        drop(shared);
        waited.map_err(|error| self.end_with(error))?;
        let answer = answer.transpose()?.flatten();
        answer.ok_or_else(|| unreachable!("the wait ends with an answer or an error"))
    }

    /// Waits until `awaited` is there.
    pub(super) fn wait_for(&mut self, awaited: Awaited<'_>) -> Result<()> {
        self.alive()?;
        self.links.check_links(&self.local, awaited)?;
        let Process { network, local, links, watch, .. } = self;
        if links.is_flushed(awaited) {
            return Ok(());
        }
        let mut shared = network.lock();
        let mut what = InExpected { local, links, awaited };
        let mut looks = 0;
        let waited = watch.wait(&mut shared.net, &mut what, |what, net| {
            // Asked about first: a look at the network ends with what it finds then.
            if what.links.is_there(net, what.local, what.awaited)? {
                what.links.at_once(net, what.local, what.awaited)?;
                return Ok(true);
            }
            what.links.progress(net, what.local)?;
            // A report is owed to whoever may wait for it while this process does, but is a message more.
            looks += 1;
            if looks >= SHORT_WAIT {
                what.links.report_all(net)?;
            }
            Ok(false)
        });
        drop(shared);
        waited.map_err(|error| self.end_with(error))
    }

    /// Progress, and whether the awaited is there.
    pub(super) fn poll_for(&mut self, awaited: Awaited<'_>) -> Result<bool> {
        self.alive()?;
        self.links.check_links(&self.local, awaited)?;
        let network = self.network.clone();
        let mut shared = network.lock();
        let Process { local, links, watch, .. } = self;
        let net = &mut shared.net;
        let polled = net.progress().map_err(Stop::Broken).and_then(|()| {
            links.progress(net, local)?;
            let is_there = links.is_there(net, local, awaited)?;
            if !is_there {
                // As in a sync: who polls may be waiting.
                links.report_all(net)?;
            }
            Ok(is_there)
        });
        let there = match polled {
            Ok(there) => there,
            Err(stop) => {
                let error = watch.stopped(net.control(), local.superstep, stop);
                return Err(self.die(net, error));
            }
        };
        if !there && let Some(report) = self.watch.failure(net.control()) {
            return Err(self.die(net, report));
        }
        Ok(there)
    }

    /// Before a full sync or the end of a section: everything leaves, every release is reported.
    pub(super) fn settle_links(&mut self) -> Result<()> {
        if self.links.open == 0 {
            return Ok(());
        }
        self.expect_messages(&[])?;
        {
            let network = self.network.clone();
            let mut shared = network.lock();
            if let Err(broken) = self.links.report_all(&mut shared.net) {
                let error = self.watch.stopped(shared.net.control(), self.local.superstep, broken);
                return Err(self.die(&mut shared.net, error));
            }
        }
        self.wait_for(Awaited::Flushed)
    }
}
