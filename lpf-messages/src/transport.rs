//! The network, as the message-passing protocol uses it: tagged messages between two processes.
//!
//! MPI and sockets both have this much: a message goes to a process under a tag, and a receive
//! names process and tag. Sends and receives with equal names match in the order in which they were made.
//! No call blocks, and no call knows of supersteps.

use std::time::Duration;

use super::control::Control;
pub use super::control::Rank;
use lpf_core::wait::Patience;

/// The name of a message. A receive gets messages of exactly its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The context it belongs to, counted from 1 by the protocol, which uses no number again
    /// while one of its messages may be under way.
    pub context: u32,
    /// Its channel within the context; below 2^24.
    pub channel: u32,
}

/// Contiguous memory that a message comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first byte.
    pub base: *mut u8,
    /// Its length.
    pub bytes: usize,
}

// SAFETY: an address is only a number; who may touch the memory is said where it is used.
unsafe impl Send for Piece {}

impl Piece {
    /// The memory of a slice, to send from.
    pub fn of(bytes: &[u8]) -> Self {
        Piece { base: bytes.as_ptr().cast_mut(), bytes: bytes.len() }
    }

    /// The memory of a slice, to receive into.
    pub fn of_mut(bytes: &mut [u8]) -> Self {
        Piece { base: bytes.as_mut_ptr(), bytes: bytes.len() }
    }
}

/// Memory of one process that others of its host reach: zeros at first. The process that shared it has it back when this
/// is dropped.
pub struct SharedMemory {
    /// Its first byte here, aligned to 64.
    pub base: *mut u8,
    /// Its length.
    pub bytes: usize,
    /// Its address for the others.
    pub place: u64,
    /// Gives it back when it is dropped.
    pub owner: Box<dyn Send>,
}

// SAFETY: an address, and an owner that may go to other threads.
unsafe impl Send for SharedMemory {}

impl std::fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedMemory").field("place", &self.place).finish_non_exhaustive()
    }
}

/// A send or a receive under way. Not [`Clone`]: it is finished or cancelled once.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// Why the network does not work: the connection to one process, or this process's own side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The process that cannot be reached any more, if it is one.
    pub peer: Option<Rank>,
    /// The reason, as the system or the library gives it.
    pub reason: String,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// The outcome of a call on the network.
pub type Outcome<T> = std::result::Result<T, Broken>;

/// Messages longer than this match receives of exactly their length, so that both sides may cut
/// them in the same places (MPI counts in 32 bits).
pub const LARGEST_UNCUT: usize = 1 << 30;

/// The network, as one process has it.
///
/// A process may send to itself; such a send is finished when it is received. A message for which no
/// receive is posted waits inside the network. The protocol keeps these few and short, so
/// that memory stays bounded. Beyond some megabytes from one process a network may break the connection.
///
/// A network that is dropped in order lets copied messages leave first, for a bounded time.
///
/// # Safety
/// The protocol passes memory of users to the network because of these promises:
/// - the pieces of a send are read, and those of a receive written, only until [`test`](Self::test)
///   has returned `Some` for their ticket, or [`cancel`](Self::cancel) has returned true;
/// - a receive writes nothing outside its pieces, in order, as many bytes as the message has;
/// - the memory of [`share`](Self::share) is valid for reads and writes, and not used otherwise, until it is dropped;
///   [`reach`](Self::reach) gives another process the same bytes, as long as the network lives there.
pub unsafe trait Transport: Send + 'static {
    /// The control plane beside it.
    type Control: Control;

    /// This process.
    fn rank(&self) -> Rank;

    /// Processes of the network.
    fn size(&self) -> Rank;

    /// The control plane of the same processes.
    fn control(&self) -> &Self::Control;

    /// Channels of a tag below this are distinguished; at least 2^16.
    fn channels(&self) -> u32 {
        1 << 24
    }

    /// Sends a few bytes, which are the caller's again on return. For messages of up to some
    /// kilobytes: bytes that cannot leave at once are copied.
    ///
    /// # Errors
    /// Where the network is broken.
    fn send_copy(&mut self, to: Rank, tag: Tag, bytes: &[u8]) -> Outcome<()>;

    /// Sends the concatenation of `pieces`.
    ///
    /// # Errors
    /// Where the network is broken.
    ///
    /// # Safety
    /// The pieces are valid for reads, and not written, until the ticket is finished or cancelled.
    unsafe fn send(&mut self, to: Rank, tag: Tag, pieces: &[Piece]) -> Outcome<Ticket>;

    /// Posts a receive into `pieces`, in their order. A message longer than all of them breaks
    /// the connection.
    ///
    /// # Errors
    /// Where the network is broken.
    ///
    /// # Safety
    /// The pieces are valid for writes, and not touched, until the ticket is finished or cancelled.
    unsafe fn receive(&mut self, from: Rank, tag: Tag, pieces: &[Piece]) -> Outcome<Ticket>;

    /// Whether a send or receive is finished, and how many bytes it moved. The ticket is spent when
    /// this returns `Some`, and must not be asked about again. Makes progress on everything: a
    /// process that waits for one message must not keep another from leaving its sender's memory.
    ///
    /// # Errors
    /// If this message cannot arrive or leave any more. The ticket is not spent: its memory is the
    /// caller's again after [`cancel`](Self::cancel).
    fn test(&mut self, ticket: &Ticket) -> Outcome<Option<usize>>;

    /// A wait looks again: the next question about a ticket looks at the network, and stands for the others
    /// of this look.
    fn look_again(&mut self) {}

    /// Makes progress on everything. Never blocks.
    ///
    /// # Errors
    /// If the network is broken as a whole. `test` reports the sends and receives of a broken connection.
    fn progress(&mut self) -> Outcome<()>;

    /// Memory for messages that processes of this host write here, with any bytes in it; `None` if there is not that
    /// much.
    fn share(&mut self, bytes: usize) -> Option<SharedMemory> {
        let _ = bytes;
        None
    }

    /// The address at this process of the `bytes` bytes from `place` on in the memory that `owner` shares; `None` if it
    /// does not reach them. With no bytes at 0: whether it reaches any memory of `owner`, which is so if and only if
    /// `owner` reaches its memory.
    fn reach(&self, owner: Rank, place: u64, bytes: usize) -> Option<*mut u8> {
        let _ = (owner, place, bytes);
        None
    }

    /// Wakes process `reader`, after a write to memory that it [reaches](Self::reach).
    fn wake(&self, reader: Rank) {
        let _ = reader;
    }

    /// Gives up a send or receive, in a context that is over: a message that has left in part may never be
    /// complete, or its rest may be anything.
    /// True if its memory is not touched any more. False if that is impossible (a receive that MPI has matched): the
    /// memory may then be written at any time.
    fn cancel(&mut self, ticket: Ticket) -> bool;

    /// Drops all messages, also later ones, of a context that has ended and whose number is never
    /// used again. Its tickets were finished or cancelled before.
    fn forget(&mut self, context: u32);

    /// The patience of a wait before it sleeps; `usual` is for looks that cost almost nothing.
    fn patience(&self, usual: Patience) -> Patience {
        usual
    }

    /// Sleeps until something may have happened, at most this long.
    fn idle(&mut self, time: Duration);

    /// Messages passed to the network so far, those to itself included.
    fn messages(&self) -> u64;

    /// Ends the use of the network, if that needs all processes: each of them calls this once,
    /// after its last section.
    ///
    /// # Errors
    /// If the network is broken, or another process does not arrive in time.
    fn close(self, within: Duration) -> Outcome<()>
    where
        Self: Sized,
    {
        let _ = within;
        Ok(())
    }
}
