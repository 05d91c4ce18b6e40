//! Expected arrivals on messages: cells, credits, landings, grants.
//!
//! A message of a link is matched by its sender and the ring that it ends in; the receiver has posted
//! a receive for every free cell before it gives credit for it, so nothing is ever sent that has no
//! place. A sender that reaches the ring needs no network: it writes the cells itself ([`near`]).
//! Credits, offers, grants and closings are messages of a few words on a channel of their own
//! for each pair of processes ([`control`]). The rules are those of `lpf_core::arrivals`; the counts that
//! others are told are by stream, see `lpf_core::waits`.

mod control;
mod inboxes;
mod near;
mod receive;
mod send;
mod unread;

use std::collections::{HashMap, VecDeque};

use super::memory::Memory;
use super::process::{Messages, Tables};
use super::transport::{Rank, Ticket, Transport};
use super::watch::Stop;
use control::{Early, Postbox};
use inboxes::Inbox;
use lpf_core::Awaited;
use lpf_core::Pid;
use lpf_core::error::Result;
use lpf_core::runtime::{ForBoard, ForLinks, LocalState, links};
use lpf_core::slot::Slot;
use lpf_core::waits::{Consult, Stream};
use near::NearRing;
use send::finish_sends;

/// So many waits at most find what they await before there is progress on everything: who has to be told
/// something waits for it no longer.
const AT_ONCE: u32 = 64;

/// A wait of more looks reports all releases. It does so before it sleeps.
const SHORT_WAIT: u32 = 32;

/// The table of links.
pub(super) type Table = links::LinkTable<End>;

/// An open link.
type OpenLink = links::OpenLink<End>;

/// The inboxes of one process, and the words to and from its peers.
#[derive(Debug)]
pub(super) struct Rings {
    pid: Pid,
    context: u32,
    members: Box<[Rank]>,
    inboxes: Vec<Option<Inbox>>,
    /// Deregistered since the last full sync, and still within others' reach.
    removed: Vec<Inbox>,
    /// Rings of all inboxes so far.
    count: u32,
    postbox: Postbox,
    /// This process is in the last meeting: who has met all others there may be gone, and has nothing to say.
    ends: bool,
    /// What peers said to links that are not open yet.
    early: Vec<Early>,
    /// Which link of a stream into a ring here its sender closed last, and what it had sent on the stream.
    closed: HashMap<Stream, Closed>,
    /// Room for the counts of the section's end, by process.
    awaited: Vec<u16>,
    /// Waits that found what they awaited since there was progress on everything.
    at_once: u32,
}

/// The links of one process with their rings.
#[derive(Debug)]
pub(super) struct Links<'a> {
    pub(super) table: &'a mut Table,
    pub(super) rings: &'a mut Rings,
}

/// The part of a link that the network needs.
#[derive(Debug)]
pub struct End {
    /// The grant of the peer's ring: where that is, plus one, nought where only the network gets there.
    granted: Option<u64>,
    /// Whether this one's ring is the peer's; else who still has it.
    has_granted: bool,
    held_by: Option<(Pid, u64)>,
    /// Whether the two ends reach what the other shares. A ring may be elsewhere all the same.
    is_near: bool,
    /// The peer's ring and this link's own, where the sender reaches the cells.
    there: Option<NearRing>,
    here: Option<NearRing>,
    /// Messages that the network still reads; heads of those sent by reference.
    in_flight: VecDeque<InFlight>,
    heads: Memory,
    /// Lengths of the peer's offers that are not used.
    peer_offers: VecDeque<usize>,
    /// Receives posted for cells, those of messages `posted - cells.len()` and on.
    cells: VecDeque<Ticket>,
    /// The head of the next message has come, its landing perhaps not.
    head_came: bool,
    posted: u64,
    /// What arrived in the cells, by message number modulo the window.
    arrived: Vec<Arrived>,
    offers: VecDeque<Offer>,
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
    address: *mut u8,
    ticket: Ticket,
    /// Its bytes have come before its head was looked at.
    done: bool,
}

