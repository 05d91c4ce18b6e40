//! The engine of programs: any of those that are built in, chosen at run time.

#![allow(unsafe_code)]

use std::time::Duration;

use lpf_control::plane::ControlPlane;
use lpf_core::arrivals::{Arrival, InboxShape, InboxSlot, Link};
use lpf_core::process::Maker;
use lpf_core::runtime::links::{OpenLink, Opening};
use lpf_core::runtime::{
    Announced, Engine, LinkCall, LocalState, Process, Purpose, Room, Section, Summary, Tables,
};
use lpf_core::{Args, Error, Machine, Pid, Result, SyncAttr, run_section};
use lpf_hybrid::Hybrid;
use lpf_messages::{Messages, Traffic};
use lpf_pthreads::ThreadEngine;
use lpf_tcp::sockets::Sockets;

pub use self::board::AnyBoard;
pub(crate) use self::job::AnyJob;
use crate::Context;

mod board;
mod job;

/// One of the engines that are built in.
///
/// A call through it costs one branch more than a call of the engine inside. Put, get and registration of memory do not
/// reach an engine.
#[derive(Debug)]
pub enum AnyEngine {
    /// Shared memory.
    Threads(ThreadEngine),
    /// Messages over TCP.
    Tcp(Box<Messages<Sockets<ControlPlane>>>),
    /// Messages over MPI.
    #[cfg(feature = "mpi")]
    Mpi(Box<Messages<lpf_mpi::Mpi<ControlPlane>>>),
    /// Threads inside a node, messages over TCP between nodes.
    HybridTcp(Box<Hybrid<Messages<Sockets<ControlPlane>>>>),
    /// Threads inside a node, messages over MPI between nodes.
    #[cfg(feature = "mpi")]
    HybridMpi(Box<Hybrid<Messages<lpf_mpi::Mpi<ControlPlane>>>>),
}

impl AnyEngine {
    /// The messages that this process has sent, if it sends any.
    pub fn traffic(&self) -> Option<Traffic> {
        match self {
            AnyEngine::Threads(_) => None,
            AnyEngine::Tcp(engine) => Some(engine.traffic()),
            #[cfg(feature = "mpi")]
            AnyEngine::Mpi(engine) => Some(engine.traffic()),
            AnyEngine::HybridTcp(engine) => engine.between(Messages::traffic),
            #[cfg(feature = "mpi")]
            AnyEngine::HybridMpi(engine) => engine.between(Messages::traffic),
        }
    }
}

impl From<ThreadEngine> for AnyEngine {
    fn from(engine: ThreadEngine) -> Self {
        AnyEngine::Threads(engine)
    }
}

impl From<Messages<Sockets<ControlPlane>>> for AnyEngine {
    fn from(engine: Messages<Sockets<ControlPlane>>) -> Self {
        AnyEngine::Tcp(Box::new(engine))
    }
}

#[cfg(feature = "mpi")]
impl From<Messages<lpf_mpi::Mpi<ControlPlane>>> for AnyEngine {
    fn from(engine: Messages<lpf_mpi::Mpi<ControlPlane>>) -> Self {
        AnyEngine::Mpi(Box::new(engine))
    }
}

impl From<Hybrid<Messages<Sockets<ControlPlane>>>> for AnyEngine {
    fn from(engine: Hybrid<Messages<Sockets<ControlPlane>>>) -> Self {
        AnyEngine::HybridTcp(Box::new(engine))
    }
}

#[cfg(feature = "mpi")]
impl From<Hybrid<Messages<lpf_mpi::Mpi<ControlPlane>>>> for AnyEngine {
    fn from(engine: Hybrid<Messages<lpf_mpi::Mpi<ControlPlane>>>) -> Self {
        AnyEngine::HybridMpi(Box::new(engine))
    }
}

/// Runs `f` as one process of a section.
pub(crate) fn run<E, F, R>(process: Process<E>, f: F) -> Result<R>
where
    E: Engine + Into<AnyEngine>,
    F: for<'s> FnOnce(&mut Context<'s>) -> Result<R>,
{
    run_section(process.map(Into::into), f)
}

/// Evaluates an expression for the engine inside, whichever it is.
macro_rules! inside {
    ($any:expr, $engine:ident => $result:expr) => {
        match $any {
            AnyEngine::Threads($engine) => $result,
            AnyEngine::Tcp($engine) => $result,
            #[cfg(feature = "mpi")]
            AnyEngine::Mpi($engine) => $result,
            AnyEngine::HybridTcp($engine) => $result,
            #[cfg(feature = "mpi")]
            AnyEngine::HybridMpi($engine) => $result,
        }
    };
}

// SAFETY: each method is that of the engine inside, which keeps the promise; a process has the same engine inside from
// its beginning to its end, and all processes of a section have the same kind.
unsafe impl Engine for AnyEngine {
    type Board = AnyBoard;

    #[inline]
    fn maker(&self) -> Maker {
        inside!(self, engine => engine.maker())
    }

    fn strict(&self) -> bool {
        inside!(self, engine => engine.strict())
    }

