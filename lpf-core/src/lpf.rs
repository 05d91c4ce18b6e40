//! The trait that every backend implements: the twelve primitives, on byte ranges of slots.

use crate::Pid;
use crate::args::Args;
use crate::arrivals::{Arrival, Call, Expect, InboxShape, InboxSlot, Link};
use crate::attr::{GetAttr, PutAttr, SyncAttr};
use crate::board::Board;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::messages::Traffic;
use crate::program::Program;
use crate::slot::{GlobalSlot, LocalSlot, Registrant, Slot};
use crate::waits::Consult;

/// The condition that [`Lpf::poll`] tests.
#[derive(Clone, Copy, Debug)]
pub enum Awaited<'a> {
    /// That all these messages have arrived. Their counts were added by
    /// [`expect`](Lpf::expect) before the first poll.
    Messages(&'a [Expect]),
    /// That all puts of this process on links have left its memory.
    Flushed,
    /// That all puts on these links have left its memory: for one of several threads that share a
    /// backend object.
    FlushedOn(&'a [Link]),
}

/// How a process leaves a section.
#[derive(Clone, Debug)]
pub enum Leaving {
    /// Its function returned `Ok`.
    Done,
    /// Its function returned an error.
    Returned(Error),
    /// Its function panicked with this text.
    Panicked(String),
    /// It cannot go on for this reason, which names the process where it began. It is the failure of a rehook that the
    /// function returned. A backend that is built on another one uses it too: for a node's network when one of the
    /// node's threads failed.
    Failed(Error),
}

/// One process of a section, as a backend sees it: the twelve primitives, and the kinds of registration and the
/// attributes that expected arrivals add.
///
/// Users hold a [`Context`], which adds the typed layer and lends this interface as
/// [`Raw`](crate::Raw). Costs are those of the table in the book's contract; each primitive names its own.
///
/// A context stays on the thread that received it. The backend object is `Send`, so that a
/// hybrid can drive a node's network from any of its threads under a lock.
///
/// # Safety
/// The typed layer is safe Rust only on a backend that keeps these promises:
/// - Memory of an ordinary request is touched only inside the full sync that completes it, and only in
///   the ranges named, which are in slots registered at that time. The source of a put on a link is
///   read until the next flush, full sync or leaving has returned. The memory of an offer is written
///   until the sync that awaited its message, or any call that is *fatal*, has returned.
/// - When a full sync or `leave` has returned, or any call returned *fatal*, no other process touches anything
///   else of this process's registered memory, or
///   [`memory_is_quiet`](Lpf::memory_is_quiet) is false for ever.
/// - A cell shown by [`arrival`](Lpf::arrival) is valid for its `bytes`, aligned to 32, and not
///   written until it is released. For this a ring has one sender at a time, and `close` and
///   `deregister_inbox` refuse while a message is held.
/// - The default put and get refuse an [outbox](Registrant::Outbox).
/// - Concurrent copies between processes go through [`copy`](crate::copy), never through Rust
///   references.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a backend",
    label = "expected a backend, as the type parameter `L` of `Context<'_, L>`",
    note = "a function that works on every backend is generic: `fn name<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()>`"
)]
pub unsafe trait Lpf: Sized + Send {
    /// The registers beside the context.
    type Board: Board;

    /// This process, 0 to `nprocs() - 1`.
    fn pid(&self) -> Pid;

    /// The processes of the section.
    fn nprocs(&self) -> Pid;

    /// Full syncs completed in this context: the number of the current superstep.
    fn superstep(&self) -> u64;

