//! Expected arrivals on shared memory: the source copies straight into the peer's cell or landing, or says
//! where the peer reads (puts in parts), then publishes the message's number.
//!
//! The rules (credits, releases, what waits for what) are those of `lpf_core::arrivals`; the memory
//! is [`ring`].

mod carrier;
mod loans;
mod open;
mod receive;
pub(crate) mod ring;
mod send;
mod unread;

use std::sync::Arc;

use lpf_core::arrivals::Incoming;
use lpf_core::runtime::links::Ends;

use crate::sync::Ordering;
pub(crate) use loans::{end_loans, must_return};
pub(crate) use receive::{LANDING, arrival, revoke_offers};
use ring::{Cell, InboxMemory, Loan};

use crate::comm::Comm;

/// The inboxes of this process that were deregistered since the last full sync, with their numbers: others may still
/// send into them.
pub(crate) type Removed = Vec<(usize, Arc<InboxMemory>)>;

/// The part of a link in the memory of its two processes. The rings' counts go on from one link to the next; those of the
/// link begin at 0.
#[derive(Debug)]
pub(crate) struct End {
    own: Arc<InboxMemory>,
    theirs: Arc<InboxMemory>,
    ring: usize,
    peer_ring: usize,
    /// This end as the peer's ring names it.
    name: u64,
    /// The peer's end as the ring here names it.
    peer_name: u64,
    /// Messages and landings sent into the peer's ring before this link.
    first_sent: u64,
    first_landed: u64,
    /// Messages that came into the ring here before this link, and offers made on it.
    first_received: u64,
    first_offer: u64,
    /// The last message that is read at the peer; 0 for none.
    borrowed: u64,
}

/// The links of a process, which reach those of the others.
#[derive(Debug)]
pub(crate) struct Links<'a> {
    pub(crate) comm: &'a Comm,
    pub(crate) ends: &'a mut Ends<End>,
}

impl AsRef<Comm> for Links<'_> {
    #[inline]
    fn as_ref(&self) -> &Comm {
        self.comm
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
