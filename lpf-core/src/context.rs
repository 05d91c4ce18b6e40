//! The context: what an SPMD function is given.
//!
//! The context is the token of the typed layer: memory owned by the runtime is read through
//! `&Context` and written through `&mut Context`, and `sync` takes `&mut Context`. So no slice is
//! alive across a sync, and a superstep that touches memory in flight does not compile. `'s` is a
//! lifetime of the section's own: areas of one section mean nothing to another's context.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytemuck::Pod;

use crate::Pid;
use crate::args::Args;
use crate::attr::SyncAttr;
use crate::check::Place;
use crate::error::{Cause, Error, Result};
use crate::lpf::{Leaving, Lpf};
use crate::machine::Machine;
use crate::raw::Raw;
use crate::slot::Registrant;
use crate::typed::access::Access;
use crate::typed::area::{Area, AreaRegistration, Local, Memory};
use crate::typed::element::Element;
use crate::typed::heap::Heap;
use crate::typed::releases::{Closings, Dropped, Releases};

/// One process of a section.
///
/// `exec`, `hook` and `rehook` make it. It stays on the thread that received it, and ends with the function that received
/// it.
///
/// ```compile_fail
/// # use lpf_core::{Context, Lpf};
/// fn another_thread<L: Lpf>(ctx: &mut Context<'_, L>) {
///     std::thread::scope(|s| { s.spawn(|| ctx.sync()); }); // a context is not Send
/// }
/// ```
pub struct Context<'s, L: Lpf> {
    /// Left first when the context goes, so that nobody touches the memory that goes after it.
    pub(crate) raw: L,
    pub(crate) heap: Heap,
    pub(crate) releases: Releases,
    /// Flushes so far, for the parts of outboxes.
    pub(crate) flushes: u64,
    /// Areas of `alloc` that there is reserved room for.
    pub(crate) alloc_room: usize,
    /// How the latest rehook failed, if one has.
    inner_failure: Option<Error>,
    section: PhantomData<fn(&'s ()) -> &'s ()>,
    stays_here: PhantomData<*mut ()>,
}

impl<L: Lpf> std::fmt::Debug for Context<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} of {}, superstep {}", self.pid(), self.nprocs(), self.superstep())
    }
}

/// Runs an SPMD function as one process of a section and leaves the section: for backends, once
/// per process of an `exec`, `hook` or `rehook`.
///
/// A panic of `f` is caught here; it is fatal for the section and does not go further.
///
/// # Errors
/// The error that `f` returned, its panic, or the error of [`Runtime::leave`](crate::Runtime::leave).
pub fn run_section<L, F, R>(raw: L, f: F) -> Result<R>
where
    L: Lpf,
    F: for<'s> FnOnce(&mut Context<'s, L>) -> Result<R>,
{
    let mut ctx = Context {
        raw,
        heap: Heap::default(),
        releases: Releases::default(),
        flushes: 0,
        alloc_room: 0,
        inner_failure: None,
        section: PhantomData,
        stays_here: PhantomData,
    };
    let ended = catch_unwind(AssertUnwindSafe(|| f(&mut ctx)));
    let (pid, superstep) = (ctx.pid(), ctx.superstep());
    let (how, result) = match ended {
        Ok(Ok(value)) => (Leaving::Done, Ok(value)),
        // It began inside, at a process that has the same number here.
        Ok(Err(error)) if ctx.inner_failure.as_ref().is_some_and(|inner| inner.is(&error)) => {
            (Leaving::Failed(error.clone()), Err(error))
        }
        Ok(Err(error)) => (Leaving::Returned(error.clone()), Err(error)),
        Err(payload) => {
            let message = panic_text(&*payload);
            // A payload may panic when it is dropped.
            if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(second);
            }
            let cause = Cause::Panicked { message: message.clone() };
            (Leaving::Panicked(message), Err(Error::fatal(pid, superstep, cause)))
        }
    };
    let left = ctx.raw.leave(how);
    if !ctx.raw.memory_is_quiet() {
        ctx.heap.leak();
    }
    let value = result?;
    left.map(|()| value)
}

