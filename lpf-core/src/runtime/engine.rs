//! What a backend supplies: the way that bytes, barriers and failures take between its processes.

use std::time::Duration;

use super::link_calls::LinkCall;
use super::links::{OpenLink, Opening};
use super::tables::Tables;
use super::{LocalState, Process, Purpose, Room, Summary, TablesOnly};
use crate::arrivals::{Arrival, InboxShape, InboxSlot, Link};
use crate::attr::SyncAttr;
use crate::board::Board;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::process::Maker;
use crate::{Args, Context, Pid, run_section};

/// What one process of a section runs, from its entry to its leaving.
///
/// Another process of the same build gets it by the name of its type, so it captures nothing.
pub trait Section<E: Engine>: Fn(Process<E>, Args<'_>) -> Result<()> + Copy + Send + Sync {}

impl<E, S> Section<E> for S
where
    E: Engine,
    S: Fn(Process<E>, Args<'_>) -> Result<()> + Copy + Send + Sync,
{
}

/// The section in which every process runs `f`, and drops its value.
pub fn section<E, F, R>(f: F) -> impl Section<E>
where
    E: Engine,
    F: for<'n> Fn(&mut Context<'n, Process<E>>, Args<'_>) -> Result<R> + Copy + Send + Sync,
{
    move |process, args| run_section(process, |ctx| f(ctx, args).map(drop))
}

/// Whether a section can have this number of processes.
///
/// # Errors
/// *Mitigable* for 0.
pub fn check_processes(procs: Pid) -> Result<()> {
    if procs > 0 {
        return Ok(());
    }
    Err(Error::setting("a section of 0 processes was asked for; the least is 1"))
}

/// The announcements of all processes at a barrier together, one bit for each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced(pub u32);

impl Announced {
    /// Global slots or inboxes were registered or deregistered.
    pub const REGISTERED: u32 = 1;
    /// A capacity changes.
    pub const RESIZED: u32 = 1 << 1;
    /// All processes may have abandoned the same slots.
    pub const ABANDONED: u32 = 1 << 2;
    /// This bit and the higher ones are the engine's own.
    pub const ENGINE: u32 = 1 << 3;

    /// Whether there is anything in it that [`Engine::agreed`] reports.
    #[inline]
    pub fn is_news(self) -> bool {
        self.has(Self::REGISTERED | Self::RESIZED | Self::ABANDONED)
    }

    /// Whether any of these bits is set.
    #[inline]
    pub fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }
}

/// The engine under one process of a section.
///
/// An engine gives facts; core decides, and words the errors. *Fatal* errors that an engine returns are declared by
/// [`Process`], unless the method says that it declares them itself: the report that stands is what the caller gets.
///
/// # Safety
/// The promises of [`Lpf`](crate::Lpf), in what concerns memory:
/// - only requests, puts on links and offers lead to reads and writes of other processes' memory, within ranges that were
///   checked against slots of that time;
/// - requests are carried out between the barrier and the return of [`complete`](Self::complete), and none is
///   after a barrier that failed;
/// - [`OpenLink::lent`] and [`OpenLink::in_flight`] report the memory that a link still reads
///   or may write;
/// - after [`give_up`](Self::give_up) and [`leave`](Self::leave) no other process touches this process's memory, or
///   [`memory_is_quiet`](Self::memory_is_quiet) is false.
pub unsafe trait Engine: Send + Sized {
    /// The registers beside the context.
    type Board: Board;

    // Facts.

    /// The process of the system that this engine belongs to: a forked child must not use it.
    fn maker(&self) -> Maker;

    /// As [`Runtime::strict`](crate::Runtime::strict).
    fn strict(&self) -> bool;

    /// As [`Lpf::probe`](crate::Lpf::probe).
    fn machine(&self, local: &LocalState) -> Machine;

    /// As [`Runtime::now`](crate::Runtime::now): the clock of this engine's waits, too.
    fn now(&self) -> Duration;

    /// As [`Runtime::board`](crate::Runtime::board).
    fn board(&self, local: &LocalState) -> Self::Board;

    /// As [`Runtime::memory_is_quiet`](crate::Runtime::memory_is_quiet).
    fn memory_is_quiet(&self) -> bool {
        true
    }

    /// The engine's part of larger capacities.
    fn room(&mut self) -> impl Room + '_ {
        TablesOnly
    }

    /// From here on this process stands for its [residents](LocalState::residents), the processes of a node, and each other
    /// one for those of its node. So do the failures, the board and the waits that the engine keeps.
    fn stand_for(&mut self, _local: &LocalState) {}

    // The barrier, and what follows it.

    /// Phase 1: announces this process's requests and changes, and waits until all processes have arrived for the same
    /// purpose. Returns what all announced.
    ///
    /// # Errors
    /// *Fatal* if the section failed, if it is hopeless that all arrive, or if they arrive for different purposes
    /// ([`mismatch`](super::mismatch)).
    fn meet(
        &mut self,
        tables: &mut Tables,
        purpose: Purpose,
        attr: SyncAttr<'_>,
    ) -> Result<Announced>;

    /// The end of a barrier after which there is nothing to carry out: a full sync in which no process announced
    /// anything, or another purpose. After [`Purpose::Count`] it fails if messages were sent to this process and not
    /// awaited.
    ///
    /// # Errors
    /// *Fatal*.
    fn end_barrier(&mut self, tables: &mut Tables, purpose: Purpose) -> Result<()>;

    /// Whether other processes copy from this one's memory between the barrier and the end of a full sync. Then a panic there
    /// ends the program ([`guarded`](super::guarded)).
    #[inline]
    fn lends_memory(&self) -> bool {
        false
    }

    /// In checked mode: hands the requests and registrations of all processes to
    /// [`LocalState::check_superstep`] or [`LocalState::check_shared`].
    ///
    /// # Errors
    /// Those of the check.
    fn check_superstep(&mut self, tables: &mut Tables) -> Result<()>;

    /// What all processes announced at the barrier: registrations, capacities, abandoned slots. Asked for only if there are
    /// such announcements, before [`complete`](Self::complete).
    fn agreed(&self, local: &LocalState) -> Summary;

    /// Phases 2 to 4: carries out all requests that concern this process, in some serial order, unless `found` is an
    /// error; the processes that depend on it fail then. When it returns, no request of this superstep touches this
    /// process's memory.
    ///
    /// # Errors
    /// *Fatal*: what was found, or what another process found.
    fn complete(
        &mut self,
        tables: &mut Tables,
        announced: Announced,
        found: Result<()>,
    ) -> Result<()>;

    /// Registrations and resizes came into force.
    ///
    /// # Errors
    /// *Fatal* if messages were sent into an inbox that was deregistered, and not awaited.
    fn apply(&mut self, tables: &mut Tables, announced: Announced) -> Result<()>;

    /// The slots that all processes have abandoned are gone.
    fn forget_abandoned(&mut self, _local: &LocalState) {}

    /// A superstep has ended.
    #[inline]
    fn end_superstep(&mut self, _superstep: u64) {}

    // Failure.

    /// Makes it known that this process comes to no further barrier, and why. The first report of a section stands, and
    /// is returned. Not called in a forked child.
    fn declare(&mut self, local: &LocalState, error: Error) -> Error;

    /// Ends this process's part of a failed section. Called once, and not in a forked child.
    fn give_up(&mut self, tables: &mut Tables);

    // Sections.

    /// As [`Lpf::exec`](crate::Lpf::exec): this process, which is process 0 of the new section, runs `own`, and the
    /// others run `section`. Returns the failure of the section, if it failed, else what `own` returned.
    ///
    /// # Errors
    /// As there.
    fn exec<R>(
        &mut self,
        local: &LocalState,
        procs: Pid,
        args: Args<'_>,
        section: impl Section<Self>,
        own: impl FnOnce(Process<Self>, Args<'_>) -> Result<R>,
    ) -> Result<R>;

    /// Gets ready for a rehook: reserves what may be refused, before the barrier.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused.
    fn prepare_rehook(&mut self, _local: &LocalState) -> Result<()> {
        Ok(())
    }

    /// This process of the inner section, after the barrier.
    ///
    /// # Errors
    /// *Fatal* for this section; *mitigable* if the inner one has failed because memory is refused.
    fn rehook(&mut self, local: &LocalState) -> Result<Process<Self>>;

    /// This process has left the section; after a failure if `has_failed`. Not called in a forked child.
    fn leave(&mut self, _tables: &mut Tables, _has_failed: bool) {}

    // Links.

    /// Memory for the next inbox, which core enters in the table. The n-th call makes inbox n, counted from 0; no number is
    /// used again.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, *misuse* if the network has no room for these rings.
    fn add_inbox(&mut self, local: &LocalState, shape: InboxShape) -> Result<()>;

    /// An inbox is out of the table. Its memory stays until the next full sync is over.
    fn remove_inbox(&mut self, _local: &LocalState, _inbox: InboxSlot) {}

    /// As [`Links::open`](crate::Links::open); core has checked the call.
    ///
    /// # Errors
    /// As there.
    fn open(&mut self, tables: &mut Tables, opening: Opening) -> Result<Link>;

    /// Carries out a call on the links of this process: `call.run` with what waits and carries here.
    ///
    /// # Errors
    /// Those of the call.
    fn on_links<C: LinkCall>(&mut self, tables: &mut Tables, call: C) -> Result<C::Output>;

    /// Whether the receiver reads puts in parts in the sender's memory. Then a part may have any length, else that of a
    /// cell.
    #[inline]
    fn lends_parts(&self) -> bool {
        false
    }

    /// As [`Links::landing_pays_from`](crate::Links::landing_pays_from), of an open link.
    fn landing_pays_from(&self, link: &OpenLink) -> usize {
        link.shape.cell_bytes.saturating_add(1)
    }

    /// A message that was awaited and is not released.
    fn arrival(&self, link: &OpenLink, nth: u64) -> Arrival;

    /// Messages of a link were released; the engine may report it at once.
    #[inline]
    fn released(&mut self, _link: &mut OpenLink) {}
}
