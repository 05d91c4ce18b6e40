//! The backend object: one process of a section on threads.

use std::sync::Arc;

use lpf_core::arrivals::{Arrival, Call, Expect, InboxShape, InboxSlot, Link, Travel};
use lpf_core::error::AtCaller;
use lpf_core::request::Way;
use lpf_core::runtime::LocalState;
use lpf_core::waits::Consult;
use lpf_core::{
    Args, Awaited, Cause, Context, Error, GlobalSlot, Leaving, Links, LocalSlot, Lpf, Machine, Pid,
    Program, Registrant, Result, Runtime, SharedMemory, Slot, SyncAttr,
};

use crate::board::ThreadBoard;
use crate::changes::Larger;
use crate::comm::{Comm, Peer, Rows};
use crate::links::{LinkTable, Removed};

/// One process of a section: a thread.
#[derive(Debug)]
pub struct Threads {
    pub(crate) local: LocalState,
    pub(crate) rows: Rows,
    /// Meetings entered, whatever for; first ones only.
    pub(crate) meeting: u64,
    /// Calls of the barrier.
    pub(crate) epoch: u32,
    /// The least capacity that any process asked for, as the sync under way found it.
    pub(crate) agreed_requests: usize,
    pub(crate) comm: Arc<Comm>,
    pub(crate) links: LinkTable,
    pub(crate) removed: Removed,
    /// Processors that an exec from here may use.
    pub(crate) free: Pid,
    /// Set by the first fatal error of this context.
    pub(crate) dead: Option<Error>,
    pub(crate) left: bool,
}

impl Threads {
    /// Process `pid` of the section behind `comm`, with `free` processors for its own exec.
    pub(crate) fn new(comm: Arc<Comm>, pid: Pid, free: Pid) -> Result<Self> {
        let nprocs = comm.processes() as Pid;
        let checks = comm.environment.check.then(|| comm.peers[pid as usize].checks.clone());
        Ok(Threads {
            local: LocalState::new(pid, nprocs, checks)?,
            rows: Rows::default(),
            meeting: 0,
            epoch: comm.barrier.epoch(pid as usize),
            agreed_requests: 0,
            links: LinkTable::new(pid),
            removed: Removed::new(),
            free,
            dead: None,
            left: true,
            comm,
        })
    }

    /// What this process shows the others.
    #[inline]
    pub(crate) fn own_peer(&self) -> &Peer {
        &self.comm.peers[self.local.pid as usize]
    }

    /// What a resize changes.
    fn with_room(&mut self) -> (&mut LocalState, Larger<'_>) {
        let Threads { local, comm, rows, .. } = self;
        (local, Larger { comm, rows })
    }

    /// Says that this process will not reach `meeting`, and ends its part.
    #[cold]
    pub(crate) fn fail_before(&mut self, meeting: u64, error: Error) -> Error {
        self.comm.failure.declare(meeting, error);
        self.comm.ring_all();
        self.die()
    }

    /// Fails the section in a child that was forked from a process of it: none of the others is there.
    #[inline]
    pub(crate) fn check_process(&mut self) -> Result<()> {
        match self.comm.maker.check(self.local.pid, self.local.superstep) {
            Ok(()) => Ok(()),
            Err(forked) => Err(self.fail_before(self.meeting + 1, forked)),
        }
    }

    /// Ends this process's part of a failed section: from here on nobody touches its memory.
    #[cold]
    pub(crate) fn die(&mut self) -> Error {
        if self.comm.maker.is_here() {
            self.revoke_offers();
            self.end_loans();
        }
        let unknown = || self.local.misuse(Cause::Protocol("the section failed".into()));
        let report = self.comm.failure.report().unwrap_or_else(unknown);
        self.dead.get_or_insert(report).clone()
    }
}

// SAFETY: requests are executed between the two meetings of a full sync (or from a line's copy, in
// the destination's own sync) on ranges checked against slots of that time, so before `sync`
// returns; a failed meeting is never complete, so nobody copies in it, and offers and loans are revoked,
// or their copy or reader awaited, before fatal is returned (`die`); a cell is written only under a
// credit that its owner's release gave; and copies go through lpf_core::copy.
unsafe impl Lpf for Threads {
    #[inline]
    fn pid(&self) -> Pid {
        self.local.pid
    }

    #[inline]
    fn nprocs(&self) -> Pid {
        self.local.nprocs
    }

    #[inline]
    fn superstep(&self) -> u64 {
        self.local.superstep
    }

    fn exec<P: Program>(&mut self, procs: Pid, program: P, args: Args<'_>) -> Result<()> {
        self.exec_closure(procs, args, |ctx, args| program.run(ctx, args))
    }