// SAFETY: as above.
unsafe impl Send for Offer {}

impl links::End for End {
    #[inline]
    fn is_granted(&self) -> bool {
        self.granted.is_some()
    }

    #[inline]
    fn has_granted(&self) -> bool {
        self.has_granted
    }

    fn reads(&self, slot: Slot) -> bool {
        self.in_flight.iter().any(|sent| sent.slot == slot)
    }

    #[inline]
    fn have_left(link: &OpenLink) -> bool {
        link.end.in_flight.is_empty()
    }

    fn former_sender(link: &OpenLink) -> Option<(Pid, u64)> {
        link.end.held_by
    }
}

impl Rings {
    pub(super) fn new(pid: Pid, context: u32, members: Box<[Rank]>) -> Self {
        Rings {
            pid,
            context,
            postbox: Postbox::new(members.len()),
            members,
            inboxes: Vec::new(),
            removed: Vec::new(),
            count: 0,
            early: Vec::new(),
            ends: false,
            closed: HashMap::new(),
            awaited: Vec::new(),
            at_once: 0,
        }
    }

    /// The links with these rings, and the process's other table.
    #[inline]
    pub(super) fn of<'a>(&'a mut self, tables: &'a mut Tables) -> (Links<'a>, &'a LocalState) {
        (Links { table: &mut tables.links, rings: self }, &tables.local)
    }

    /// This process is in the last meeting.
    pub(super) fn end(&mut self) {
        self.ends = true;
    }

    /// A full sync is over: no process writes into the inboxes that were deregistered before it.
    pub(super) fn let_go_of_removed(&mut self) {
        self.removed.clear();
    }

    /// Gives everything up. False where the network may still write to users' memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T, table: &mut Table) -> bool {
        let quiet = table.drain().fold(true, |quiet, link| link.end.give_up(net) & quiet);
        quiet & self.postbox.close(net)
    }

    /// Keeps for ever what others write to.
    pub(super) fn keep(&mut self) {
        lpf_core::leaked::leak(std::mem::take(&mut self.inboxes));
        self.postbox.keep();
    }

    /// Keeps for ever what others write to without the network: the section has failed, and they may not know
    /// yet.
    pub(super) fn keep_shared(&mut self) {
        let Rings { inboxes, removed, .. } = self;
        removed.extend(inboxes.iter_mut().filter_map(Option::take));
        removed.retain(Inbox::is_shared);
        if !removed.is_empty() {
            lpf_core::leaked::leak(std::mem::take(removed));
        }
    }
}

impl Links<'_> {
    /// The processes of the section.
    pub(super) fn members(&self) -> &[Rank] {
        &self.rings.members
    }

    /// Progress on everything: what peers say, what can leave, what must be reported. Never blocks.
    #[inline]
    pub(super) fn progress<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
    ) -> std::result::Result<(), Stop> {
        if !self.table.are_in_use() {
            return Ok(());
        }
        self.rings.at_once = 0;
        self.hear(net)?;
        let Links { table, rings, .. } = self;
        let call = table.call;
        table.for_busy(|link, known| {
            if !link.end.has_granted {
                rings.grant(net, local, link, known)?;
            }
            if link.must_report() {
                rings.report(net, link)?;
            }
            finish_sends(net, link)?;
            if !link.queue.is_empty() && !rings.send_queued(net, local, call, link)? {
                // A process that waits for credit reports all its releases. Else two full windows wait for each other.
                rings.report(net, link)?;
            }
            Ok(())
        })
    }

    /// Reports all releases.
    pub(super) fn report_all<T: Transport>(
        &mut self,
        net: &mut T,
    ) -> std::result::Result<(), Stop> {
        let Links { table, rings, .. } = self;
        table.for_unreported(|link| rings.report(net, link))
    }

    /// Whether a flush has nothing to wait for, as is known without the network.
    #[inline]
    fn is_flushed(&self, awaited: Awaited<'_>) -> bool {
        match awaited {
            Awaited::Flushed => self.table.busy().all(OpenLink::is_flushed),
            Awaited::FlushedOn(links) => {
                links.iter().all(|&link| self.table.find(link).is_none_or(OpenLink::is_flushed))
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
        self.rings.at_once += 1;
        if self.rings.at_once >= AT_ONCE {
            return self.progress(net, local);
        }
        let Awaited::Messages(messages) = awaited else { return Ok(()) };
        let Links { table, rings, .. } = self;
        for expect in messages {
            let Some(link) = table.find_mut(expect.link) else { continue };
            if link.must_report() {
                rings.report(net, link)?;
            }
        }
        Ok(())
    }
}

impl End {
    /// Whether the two ends reach what the other shares.
    pub(super) fn is_near(&self) -> bool {
        self.is_near
    }

    fn give_up<T: Transport>(mut self, net: &mut T) -> bool {
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
            lpf_core::leaked::leak(std::mem::take(&mut self.heads));
        }
        quiet
    }
}

