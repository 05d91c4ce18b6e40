//! What threads supply to the one runtime.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use lpf_core::arrivals::{Arrival, InboxShape, InboxSlot, Link};
use lpf_core::board::MemoryBoard;
use lpf_core::process::Maker;
use lpf_core::runtime::links::{OpenLink, Opening};
use lpf_core::runtime::{
    Announced, Carrier, Engine, LinkCall, LocalState, Purpose, Room, Section, Summary, Tables,
    guarded,
};
use lpf_core::{Args, Error, Machine, Pid, Result, SyncAttr};

use crate::changes::Larger;
use crate::links;
use crate::links::ring::InboxMemory;
use crate::long_wait::OnThread;
use crate::section;
use crate::threads::{ThreadEngine, Threads};

// SAFETY: the promises of `Engine`, one by one. Requests are executed before `complete` returns: between the two meetings
// of a full sync, or from a line's copy in the destination's own sync, on ranges checked against the slots of that time.
// In a meeting that failed no process copies. Before `give_up` returns, offers and loans are revoked, or their copy or
// reader is awaited. A cell is written only under a credit that its owner's release gave. Copies go through
// `lpf_core::copy`.
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
