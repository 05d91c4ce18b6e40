//! The engine of one process of a section on nodes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lpf_core::arrivals::{Arrival, InboxShape, InboxSlot, Link};
use lpf_core::board::{Board, MemoryBoard, Record, Topic};
use lpf_core::process::Maker;
use lpf_core::runtime::links::{Ends, OpenLink, Opening};
use lpf_core::runtime::{
    Announced, Engine, LinkCall, LocalState, Process, Purpose, Room, Section, Summary, Tables,
};
use lpf_core::{Args, Error, Machine, Pid, Result, Runtime, SyncAttr};
use lpf_pthreads::ThreadEngine;

use crate::links::{End, Within};
use crate::node::Node;

/// The engine of one thread of a node; processes of `N` connect the nodes.
#[derive(Debug)]
pub struct Hybrid<N: Engine> {
    pub(crate) threads: ThreadEngine,
    /// The node, if the section has others.
    pub(crate) node: Option<Arc<Node<N>>>,
    /// The links to threads of other nodes.
    pub(crate) ends: Ends<End>,
    /// Inboxes that this thread has added.
    pub(crate) inboxes: usize,
    /// From the clock of threads to that of `N`.
    clock: Duration,
}

impl<N: Engine + 'static> Hybrid<N> {
    /// A thread of a node.
    pub(crate) fn of(threads: ThreadEngine, node: Option<Arc<Node<N>>>) -> Self {
        let now = threads.now();
        let clock = node.as_ref().map_or(now, |node| node.process().engine().now());
        Hybrid {
            clock: clock.saturating_sub(now),
            threads,
            node,
            ends: Ends::default(),
            inboxes: 0,
        }
    }

    /// What the engine between nodes gives, if the section has other nodes.
    pub fn between<R>(&self, f: impl FnOnce(&N) -> R) -> Option<R> {
        self.node.as_ref().map(|node| f(node.process().engine()))
    }

    /// A thread of a section inside one node.
    fn alone(process: Process<ThreadEngine>) -> Process<Self> {
        process.map(|threads| Hybrid::of(threads, None))
    }
}

// SAFETY: inside a node, the threads' engine keeps the promises. Between nodes, that of `N` does for the node's process, in
// ranges that are checked against the slots of the node's threads; it carries out requests while all threads of the node
// wait in a barrier of the same sync, and not after a failed one. Links between nodes are links of `N`, to and from memory of
// slots that this process keeps until they are flushed or awaited. A process that gives up makes the node's process give up.
unsafe impl<N: Engine + 'static> Engine for Hybrid<N> {
    type Board = HybridBoard<N::Board>;

    #[inline]
    fn maker(&self) -> Maker {
        self.threads.maker()
    }

    fn strict(&self) -> bool {
        self.threads.strict()
    }

    fn machine(&self, local: &LocalState) -> Machine {
        let inside = self.threads.machine(local);
        match &self.node {
            None => inside,
            Some(node) => {
                let parameters = inside.parameters().clone();
                Machine::new(node.room, inside.free_p(), local.nprocs, parameters)
            }
        }
    }

    fn now(&self) -> Duration {
        self.threads.now() + self.clock
    }

    fn board(&self, local: &LocalState) -> Self::Board {
        match &self.node {
            None => HybridBoard::Inside(self.threads.board(local)),
            Some(node) => HybridBoard::Between(node.process().engine().board(local)),
        }
    }

    fn memory_is_quiet(&self) -> bool {
        self.node.as_ref().is_none_or(|node| node.process().memory_is_quiet())
    }

    fn room(&mut self) -> impl Room + '_ {
        Larger(self)
    }

    #[inline]
    fn meet(
        &mut self,
        tables: &mut Tables,
        purpose: Purpose,
        attr: SyncAttr<'_>,
    ) -> Result<Announced> {
        match self.node.clone() {
            None => self.threads.meet(tables, purpose, attr),
            Some(node) => self.meet_on(&node, tables, purpose, attr),
        }
    }

    fn end_barrier(&mut self, tables: &mut Tables, purpose: Purpose) -> Result<()> {
        self.threads.end_barrier(tables, purpose)
    }

    #[inline]
    fn lends_memory(&self) -> bool {
        true
    }

    /// The node's process has checked for all.
    fn check_superstep(&mut self, tables: &mut Tables) -> Result<()> {
        match self.node {
            None => self.threads.check_superstep(tables),
            Some(_) => Ok(()),
        }
    }

    fn agreed(&self, local: &LocalState) -> Summary {
        let agreed = self.node.as_ref().and_then(|node| *node.agreed.lock());
        agreed.unwrap_or_else(|| self.threads.agreed(local))
    }

    #[inline]
    fn complete(
        &mut self,
        tables: &mut Tables,
        announced: Announced,
        found: Result<()>,
    ) -> Result<()> {
        self.threads.complete(tables, announced, found)
    }

    fn apply(&mut self, tables: &mut Tables, announced: Announced) -> Result<()> {
        if let Some(node) = self.node.as_ref().filter(|_| announced.has(Announced::RESIZED)) {
            node.show_slots(&tables.local);
        }
        self.threads.apply(tables, announced)
    }

    fn forget_abandoned(&mut self, local: &LocalState) {
        self.threads.forget_abandoned(local);
    }

    fn declare(&mut self, local: &LocalState, error: Error) -> Error {
        match &self.node {
            None => self.threads.declare(local, error),
            Some(node) => {
                let report = node.process().fail(error);
                self.threads.declare(local, report)
            }
        }
    }

    fn give_up(&mut self, tables: &mut Tables) {
        self.threads.give_up(tables);
    }

    fn exec<R>(
        &mut self,
        local: &LocalState,
        procs: Pid,
        args: Args<'_>,
        section: impl Section<Self>,
        own: impl FnOnce(Process<Self>, Args<'_>) -> Result<R>,
    ) -> Result<R> {
        let others = move |process, args: Args<'_>| section(Self::alone(process), args);
        self.threads
            .exec(local, procs, args, others, |process, args| own(Self::alone(process), args))
    }

    fn prepare_rehook(&mut self, local: &LocalState) -> Result<()> {
        if let Some(node) = self.node.as_ref().filter(|node| node.threads().first == local.pid) {
            node.process().prepare_rehook_as_node()?;
        }
        self.threads.prepare_rehook(local)
    }

    fn rehook(&mut self, local: &LocalState) -> Result<Process<Self>> {
        let node = self.node.as_ref().map(|node| node.fetch_inner());
        self.threads.rehook(local).map(|process| {
            if let Some(node) = &node {
                let outside: Weak<Node<N>> = Arc::downgrade(node);
                process.engine().see_outside(outside);
                node.show(&process);
            }
            process.map(|threads| Hybrid::of(threads, node))
        })
    }

    fn leave(&mut self, tables: &mut Tables, has_failed: bool) {
        self.threads.leave(tables, has_failed);
        if let Some(node) = &self.node {
            node.leave();
        }
    }

    fn add_inbox(&mut self, local: &LocalState, shape: InboxShape) -> Result<()> {
        self.add_both_inboxes(local, shape)
    }

    fn remove_inbox(&mut self, local: &LocalState, inbox: InboxSlot) {
        self.threads.remove_inbox(local, inbox);
    }

    fn open(&mut self, tables: &mut Tables, opening: Opening) -> Result<Link> {
        match self.node.clone().filter(|node| !node.has(opening.peer)) {
            None => self.threads.open(tables, opening),
            Some(node) => self.open_between(&node, tables, opening),
        }
    }

    #[inline]
    fn on_links<C: LinkCall>(&mut self, tables: &mut Tables, call: C) -> Result<C::Output> {
        let Hybrid { threads, node, ends, .. } = self;
        match node {
            None => threads.on_links(tables, call),
            Some(node) => threads.on_links(tables, Within { call, node, ends }),
        }
    }

    /// Parts between nodes are copied.
    #[inline]
    fn lends_parts(&self) -> bool {
        self.node.is_none()
    }

    fn landing_pays_from(&self, link: &OpenLink) -> usize {
        match self.ends.get(link) {
            None => self.threads.landing_pays_from(link),
            Some(_) => link.shape.cell_bytes.saturating_add(1),
        }
    }

    #[inline]
    fn arrival(&self, link: &OpenLink, nth: u64) -> Arrival {
        match (self.ends.get(link), &self.node) {
            (Some(end), Some(node)) => end.arrival(node, link, nth),
            _ => self.threads.arrival(link, nth),
        }
    }

    #[inline]
    fn released(&mut self, link: &mut OpenLink) {
        if self.ends.get(link).is_none() {
            self.threads.released(link);
        }
    }
}

