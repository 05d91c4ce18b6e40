//! The network as the protocol sees it.

use std::time::Duration;

use lpf_core::wait::Patience;
use lpf_messages::{Control, Outcome, Piece, Rank, SharedMemory, Tag, Ticket, Transport};

use super::library::OffSwitch;
use super::network::Network;

/// The network of one process of a [`World`](super::World).
///
/// Dropping it takes up to a second where something has not left, and neither waits for others nor
/// finalises MPI: that is [`finish`](Self::finish).
pub struct Mpi<C> {
    pub(crate) network: Network,
    pub(crate) control: C,
    /// MPI was initialised by the world, and is to be finalised by it.
    pub(crate) is_ours: bool,
}

impl<C> std::fmt::Debug for Mpi<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rank, size) = (self.network.rank, self.network.size());
        f.debug_struct("Mpi").field("rank", &rank).field("size", &size).finish_non_exhaustive()
    }
}

impl<C> Mpi<C> {
    /// What ends the use of MPI.
    pub fn switch(&self) -> OffSwitch {
        self.network.library.switch().clone()
    }
}

// SAFETY:
// - the pieces of an operation are touched by `gather` and `scatter`, in calls on this network, and by
//   MPI while the operation has requests. `test` returns `Some` only once it is finished: all its
//   requests are complete, and nothing leads to its pieces. `cancel` returns true where that is so,
//   where the receive has left its queue before MPI knew of it, and where MPI has a packed copy, whose
//   pieces are forgotten;
// - a receive's bytes are written by `scatter`, which begins with the first piece and ends with the
//   message, or by MPI through a type or a length that `window` made of the pieces in order; `fits` has
//   compared the lengths before;
// - what is shared is a part of this process's arena that is taken once at a time, and keeps the mapping;
//   all processes of the host have agreed on whose arena is where.
unsafe impl<C: Control> Transport for Mpi<C> {
    type Control = C;

    fn rank(&self) -> Rank {
        self.network.rank
    }

    fn size(&self) -> Rank {
        self.network.size()
    }

    fn control(&self) -> &C {
        &self.control
    }

    #[inline]
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

    #[inline]
    fn test(&mut self, ticket: &Ticket) -> Outcome<Option<usize>> {
        self.network.test(ticket)
    }

    #[inline]
    fn look_again(&mut self) {
        self.network.pace.hurry();
    }

    fn progress(&mut self) -> Outcome<()> {
        self.network.progress()
    }

    fn share(&mut self, bytes: usize) -> Option<SharedMemory> {
        self.network.near.as_ref()?.share(bytes)
    }

    fn reach(&self, owner: Rank, place: u64, bytes: usize) -> Option<*mut u8> {
        self.network.near.as_ref()?.reach(owner, place, bytes)
    }

    #[inline]
    fn wake(&self, reader: Rank) {
        if let Some(near) = &self.network.near {
            near.wake(reader);
        }
    }

    /// False for a body that MPI has begun and that does not end within 50 ms: a send's memory may
    /// then still be read, a receive's written.
    fn cancel(&mut self, ticket: Ticket) -> bool {
        self.network.cancel(&ticket)
    }

    fn forget(&mut self, context: u32) {
        self.network.forget(context);
    }

    /// Open MPI yields in every look that finds nothing, where it was told to. Where all processes are near
    /// most looks do not ask it, and each takes some 20 ns.
    fn patience(&self, usual: Patience) -> Patience {
        if self.network.is_near() {
            return usual;
        }
        let told = std::env::var("OMPI_MCA_mpi_yield_when_idle");
        if told.is_ok_and(|value| value.trim() == "1") { usual.without_yields() } else { usual }
    }

    fn idle(&mut self, time: Duration) {
        self.network.idle(time);
    }

    /// Counts messages of the protocol; a long one is at least two of MPI's.
    fn messages(&self) -> u64 {
        self.network.messages
    }

    fn close(self, within: Duration) -> Outcome<()> {
        self.finish(within)
    }
}