/// Fails to compile if a function that other processes run captures variables: `const { captures_nothing::<F>() }`.
pub const fn captures_nothing<F>() {
    assert!(
        size_of::<F>() == 0,
        "a closure that runs in other processes cannot capture variables: pass data in `Args`, or use `lpf::exec`, \
         which runs on threads alone"
    );
}

/// The text of a panic.
pub fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is not a text".into())
}

impl<'s, L: Lpf> Context<'s, L> {
    /// This process, 0 to `nprocs() - 1`.
    #[inline]
    pub fn pid(&self) -> Pid {
        self.raw.pid()
    }

    /// The processes of the section.
    #[inline]
    pub fn nprocs(&self) -> Pid {
        self.raw.nprocs()
    }

    /// Full syncs completed: the number of the current superstep.
    pub fn superstep(&self) -> u64 {
        self.raw.superstep()
    }

    /// The time since a fixed moment before this section began here; it never goes back. The moment differs between
    /// processes and between sections, so only the difference of two values of one context means anything. Θ(1).
    ///
    /// ```
    /// # use lpf_core::{Context, Lpf, Result};
    /// # fn timed<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    /// let begin = ctx.now();
    /// ctx.sync()?;
    /// println!("process {}: the sync took {:?}", ctx.pid(), ctx.now() - begin);
    /// # Ok(())
    /// # }
    /// ```
    pub fn now(&self) -> Duration {
        self.raw.now()
    }

    /// The name of the host that this process runs on; `localhost` if the system does not report it. One system call.
    pub fn host(&self) -> String {
        crate::host::name()
    }

    /// What communication costs here. Θ(1).
    pub fn probe(&self) -> Machine {
        self.raw.probe()
    }

