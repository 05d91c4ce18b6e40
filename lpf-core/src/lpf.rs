//! The trait that every backend implements: the twelve primitives, on byte ranges of slots.

mod links;
mod runtime;

pub use links::{Awaited, Links};
pub use runtime::{Leaving, Runtime};

use crate::Pid;
use crate::args::Args;
use crate::attr::SyncAttr;
use crate::context::Context;
use crate::error::Result;
use crate::machine::Machine;
use crate::slot::{GlobalSlot, LocalSlot, Registrant, Slot};

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
///   the ranges named, which are in slots registered at that time. The source of a send on a link is
///   read until the next flush, full sync or leaving has returned. The memory of an offer is written
///   until the sync that awaited its message, or any call that is *fatal*, has returned.
/// - When a full sync or `leave` has returned, or any call returned *fatal*, no other process touches anything
///   else of this process's registered memory, or
///   [`memory_is_quiet`](Runtime::memory_is_quiet) is false for ever.
/// - A cell shown by [`arrival`](Links::arrival) is valid for its `bytes`, aligned to 32, and not
///   written until it is released. For this a ring has one sender at a time, and `close` and
///   `deregister_inbox` refuse while a message is held.
/// - Put and get refuse an [outbox](Registrant::Outbox).
/// - Concurrent copies between processes go through [`copy`](crate::copy), never through Rust
///   references.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a backend",
    label = "expected a backend, as the type parameter `L` of `Context<'_, L>`",
    note = "a function that works on every backend is generic: `fn name<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()>`"
)]
pub unsafe trait Lpf: Links + Runtime + Sized + Send {
    /// This process, 0 to `nprocs() - 1`.
    fn pid(&self) -> Pid;

    /// The processes of the section.
    fn nprocs(&self) -> Pid;

    /// Full syncs completed in this context: the number of the current superstep.
    fn superstep(&self) -> u64;

    /// Runs `f` on up to `procs` new processes, this one being process 0 of them, and returns the value of
    /// process 0. Those of the other processes are dropped there.
    ///
    /// Between processes `f` travels by the name of its type, so it captures nothing: a closure that captures a
    /// variable does not compile here.
    ///
    /// Entry O(P + Ng + l), exit O(Ng + l); not collective. `args` goes as [`Args`] says.
    ///
    /// # Errors
    /// *Mitigable* if processes or memory are refused; *fatal* if the new section failed,
    /// which leaves this context usable, or if this context has failed already.
    fn exec<F, R>(&mut self, procs: Pid, args: Args<'_>, f: F) -> Result<R>
    where
        F: for<'n> Fn(&mut Context<'n, Self>, Args<'_>) -> Result<R> + Copy + Send + Sync;

    /// Runs `f` in a pristine context on the same processes, and returns its value; this one is on hold meanwhile.
    ///
    /// Collective; the time of an empty full sync to enter, a flush and a barrier to leave (two if it had inboxes), and
    /// O(p) work.
    /// Requests pending here stay pending.
    ///
    /// # Errors
    /// *Fatal* if the inner section failed (this context stays usable) or this one has.
    fn rehook<F, R>(&mut self, f: F) -> Result<R>
    where
        F: for<'r> FnOnce(&mut Context<'r, Self>) -> Result<R>;

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
    ///   [`memory_is_quiet`](Runtime::memory_is_quiet) is false then. The release is the first full sync after the slot is
    ///   deregistered, the return of its block by [`abandoned_block`](Runtime::abandoned_block), or the end of the section;
    /// - while a pending request names it, its owner does not touch the target, and does not write to the source.
    unsafe fn register_local(
        &mut self,
        base: *mut u8,
        bytes: usize,
        registrant: Registrant,
    ) -> Result<LocalSlot>;

    /// Registers memory for all processes, usable after the next full sync. Collective: the same
    /// calls in the same order everywhere; sizes may differ, 0 and null are allowed. An
    /// area has elements of `element` bytes; its length and this size are compared between processes at that sync.
    /// `element` is 0 if sizes may differ. Θ(1) if no memory is pinned,
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
        element: usize,
    ) -> Result<GlobalSlot>;

    /// Cancels a registration at once; collective for global slots, in the same order. The data that the
    /// backend keeps for it is freed when the next full sync returns. O(open links and offers), and for a slot
    /// registered in the same superstep O(slots registered in it).
    ///
    /// # Errors
    /// *Misuse* if the slot is unknown, or named by a request pending or an offer open at this
    /// process.
    fn deregister(&mut self, slot: Slot) -> Result<()>;

    /// Queues a copy of `bytes` bytes from `src` here to `dst` at process `to`. Θ(1): no
    /// allocation, no communication.
    ///
    /// # Errors
    /// *Misuse*: unknown slot or process, local range outside its slot, over capacity.
    #[allow(clippy::too_many_arguments)]
    fn put(
        &mut self,
        src: Slot,
        src_offset: usize,
        to: Pid,
        dst: GlobalSlot,
        dst_offset: usize,
        bytes: usize,
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
    ) -> Result<()>;

    /// Ends the superstep: hg + l for a full one; for the others see [`SyncAttr`].
    ///
    /// # Errors
    /// *Fatal* if any process of the section failed, with process, superstep and cause.
    fn sync(&mut self, attr: SyncAttr<'_>) -> Result<()>;

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
}
