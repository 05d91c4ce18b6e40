//! The backend object: one process of a section on threads, and its engine.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use lpf_core::arrivals::{Arrival, InboxShape, InboxSlot, Link};
use lpf_core::board::MemoryBoard;
use lpf_core::process::Maker;
use lpf_core::runtime::links::{Ends, OpenLink, Opening};
use lpf_core::runtime::{
    Announced, Carrier, Engine, LinkCall, LocalState, Process, Purpose, Room, Section, Summary,
    Tables, guarded,
};
use lpf_core::{Args, Cause, Error, Machine, Pid, Result, SyncAttr};

use crate::changes::Larger;
use crate::comm::{Comm, Peer, Rows};
use crate::links::ring::InboxMemory;
use crate::links::{self, End, Links, Removed};
use crate::long_wait::OnThread;
use crate::section::{self, Prepared};

/// One process of a section: a thread.
pub type Threads = Process<ThreadEngine>;

/// The engine of one thread: shared memory.
#[derive(Debug)]
pub struct ThreadEngine {
    pub(crate) rows: Rows,
    /// Meetings entered, whatever for; first ones only.
    pub(crate) meeting: u64,
    /// Calls of the barrier.
    pub(crate) epoch: u32,
    /// What all announced in the meeting under way, and what this process did.
    pub(crate) all: u32,
    pub(crate) mine: u32,
    pub(crate) comm: Arc<Comm>,
    pub(crate) ends: Ends<End>,
    pub(crate) removed: Removed,
    /// For the rehook that is about to begin.
    pub(crate) prepared: Option<Box<Prepared>>,
    /// Processors that an exec from here may use.
    pub(crate) free: Pid,
}

/// Process `pid` of the section behind `comm`, with `free` processors for its own exec.
pub(crate) fn process(comm: Arc<Comm>, pid: Pid, free: Pid) -> Result<Threads> {
    let nprocs = comm.processes();
    let checks = comm.peers[pid].checks.clone();
    Process::new(pid, nprocs, checks, ThreadEngine::new(comm, pid, free))
}

impl ThreadEngine {
    pub(crate) fn new(comm: Arc<Comm>, pid: Pid, free: Pid) -> Self {
        ThreadEngine {
            rows: Rows::default(),
            meeting: 0,
            epoch: comm.barrier.epoch(pid),
            all: 0,
            mine: 0,
            ends: Ends::default(),
            removed: Removed::new(),
            prepared: None,
            free,
            comm,
        }
    }

    /// What this process shows the others.
    #[inline]
    pub(crate) fn peer(&self, local: &LocalState) -> &Peer {
        &self.comm.peers[local.pid]
    }

    #[inline]
    pub(crate) fn links(&mut self) -> Links<'_> {
        Links { comm: &self.comm, ends: &mut self.ends }
    }

    /// Makes it known that this process does not come to `meeting`. A process that is late is a thread, which cannot be
    /// ended: so long as it goes on, the call that started the section does not return, and its error is not seen. So one
    /// line says it at once.
    #[cold]
    pub(crate) fn declare_for(&self, meeting: u64, error: Error) {
        let is_late = matches!(error.cause(), Cause::Late { .. });
        if self.comm.declare(meeting, error.clone()) && is_late && !cfg!(loom) {
            // Nothing else can be done about a standard error that is closed.
            let _ = writeln!(
                std::io::stderr(),
                "lpf: {error}; the section ends when this process returns"
            );
        }
        self.comm.ring_all();
    }
}

// SAFETY: requests are executed between the two meetings of a full sync (or from a line's copy, in
// the destination's own sync) on ranges checked against slots of that time, so before `complete`
// returns; a failed meeting is never complete, so nobody copies in it, and offers and loans are revoked,
// or their copy or reader awaited, before `give_up` returns; a cell is written only under a
// credit that its owner's release gave; and copies go through lpf_core::copy.
unsafe impl Engine for ThreadEngine {
    type Board = MemoryBoard;

    #[inline]
    fn maker(&self) -> Maker {
        self.comm.maker
    }

    fn strict(&self) -> bool {
        self.comm.environment.strict
    }

    fn machine(&self, local: &LocalState) -> Machine {
        let environment = &self.comm.environment;
        let parameters = environment.parameters.clone();
        Machine::new(environment.procs, self.free, local.nprocs, parameters)
            .on_cores(environment.cores)
    }

