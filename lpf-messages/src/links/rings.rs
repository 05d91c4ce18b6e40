//! The rings of a process, and its links with them.

use std::collections::{HashMap, VecDeque};

use super::super::memory::Memory;
use super::super::transport::{Rank, Ticket, Transport};
use super::super::watch::Stop;
use super::inbox::Inbox;
use super::near::NearRing;
use super::postbox::{Postbox, Word};
use lpf_core::Pid;
use lpf_core::runtime::links::{Ends, LinkTable, OpenLink};
use lpf_core::runtime::{self, LocalState, Nodes};
use lpf_core::waits::Stream;

/// The inboxes of one process, and the control words to and from its peers.
#[derive(Debug)]
pub(in super::super) struct Rings {
    pub(super) context: u32,
    pub(super) members: Box<[Rank]>,
    /// The nodes that the members stand for, if they do.
    pub(in super::super) nodes: Option<Nodes>,
    pub(super) inboxes: Vec<Option<Inbox>>,
    pub(super) ends: Ends<End>,
    /// Deregistered since the last full sync: other processes may still write to them.
    pub(super) removed: Vec<Inbox>,
    /// Rings of all inboxes so far.
    pub(super) count: usize,
    pub(super) postbox: Postbox,
    /// Control words of peers to links that are not open yet.
    pub(super) early: Vec<Word>,
    /// Of each stream into a ring here, the link that its sender closed last, and how many messages it had sent on the
    /// stream.
    pub(super) closed: HashMap<Stream, Closed>,
    /// Memory for the counts at the end of the section, by process.
    pub(super) awaited: Vec<u16>,
    /// False after a receive of a link that could not be cancelled: the network may write to its memory at any time.
    pub(in super::super) is_quiet: bool,
}

/// The links of one process with their rings.
#[derive(Debug)]
pub(in super::super) struct Links<'a> {
    pub(in super::super) table: &'a mut LinkTable,
    pub(in super::super) rings: &'a mut Rings,
}

/// The part of a link that the network needs.
#[derive(Debug)]
pub(super) struct End {
    /// The grant of the peer's ring: its offset in shared memory, plus one; zero if only the network reaches it.
    pub(super) grant: Option<u64>,
    /// Whether each end reaches the memory that the other one shares. A ring can be in other memory in spite of that.
    pub(super) is_near: bool,
    /// The peer's ring and the ring here, if the sender reaches the cells in shared memory.
    pub(super) there: Option<NearRing>,
    pub(super) here: Option<NearRing>,
    /// Messages that the network still reads, and the heads of those that it reads in place.
    pub(super) in_flight: VecDeque<Ticket>,
    pub(super) heads: Memory,
    /// Lengths of the peer's offers that are not used.
    pub(super) peer_offers: VecDeque<usize>,
    /// Receives posted for cells, from message `posted - cells.len()` on.
    pub(super) cells: VecDeque<Ticket>,
    /// The head of the next message has arrived; its landing may be on its way.
    pub(super) head_came: bool,
    pub(super) posted: u64,
    /// What arrived in the cells, by message number modulo the window.
    pub(super) arrived: Vec<Arrived>,
    pub(super) offers: VecDeque<Offer>,
}

/// The closing of a link, as its sender reported it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closed {
    pub(super) opening: u64,
    pub(super) made: u64,
}

/// A message in a cell or a landing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) bytes: usize,
    /// The offer's number and address, if the message went to a landing.
    pub(super) landing: Option<(u64, *mut u8)>,
}

// SAFETY: this type never follows the address.
unsafe impl Send for Arrived {}

/// Memory offered for a landing.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) address: *mut u8,
    pub(super) ticket: Ticket,
    /// Its bytes have arrived before its head was read.
    pub(super) done: bool,
}

// SAFETY: as above.
unsafe impl Send for Offer {}

impl Rings {
    pub(in super::super) fn new(context: u32, members: Box<[Rank]>) -> Self {
        Rings {
            context,
            postbox: Postbox::new(context, members.len()),
            members,
            nodes: None,
            inboxes: Vec::new(),
            ends: Ends::default(),
            removed: Vec::new(),
            count: 0,
            early: Vec::new(),
            closed: HashMap::new(),
            awaited: Vec::new(),
            is_quiet: true,
        }
    }

    /// Whether each end of a link reaches the memory that the other one shares.
    pub(in super::super) fn is_near(&self, link: &OpenLink) -> bool {
        self.ends.of(link).is_near
    }

    /// The member that is process `pid`, or stands for it.
    pub(in super::super) fn with(&self, pid: Pid) -> usize {
        self.nodes.as_ref().map_or(pid, |nodes| nodes.of(pid))
    }

    /// This process enters the last barrier of the section.
    pub(in super::super) fn end(&mut self) {
        self.postbox.end();
    }

    /// A full sync is over: no process writes into the inboxes that were deregistered before it.
    pub(in super::super) fn let_go_of_removed(&mut self) {
        self.removed.clear();
    }

    /// Gives everything up. Returns false if the network may still write to users' memory.
    pub(in super::super) fn close<T: Transport>(
        &mut self,
        net: &mut T,
        table: &mut LinkTable,
    ) -> bool {
        table.clear();
        let quiet = self.ends.drain().fold(true, |quiet, end| end.give_up(net) & quiet);
        quiet & self.postbox.close(net)
    }

    /// Leaks the memory that other processes write to.
    pub(in super::super) fn keep(&mut self) {
        lpf_core::leaked::leak(std::mem::take(&mut self.inboxes));
        self.postbox.keep();
    }

    /// Leaks the memory that other processes write to without the network. The section has failed, and they may not have
    /// been informed yet.
    pub(in super::super) fn keep_shared(&mut self) {
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
    pub(in super::super) rings: &'a mut Rings,
    pub(in super::super) net: &'a mut T,
}

impl Links<'_> {
    /// The processes of the section.
    pub(in super::super) fn members(&self) -> &[Rank] {
        &self.rings.members
    }

    /// Progress on everything: what peers report, what can leave, what must be reported. Never blocks.
    #[inline]
    pub(in super::super) fn progress<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
    ) -> std::result::Result<(), Stop> {
        runtime::progress::progress(&mut OnNet { rings: self.rings, net }, local, self.table)
    }
}

impl End {
    pub(super) fn give_up<T: Transport>(mut self, net: &mut T) -> bool {
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
