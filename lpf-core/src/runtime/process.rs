//! One process of a section: the only implementation of the primitives, on any engine.

use std::mem::ManuallyDrop;
use std::ptr::read;
use std::time::Duration;

use super::engine::{Announced, Engine, section};
use super::guard::guarded;
use super::link_calls::{
    Close, ConsultBoard, LinkCall, Offer, Poll, Progress, Put, ReportReleases, WaitFor,
};
use super::links::LinkTable;
use super::tables::Tables;
use super::{LocalState, Purpose, Summary};
use crate::arrivals::{Arrival, Call, CallValues, Expect, InboxShape, InboxSlot, Link, Travel};
use crate::attr::SyncAttr;
use crate::check::SharedChecks;
use crate::context::Context;
use crate::error::{AtCaller, Cause, Error, Result};
use crate::lpf::{Awaited, Leaving, Links, Lpf, Runtime};
use crate::machine::Machine;
use crate::request::Way;
use crate::slot::{GlobalSlot, LocalSlot, Registrant, Slot};
use crate::waits::Consult;
use crate::{Args, Pid, run_section};

/// One process of a section, on an engine.
#[derive(Debug)]
pub struct Process<E: Engine> {
    /// What core keeps of it.
    pub(super) tables: Tables,
    /// What moves its bytes.
    pub(super) engine: E,
    /// Set by the first fatal error of this context.
    pub(super) dead: Option<Error>,
    /// Whether no process counts on it: it has not entered its section, or has left it.
    pub(super) is_outside: bool,
}

impl<E: Engine> Process<E> {
    /// The process that `local` belongs to, which has not [entered](Self::enter) its section.
    pub fn of(local: LocalState, engine: E) -> Self {
        let links = LinkTable::default();
        Process { tables: Tables { local, links }, engine, dead: None, is_outside: true }
    }

    /// From here on the others count on this process: if it goes without leaving, it has failed.
    pub fn enter(mut self) -> Self {
        self.is_outside = false;
        self
    }

    /// The same process, on an engine that contains its own.
    pub fn map<G: Engine>(self, contain: impl FnOnce(E) -> G) -> Process<G> {
        let process = ManuallyDrop::new(self);
        let Process { tables, engine, dead, is_outside } = &*process;
        // SAFETY: each field is moved out once: `process` is neither dropped nor used again.
        let (tables, engine, dead) = unsafe { (read(tables), read(engine), read(dead)) };
        Process { tables, engine: contain(engine), dead, is_outside: *is_outside }
    }

    /// The engine, for what it alone has.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// What checked mode keeps of it.
    pub fn checks(&self) -> Option<&SharedChecks> {
        self.tables.local.checks()
    }

    /// Whether checked mode is on.
    pub fn is_checked(&self) -> bool {
        self.tables.local.is_checked()
    }

    /// Both parts, for models of an engine.
    #[cfg(loom)]
    pub fn parts(&mut self) -> (&mut Tables, &mut E) {
        (&mut self.tables, &mut self.engine)
    }

    #[inline]
    pub(super) fn alive(&self) -> Result<()> {
        match &self.dead {
            None => self.is_here(),
            Some(dead) => Err(dead.clone()),
        }
    }

    /// An error in a child that was forked from this process.
    #[inline]
    fn is_here(&self) -> Result<()> {
        let LocalState { pid, superstep, .. } = self.tables.local;
        self.engine.maker().check(pid, superstep)
    }

    /// What the engine has answered; a *fatal* error ends this process's part of the section.
    #[inline]
    pub(super) fn ended<R>(&mut self, result: Result<R>) -> Result<R> {
        result.map_err(|error| if error.is_fatal() { self.die_of(error) } else { error })
    }

