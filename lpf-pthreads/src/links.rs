//! Expected arrivals on shared memory: the source copies straight into the peer's cell or landing, or says
//! where the peer reads (puts in parts), then publishes the message's number.
//!
//! The rules (credits, releases, what waits for what) are those of `lpf_core::arrivals`; the memory
//! is [`ring`].

mod loans;
mod open;
mod receive;
pub(crate) mod ring;
mod send;
mod unread;
mod waiting;

use std::sync::Arc;

use lpf_core::arrivals::Incoming;
use lpf_core::runtime::links;
use lpf_core::{Pid, Slot};

use crate::sync::Ordering;
pub(crate) use loans::end_loans;
pub(crate) use receive::{LANDING, arrival, report_aloud, revoke_offers};
use ring::{Cell, FREE, InboxMemory, Loan, process_of};

/// The links of one process.
pub(crate) type LinkTable = links::LinkTable<End>;

/// An open link of a process.
pub(crate) type OpenLink = links::OpenLink<End>;

/// The inboxes of this process that were deregistered since the last full sync, with their numbers: others may still
/// send into them.
pub(crate) type Removed = Vec<(usize, Arc<InboxMemory>)>;

/// The part of a link in the memory of its two processes. The rings' counts go on from one link to the next; those of the
/// link begin at 0.
#[derive(Debug)]
pub struct End {
    own: Arc<InboxMemory>,
    theirs: Arc<InboxMemory>,
    ring: u32,
    peer_ring: u32,
    /// This end as the peer's ring names it, and whether the ring is this link's.
    name: u64,
    granted: bool,
    /// The peer's end as the ring here names it.
    peer_name: u64,
    /// Messages and landings sent into the peer's ring before this link.
    first_sent: u64,
    first_landed: u64,
    /// Messages that came into the ring here before this link, and offers made on it.
    first_received: u64,
    first_offer: u64,
    /// The last message that the peer reads here, and the last one read at the peer; 0 for none.
    lent: u64,
    borrowed: u64,
}

impl links::End for End {
    #[inline]
    fn is_granted(&self) -> bool {
        self.granted
    }

    fn reads(&self, _slot: Slot) -> bool {
        false
    }

    #[inline]
    fn lent(&self) -> u64 {
        self.lent
    }

    /// Messages are copied, but for those that the peer reads here.
    #[inline]
    fn have_left(link: &OpenLink) -> bool {
        link.outgoing.released >= link.end.lent
    }

    fn former_sender(link: &OpenLink) -> Option<(Pid, u64)> {
        let holder = link.end.own.sender(link.ring).claim.load(Ordering::Relaxed);
        (holder != FREE && holder != link.end.peer_name).then(|| process_of(holder))
    }

    fn awaited_sender(link: &OpenLink) -> Option<(Pid, u64)> {
        let End { theirs, name, .. } = &link.end;
        let holder = theirs.sender(link.peer_ring).claim.load(Ordering::Relaxed);
        let is_open = theirs.owner(link.peer_ring).granted.load(Ordering::Relaxed) == *name;
        (is_open && holder != FREE).then(|| process_of(holder))
    }
}

/// The two rings, by the numbers of the link's messages and offers, from 1.
impl End {
    /// The header of a message here.
    #[inline]
    fn cell(&self, nth: u64) -> &Cell {
        self.own.cell(self.ring, self.first_received + nth)
    }

    /// Whether a message has arrived here.
    #[inline]
    fn has_arrived(&self, nth: u64) -> bool {
        self.own.has_arrived(self.ring, self.first_received + nth)
    }

    /// The loan of a message here, which is one.
    #[inline]
    fn loan(&self, nth: u64) -> &Loan {
        self.own.loan(self.ring, self.first_received + nth)
    }

    /// The number of a message in the peer's ring.
    #[inline]
    fn number_there(&self, nth: u64) -> u64 {
        self.first_sent + nth
    }

    /// Whether the first message in the ring is this link's, and not one of the link before that no process
    /// awaited. (Its sender names its link before it sends the first.)
    fn is_served(&self) -> bool {
        self.own.sender(self.ring).served.load(Ordering::Relaxed) == self.peer_name
    }

    /// What the peer has reported in its line.
    #[inline]
    fn released_at_peer(&self) -> u64 {
        let released = self.theirs.owner(self.peer_ring).released.load(Ordering::Acquire);
        released.saturating_sub(self.first_sent)
    }

    /// Tells the peer in this process's line how many messages are released.
    #[inline]
    fn report(&self, incoming: &mut Incoming) {
        let released = self.first_received + incoming.released;
        self.own.owner(self.ring).released.store(released, Ordering::Release);
        incoming.reported = incoming.released;
    }
}