impl<T: Transport> Messages<T> {
    /// Waits until `found` finds what it looks for on the board.
    pub(super) fn consult_board<R>(
        &mut self,
        tables: &mut Tables,
        wait: Consult<'_>,
        mut found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        let Messages { network, rings, watch, .. } = self;
        tables.links.known.join(tables.links.call);
        let mut what = ForBoard { tables, wait };
        let (mut answer, mut looks) = (None, 0);
        watch.wait(&mut network.lock().net, &mut what, |what, net| {
            match found() {
                Ok(None) => {}
                Err(error) if error.is_fatal() => return Err(Stop::Fatal(error)),
                other => {
                    answer = Some(other);
                    return Ok(true);
                }
            }
            let (mut links, local) = rings.of(what.tables);
            links.progress(net, local)?;
            looks += 1;
            if looks >= SHORT_WAIT {
                links.report_all(net)?;
            }
            Ok(false)
        })?;
        let answer = answer.transpose()?.flatten();
        answer.ok_or_else(|| unreachable!("the wait ends with an answer or an error"))
    }

    /// Waits until `awaited` is there.
    pub(super) fn wait(&mut self, tables: &mut Tables, awaited: Awaited<'_>) -> Result<()> {
        let Messages { network, rings, watch, .. } = self;
        tables.links.check(&tables.local, awaited)?;
        if rings.of(tables).0.is_flushed(awaited) {
            return Ok(());
        }
        let mut looks = 0;
        watch.wait(&mut network.lock().net, &mut ForLinks { tables, awaited }, |what, net| {
            let (mut links, local) = rings.of(what.tables);
            // Asked about first: a look at the network ends with what it finds then.
            if links.is_there(net, local, awaited)? {
                links.at_once(net, local, awaited)?;
                return Ok(true);
            }
            links.progress(net, local)?;
            // A report is owed to whoever may wait for it while this process does, but is a message more.
            looks += 1;
            if looks >= SHORT_WAIT {
                links.report_all(net)?;
            }
            Ok(false)
        })
    }

    /// Progress, and whether the awaited is there.
    pub(super) fn poll_for(&mut self, tables: &mut Tables, awaited: Awaited<'_>) -> Result<bool> {
        let Messages { network, rings, watch, .. } = self;
        let Tables { local, links: table } = tables;
        table.check(local, awaited)?;
        let net = &mut network.lock().net;
        let mut links = Links { table, rings };
        let polled = net.progress().map_err(Stop::Broken).and_then(|()| {
            links.progress(net, local)?;
            let is_there = links.is_there(net, local, awaited)?;
            if !is_there {
                // As in a sync: who polls may be waiting.
                links.report_all(net)?;
            }
            Ok(is_there)
        });
        match polled {
            Ok(true) => Ok(true),
            Ok(false) => watch.failure(net.control()).map_or(Ok(false), Err),
            Err(stop) => Err(watch.stopped(net.control(), local.superstep, stop)),
        }
    }
}
