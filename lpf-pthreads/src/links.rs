//! Expected arrivals on shared memory: the source copies straight into the peer's cell or landing, or says
//! where the peer reads (puts in parts), then publishes the message's number.
//!
//! The rules (credits, releases, what waits for what) are those of `lpf_core::arrivals`; the memory
//! is [`ring`].

mod asking;
mod loans;
mod marks;
mod open;
mod receive;
pub(crate) mod ring;
mod send;
mod unread;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;

use lpf_core::arrivals::{Call, Incoming, Link, Outgoing, Queue};
use lpf_core::waits::{ReceiverCounts, SenderCounts};
use lpf_core::{Error, Pid, Result, Slot};

use crate::threads::Threads;
use marks::Marks;
use ring::InboxMemory;

/// The links of one process.
#[derive(Debug, Default)]
pub(crate) struct Links {
    places: Vec<Place>,
    open: usize,
    /// Inboxes registered so far, and how many of them are active.
    inboxes: usize,
    pub(crate) active_inboxes: usize,
    /// Those that a wait looks at: used in this superstep or the one before, or not done with an earlier one. A
    /// process can have a link with each other one. A link in constant use keeps its mark, since what was just
    /// stored is slow to load.
    busy: Marks,
    /// Those that became idle while a release was not reported. A process that sleeps reports them as well.
    owing: Marks,
    call: Call,
    /// Deregistered since the last full sync: others may still send into them. With their numbers.
    removed: Vec<(usize, Arc<InboxMemory>)>,
}

impl Links {
    /// A full sync has brought registrations into force.
    pub(crate) fn activate(&mut self) {
        self.active_inboxes = self.inboxes;
    }
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
    queue: Queue,
    /// This end as the peer's ring names it, and whether the ring is this link's.
    end: u64,
    granted: bool,
    /// What earlier links did on the same streams.
    sent_before: SenderCounts,
    received_before: ReceiverCounts,
    /// Messages and landings sent into the peer's ring before this link.
    first_sent: u64,
    first_landed: u64,
    /// Landings sent, and offers made, over the rings' lives.
    landed: u64,
    offered: u64,
    /// Offers made on the ring before this link.
    first_offer: u64,
    /// Landings among the messages awaited.
    offers_used: u64,
    /// What the open offers name.
    offers: VecDeque<Slot>,
    /// The last message that the peer reads here, and the last one read at the peer; 0 for none.
    lent: u64,
    borrowed: u64,
    /// The call whose messages were awaited last.
    call: Call,
}

impl OpenLink {
    fn window(&self) -> u32 {
        self.own.shape.window
    }

    /// Whether it was used since the last sync, or has messages that are not released or puts that have not left.
    #[inline]
    fn is_busy(&self) -> bool {
        let Outgoing { made, made_at_sync, .. } = self.outgoing;
        made != made_at_sync || self.incoming.unreleased() > 0 || !self.is_flushed()
    }
}

impl Threads {
    #[inline]
    pub(crate) fn has_links(&self) -> bool {
        self.links.open > 0
    }

    #[cold]
    fn no_such_link(&self, link: Link) -> Error {
        self.local.arrivals_misuse(format!("{link} is not open (never was, or was closed)"))
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

    pub(crate) fn enter_call(&mut self, call: Call) {
        self.links.call = call;
    }
}
