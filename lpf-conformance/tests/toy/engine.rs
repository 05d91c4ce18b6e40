//! The engine of one process.

use std::sync::Arc;
use std::time::Duration;

use lpf_conformance::PROCS;
use lpf_core::arrivals::{Arrival, InboxShape, InboxSlot, Link};
use lpf_core::board::MemoryBoard;
use lpf_core::machine::{Growth, Parameters};
use lpf_core::process::Maker;
use lpf_core::runtime::links::{Ends, LinkTable, OpenLink};
use lpf_core::runtime::{
    Announced, Destination, Engine, ForBarrier, LinkCall, LocalState, Process, Purpose, Section,
    Shown, Summary, Tables, guarded, wait,
};
use lpf_core::{Args, Error, Machine, Pid, Result, SyncAttr, settings};

use crate::links::{End, Links, here};
use crate::section::{self, Shared};

/// A kind of announcement: some process has requests, or all check theirs.
const REQUESTS: u32 = Announced::ENGINE;

/// One process of a section.
pub(crate) struct Toy {
    shared: Arc<Shared>,
    /// What all processes announced at the last barrier.
    all: Summary,
    ends: Ends<End>,
    /// Processors that an exec from here may use.
    free: Pid,
}

impl Toy {
    pub(crate) fn new(shared: Arc<Shared>, local: &LocalState, free: Pid) -> Self {
        let all = Summary::of(local, Purpose::Sync);
        Toy { shared, all, ends: Ends::default(), free }
    }

    fn links(&mut self, tables: &Tables) -> Links<'_> {
        let Toy { shared, ends, .. } = self;
        let pid = tables.local.pid;
        Links { shared, ends, pid, is_at_barrier: false, seen: 0, is_long: false }
    }

    // ANCHOR: meet
    /// Announces what this process has, and waits for the others.
    fn announce(&mut self, tables: &mut Tables, purpose: Purpose) -> Result<Summary> {
        let mut mine = Summary::of(&tables.local, purpose);
        let Tables { local, .. } = &mut *tables;
        if purpose == Purpose::Sync && (local.queue.used() > 0 || local.is_checked()) {
            mine.kinds.0 |= REQUESTS;
        }
        let shown = (purpose == Purpose::Sync).then(|| Arc::new(Shown::of(local)));
        let number = self.shared.change(|state| -> Result<u64> {
            state.failure.clone().map_or(Ok(()), Err)?;
            state.shown[local.pid] = shown;
            Ok(state.arrive(local.pid, mine))
        })?;
        let shared = self.shared.clone();
        let missing = || shared.lock().arrived.iter().position(|&at| at < number);
        let missing = || missing();
        let mut at = ForBarrier { tables, purpose, missing };
        let mut medium = Links { is_at_barrier: true, ..self.links(tables) };
        let waited = wait(&mut medium, &mut at, |_, _| shared.lock().is_complete(number));
        shared.agreed(number, waited.err())
    }

    /// Phases 2 and 3: everything that is aimed at this process's memory.
    fn carry_out(&self, local: &mut LocalState) -> Result<()> {
        let (pid, made) = (local.pid, local.queue.used());
        let shown: Vec<_> = self.shared.lock().shown.iter().flatten().cloned().collect();
        let checks = |origin: Pid| self.shared.checks[origin].clone();
        let mut destination = Destination::new(local, made, &checks);
        // SAFETY: between the two barriers. All processes have shown their requests and slots before the first one.
        unsafe {
            let slots = |of: Pid| shown[of].slots();
            destination.carry_out(|_, from| shown[from].aimed(pid), slots)?;
        }
        destination.check_load()
    }
    // ANCHOR_END: meet
}

// SAFETY: requests are carried out between the two barriers of a full sync, on ranges that are checked there, and no
// process leaves the second barrier before all have arrived. A first barrier at which a process is missing is never
// complete. Sources of messages are read inside the call that sends them, and their owner writes offers inside its wait. A
// cell is made for one message, and is not written again.
unsafe impl Engine for Toy {
    type Board = MemoryBoard;
    type Prepared = ();

    // ANCHOR: facts
    fn maker(&self) -> Maker {
        self.shared.maker
    }

    fn strict(&self) -> bool {
        self.shared.mode.strict
    }

    fn machine(&self, local: &LocalState) -> Machine {
        let parameters = Arc::new(Parameters::guess(Growth::SharedMemory));
        Machine::new(PROCS, self.free, local.nprocs, parameters).on_cores(settings::cores())
    }

    fn now(&self) -> Duration {
        section::now()
    }

    fn board(&self, local: &LocalState) -> MemoryBoard {
        self.shared.board.board(local.pid)
    }
    // ANCHOR_END: facts

