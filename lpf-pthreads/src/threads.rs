//! The backend object: one process of a section on threads, and its engine.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use lpf_core::arrivals::{Arrival, InboxShape, InboxSlot, Link, Travel};
use lpf_core::process::Maker;
use lpf_core::runtime::links::{Ends, OpenLink};
use lpf_core::runtime::{
    Announced, Carrier, Engine, LocalState, Process, Purpose, Registrations, Room, Section, Tables,
    carrier, guarded,
};
use lpf_core::waits::Consult;
use lpf_core::{Args, Awaited, Cause, Error, Machine, Pid, Result, Slot, SyncAttr};

use crate::board::ThreadBoard;
use crate::changes::Larger;
use crate::comm::{Comm, Peer, Rows};
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
    /// What all announced in the meeting under way, and whether this process's puts travelled in its line.
    pub(crate) all: u32,
    pub(crate) sent_payload: bool,
    pub(crate) comm: Arc<Comm>,
    pub(crate) ends: Ends<End>,
    pub(crate) removed: Removed,
    /// Processors that an exec from here may use.
    pub(crate) free: Pid,
}

/// Process `pid` of the section behind `comm`, with `free` processors for its own exec.
pub(crate) fn process(comm: Arc<Comm>, pid: Pid, free: Pid) -> Result<Threads> {
    let nprocs = comm.processes() as Pid;
    let checks = comm.environment.check.then(|| comm.peers[pid as usize].checks.clone());
    Process::new(pid, nprocs, checks, ThreadEngine::new(comm, pid, free))
}

impl ThreadEngine {
    pub(crate) fn new(comm: Arc<Comm>, pid: Pid, free: Pid) -> Self {
        ThreadEngine {
            rows: Rows::default(),
            meeting: 0,
            epoch: comm.barrier.epoch(pid as usize),
            all: 0,
            sent_payload: false,
            ends: Ends::default(),
            removed: Removed::new(),
            free,
            comm,
        }
    }

    /// What this process shows the others.
    #[inline]
    pub(crate) fn peer(&self, local: &LocalState) -> &Peer {
        &self.comm.peers[local.pid as usize]
    }

    #[inline]
    pub(crate) fn links(&mut self) -> Links<'_> {
        Links { comm: &self.comm, ends: &mut self.ends }
    }

    fn on_links(&mut self, tables: &Tables) -> OnThread<Links<'_>> {
        OnThread::new(self.links(), tables.local.pid)
    }

    /// Makes it known that this process does not come to `meeting`. A process that is late is a thread, which cannot be
    /// ended: so long as it goes on, the call that started the section does not return, and its error is not seen. So one
    /// line says it at once.
    #[cold]
    pub(crate) fn declare_for(&self, meeting: u64, error: Error) {
        let is_late = matches!(error.cause(), Cause::Late { .. });
        if self.comm.failure.declare(meeting, error.clone()) && is_late && !cfg!(loom) {
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
    type Board = ThreadBoard;
    type Prepared = Prepared;

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

    fn board(&self, local: &LocalState) -> ThreadBoard {
        ThreadBoard::new(self.comm.clone(), local.pid)
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
        self.check_requests(&tables.local)
    }

    fn registrations(&self) -> impl Iterator<Item = Registrations> {
        self.comm.registrations()
    }

    fn agreed_requests(&self) -> usize {
        self.comm.agreed_requests()
    }

    fn agrees_on_abandoned(&self, local: &LocalState) -> bool {
        self.comm.agrees_on_abandoned(local)
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

    fn prepare_rehook(&mut self, local: &LocalState) -> Result<Prepared> {
        self.prepare_inner(local)
    }

    fn rehook(&mut self, local: &LocalState, prepared: Prepared) -> Result<Threads> {
        self.enter_inner(local, prepared)
    }

    fn add_inbox(&mut self, tables: &mut Tables, shape: InboxShape) -> Result<InboxSlot> {
        self.new_inbox(tables, shape)
    }

    fn remove_inbox(&mut self, tables: &mut Tables, inbox: InboxSlot) -> Result<()> {
        tables.links.remove_inbox(&mut tables.local, inbox)?;
        let memory = self.peer(&tables.local).remove_inbox(inbox.number());
        self.removed.extend(memory.map(|memory| (inbox.number(), memory)));
        Ok(())
    }

    fn open(
        &mut self,
        tables: &mut Tables,
        inbox: InboxSlot,
        ring: u32,
        peer: Pid,
        peer_ring: u32,
    ) -> Result<Link> {
        self.open_link(tables, inbox, ring, peer, peer_ring)
    }

    fn close(&mut self, tables: &mut Tables, link: Link) -> Result<()> {
        carrier::close(&mut self.links(), tables, link)
    }

    #[inline]
    fn send(
        &mut self,
        tables: &mut Tables,
        link: Link,
        src: Slot,
        src_offset: usize,
        bytes: usize,
        travel: Travel,
    ) -> Result<()> {
        let links = &mut self.links();
        carrier::send(links, tables, link, src, src_offset, bytes, travel, |_| usize::MAX)
    }

    fn offer(
        &mut self,
        tables: &mut Tables,
        link: Link,
        slot: Slot,
        offset: usize,
        bytes: usize,
    ) -> Result<u64> {
        carrier::offer(&mut self.links(), tables, link, slot, offset, bytes)
    }

    /// The sender writes to the place, and an offer costs no more than a message.
    fn landing_pays_from(&self, link: &OpenLink) -> usize {
        link.shape.cell_bytes.saturating_add(1).min(links::LANDING)
    }

    /// Parts are read where they lie.
    fn longest_part(&self, _link: &OpenLink) -> usize {
        usize::MAX
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

    fn report_releases(&mut self, tables: &mut Tables) -> Result<()> {
        carrier::report_releases(&mut self.links(), tables)
    }

    fn poll(&mut self, tables: &mut Tables, awaited: Awaited<'_>) -> Result<bool> {
        carrier::poll(&mut self.on_links(tables), tables, awaited)
    }

    fn wait_for(&mut self, tables: &mut Tables, awaited: Awaited<'_>) -> Result<()> {
        carrier::wait_for(&mut self.on_links(tables), tables, awaited)
    }

    fn consult<R>(
        &mut self,
        tables: &mut Tables,
        wait: Consult<'_>,
        found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        let medium = &mut OnThread::at_board(self.links(), tables.local.pid);
        carrier::consult(medium, tables, wait, found)
    }
}
