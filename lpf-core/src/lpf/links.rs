//! Expected arrivals: links between two processes.

use crate::Pid;
use crate::arrivals::{Arrival, Expect, InboxShape, InboxSlot, Link, Travel};
use crate::error::Result;
use crate::slot::Slot;

/// The condition that [`Links::poll`] tests.
#[derive(Clone, Copy, Debug)]
pub enum Awaited<'a> {
    /// That all these messages have arrived. Their counts were added by
    /// [`expect`](Links::expect) before the first poll.
    Messages(&'a [Expect]),
    /// That all puts of this process on links have left its memory.
    Flushed,
    /// That all puts on these links have left its memory: for one of several threads that share a
    /// backend object.
    FlushedOn(&'a [Link]),
}

/// Messages between two processes that one of them waits for, without a barrier. Inboxes are a kind of registration, and
/// a sync that awaits messages or a flush is one with an [attribute](crate::SyncAttr).
///
/// The `unsafe` promises of [`Lpf`](crate::Lpf) cover this trait, too.
pub trait Links {
    // Expected arrivals: kinds of registration and attributes, not primitives of their own.

    /// Registers an inbox of this shape at every process: memory of the runtime. Collective as
    /// `register_global`, takes no slot; links can be opened on it after the next full sync. O(bytes of
    /// the inbox).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused; *misuse* for a window of 0 or above
    /// [`MAX_WINDOW`](crate::arrivals::MAX_WINDOW).
    fn register_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot>;

    /// Cancels an inbox; collective. O(open links).
    ///
    /// # Errors
    /// *Misuse* if it is unknown or has open links.
    fn deregister_inbox(&mut self, inbox: InboxSlot) -> Result<()>;

    /// Opens a link: messages from `peer` end in ring `ring` of `inbox` here, messages to it in
    /// ring `peer_ring` of `inbox` there. The peer opens the same link in the other direction, before or
    /// after. The call never waits. Puts wait, as for credit, until the peer has opened its end and the former
    /// sender into its ring has closed, because a ring carries one link at a time. O(W + open links); informs the
    /// peer.
    ///
    /// # Errors
    /// *Misuse* if inbox, ring or peer do not exist, or the ring is taken here. A message that the
    /// peer never awaited on the ring's former link is *fatal*, as soon as the ring goes to its next one.
    fn open(&mut self, inbox: InboxSlot, ring: usize, peer: Pid, peer_ring: usize) -> Result<Link>;

    /// Closes a link on which everything awaited was released and everything put was flushed. O(W + open
    /// links), and O(p) between processes; informs the peer.
    ///
    /// # Errors
    /// *Misuse* otherwise; *fatal* if a message has arrived that was never awaited.
    fn close(&mut self, link: Link) -> Result<()>;

    /// Sends `bytes` bytes from `src_offset` of `src` as the next message of `link`, or as several in
    /// [parts](Travel::Parts). It leaves at once, or as credits allow. O(bytes copied), and O(p) between processes.
    ///
    /// # Errors
    /// *Misuse*: unknown link or slot, a range outside it, more than W sends between two syncs of any kind, or 2W that
    /// wait for credit (flush then), or a message longer than a cell. A message may leave at once, so it can be *fatal*.
    fn send(
        &mut self,
        link: Link,
        src: Slot,
        src_offset: usize,
        bytes: usize,
        travel: Travel,
    ) -> Result<()>;

    /// Offers memory for the next landing on `link`; offers are used in the order they are made.
    /// Returns the offer's number, counted from 0 over the link's life.
    /// The memory is the runtime's until the sync that awaited the message. Θ(1); informs the sender.
    ///
    /// # Errors
    /// *Misuse* for an unknown slot or link, a range outside it, or more than W offers open.
    fn offer(&mut self, link: Link, slot: Slot, offset: usize, bytes: usize) -> Result<u64>;

    /// The length in bytes from which a landing on `link` is faster than messages in cells; the same at both ends. A
    /// landing saves a copy, but needs an offer. Over a network an offer costs a round trip, so data that fits a cell is
    /// faster there. Between processes that share memory but no addresses a landing is copied twice too, and is never
    /// faster (`usize::MAX`). Θ(1).
    ///
    /// # Errors
    /// *Misuse* for an unknown link.
    fn landing_pays_from(&self, link: Link) -> Result<usize>;

    /// The longest part of a put in [parts](Travel::Parts) on `link`: a cell, or any length (`usize::MAX`) if the
    /// receiver reads parts in the sender's memory. The same at both ends. Θ(1).
    ///
    /// # Errors
    /// *Misuse* for an unknown link.
    fn longest_part(&self, link: Link) -> Result<usize>;

    /// Lets puts on links leave as credits allow. Never blocks. O(open links), and O(p) between processes.
    ///
    /// # Errors
    /// *Fatal* if the section failed.
    fn post(&mut self) -> Result<()>;

    /// Releases the messages of finished waits that no object holds. Then adds `messages` to the awaited ones,
    /// for the call that was [entered](crate::Runtime::enter) last. [`poll`](Links::poll) then asks for them. Messages that are
    /// awaited and have not arrived stay awaited. O(k² + open links) for k messages.
    ///
    /// # Errors
    /// *Misuse* for an unknown link or more than W unreleased messages on one.
    fn expect(&mut self, messages: &[Expect]) -> Result<()>;

    /// Makes progress on everything (all links, credits, flush). True if the condition holds. Never blocks.
    /// O(open links), and O(p) between processes.
    ///
    /// # Errors
    /// *Fatal* if the section failed, or a message carries another stamp than the call that
    /// awaits it.
    fn poll(&mut self, awaited: Awaited<'_>) -> Result<bool>;

    /// Message `nth` (counted from 0 over the link's life), once awaited and until released.
    ///
    /// # Errors
    /// *Misuse* if it was not awaited or is released.
    fn arrival(&self, link: Link, nth: u64) -> Result<Arrival>;

    /// How many messages of the link were awaited so far.
    fn awaited(&self, link: Link) -> Result<u64>;

    /// Keeps message `nth` past the next sync: only [`release_held`](Links::release_held) frees its
    /// cell.
    ///
    /// # Errors
    /// *Misuse* if it was not awaited or is released.
    fn hold(&mut self, link: Link, nth: u64) -> Result<()>;

    /// Gives the cell of message `nth` back to its sender.
    ///
    /// # Errors
    /// *Misuse* if it was not awaited, is released already, or is held.
    fn release(&mut self, link: Link, nth: u64) -> Result<()>;

    /// Gives the cell of a held message back: for the typed layer, whose handles hold messages.
    ///
    /// # Errors
    /// *Misuse* if it is not held.
    fn release_held(&mut self, link: Link, nth: u64) -> Result<()>;
}
