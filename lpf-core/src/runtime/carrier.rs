//! What carries the messages of links.

use super::LocalState;
use super::links::{LinkTable, OpenLink};
use super::waiting::Medium;
use crate::Pid;
use crate::arrivals::Queued;
use crate::error::Error;
use crate::waits::{Status, Stream};

/// The end of a call that cannot go on, of some carrier.
pub type Stopped<C, R> = std::result::Result<R, <C as Carrier>::Stop>;

/// A message that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The stamp of the call in which it was sent.
    pub stamp: u64,
    /// Whether it went to a landing.
    pub is_landing: bool,
}

/// The former sender into a ring of this process.
#[derive(Clone, Copy, Debug)]
pub enum Former {
    /// There was none.
    None,
    /// It has not closed its link, which was the one of this number.
    Holds(Pid, u64),
    /// It has closed its link; so many of its messages were never awaited.
    Left(Pid, u64),
}

/// The engine's part of the links of one process: the rings between two processes. Every method returns at once.
///
/// Core decides when a message may leave, when releases are reported, and what has arrived in order.
pub trait Carrier {
    /// Why a call cannot go on.
    type Stop: From<Error>;

    /// The error that this is for the section.
    fn error(&self, local: &LocalState, stop: Self::Stop) -> Error;

    /// Looks at the network, for a process that does not wait.
    ///
    /// # Errors
    /// The network is broken.
    #[inline]
    fn look(&mut self) -> Stopped<Self, ()> {
        Ok(())
    }

    /// Takes what the peers have reported, if that arrives as messages: grants, releases, offers, closings.
    ///
    /// # Errors
    /// A peer that cannot be heard.
    #[inline]
    fn hear(&mut self, _links: &mut LinkTable) -> Stopped<Self, ()> {
        Ok(())
    }

    /// Gives the ring of a link to its peer, unless its former sender still has it; then
    /// [`has_granted`](OpenLink::has_granted) is true. `known` are the counts of the links before.
    ///
    /// # Errors
    /// Messages of the former sender were not awaited.
    #[inline]
    fn grant(
        &mut self,
        local: &LocalState,
        link: &mut OpenLink,
        known: &Status,
    ) -> Stopped<Self, ()> {
        let _ = (local, link, known);
        Ok(())
    }

    /// The former sender into ring `ring` of process `owner`, as far as this carrier has served it; `to_me` is the stream of the ring's next link.
    /// For an engine that contains two others, whose links take the same rings in turn.
    fn former_sender(&self, owner: Pid, to_me: Stream, ring: usize, known: &Status) -> Former {
        let _ = (owner, to_me, ring, known);
        Former::None
    }

    /// Takes the peer's ring if the peer has granted it: the messages of the ring's former sender that were not awaited.
    ///
    /// # Errors
    /// A grant that is not one.
    fn take_ring(&mut self, link: &OpenLink) -> Stopped<Self, Option<u64>>;

    /// Learns how many messages the peer has released, if that is not heard.
    fn learn_credit(&mut self, link: &mut OpenLink);

    /// Takes the puts that have left this process's memory out of [`in_flight`](OpenLink::in_flight).
    ///
    /// # Errors
    /// A put that cannot leave.
    #[inline]
    fn finish_sends(&mut self, link: &mut OpenLink) -> Stopped<Self, ()> {
        let _ = link;
        Ok(())
    }

    /// The length of the peer's oldest offer that no landing has used, if there is one.
    fn offered(&mut self, link: &OpenLink) -> Option<usize>;

    /// Sends the next message. Whether it has left: else it can later.
    ///
    /// # Errors
    /// The peer cannot be reached.
    ///
    /// # Safety
    /// The link has the ring, and credit for one message. The source is valid for reads until the flush, and no longer than
    /// a cell, or for a landing than the offer.
    unsafe fn send(&mut self, link: &mut OpenLink, message: &Queued) -> Stopped<Self, bool>;

    /// Messages were sent: wakes the peer.
    fn has_sent(&mut self, link: &OpenLink);

    /// Reports to the peer what is released here.
    ///
    /// # Errors
    /// The peer cannot be reached.
    fn report(&mut self, link: &mut OpenLink) -> Stopped<Self, ()>;

    /// Whether the message after those [seen](crate::arrivals::Incoming::seen) has arrived.
    ///
    /// # Errors
    /// It cannot arrive.
    fn has_arrived(&mut self, link: &OpenLink) -> Stopped<Self, bool>;

    /// The message after those seen, if it has arrived, with its landing.
    ///
    /// # Errors
    /// It cannot arrive, or is not a message of this link.
    fn take(&mut self, local: &LocalState, link: &mut OpenLink) -> Stopped<Self, Option<Head>>;

    /// Shows the peer offer `number`, counted from 0.
    ///
    /// # Errors
    /// The peer cannot be reached.
    ///
    /// # Safety
    /// The memory is valid for writes until the message is awaited or the engine gives up.
    unsafe fn offer(
        &mut self,
        link: &OpenLink,
        number: u64,
        address: *mut u8,
        bytes: usize,
    ) -> Stopped<Self, ()>;

    /// Gives the two rings back. Everything is flushed, released and reported.
    ///
    /// # Errors
    /// The peer cannot be reached.
    fn close(&mut self, link: OpenLink) -> Stopped<Self, ()>;
}

/// A medium for waits on links.
pub trait LinkMedium: Medium {
    /// What carries their messages.
    fn carrier(&mut self) -> impl Carrier + '_;

    /// Whether this wait has become so long that its process owes every report: another process may wait for one while
    /// this one waits for it.
    fn is_long(&self) -> bool;

    /// This wait is for a record of the board, which no process wakes another for.
    fn awaits_record(&mut self) {}
}