    fn now(&self) -> Duration {
        crate::sync::now()
    }

    fn board(&self, local: &LocalState) -> MemoryBoard {
        self.comm.board.board(local.pid)
    }

    fn room(&mut self) -> impl Room + '_ {
        Larger { comm: &self.comm, rows: &mut self.rows }
    }

    #[inline]
    fn meet(
        &mut self,
        tables: &mut Tables,
        purpose: Purpose,
        _attr: SyncAttr<'_>,
    ) -> Result<Announced> {
        guarded(|| self.meet_for(tables, purpose))
    }

    #[inline]
    fn end_barrier(&mut self, tables: &mut Tables, purpose: Purpose) -> Result<()> {
        if purpose == Purpose::Count { self.fail_if_unread(tables) } else { Ok(()) }
    }

    #[inline]
    fn lends_memory(&self) -> bool {
        true
    }

    fn check_superstep(&mut self, tables: &mut Tables) -> Result<()> {
        tables.local.check_shared(self.comm.peers.iter().flat_map(|peer| &peer.checks))
    }

    fn agreed(&self, local: &LocalState) -> Summary {
        self.comm.agreed(local)
    }

    #[inline]
    fn complete(
        &mut self,
        tables: &mut Tables,
        _announced: Announced,
        found: Result<()>,
    ) -> Result<()> {
        self.phases(tables, found)
    }

    fn apply(&mut self, tables: &mut Tables, announced: Announced) -> Result<()> {
        if announced.has(Announced::RESIZED) {
            self.peer(&tables.local).show_table(tables.local.slots.global_place());
        }
        self.let_go_of_removed(tables)
    }

    fn forget_abandoned(&mut self, local: &LocalState) {
        self.peer(local).abandoned.store(0, Relaxed);
    }

    fn declare(&mut self, local: &LocalState, error: Error) -> Error {
        self.declare_for(self.meeting + 1, error);
        self.comm.report(local)
    }

    fn give_up(&mut self, tables: &mut Tables) {
        links::revoke_offers(&tables.links, &self.ends);
        links::end_loans(&tables.links, &self.ends);
    }

    fn exec<R>(
        &mut self,
        local: &LocalState,
        procs: Pid,
        args: Args<'_>,
        section: impl Section<Self>,
        own: impl FnOnce(Threads, Args<'_>) -> Result<R>,
    ) -> Result<R> {
        let (procs, nested) = (procs.min(self.free), local.nprocs > 1);
        section::exec(&self.comm.environment, procs, self.free, nested, args, section, own)
    }

    fn prepare_rehook(&mut self, local: &LocalState) -> Result<()> {
        self.prepared = Some(Box::new(self.prepare_inner(local)?));
        Ok(())
    }

    fn rehook(&mut self, local: &LocalState) -> Result<Threads> {
        self.enter_inner(local)
    }

    fn add_inbox(&mut self, local: &LocalState, shape: InboxShape) -> Result<()> {
        let memory = InboxMemory::new(shape);
        let memory = memory.map_err(|bytes| local.refused("an inbox", bytes))?;
        self.peer(local).add_inbox(Arc::new(memory));
        Ok(())
    }

    fn remove_inbox(&mut self, local: &LocalState, inbox: InboxSlot) {
        let memory = self.peer(local).remove_inbox(inbox.number());
        self.removed.extend(memory.map(|memory| (inbox.number(), memory)));
    }

    fn open(&mut self, tables: &mut Tables, opening: Opening) -> Result<Link> {
        self.open_link(tables, opening)
    }

    #[inline]
    fn on_links<C: LinkCall>(&mut self, tables: &mut Tables, call: C) -> Result<C::Output> {
        call.run(&mut OnThread::new(self.links(), tables.local.pid), tables)
    }

    fn lends_parts(&self) -> bool {
        true
    }

    /// The sender writes to the place, and an offer costs no more than a message.
    fn landing_pays_from(&self, link: &OpenLink) -> usize {
        link.shape.cell_bytes.saturating_add(1).min(links::LANDING)
    }

    #[inline]
    fn arrival(&self, link: &OpenLink, nth: u64) -> Arrival {
        links::arrival(&self.ends, link, nth)
    }

    #[inline]
    fn released(&mut self, link: &mut OpenLink) {
        if links::must_return(&self.ends, link) {
            // Threads never fail at it.
            let _ = self.links().report(link);
        }
    }
}
