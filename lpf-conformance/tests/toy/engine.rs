//! The engine of one process.

use std::sync::Arc;
use std::time::Duration;

use lpf_conformance::PROCS;
use lpf_core::arrivals::{Arrival, InboxShape, Link};
use lpf_core::board::MemoryBoard;
use lpf_core::machine::{Growth, Parameters};
use lpf_core::process::Maker;
use lpf_core::runtime::links::{Ends, OpenLink, Opening};
use lpf_core::runtime::{
    Announced, Engine, ForBarrier, LinkCall, LocalState, Process, Purpose, Section, Shown, Summary,
    Tables, guarded, wait,
};
use lpf_core::{Args, Error, Machine, Pid, Result, SyncAttr, settings};

use crate::links::{End, Links, here};
use crate::section::{self, Shared};

/// A kind of announcement: some process has requests, or all check theirs.
const REQUESTS: u32 = Announced::ENGINE;

/// One process of a section.
pub(crate) struct Toy {
    pub(crate) shared: Arc<Shared>,
    /// What all processes announced at the last barrier.
    pub(crate) all: Summary,
    pub(crate) ends: Ends<End>,
    /// Processors that an exec from here may use.
    pub(crate) free: Pid,
}

impl Toy {
    fn links(&mut self, tables: &Tables) -> Links<'_> {
        let Toy { shared, ends, .. } = self;
        let pid = tables.local.pid;
        Links { shared, ends, pid, seen: 0, is_long: false }
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
        let mut at = ForBarrier { tables, purpose, missing };
        let agreed = |late| shared.lock().agreed(number, late);
        let waited = wait(&mut self.links(tables), &mut at, |_, _| Ok(agreed(None)?.is_some()));
        Ok(agreed(waited.err())?.expect("the wait has seen it complete"))
    }
    // ANCHOR_END: meet
}

// SAFETY: requests are carried out between the two barriers of a full sync, on ranges that are checked there, and no
// process leaves the second barrier before all have arrived. A first barrier at which a process is missing is never
// complete. Sources of messages are read inside the call that sends them, and their owner writes offers inside its wait. A
// cell is made for one message, and is not written again.
unsafe impl Engine for Toy {
    type Board = MemoryBoard;

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
        self.shared.board.board(local.pid, local.nprocs)
    }
    // ANCHOR_END: facts

    // ANCHOR: sync
    fn meet(&mut self, tables: &mut Tables, why: Purpose, _: SyncAttr<'_>) -> Result<Announced> {
        self.all = guarded(|| self.announce(tables, why))?;
        self.all.agree_on_purpose(&tables.local)?;
        Ok(Announced(self.all.announced().0 | self.all.kinds.0 & REQUESTS))
    }

    fn complete(&mut self, tables: &mut Tables, _: Announced, found: Result<()>) -> Result<()> {
        let Tables { local, .. } = tables;
        let shown: Vec<_> = self.shared.lock().shown.iter().flatten().cloned().collect();
        // SAFETY: between the two barriers. All processes have shown their requests and slots before the first one.
        let carry_out = |()| unsafe { Shown::carry_out(&shown, local, &self.shared.checks) };
        let found = found.and_then(carry_out).err();
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
        self.shared.fail(error)
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

    fn rehook(&mut self, local: &LocalState) -> Result<Process<Self>> {
        let inner = self.shared.inner();
        section::enter(&inner, local.pid, self.free).map_err(|refused| inner.fail(refused))
    }
    // ANCHOR_END: sections

    // ANCHOR: inboxes
    fn add_inbox(&mut self, local: &LocalState, shape: InboxShape) -> Result<()> {
        // A cell is made when it is filled. What could never be filled is refused here.
        let cells = shape.rings * shape.window as usize;
        let bytes = cells.saturating_mul(shape.cell_bytes);
        let room = Vec::<u8>::new().try_reserve_exact(bytes);
        room.map_err(|_| local.refused("an inbox", bytes))
    }

    fn apply(&mut self, tables: &mut Tables, _: Announced) -> Result<()> {
        self.shared.lock().check_read(tables, false)
    }

    fn open(&mut self, tables: &mut Tables, opening: Opening) -> Result<Link> {
        let Tables { local, links } = tables;
        let (link, open) = links.add(opening, true);
        let (name, sender) = here(local.pid, open);
        self.ends.add(open, End::default());
        self.shared.change(|state| {
            let ring = state.ring(name);
            (ring.opened_for, ring.released) = (Some(sender), 0);
        });
        Ok(link)
    }

    fn arrival(&self, link: &OpenLink, nth: u64) -> Arrival {
        let end = self.ends.of(link);
        end.taken[(nth - end.first) as usize].0
    }

    fn on_links<C: LinkCall>(&mut self, tables: &mut Tables, call: C) -> Result<C::Output> {
        call.run(&mut self.links(tables), tables)
    }
    // ANCHOR_END: inboxes
}