    /// The twelve primitives on slots and byte ranges.
    #[inline]
    pub fn raw(&mut self) -> Raw<'_, L> {
        self.close_given_up();
        self.give_up_dropped(false);
        Raw::new(&mut self.raw)
    }

    /// Where a library leaves links that its objects give up when they are dropped.
    pub fn closings(&self) -> Closings {
        Closings::new(self.releases.clone())
    }

    /// Reserves room for `slots` slots and `requests` requests, from the next sync on. A request
    /// counts once at its origin and once at its target. The first area, put or get needs this
    /// and a [`sync`](Self::sync).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused.
    #[track_caller]
    pub fn resize(&mut self, slots: usize, requests: usize) -> Result<()> {
        self.raw.resize_memory_register(slots)?;
        self.raw.resize_message_queue(requests)
    }

    /// Ends the superstep: all requests of all processes are complete when it returns. At most h·g + l.
    ///
    /// # Errors
    /// *Fatal* if any process of the section failed.
    #[inline]
    pub fn sync(&mut self) -> Result<()> {
        self.sync_with(SyncAttr::Default)
    }

    /// Ends the superstep under an attribute.
    ///
    /// # Errors
    /// *Fatal* if any process of the section failed.
    #[inline]
    pub fn sync_with(&mut self, attr: SyncAttr<'_>) -> Result<()> {
        self.give_back()?;
        let is_full = attr.is_full();
        if is_full {
            self.give_up_dropped(true);
        }
        self.raw.sync(attr)?;
        if is_full && self.heap.has_retired() {
            self.heap.free_retired(self.raw.memory_is_quiet());
        }
        if is_full {
            self.free_abandoned();
        }
        Ok(())
    }

    /// Hands the areas that were dropped to the backend; local ones only before a full sync, because each call costs
    /// a look at those that requests still name.
    #[inline]
    fn give_up_dropped(&mut self, with_locals: bool) {
        if self.releases.has_dropped_areas() {
            self.give_up_areas(with_locals);
        }
    }

    #[cold]
    fn give_up_areas(&mut self, with_locals: bool) {
        let Context { raw, heap, releases, .. } = self;
        releases.retain_dropped_areas(|&dropped| match dropped {
            Dropped::Global(slot, block) => {
                raw.abandon(slot, block);
                false
            }
            Dropped::Local(..) if !with_locals => true,
            Dropped::Local(slot, block) => match raw.deregister(slot.into()) {
                Ok(()) => {
                    heap.retire(block);
                    false
                }
                // A pending request, an open offer or a message that has not left names it.
                Err(error) => !matches!(error.cause(), Cause::UnknownSlot { .. }),
            },
        });
    }

    /// Frees areas that all processes have dropped.
    #[inline]
    fn free_abandoned(&mut self) {
        while let Some(block) = self.raw.abandoned_block() {
            self.heap.free_deregistered(block, self.raw.memory_is_quiet());
        }
    }

    /// Suspends what is pending here (requests, registrations and resizes) while `library` works in full
    /// supersteps of its own. Its syncs complete only its own requests, for which it needs room of its own
    /// ([`Raw::reserve`]). When it returns, also with an error or by a panic, everything is pending again. Requests
    /// of the library that no sync has completed are dropped; checked mode reports them.
    ///
    /// Collective. Suspensions nest: a library may use another one. O(p) if requests are pending.
    ///
    /// # Errors
    /// What `library` returned. *Mitigable* if memory is refused; `library` did not run then.
    pub fn suspended<R>(&mut self, library: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        crate::raw::suspended(self, |ctx| &mut ctx.raw, library)
    }

    /// Runs `f` on up to `procs` new processes, this one being process 0 of them, and returns the value of process 0.
    /// They are on at most this process's share of the machine, which [`probe`](Self::probe) gives as
    /// [`free_p`](crate::Machine::free_p). Entry O(P + Ng + l), exit O(Ng + l).
    ///
    /// `f` is a function, or a closure that captures nothing, because it may run in other processes. Its data is in
    /// `args`: process 0 gets `input` and `output`.
    ///
    /// # Errors
    /// *Mitigable* if processes are refused, *fatal* if the new section failed: this one
    /// stays usable.
    pub fn exec<F, R>(&mut self, procs: Pid, args: Args<'_>, f: F) -> Result<R>
    where
        F: for<'n> Fn(&mut Context<'n, L>, Args<'_>) -> Result<R> + Copy + Send + Sync,
    {
        const { captures_nothing::<F>() };
        self.raw.exec(procs, args, f)
    }

    /// Runs `f` in a pristine context on the same processes, and returns its value at each: how a library starts.
    /// Collective; the time of an empty full sync to enter; a flush, a barrier (two if `f` made an inbox) and O(p) work
    /// to leave. The requests pending here stay pending.
    ///
    /// The outer context is on hold, which the compiler enforces:
    ///
    /// ```compile_fail
    /// # use lpf_core::{Context, Lpf, Result};
    /// fn library<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ///     ctx.rehook(|_inner| ctx.sync()) // ctx is borrowed
    /// }
    /// ```
    ///
    /// # Errors
    /// *Fatal* if the inner section failed; this context stays usable. If the function returns that error (with `?`), it
    /// becomes the failure of this section. All processes then get the process and the inner superstep where it began.
    pub fn rehook<F, R>(&mut self, f: F) -> Result<R>
    where
        F: for<'r> FnOnce(&mut Context<'r, L>) -> Result<R>,
    {
        let ended = self.raw.rehook(f);
        if let Err(error) = &ended
            && error.is_fatal()
        {
            self.inner_failure = Some(error.clone());
        }
        ended
    }

    /// A global area of `len` zeroed elements at every process, usable after the next sync.
    /// Collective; the length and the element type's size are the same everywhere, or that sync
    /// is fatal. O(len): the memory is zeroed.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, *misuse* if no slot is reserved.
    #[track_caller]
    pub fn area<T: Element>(&mut self, len: usize) -> Result<Area<'s, T>> {
        let block = self.allocate::<T>(len)?;
        self.register_block(block, len).inspect_err(|_| self.heap.free(block))
    }

    /// A block for `len` elements becomes an area. After an error the block is still the caller's.
    #[track_caller]
    pub(crate) fn register_block<T: Element>(
        &mut self,
        block: usize,
        len: usize,
    ) -> Result<Area<'s, T>> {
        let (base, bytes) = self.heap.place(block);
        // SAFETY: the block lives until it is retired and a full sync has returned, or until the backend returns it
        // as abandoned: the handle is gone in both cases. User code reaches the block only through slices that
        // borrow this context, which sync needs mutably.
        let slot = unsafe { self.raw.register_global(base, bytes, size_of::<T>().max(1)) }?;
        let registration = self.registration(Dropped::Global(slot, block));
        Ok(Area::new(slot, registration, base.cast(), len, self.superstep() + 1))
    }

    /// A local area of `len` zeroed elements, usable at once as the local side of requests. O(len): the
    /// memory is zeroed.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, *misuse* if no slot is reserved.
    #[track_caller]
    pub fn local<T: Element>(&mut self, len: usize) -> Result<Local<'s, T>> {
        let block = self.allocate::<T>(len)?;
        let (base, bytes) = self.heap.place(block);
        // SAFETY: as in `area`.
        match unsafe { self.raw.register_local(base, bytes, Registrant::Runtime) } {
            Ok(slot) => {
                let registration = self.registration(Dropped::Local(slot, block));
                Ok(Local::new(slot, registration, base.cast(), len, 0))
            }
            Err(error) => {
                self.heap.free(block);
                Err(error)
            }
        }
    }

    /// Bytes of all areas and outboxes of this process that are not freed, for tests.
    #[doc(hidden)]
    pub fn area_bytes(&self) -> usize {
        self.heap.bytes()
    }

    fn registration(&self, dropped: Dropped) -> AreaRegistration {
        AreaRegistration::new(dropped, self.releases.clone())
    }

    #[track_caller]
    pub(crate) fn allocate<T: Pod>(&mut self, len: usize) -> Result<usize> {
        self.allocate_beside::<T>(len, 0)
    }

    /// As [`allocate`](Self::allocate), if `others` more blocks will become areas before this one.
    #[track_caller]
    pub(crate) fn allocate_beside<T: Pod>(&mut self, len: usize, others: usize) -> Result<usize> {
        let place = Place::caller();
        // A sync of the raw interface leaves them.
        self.free_abandoned();
        let allocated = match self.releases.reserve_for_areas(others + 1) {
            true => self.heap.allocate::<T>(len),
            false => Err(size_of::<Dropped>()),
        };
        allocated.map_err(|bytes| {
            let cause = Cause::OutOfMemory { what: "an area".into(), bytes };
            Error::mitigable(self.pid(), self.superstep(), cause).at(place)
        })
    }

    /// Cancels an area; collective for global ones, in the same order. Its slot is free at once, and its memory at the end
    /// of the next full sync.
    ///
    /// # Errors
    /// *Misuse* if a pending request names it. The area is then given back later, as if its handle had been dropped.
    /// [`try_deregister`](Self::try_deregister) returns the handle instead.
    #[track_caller]
    pub fn deregister<M: Memory<'s>>(&mut self, memory: M) -> Result<()> {
        Ok(self.try_deregister(memory)?)
    }

    /// As [`deregister`](Self::deregister), for a program that goes on with an area that cannot be deregistered.
    ///
    /// # Errors
    /// *Misuse* if a pending request names it; the area is then handed back.
    #[track_caller]
    pub fn try_deregister<M: Memory<'s>>(
        &mut self,
        memory: M,
    ) -> std::result::Result<(), (Error, M)> {
        match self.raw.deregister(memory.slot()) {
            Ok(()) => {
                if let Some(block) = memory.into_registration().into_block() {
                    self.heap.retire(block);
                }
                Ok(())
            }
            Err(error) => Err((error, memory)),
        }
    }

    /// Reads an area of this process. Between a request and the end of its sync an area keeps its values.
    ///
    /// ```compile_fail
    /// # use lpf_core::{Context, Lpf, Result};
    /// fn held_across_sync<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ///     let area = ctx.area::<u64>(1)?;
    ///     let slice = ctx.read(&area);
    ///     ctx.sync()?; // the slice is still alive
    ///     assert_eq!(slice[0], 0);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Panics
    /// After a fatal error of a backend that cannot stop others from writing
    /// ([`Runtime::memory_is_quiet`](crate::Runtime::memory_is_quiet)).
    #[inline]
    pub fn read<'a, M: Memory<'s>>(&'a self, memory: &'a M) -> &'a [M::Element] {
        self.check_quiet();
        // SAFETY: only a sync of this process changes the area, and it needs `&mut self`; writers
        // through the context need it too.
        unsafe { std::slice::from_raw_parts(memory.data(), memory.len()) }
    }

    /// Writes an area of this process; for several at once see [`access`](Self::access).
    ///
    /// # Panics
    /// As [`read`](Self::read).
    #[inline]
    pub fn write<'a, M: Memory<'s>>(&'a mut self, memory: &'a mut M) -> &'a mut [M::Element] {
        self.check_quiet();
        // SAFETY: both the context and the handle are borrowed mutably, and a handle is the only
        // one of its memory.
        unsafe { std::slice::from_raw_parts_mut(memory.data(), memory.len()) }
    }

    /// Several areas at once: `let (x, y) = ctx.access((&x, &mut y))`. Handles are owned, so that
    /// distinct areas are distinct to the compiler. Areas in an array or a vector:
    /// `ctx.access(areas.each_mut())`, `ctx.access(areas.iter_mut().collect::<Vec<_>>())`.
    ///
    /// # Panics
    /// As [`read`](Self::read).
    #[inline]
    pub fn access<'a, A: Access<'a, 's>>(&'a mut self, areas: A) -> A::Slices {
        self.check_quiet();
        // SAFETY: the context is borrowed mutably for 'a.
        unsafe { areas.slices() }
    }

    #[inline]
    fn check_quiet(&self) {
        assert!(
            self.raw.memory_is_quiet(),
            "memory is not accessible after this fatal error: a peer may still write to it"
        );
    }

    /// Queues a copy of elements `range` of `src` here to `dst` from element `at` on at process
    /// `to`. Θ(1).
    ///
    /// ```compile_fail
    /// # use lpf_core::{Context, Lpf, Result};
    /// fn a_local_area_is_no_remote_side<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ///     let (x, y) = (ctx.area::<u64>(1)?, ctx.local::<u64>(1)?);
    ///     ctx.put(&x, .., 0, &y, 0)
    /// }
    /// ```
    /// ```compile_fail
    /// # use lpf_core::{Context, Lpf, Result};
    /// fn element_types_do_not_mix<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ///     let (x, y) = (ctx.area::<u64>(1)?, ctx.area::<f64>(1)?);
    ///     ctx.put(&x, .., 0, &y, 0)
    /// }
    /// ```
    ///
    /// # Errors
    /// *Misuse*: no such process, range outside `src`, over capacity, an area not active yet. A
    /// range outside `dst` is found by the destination and fatal.
    #[inline(always)]
    #[track_caller]
    pub fn put<T: Pod, M: Memory<'s, Element = T>>(
        &mut self,
        src: &M,
        range: impl RangeBounds<usize>,
        to: Pid,
        dst: &Area<'s, T>,
        at: usize,
    ) -> Result<()> {
        let (from, bytes) = byte_range::<T>(range, src.len());
        let at = at.saturating_mul(size_of::<T>());
        self.raw
            .put(src.slot(), from, to, dst.global_slot(), at, bytes)
            .map_err(|error| error.in_elements(size_of::<T>()))
    }

    /// Queues a copy of elements `range` of `src` at process `from` to `dst` here, from element
    /// `at` on. Θ(1).
    ///
    /// # Errors
    /// *Misuse*, as [`put`](Self::put).
    #[inline(always)]
    #[track_caller]
    pub fn get<T: Pod, M: Memory<'s, Element = T>>(
        &mut self,
        from: Pid,
        src: &Area<'s, T>,
        range: impl RangeBounds<usize>,
        dst: &M,
        at: usize,
    ) -> Result<()> {
        let (offset, bytes) = byte_range::<T>(range, src.len());
        let at = at.saturating_mul(size_of::<T>());
        self.raw
            .get(from, src.global_slot(), offset, dst.slot(), at, bytes)
            .map_err(|error| error.in_elements(size_of::<T>()))
    }
}

/// Elements to bytes. What is out of range stays out of range: sizes saturate.
#[inline(always)]
pub(crate) fn byte_range<T>(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let start = match range.start_bound() {
        Included(&start) => start,
        Excluded(&start) => start.saturating_add(1),
        Unbounded => 0,
    };
    let end = match range.end_bound() {
        Included(&end) => end.saturating_add(1),
        Excluded(&end) => end,
        Unbounded => len,
    };
    // A range that ends before it starts is as wrong as one that ends too late.
    let elements = end.checked_sub(start).unwrap_or(usize::MAX);
    (start.saturating_mul(size_of::<T>()), elements.saturating_mul(size_of::<T>()))
}