    // ANCHOR: sync
    fn meet(&mut self, tables: &mut Tables, why: Purpose, _: SyncAttr<'_>) -> Result<Announced> {
        self.all = guarded(|| self.announce(tables, why))?;
        self.all.agree_on_purpose(tables.local.superstep)?;
        Ok(Announced(self.all.announced().0 | self.all.kinds.0 & REQUESTS))
    }

    fn complete(&mut self, tables: &mut Tables, _: Announced, found: Result<()>) -> Result<()> {
        let Tables { local, .. } = tables;
        let found = found.and_then(|()| self.carry_out(local)).err();
        // Whatever was found: the others may still copy from this process's memory.
        let number = self.shared.change(|state| {
            state.found = state.found.take().or(found);
            state.arrive(local.pid, Summary::of(local, Purpose::Sync))
        });
        self.shared.wait_for_all(number);
        self.shared.lock().found.clone().map_or(Ok(()), Err)
    }

    fn lends_memory(&self) -> bool {
        true
    }

    fn end_barrier(&mut self, tables: &mut Tables, purpose: Purpose) -> Result<()> {
        let is_end = purpose == Purpose::Count;
        if is_end { self.shared.lock().check_read(tables, true) } else { Ok(()) }
    }

    fn check_superstep(&mut self, tables: &mut Tables) -> Result<()> {
        tables.local.check_shared(self.shared.checks.iter())
    }

    fn agreed(&self, _local: &LocalState) -> Summary {
        self.all
    }

    fn declare(&mut self, _local: &LocalState, error: Error) -> Error {
        if self.shared.maker.is_here() { self.shared.fail(error) } else { error }
    }

    /// No other process ever writes to what this one has offered.
    fn give_up(&mut self, _tables: &mut Tables) {}
    // ANCHOR_END: sync

    // ANCHOR: sections
    fn exec<R>(
        &mut self,
        _local: &LocalState,
        procs: Pid,
        args: Args<'_>,
        section: impl Section<Self>,
        own: impl FnOnce(Process<Self>, Args<'_>) -> Result<R>,
    ) -> Result<R> {
        section::exec(self.shared.mode, procs, self.free, args, section, own)
    }

    fn prepare_rehook(&mut self, _local: &LocalState) -> Result<()> {
        Ok(())
    }

    fn rehook(&mut self, local: &LocalState, (): ()) -> Result<Process<Self>> {
        let inner = self.shared.inner();
        section::enter(&inner, local.pid, self.free).map_err(|refused| inner.fail(refused))
    }
    // ANCHOR_END: sections

    // ANCHOR: inboxes
    fn add_inbox(&mut self, tables: &mut Tables, shape: InboxShape) -> Result<InboxSlot> {
        let Tables { local, links } = tables;
        LinkTable::check_shape(local, shape)?;
        // A cell is made when it is filled. What could never be filled is refused here.
        let cells = shape.rings * shape.window as usize;
        let bytes = cells.saturating_mul(shape.cell_bytes);
        let room = Vec::<u8>::new().try_reserve_exact(bytes);
        room.map_err(|_| local.refused("an inbox", bytes))?;
        Ok(links.add_inbox(local, shape))
    }

    fn remove_inbox(&mut self, tables: &mut Tables, inbox: InboxSlot) -> Result<()> {
        tables.links.remove_inbox(&mut tables.local, inbox)
    }

    fn apply(&mut self, tables: &mut Tables, _: Announced) -> Result<()> {
        self.shared.lock().check_read(tables, false)
    }

    fn open(
        &mut self,
        tables: &mut Tables,
        inbox: InboxSlot,
        ring: usize,
        peer: Pid,
        peer_ring: usize,
    ) -> Result<Link> {
        let Tables { local, links } = tables;
        let shape = links.may_open(local, inbox, ring, peer, peer_ring)?;
        self.shared.change(|state| {
            let own = state.ring((local.pid, inbox.number(), ring));
            if own.opened_for.is_some() {
                return Err(LinkTable::ring_is_taken(local, inbox, ring));
            }
            let (link, open) = links.add(shape, inbox, ring, peer, peer_ring, true);
            (own.opened_for, own.released) = (Some(here(local.pid, open).1), 0);
            self.ends.add(open, End::default());
            Ok(link)
        })
    }

    fn arrival(&self, link: &OpenLink, nth: u64) -> Arrival {
        let end = self.ends.of(link);
        end.taken[(nth - end.first) as usize].0
    }
    // ANCHOR_END: inboxes

    fn on_links<C: LinkCall>(&mut self, tables: &mut Tables, call: C) -> Result<C::Output> {
        call.run(&mut self.links(tables), tables)
    }
}