    fn now(&self) -> Duration {
        inside!(self, engine => engine.now())
    }

    fn machine(&self, local: &LocalState) -> Machine {
        inside!(self, engine => engine.machine(local))
    }

    fn board(&self, local: &LocalState) -> AnyBoard {
        inside!(self, engine => engine.board(local).into())
    }

    fn memory_is_quiet(&self) -> bool {
        inside!(self, engine => engine.memory_is_quiet())
    }

    fn room(&mut self) -> impl Room + '_ {
        AnyRoom(self)
    }

    #[inline]
    fn meet(
        &mut self,
        tables: &mut Tables,
        purpose: Purpose,
        attr: SyncAttr<'_>,
    ) -> Result<Announced> {
        inside!(self, engine => engine.meet(tables, purpose, attr))
    }

    #[inline]
    fn end_barrier(&mut self, tables: &mut Tables, purpose: Purpose) -> Result<()> {
        inside!(self, engine => engine.end_barrier(tables, purpose))
    }

    #[inline]
    fn lends_memory(&self) -> bool {
        inside!(self, engine => engine.lends_memory())
    }

    fn check_superstep(&mut self, tables: &mut Tables) -> Result<()> {
        inside!(self, engine => engine.check_superstep(tables))
    }

    fn agreed(&self, local: &LocalState) -> Summary {
        inside!(self, engine => engine.agreed(local))
    }

    #[inline]
    fn complete(
        &mut self,
        tables: &mut Tables,
        announced: Announced,
        found: Result<()>,
    ) -> Result<()> {
        inside!(self, engine => engine.complete(tables, announced, found))
    }

    fn apply(&mut self, tables: &mut Tables, announced: Announced) -> Result<()> {
        inside!(self, engine => engine.apply(tables, announced))
    }

    fn forget_abandoned(&mut self, local: &LocalState) {
        inside!(self, engine => engine.forget_abandoned(local));
    }

    #[inline]
    fn end_superstep(&mut self, superstep: u64) {
        inside!(self, engine => engine.end_superstep(superstep));
    }

    fn declare(&mut self, local: &LocalState, error: Error) -> Error {
        inside!(self, engine => engine.declare(local, error))
    }

    fn give_up(&mut self, tables: &mut Tables) {
        inside!(self, engine => engine.give_up(tables));
    }

    fn exec<R>(
        &mut self,
        local: &LocalState,
        procs: Pid,
        args: Args<'_>,
        section: impl Section<Self>,
        own: impl FnOnce(Process<Self>, Args<'_>) -> Result<R>,
    ) -> Result<R> {
        inside!(self, engine => engine.exec(
            local,
            procs,
            args,
            move |process, args| section(process.map(AnyEngine::from), args),
            |process, args| own(process.map(AnyEngine::from), args),
        ))
    }

    fn prepare_rehook(&mut self, local: &LocalState) -> Result<()> {
        inside!(self, engine => engine.prepare_rehook(local))
    }

    fn rehook(&mut self, local: &LocalState) -> Result<Process<Self>> {
        inside!(self, engine => engine.rehook(local).map(|process| process.map(AnyEngine::from)))
    }

    fn leave(&mut self, tables: &mut Tables, has_failed: bool) {
        inside!(self, engine => engine.leave(tables, has_failed));
    }

    fn add_inbox(&mut self, local: &LocalState, shape: InboxShape) -> Result<()> {
        inside!(self, engine => engine.add_inbox(local, shape))
    }

    fn remove_inbox(&mut self, local: &LocalState, inbox: InboxSlot) {
        inside!(self, engine => engine.remove_inbox(local, inbox));
    }

    fn open(&mut self, tables: &mut Tables, opening: Opening) -> Result<Link> {
        inside!(self, engine => engine.open(tables, opening))
    }

    #[inline]
    fn on_links<C: LinkCall>(&mut self, tables: &mut Tables, call: C) -> Result<C::Output> {
        inside!(self, engine => engine.on_links(tables, call))
    }

    #[inline]
    fn lends_parts(&self) -> bool {
        inside!(self, engine => engine.lends_parts())
    }

    fn landing_pays_from(&self, link: &OpenLink) -> usize {
        inside!(self, engine => engine.landing_pays_from(link))
    }

    #[inline]
    fn arrival(&self, link: &OpenLink, nth: u64) -> Arrival {
        inside!(self, engine => engine.arrival(link, nth))
    }

    #[inline]
    fn released(&mut self, link: &mut OpenLink) {
        inside!(self, engine => engine.released(link));
    }
}

/// The room of the engine inside.
struct AnyRoom<'a>(&'a mut AnyEngine);

impl Room for AnyRoom<'_> {
    fn for_slots(
        &mut self,
        local: &mut LocalState,
        slots: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        inside!(self.0, engine => engine.room().for_slots(local, slots, reserve))
    }

    fn for_requests(
        &mut self,
        local: &mut LocalState,
        requests: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        inside!(self.0, engine => engine.room().for_requests(local, requests, reserve))
    }
}
