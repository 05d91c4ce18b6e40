//! Expected arrivals on messages: cells, credits, landings, grants.
//!
//! A message of a link is matched by its sender and the ring that it ends in; the receiver has posted
//! a receive for every free cell before it gives credit for it, so every message that is sent has memory at its
//! receiver. A sender that reaches the ring in shared memory needs no network: it writes the cells itself ([`near`]).
//! Credits, offers, grants and closings are messages of a few words. Each pair of processes has a channel of its own for
//! them ([`control`]). The rules are those of `lpf_core::arrivals`. The counts in these messages belong to a stream: see
//! `lpf_core::waits`.

mod carrier;
mod control;
mod inboxes;
mod near;
mod receive;
mod send;
mod unread;

use std::collections::{HashMap, VecDeque};

use super::memory::Memory;
use super::transport::{Rank, Ticket, Transport};
use super::watch::Stop;
use control::{Early, Postbox};
use inboxes::Inbox;
use lpf_core::Pid;
use lpf_core::runtime::links::{Ends, LinkTable, OpenLink};
use lpf_core::runtime::{self, LocalState};
use lpf_core::waits::Stream;
use near::NearRing;

/// The inboxes of one process, and the control words to and from its peers.
#[derive(Debug)]
pub(super) struct Rings {
    pid: Pid,
    context: u32,
    members: Box<[Rank]>,
    inboxes: Vec<Option<Inbox>>,
    ends: Ends<End>,
    /// Deregistered since the last full sync: other processes may still write to them.
    removed: Vec<Inbox>,
    /// Rings of all inboxes so far.
    count: usize,
    postbox: Postbox,
    /// This process is in the last barrier of the section. A process that has left that barrier may be gone, and sends no
    /// control words.
    is_last: bool,
    /// Control words of peers to links that are not open yet.
    early: Vec<Early>,
    /// Of each stream into a ring here, the link that its sender closed last, and how many messages it had sent on the
    /// stream.
    closed: HashMap<Stream, Closed>,
    /// Memory for the counts at the end of the section, by process.
    awaited: Vec<u16>,
    /// False after a receive of a link that could not be cancelled: the network may write to its memory at any time.
    pub(super) is_quiet: bool,
}

/// The links of one process with their rings.
#[derive(Debug)]
pub(super) struct Links<'a> {
    pub(super) table: &'a mut LinkTable,
    pub(super) rings: &'a mut Rings,
}

/// The part of a link that the network needs.
#[derive(Debug)]
struct End {
    /// The grant of the peer's ring: its offset in shared memory, plus one; zero if only the network reaches it.
    grant: Option<u64>,
    /// Whether each end reaches the memory that the other one shares. A ring can be in other memory in spite of that.
    is_near: bool,
    /// The peer's ring and the ring here, if the sender reaches the cells in shared memory.
    there: Option<NearRing>,
    here: Option<NearRing>,
    /// Messages that the network still reads, and the heads of those that it reads in place.
    in_flight: VecDeque<Ticket>,
    heads: Memory,
    /// Lengths of the peer's offers that are not used.
    peer_offers: VecDeque<usize>,
    /// Receives posted for cells, from message `posted - cells.len()` on.
    cells: VecDeque<Ticket>,
    /// The head of the next message has arrived; its landing may be on its way.
    head_came: bool,
    posted: u64,
    /// What arrived in the cells, by message number modulo the window.
    arrived: Vec<Arrived>,
    offers: VecDeque<Offer>,
}

/// The closing of a link, as its sender reported it.
#[derive(Clone, Copy, Debug, Default)]
struct Closed {
    opening: u64,
    made: u64,
}

/// A message in a cell or a landing.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    bytes: usize,
    /// The offer's number and address, if the message went to a landing.
    landing: Option<(u64, *mut u8)>,
}

// SAFETY: this type never follows the address.
unsafe impl Send for Arrived {}

/// Memory offered for a landing.
#[derive(Debug)]
struct Offer {
    address: *mut u8,
    ticket: Ticket,
    /// Its bytes have arrived before its head was read.
    done: bool,
}

// SAFETY: as above.
unsafe impl Send for Offer {}

impl Rings {
    pub(super) fn new(pid: Pid, context: u32, members: Box<[Rank]>) -> Self {
        Rings {
            pid,
            context,
            postbox: Postbox::new(members.len()),
            members,
            inboxes: Vec::new(),
            ends: Ends::default(),
            removed: Vec::new(),
            count: 0,
            early: Vec::new(),
            is_last: false,
            closed: HashMap::new(),
            awaited: Vec::new(),
            is_quiet: true,
        }
    }

    /// Whether each end of a link reaches the memory that the other one shares.
    pub(super) fn is_near(&self, link: &OpenLink) -> bool {
        self.ends.of(link).is_near
    }

    /// This process enters the last barrier of the section.
    pub(super) fn end(&mut self) {
        self.is_last = true;
    }

    /// A full sync is over: no process writes into the inboxes that were deregistered before it.
    pub(super) fn let_go_of_removed(&mut self) {
        self.removed.clear();
    }

    /// Gives everything up. Returns false if the network may still write to users' memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T, table: &mut LinkTable) -> bool {
        table.clear();
        let quiet = self.ends.drain().fold(true, |quiet, end| end.give_up(net) & quiet);
        quiet & self.postbox.close(net)
    }

    /// Leaks the memory that other processes write to.
    pub(super) fn keep(&mut self) {
        lpf_core::leaked::leak(std::mem::take(&mut self.inboxes));
        self.postbox.keep();
    }

    /// Leaks the memory that other processes write to without the network. The section has failed, and they may not have
    /// been informed yet.
    pub(super) fn keep_shared(&mut self) {
        let Rings { inboxes, removed, .. } = self;
        removed.extend(inboxes.iter_mut().filter_map(Option::take));
        removed.retain(Inbox::is_shared);
        if !removed.is_empty() {
            lpf_core::leaked::leak(std::mem::take(removed));
        }
    }
}

/// The rings of one process on its network.
#[derive(Debug)]
pub(super) struct OnNet<'a, T> {
    pub(super) rings: &'a mut Rings,
    pub(super) net: &'a mut T,
}

impl Links<'_> {
    /// The processes of the section.
    pub(super) fn members(&self) -> &[Rank] {
        &self.rings.members
    }

    /// Progress on everything: what peers report, what can leave, what must be reported. Never blocks.
    #[inline]
    pub(super) fn progress<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
    ) -> std::result::Result<(), Stop> {
        runtime::progress::progress(&mut OnNet { rings: self.rings, net }, local, self.table)
    }
}

impl End {
    fn give_up<T: Transport>(mut self, net: &mut T) -> bool {
        let mut quiet = true;
        for ticket in self.cells.drain(..) {
            quiet &= net.cancel(ticket);
        }
        for offer in self.offers.drain(..).filter(|offer| !offer.done) {
            quiet &= net.cancel(offer.ticket);
        }
        for ticket in self.in_flight.drain(..) {
            quiet &= net.cancel(ticket);
        }
        if !quiet {
            // The network may still read the heads of puts that are in flight.
            lpf_core::leaked::leak(std::mem::take(&mut self.heads));
        }
        quiet
    }
}