    /// Runs `program` on up to `procs` new processes, this one being process 0 of them.
    ///
    /// Entry O(P + Ng + l), exit O(Ng + l); not collective. `args` goes as [`Args`] says.
    ///
    /// # Errors
    /// *Mitigable* if processes or memory are refused; *fatal* if the new section failed,
    /// which leaves this context usable, or if this context has failed already.
    fn exec<P: Program>(&mut self, procs: Pid, program: P, args: Args<'_>) -> Result<()>;

    /// Runs `f` in a pristine context on the same processes; this one is on hold meanwhile.
    ///
    /// Collective; the time of an empty full sync to enter, a flush and a barrier to leave (two if it had inboxes), and
    /// O(p) work.
    /// Requests pending here stay pending.
    ///
    /// # Errors
    /// *Fatal* if the inner section failed (this context stays usable) or this one has.
    fn rehook<F>(&mut self, args: Args<'_>, f: F) -> Result<()>
    where
        F: for<'r> FnOnce(&mut Context<'r, Self>, Args<'_>) -> Result<()>;

    /// Leaves the section: a flush and the closing barrier, or the report of a failure to all others. If a message was
    /// sent on a link and never awaited, the section fails.
    /// Called once, by [`run_section`](crate::run_section), never by users. A flush and one barrier; with inboxes two
    /// barriers, and O(links ever opened).
    fn leave(&mut self, how: Leaving) -> Result<()>;

    /// Registers `bytes` bytes at `base` as the local side of requests, usable at once; an
    /// [outbox](Registrant::Outbox) is the source of puts on links only. Θ(1) if no memory is
    /// pinned, else O(bytes).
    ///
    /// # Errors
    /// *Misuse* if no slot is left of those reserved, *mitigable* if the system refuses to pin
    /// the memory.
    ///
    /// # Safety
    /// - the memory is valid for reads and writes until its release; for ever if
    ///   [`memory_is_quiet`](Lpf::memory_is_quiet) is false then. The release is the first full sync after the slot is
    ///   deregistered, the return of its block by [`abandoned_block`](Lpf::abandoned_block), or the end of the section;
    /// - while a pending request names it, its owner does not touch the target, and does not write to the source.
    unsafe fn register_local(
        &mut self,
        base: *mut u8,
        bytes: usize,
        registrant: Registrant,
    ) -> Result<LocalSlot>;

    /// Registers memory for all processes, usable after the next full sync. Collective: the same
    /// calls in the same order everywhere; sizes may differ, 0 and null are allowed. `shape` is
    /// compared between processes at that sync (0 if sizes may differ). Θ(1) if no memory is pinned,
    /// else O(bytes); that sync takes O(slots registered) more.
    ///
    /// # Errors
    /// *Misuse* if no slot is left of those reserved, *mitigable* if the system refuses to pin
    /// the memory.
    ///
    /// # Safety
    /// As [`register_local`](Lpf::register_local), for the requests of all processes.
    unsafe fn register_global(
        &mut self,
        base: *mut u8,
        bytes: usize,
        shape: u64,
    ) -> Result<GlobalSlot>;

    /// Cancels a registration at once; collective for global slots, in the same order. The data that the
    /// backend keeps for it is freed when the next full sync returns. O(open links and offers), and for a slot
    /// registered in the same superstep O(slots registered in it).
    ///
    /// # Errors
    /// *Misuse* if the slot is unknown, or named by a request pending or an offer open at this
    /// process.
    fn deregister(&mut self, slot: Slot) -> Result<()>;

    /// For the typed layer: the handle of a global area was dropped here. At the end of the first full sync, outside
    /// of suspensions, at which all processes have abandoned the same slots, in any order, the backend
    /// deregisters them and [`abandoned_block`](Self::abandoned_block) returns their blocks. Until then they stay
    /// registered. Θ(1); that sync takes O(p) and a second barrier more, and O(a log a) for a slots.
    fn abandon(&mut self, slot: GlobalSlot, block: usize);

    /// The block of an abandoned slot that is gone: no process accesses its memory any more. Each is returned once.
    /// Θ(1).
    fn abandoned_block(&mut self) -> Option<usize>;

    /// Queues a copy of `bytes` bytes from `src` here to `dst` at process `to`. Θ(1): no
    /// allocation, no communication.
    ///
    /// With [`PutAttr::Channel`] or [`PutAttr::Landing`], `to` is the link's peer and `dst` and
    /// `dst_offset` are ignored, because the runtime knows the address. O(bytes copied) then, and O(p) between
    /// processes.
    ///
    /// # Errors
    /// *Misuse*: unknown slot or process, local range outside its slot, over capacity. On a link:
    /// more than W puts between two syncs of any kind, or 2W that wait for credit (flush then), or a message longer
    /// than a cell. A put on a link may leave at once, so it can be *fatal*.
    #[allow(clippy::too_many_arguments)]
    fn put(
        &mut self,
        src: Slot,
        src_offset: usize,
        to: Pid,
        dst: GlobalSlot,
        dst_offset: usize,
        bytes: usize,
        attr: PutAttr,
    ) -> Result<()>;

    /// Queues a copy of `bytes` bytes from `src` at process `from` to `dst` here. Θ(1).
    ///
    /// # Errors
    /// *Misuse*, as [`put`](Lpf::put).
    #[allow(clippy::too_many_arguments)]
    fn get(
        &mut self,
        from: Pid,
        src: GlobalSlot,
        src_offset: usize,
        dst: Slot,
        dst_offset: usize,
        bytes: usize,
        attr: GetAttr,
    ) -> Result<()>;

    /// Ends the superstep: hg + l for a full one; for the others see [`SyncAttr`].
    ///
    /// # Errors
    /// *Fatal* if any process of the section failed, with process, superstep and cause.
    fn sync(&mut self, attr: SyncAttr<'_>) -> Result<()>;

    /// Whether the rounds of libraries' algorithms on expected arrivals end in full syncs (`LPF_STRICT=1`).
    /// The same on every process.
    fn strict(&self) -> bool;

    /// What communication costs here. Θ(1).
    fn probe(&self) -> Machine;

    /// Lets `slots` slots be registered, from the end of the next full sync on. O(slots).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, without any trace.
    fn resize_memory_register(&mut self, slots: usize) -> Result<()>;

    /// Lets this process queue or be subject to `requests` requests in a superstep, from the end
    /// of the next full sync on; the minimum over the processes holds. O(requests + p).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, without any trace.
    fn resize_message_queue(&mut self, requests: usize) -> Result<()>;

    /// Reserves `slots` slots and `requests` requests for a library, on top of the user's and
    /// independent of the user's resizes; from the end of the next full sync on. Collective.
    /// O(slots + requests + p).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, without any trace.
    fn reserve(&mut self, slots: usize, requests: usize) -> Result<()>;

    /// For libraries that work in full supersteps: suspends what this process has pending (requests,
    /// registrations and resizes) until [`restore`](Lpf::restore). Full syncs in between complete the library's
    /// requests only. Suspensions nest. Slots that suspended requests name stay busy. Collective. O(p) if
    /// requests are pending. [`Context::suspended`] is the safe call.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, which only the first call on each level takes. Nothing is suspended
    /// then.
    fn suspend(&mut self) -> Result<()>;

    /// The requests suspended last are pending again; later ones that no sync has completed are dropped.
    /// O(p) if requests were pending.
    ///
    /// # Panics
    /// If nothing is suspended.
    fn restore(&mut self);

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
    fn open(&mut self, inbox: InboxSlot, ring: u32, peer: Pid, peer_ring: u32) -> Result<Link>;

    /// Closes a link on which everything awaited was released and everything put was flushed. O(W + open
    /// links), and O(p) between processes; informs the peer.
    ///
    /// # Errors
    /// *Misuse* otherwise; *fatal* if a message has arrived that was never awaited.
    fn close(&mut self, link: Link) -> Result<()>;

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

    /// The longest part of a put in [parts](PutAttr::Parts) on `link`: a cell, or any length (`usize::MAX`) if the
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
    /// for the call that was [entered](Lpf::enter) last. [`poll`](Lpf::poll) then asks for them. Messages that are
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

    /// Waits until `found` finds its record on the [board](Lpf::board), which no message announces. The wait is published
    /// like every wait, so that a disagreement ends it, and makes progress on everything. It calls `found` repeatedly,
    /// and `wait.absent` only if the wait is long.
    ///
    /// # Errors
    /// Those of `found`; *fatal* if the section failed, or the wait never ends.
    fn consult<R>(
        &mut self,
        wait: Consult<'_>,
        found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R>;

    /// Message `nth` (counted from 0 over the link's life), once awaited and until released.
    ///
    /// # Errors
    /// *Misuse* if it was not awaited or is released.
    fn arrival(&self, link: Link, nth: u64) -> Result<Arrival>;

    /// How many messages of the link were awaited so far.
    fn awaited(&self, link: Link) -> Result<u64>;

    /// Keeps message `nth` past the next sync: only [`release_held`](Lpf::release_held) frees its
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

    /// Sets the call of this process from now on; its messages carry the stamp.
    fn enter(&mut self, call: Call);

    /// Ends the section for a reason of this process, which becomes the *fatal* error of all. It is for a library that
    /// cannot go on and leaves memory to the runtime, for example after a panic in its caller's operator. When it
    /// returns, no other process touches this process's memory, or [`memory_is_quiet`](Lpf::memory_is_quiet) is false.
    /// Returns the failure of the section: this error, or an earlier one.
    fn fail(&mut self, error: Error) -> Error;

    /// A handle to the board, for helper threads.
    fn board(&self) -> Self::Board;

    /// False for ever when memory of this process may be written by another one that cannot be stopped (a
    /// receive that cannot be cancelled). The memory is then leaked.
    fn memory_is_quiet(&self) -> bool {
        true
    }

    /// Messages that this process has sent in full syncs, rehooks and leaving, since it entered the
    /// section; `None` if there are no messages, as between threads.
    fn traffic(&self) -> Option<Traffic> {
        None
    }
}