    fn rehook<F>(&mut self, args: Args<'_>, f: F) -> Result<()>
    where
        F: for<'r> FnOnce(&mut Context<'r, Self>, Args<'_>) -> Result<()>,
    {
        let inner = self.enter_rehook()?;
        lpf_core::run_section(inner, args, f)
    }

    #[track_caller]
    unsafe fn register_local(
        &mut self,
        base: *mut u8,
        bytes: usize,
        registrant: Registrant,
    ) -> Result<LocalSlot> {
        self.local.register_local(base, bytes, registrant)
    }

    #[track_caller]
    unsafe fn register_global(
        &mut self,
        base: *mut u8,
        bytes: usize,
        shape: u64,
    ) -> Result<GlobalSlot> {
        self.local.register_global(base, bytes, shape)
    }

    #[track_caller]
    fn deregister(&mut self, slot: Slot) -> Result<()> {
        self.links.check_unused(&self.local, slot).at_caller()?;
        self.local.deregister(slot)
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
        self.local.request(Way::Put, src, src_offset, to, dst, dst_offset, bytes)
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
        self.local.request(Way::Get, dst, dst_offset, from, src, src_offset, bytes)
    }

    #[inline]
    fn sync(&mut self, attr: SyncAttr<'_>) -> Result<()> {
        match attr {
            SyncAttr::Default | SyncAttr::NoConflict => self.full_sync(),
            SyncAttr::Expected(messages) => {
                self.expect(messages)?;
                self.wait_for(Awaited::Messages(messages))
            }
            SyncAttr::Flush => self.flush(),
        }
    }

    fn probe(&self) -> Machine {
        let environment = &self.comm.environment;
        let parameters = environment.parameters.clone();
        Machine::new(environment.procs, self.free, self.local.nprocs, parameters)
            .on_cores(environment.cores)
    }

    #[track_caller]
    fn resize_memory_register(&mut self, slots: usize) -> Result<()> {
        let (local, mut room) = self.with_room();
        local.resize_slots(&mut room, slots)
    }

    #[track_caller]
    fn resize_message_queue(&mut self, requests: usize) -> Result<()> {
        let (local, mut room) = self.with_room();
        local.resize_requests(&mut room, requests)
    }
}

impl Links for Threads {
    fn register_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot> {
        self.add_inbox(shape)
    }

    fn deregister_inbox(&mut self, inbox: InboxSlot) -> Result<()> {
        self.remove_inbox(inbox)
    }

    fn open(&mut self, inbox: InboxSlot, ring: u32, peer: Pid, peer_ring: u32) -> Result<Link> {
        self.open_link(inbox, ring, peer, peer_ring)
    }

    fn close(&mut self, link: Link) -> Result<()> {
        self.close_link(link)
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
        self.put_on(link, src, src_offset, bytes, travel).at_caller()
    }

    #[track_caller]
    fn offer(&mut self, link: Link, slot: Slot, offset: usize, bytes: usize) -> Result<u64> {
        self.offer_on(link, slot, offset, bytes).at_caller()
    }

    fn landing_pays_from(&self, link: Link) -> Result<usize> {
        self.landing_pays_from_on(link)
    }

    fn longest_part(&self, link: Link) -> Result<usize> {
        self.longest_part_on(link)
    }

    fn post(&mut self) -> Result<()> {
        self.progress()
    }

    fn expect(&mut self, messages: &[Expect]) -> Result<()> {
        self.expect_messages(messages)
    }

    fn poll(&mut self, awaited: Awaited<'_>) -> Result<bool> {
        let is_there = self.poll_links(awaited)?;
        if !is_there {
            // As in a sync: who polls may be waiting.
            self.report_releases();
            self.check_process()?;
        }
        Ok(is_there)
    }

    fn arrival(&self, link: Link, nth: u64) -> Result<Arrival> {
        self.arrived(link, nth)
    }

    fn awaited(&self, link: Link) -> Result<u64> {
        self.awaited_on(link)
    }

    fn hold(&mut self, link: Link, nth: u64) -> Result<()> {
        self.links.hold(&self.local, link, nth)
    }

    fn release(&mut self, link: Link, nth: u64) -> Result<()> {
        self.release_message(link, nth, false)
    }

    fn release_held(&mut self, link: Link, nth: u64) -> Result<()> {
        self.release_message(link, nth, true)
    }
}

impl Runtime for Threads {
    type Board = ThreadBoard;

    fn leave(&mut self, how: Leaving) -> Result<()> {
        self.leave_section(how)
    }

    fn abandon(&mut self, slot: GlobalSlot, block: usize) {
        self.local.slots.abandon(slot, block);
    }

    #[inline]
    fn abandoned_block(&mut self) -> Option<usize> {
        self.local.slots.abandoned_block()
    }

    fn strict(&self) -> bool {
        self.comm.environment.strict
    }

    #[track_caller]
    fn reserve(&mut self, slots: usize, requests: usize) -> Result<()> {
        let (local, mut room) = self.with_room();
        local.reserve(&mut room, slots, requests)
    }

    fn suspend(&mut self) -> Result<()> {
        self.local.suspend()
    }

    fn restore(&mut self) {
        self.local.restore();
    }

    fn consult<R>(
        &mut self,
        wait: Consult<'_>,
        found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        self.consult_board(wait, found)
    }

    fn enter(&mut self, call: Call) {
        self.links.call = call;
    }

    fn fail(&mut self, error: Error) -> Error {
        self.fail_before(self.meeting + 1, error)
    }

    fn board(&self) -> ThreadBoard {
        ThreadBoard::new(self.comm.clone(), self.local.pid)
    }
}

impl SharedMemory for Threads {
    fn exec_closure<F>(&mut self, procs: Pid, args: Args<'_>, f: F) -> Result<()>
    where
        F: for<'n> Fn(&mut Context<'n, Self>, Args<'_>) -> Result<()> + Sync,
    {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        let (procs, nested) = (procs.min(self.free), self.local.nprocs > 1);
        crate::section::exec(&self.comm.environment, procs, self.free, nested, args, f)
    }
}