    /// Ends this process's part of the section, which fails: from here on no other process touches its memory, or
    /// [`memory_is_quiet`](Runtime::memory_is_quiet) is false. Returns the failure of the section.
    #[cold]
    fn die_of(&mut self, error: Error) -> Error {
        if let Some(dead) = &self.dead {
            return dead.clone();
        }
        let Process { tables, engine, .. } = self;
        let report = if engine.maker().is_here() {
            let report = engine.declare(&tables.local, error);
            engine.give_up(tables);
            report
        } else {
            error
        };
        self.dead.insert(tables.local.with_place(report)).clone()
    }

    /// A full sync.
    #[inline]
    fn full_sync(&mut self, attr: SyncAttr<'_>) -> Result<()> {
        self.settle_links()?;
        let announced = self.meet(Purpose::Sync, attr)?;
        self.complete_sync(announced, Ok(()))
    }

    /// What follows the barrier of a full sync, after which `found` may be an error.
    #[inline]
    pub(super) fn complete_sync(&mut self, announced: Announced, found: Result<()>) -> Result<()> {
        let completed = if announced == Announced(0) {
            self.complete_silent()
        } else if self.engine.lends_memory() {
            guarded(|| self.complete(announced, found))
        } else {
            self.complete(announced, found)
        };
        self.ended(completed)
    }

    /// The barrier that opens a full sync, a rehook or the end of a section.
    #[inline]
    pub(super) fn meet(&mut self, purpose: Purpose, attr: SyncAttr<'_>) -> Result<Announced> {
        // The others may have arrived before this process was forked: the barrier would seem complete.
        self.alive()?;
        let met = self.engine.meet(&mut self.tables, purpose, attr);
        self.ended(met)
    }

    /// The end of a superstep in which no process announced anything.
    #[inline]
    fn complete_silent(&mut self) -> Result<()> {
        let Process { tables, engine, .. } = self;
        engine.end_barrier(tables, Purpose::Sync)?;
        tables.local.end_silent_superstep();
        engine.end_superstep(tables.local.superstep);
        Ok(())
    }

    /// Phases 2 to 4, after the barrier.
    #[inline]
    fn complete(&mut self, announced: Announced, found: Result<()>) -> Result<()> {
        let Process { tables, engine, .. } = self;
        let found = match tables.local.is_checked() {
            // Checked mode knows the places in the source, so it speaks first.
            true => engine.check_superstep(tables).and(found),
            false => found,
        };
        // Now, because others may announce more as soon as they have left this superstep.
        let agreed = announced.is_news().then(|| engine.agreed(&tables.local));
        let found = found.and_then(|()| compare(&tables.local, announced, agreed.as_ref()));
        engine.complete(tables, announced, found)?;
        tables.local.settle();
        let changes = announced.has(Announced::REGISTERED | Announced::RESIZED);
        if changes || tables.local.changes.any() {
            let requests = agreed.map_or(0, |agreed| agreed.agreed_requests());
            tables.links.activate();
            tables.local.apply(announced.has(Announced::RESIZED), requests);
            engine.apply(tables, announced)?;
        }
        let agreed = agreed.filter(|_| announced.has(Announced::ABANDONED));
        if agreed.is_some_and(|agreed| agreed.agrees_on_abandoned()) {
            engine.forget_abandoned(&tables.local);
            tables.local.forget_abandoned();
        }
        tables.local.superstep += 1;
        engine.end_superstep(tables.local.superstep);
        Ok(())
    }

    /// Before a full sync or the end of a section: everything leaves, every release is reported.
    #[inline]
    fn settle_links(&mut self) -> Result<()> {
        if !self.tables.links.are_open() {
            return Ok(());
        }
        self.expect(&[])?;
        self.on_links(ReportReleases)?;
        self.on_links(WaitFor { awaited: Awaited::Flushed, values: None })
    }

    /// What all have announced at the last barrier.
    pub(super) fn agreed(&self) -> Summary {
        self.engine.agreed(&self.tables.local)
    }

    #[inline]
    pub(super) fn on_links<C: LinkCall>(&mut self, call: C) -> Result<C::Output> {
        let result = self.engine.on_links(&mut self.tables, call);
        self.ended(result)
    }