/// Larger capacities, at both levels.
struct Larger<'a, N: Engine>(&'a mut Hybrid<N>);

impl<N: Engine + 'static> Room for Larger<'_, N> {
    fn for_slots(
        &mut self,
        local: &mut LocalState,
        slots: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        let Larger(Hybrid { threads, node, .. }) = self;
        let Some(node) = node else { return threads.room().for_slots(local, slots, reserve) };
        let most = node.process().residents().most_slots();
        if slots > most {
            return Err(local.refused("slots", usize::MAX));
        }
        let reserved = threads.room().for_slots(local, slots, reserve);
        // The table may have moved, even where more was refused.
        node.show_slots(local);
        reserved
    }

    fn for_requests(
        &mut self,
        local: &mut LocalState,
        requests: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        let Larger(Hybrid { threads, node, .. }) = self;
        if let Some(node) = node {
            let reserved = node.process().reserve_for_each(requests);
            reserved.map_err(|error| {
                Error::mitigable(local.pid, local.superstep, error.cause().clone())
            })?;
        }
        threads.room().for_requests(local, requests, reserve)
    }
}

/// The board of a section on nodes: that of `N`, or one in memory if the section is inside a node.
#[derive(Clone, Debug)]
pub enum HybridBoard<B> {
    /// Of threads of one node.
    Inside(MemoryBoard),
    /// Of all nodes.
    Between(B),
}

macro_rules! on_board {
    ($board:expr, $inside:ident => $result:expr) => {
        match $board {
            HybridBoard::Inside($inside) => $result,
            HybridBoard::Between($inside) => $result,
        }
    };
}

impl<B: Board> Board for HybridBoard<B> {
    fn max_record(&self) -> usize {
        on_board!(self, board => board.max_record())
    }

    fn is_in_one_process(&self) -> bool {
        on_board!(self, board => board.is_in_one_process())
    }

    fn now(&self) -> Duration {
        on_board!(self, board => board.now())
    }

    fn write(&self, topic: Topic, record: &[u8]) -> Result<()> {
        on_board!(self, board => board.write(topic, record))
    }

    fn read(&self, from: Pid, topic: Topic) -> Result<Option<Record>> {
        on_board!(self, board => board.read(from, topic))
    }

    fn read_all(&self, topic: Topic) -> Result<Vec<Option<Record>>> {
        on_board!(self, board => board.read_all(topic))
    }

    fn agree(&self, topic: Topic, record: &[u8]) -> Result<bool> {
        on_board!(self, board => board.agree(topic, record))
    }

    fn agreed(&self, topic: Topic) -> Result<Option<Vec<u8>>> {
        on_board!(self, board => board.agreed(topic))
    }
}
