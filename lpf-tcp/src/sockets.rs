//! The network on sockets: messages between processes that have a stream to each other.
//!
//! # What travels
//! One stream a pair, in both directions, carries *frames*: a header of 16 bytes (tag and length),
//! then the message. Frames of a pair arrive in the order in which they were sent, so equal tags
//! match in order without numbers.
//!
//! # Receiving
//! A message whose receive is posted goes from the socket straight into its pieces. Only the bytes that arrive in the
//! same read as its header are copied out of a buffer of a few kilobytes, so a short message is one read. A message
//! without a posted receive is kept, at most 64 MiB from one process. The rest of a long one stays in the connection,
//! with everything behind it, until its receive is posted. A receive that is posted while its message arrives gets the
//! rest directly.
//!
//! # Sending
//! A send writes from its pieces at once. The rest that the socket does not accept is kept by reference, or as a copy if
//! the message is to be copied. A send is finished when the socket has accepted all of it. If a short send is cancelled
//! halfway, its rest is copied. A long one is filled up with zeros, followed by a frame that cancels it. Its receive
//! never finishes; it is cancelled in its turn, because the context is over on both sides when a send is cancelled.
//!
//! # Progress
//! Only calls make progress: `test`, `progress` and `idle`. With one connection a look is one read. With
//! more it is one question which of them are ready, and a read of each. A sender whose
//! socket is full makes progress while it waits for anything, so two processes that send to each
//! other without end do not wait for each other.
//!
//! # Seals
//! A connection is sealed if a rendezvous made it so: then its bytes travel in records ([`seal`](lpf_control::connection::seal), `sealed.rs`). What is
//! sent together becomes one record, up to 64 KiB. A process that waits, polls or leaves a section sends a record that
//! holds nothing on each connection on which it has sent something since the last one. It is as long as the receiver may
//! wait for. If a part of an earlier record was left out on its way, something does not open.
//!
//! # When a connection breaks
//! A connection breaks at its end, at a record that does not open, and at an invalid frame. A message breaks it that is
//! longer than its receive, or exceeds the 64 MiB kept without a receive. It also breaks if the host of the other process
//! is out of reach (`doubt.rs`); a waiting process looks for that. Messages that have arrived are delivered. All other
//! sends and receives of that process fail. Other connections are not affected.

mod connection;
mod doubt;
mod farewell;
mod frame;
mod incoming;
mod matching;
mod network;
mod outgoing;
mod own;
mod pieces;
mod readiness;
mod sealed;
mod socket;
mod system;
mod vectors;

use std::io;
use std::time::Duration;

use lpf_control::connection::Stream;
use lpf_core::wait::Patience;
use lpf_messages::{Control, Outcome, Piece, Rank, Tag, Ticket, Transport};

use network::Network;

/// The network of one process, on a stream to each of the others.
///
/// Dropping it cancels unfinished sends and receives, and takes up to a second if copied messages have not left.
pub struct Sockets<C> {
    network: Network,
    control: C,
}

impl<C: Control> Sockets<C> {
    /// The network of process `rank`, with a connected stream to process `i` in `streams[i]`, `None`
    /// for itself. The process at the other end of each stream has been authenticated.
    ///
    /// # Errors
    /// If a stream is missing or one is too many, and if the system refuses.
    pub fn new(rank: Rank, streams: Vec<Option<Stream>>, control: C) -> io::Result<Self> {
        Ok(Sockets { network: Network::new(rank, streams)?, control })
    }
}

impl<C> std::fmt::Debug for Sockets<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, size) = (self.network.rank, self.network.connections.len());
        let is_sealed = self.network.is_sealed;
        let mut shown = f.debug_struct("Sockets");
        let shown = shown.field("rank", &rank).field("size", &size).field("is_sealed", &is_sealed);
        shown.finish_non_exhaustive()
    }
}

// SAFETY:
// - the pieces of an operation are reached through its list, or through its number in a queue or
//   in `Incoming::place` and `Incoming::ending`. `test` returns `Some` only once it is finished: then it is in none of
//   them. `cancel` takes it out of them. Both clear the list;
// - a receive's bytes are written by `Pieces::write`, `Pieces::copy_to` and `readv`, which all start
//   from what is not done and end with the piece or the message; `Matching::fits` has compared
//   the lengths before.
unsafe impl<C: Control> Transport for Sockets<C> {
    type Control = C;

    fn rank(&self) -> Rank {
        self.network.rank
    }

    fn size(&self) -> Rank {
        self.network.connections.len()
    }

    fn control(&self) -> &C {
        &self.control
    }

    fn send_copy(&mut self, to: Rank, tag: Tag, bytes: &[u8]) -> Outcome<()> {
        self.network.send_copy(to, tag, bytes)
    }

    unsafe fn send(&mut self, to: Rank, tag: Tag, pieces: &[Piece]) -> Outcome<Ticket> {
        // SAFETY: the caller's promise.
        unsafe { self.network.send(to, tag, pieces) }
    }

    unsafe fn receive(&mut self, from: Rank, tag: Tag, pieces: &[Piece]) -> Outcome<Ticket> {
        // SAFETY: the caller's promise.
        unsafe { self.network.receive(from, tag, pieces) }
    }

    fn test(&mut self, ticket: &Ticket) -> Outcome<Option<usize>> {
        self.network.test(ticket)
    }

    fn look_again(&mut self) {
        self.network.look_again();
    }

    fn progress(&mut self) -> Outcome<()> {
        self.network.progress()
    }

    fn cancel(&mut self, ticket: Ticket) -> bool {
        self.network.cancel(&ticket);
        true
    }

    fn forget(&mut self, context: u32) {
        self.network.forget(context);
    }

    fn patience(&self, usual: Patience) -> Patience {
        usual.yielding()
    }

    fn idle(&mut self, time: Duration) {
        self.network.idle(time);
    }

    /// Counts what was handed over, to oneself and half sent too.
    fn messages(&self) -> u64 {
        self.network.messages
    }
}