    /// Meets the others and gives this process of the inner section.
    fn enter_rehook(&mut self) -> Result<Self> {
        self.alive()?;
        self.engine.prepare_rehook(&self.tables.local)?;
        // No wait in the inner section would report them, and a sender may need them.
        self.on_links(ReportReleases)?;
        self.meet(Purpose::Rehook, SyncAttr::Default)?;
        let Process { tables, engine, .. } = self;
        let entered = engine.end_barrier(tables, Purpose::Rehook);
        let entered = entered.and_then(|()| engine.rehook(&tables.local));
        self.ended(entered)
    }

    fn leave_as(&mut self, how: Leaving) -> Result<()> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        self.is_here().map_err(|forked| self.die_of(forked))?;
        match self.tables.local.failure_of(how) {
            None => self.close_section(),
            Some(error) => Err(self.die_of(error)),
        }
    }

    /// A flush and the closing barrier; before it, with inboxes, one at which all that was sent is known.
    fn close_section(&mut self) -> Result<()> {
        self.settle_links()?;
        self.tables.local.report_leaks();
        // The same everywhere: inboxes are registered together.
        let counts = self.tables.links.are_in_use().then_some(Purpose::Count);
        for purpose in counts.into_iter().chain([Purpose::Close]) {
            self.meet(purpose, SyncAttr::Default)?;
            let ended = self.engine.end_barrier(&mut self.tables, purpose);
            self.ended(ended)?;
        }
        Ok(())
    }
}

/// All processes have registered the same.
#[inline]
fn compare(local: &LocalState, announced: Announced, agreed: Option<&Summary>) -> Result<()> {
    match agreed {
        Some(agreed) if announced.has(Announced::REGISTERED) => {
            local.compare_registrations(agreed.lowest, agreed.highest)
        }
        _ => Ok(()),
    }
}

impl<E: Engine> Drop for Process<E> {
    /// A process that was never left (its making failed half-way) must not keep others waiting.
    fn drop(&mut self) {
        if !self.is_outside {
            let LocalState { pid, superstep, .. } = self.tables.local;
            let cause = Cause::Returned { message: "it was dropped".into() };
            let _ = self.leave(Leaving::Failed(Error::fatal(pid, superstep, cause)));
        }
    }
}

// SAFETY: the engine's promises, and: requests pass the checks of `LocalState` before the engine sees them; a process
// whose section has failed hands nothing more to its engine, which has given up what others could touch; a slot is
// deregistered only if no request, offer or put on a link names it.
unsafe impl<E: Engine> Lpf for Process<E> {
    #[inline]
    fn pid(&self) -> Pid {
        self.tables.local.pid
    }

    #[inline]
    fn nprocs(&self) -> Pid {
        self.tables.local.nprocs
    }

    #[inline]
    fn superstep(&self) -> u64 {
        self.tables.local.superstep
    }

    fn exec<F, R>(&mut self, procs: Pid, args: Args<'_>, f: F) -> Result<R>
    where
        F: for<'n> Fn(&mut Context<'n, Self>, Args<'_>) -> Result<R> + Copy + Send + Sync,
    {
        self.alive()?;
        self.engine.exec(&self.tables.local, procs, args, section(f), |process, args| {
            run_section(process, |ctx| f(ctx, args))
        })
    }

    fn rehook<F, R>(&mut self, f: F) -> Result<R>
    where
        F: for<'r> FnOnce(&mut Context<'r, Self>) -> Result<R>,
    {
        let inner = self.enter_rehook()?;
        run_section(inner, f)
    }

    #[track_caller]
    unsafe fn register_local(
        &mut self,
        base: *mut u8,
        bytes: usize,
        registrant: Registrant,
    ) -> Result<LocalSlot> {
        self.tables.local.register_local(base, bytes, registrant)
    }

    #[track_caller]
    unsafe fn register_global(
        &mut self,
        base: *mut u8,
        bytes: usize,
        element: usize,
    ) -> Result<GlobalSlot> {
        self.tables.local.register_global(base, bytes, element)
    }

    #[track_caller]
    fn deregister(&mut self, slot: Slot) -> Result<()> {
        let Tables { local, links } = &mut self.tables;
        links.check_unused(local, slot).at_caller()?;
        local.deregister(slot)
    }

    #[inline(always)]
    #[track_caller]
    fn put(
        &mut self,
        src: Slot,
        src_offset: usize,
        to: Pid,
        dst: GlobalSlot,
        dst_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.tables.local.request(Way::Put, src, src_offset, to, dst, dst_offset, bytes)
    }

    #[inline(always)]
    #[track_caller]
    fn get(
        &mut self,
        from: Pid,
        src: GlobalSlot,
        src_offset: usize,
        dst: Slot,
        dst_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.tables.local.request(Way::Get, dst, dst_offset, from, src, src_offset, bytes)
    }

    #[inline]
    fn sync(&mut self, attr: SyncAttr<'_>) -> Result<()> {
        self.sync_in_call(attr, None)
    }

    fn probe(&self) -> Machine {
        self.engine.machine(&self.tables.local)
    }

    #[track_caller]
    fn resize_memory_register(&mut self, slots: usize) -> Result<()> {
        self.tables.local.resize_slots(&mut self.engine.room(), slots)
    }

    #[track_caller]
    fn resize_message_queue(&mut self, requests: usize) -> Result<()> {
        self.tables.local.resize_requests(&mut self.engine.room(), requests)
    }
}

impl<E: Engine> Links for Process<E> {
    fn register_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot> {
        self.alive()?;
        let Process { tables: Tables { local, links }, engine, .. } = self;
        LinkTable::check_shape(local, shape)?;
        engine.add_inbox(local, shape)?;
        Ok(links.add_inbox(local, shape))
    }

    fn deregister_inbox(&mut self, inbox: InboxSlot) -> Result<()> {
        self.alive()?;
        let Process { tables: Tables { local, links }, engine, .. } = self;
        links.remove_inbox(local, inbox)?;
        engine.remove_inbox(local, inbox);
        Ok(())
    }

    fn open(&mut self, inbox: InboxSlot, ring: usize, peer: Pid, peer_ring: usize) -> Result<Link> {
        self.alive()?;
        let Process { tables, engine, .. } = self;
        let opening = tables.links.may_open(&tables.local, inbox, ring, peer, peer_ring)?;
        let opened = engine.open(tables, opening);
        let opened = self.ended(opened)?;
        self.on_links(Progress)?;
        Ok(opened)
    }

    fn close(&mut self, link: Link) -> Result<()> {
        self.alive()?;
        self.on_links(Close(link))
    }

    #[inline]
    #[track_caller]
    fn send(
        &mut self,
        link: Link,
        src: Slot,
        src_offset: usize,
        bytes: usize,
        travel: Travel,
    ) -> Result<()> {
        self.alive()?;
        let lends_parts = self.engine.lends_parts();
        let put = Put { link, src, offset: src_offset, bytes, travel, lends_parts };
        self.on_links(put).at_caller()
    }

    #[track_caller]
    fn offer(&mut self, link: Link, slot: Slot, offset: usize, bytes: usize) -> Result<u64> {
        // What is offered after a failure would never be taken back.
        self.alive()?;
        self.on_links(Offer { link, slot, offset, bytes }).at_caller()
    }

    fn landing_pays_from(&self, link: Link) -> Result<usize> {
        let Tables { local, links } = &self.tables;
        links.get(local, link).map(|link| self.engine.landing_pays_from(link))
    }

    fn longest_part(&self, link: Link) -> Result<usize> {
        let Tables { local, links } = &self.tables;
        links.get(local, link).map(|link| link.shape.longest_part(self.engine.lends_parts()))
    }

    fn post(&mut self) -> Result<()> {
        self.poll(Awaited::FlushedOn(&[])).map(|_| ())
    }

    #[inline]
    fn expect(&mut self, messages: &[Expect]) -> Result<()> {
        self.alive()?;
        let Process { tables: Tables { local, links }, engine, .. } = self;
        links.expect(local, messages, |link| engine.released(link))
    }

    fn poll(&mut self, awaited: Awaited<'_>) -> Result<bool> {
        self.alive()?;
        self.on_links(Poll(awaited))
    }

    #[inline]
    fn arrival(&self, link: Link, nth: u64) -> Result<Arrival> {
        let Tables { local, links } = &self.tables;
        links.readable(local, link, nth).map(|link| self.engine.arrival(link, nth))
    }

    fn awaited(&self, link: Link) -> Result<u64> {
        let Tables { local, links } = &self.tables;
        links.get(local, link).map(|link| link.incoming.awaited)
    }

    fn hold(&mut self, link: Link, nth: u64) -> Result<()> {
        let Tables { local, links } = &mut self.tables;
        links.hold(local, link, nth)
    }

    #[inline]
    fn release(&mut self, link: Link, nth: u64) -> Result<()> {
        let Process { tables: Tables { local, links }, engine, .. } = self;
        links.release(local, link, nth, false).map(|link| engine.released(link))
    }

    #[inline]
    fn release_held(&mut self, link: Link, nth: u64) -> Result<()> {
        let Process { tables: Tables { local, links }, engine, .. } = self;
        links.release(local, link, nth, true).map(|link| engine.released(link))
    }
}

impl<E: Engine> Runtime for Process<E> {
    type Board = E::Board;

    fn leave(&mut self, how: Leaving) -> Result<()> {
        let left = self.leave_as(how);
        // Not before: what panics on the way is a failure, which `drop` tells the others.
        self.is_outside = true;
        if self.engine.maker().is_here() {
            self.engine.leave(&mut self.tables, self.dead.is_some());
        }
        left
    }

    fn abandon(&mut self, slot: GlobalSlot, block: usize) {
        self.tables.local.slots.abandon(slot, block);
    }

    #[inline]
    fn abandoned_block(&mut self) -> Option<usize> {
        self.tables.local.slots.abandoned_block()
    }

    fn strict(&self) -> bool {
        self.engine.strict()
    }

    #[track_caller]
    fn reserve(&mut self, slots: usize, requests: usize) -> Result<()> {
        self.tables.local.reserve(&mut self.engine.room(), slots, requests)
    }

    fn suspend(&mut self) -> Result<()> {
        self.tables.local.suspend()
    }

    fn restore(&mut self) {
        self.tables.local.restore();
    }

    fn consult<R>(
        &mut self,
        wait: Consult<'_>,
        found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        self.alive()?;
        self.on_links(ConsultBoard { wait, found })
    }

    fn enter(&mut self, call: Call) {
        self.tables.links.enter(call);
    }

    #[inline]
    fn sync_in_call(&mut self, attr: SyncAttr<'_>, values: Option<&dyn CallValues>) -> Result<()> {
        let awaited = match attr {
            SyncAttr::Default | SyncAttr::NoConflict => return self.full_sync(attr),
            SyncAttr::Expected(messages) => Awaited::Messages(messages),
            SyncAttr::Flush => Awaited::Flushed,
        };
        self.expect(if let Awaited::Messages(messages) = awaited { messages } else { &[] })?;
        self.on_links(WaitFor { awaited, values })
    }

    fn fail(&mut self, error: Error) -> Error {
        self.die_of(error)
    }

    fn now(&self) -> Duration {
        self.engine.now()
    }

    fn board(&self) -> E::Board {
        self.engine.board(&self.tables.local)
    }

    fn memory_is_quiet(&self) -> bool {
        self.engine.memory_is_quiet()
    }
}
