//! A process of the engine between nodes, which stands for all processes of its node: what a hybrid engine drives.
//!
//! The hybrid engine passes it the requests for other nodes and what its processes announce together. All of its calls
//! are made by one process of the node at a time. A *fatal* error has ended the node's part of the section when it
//! is returned, and all nodes know it.

use std::mem::ManuallyDrop;
use std::ptr::read;

use super::engine::{Announced, Engine};
use super::link_calls::LinkCall;
use super::links::{LinkTable, OpenLink, Opening};
use super::process::Process;
use super::residents::{Residents, Together};
use super::tables::Tables;
use super::{LocalState, Purpose, Summary};
use crate::arrivals::{Arrival, InboxShape, Link};
use crate::attr::SyncAttr;
use crate::check::SharedChecks;
use crate::error::{Error, Result};
use crate::request::Way;
use crate::slot::SlotTable;

impl<E: Engine> Process<E> {
    /// This process as the node of others. Nothing of it is registered, queued or open any more.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused; the section fails then.
    pub fn into_node(self, residents: Residents) -> Result<Self> {
        let LocalState { pid, nprocs, .. } = self.tables.local;
        let checks = (!residents.checks.is_empty()).then(SharedChecks::default);
        let mut local = LocalState::new(pid, nprocs, checks)?;
        local.residents = Some(Box::new(residents));
        let tables = Tables { local, links: LinkTable::default() };
        let process = ManuallyDrop::new(self);
        let Process { tables: former, engine, dead, is_outside } = &*process;
        // SAFETY: each field is moved out once: `process` is neither dropped nor used again.
        let (former, engine, dead) = unsafe { (read(former), read(engine), read(dead)) };
        drop(former);
        let mut node = Process { tables, engine, dead, is_outside: *is_outside };
        let Process { tables, engine, .. } = &mut node;
        engine.stand_for(&tables.local);
        Ok(node)
    }

    /// The processes that it stands for.
    ///
    /// # Panics
    /// If it is not a node.
    pub fn residents(&mut self) -> &mut Residents {
        self.tables.local.residents.as_mut().expect("this process is a node")
    }

    /// Room for this number of requests of each of its processes, and as many aimed at each.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, without any trace.
    pub fn reserve_for_each(&mut self, requests: usize) -> Result<()> {
        let all = requests.saturating_mul(self.residents().processes());
        if all <= self.tables.local.changes.most().requests {
            return Ok(());
        }
        self.tables.local.resize_requests(&mut self.engine.room(), all)
    }

    /// Queues a request of one of its processes: `bytes` at `address` here, to or from `offset` of what `number` names at
    /// another node. The process has counted it.
    #[inline]
    pub fn forward(
        &mut self,
        way: Way,
        node: usize,
        (address, bytes): (*mut u8, usize),
        (number, offset): (usize, usize),
    ) {
        let queue = &mut self.tables.local.queue;
        let is_admitted = queue.admit(node);
        debug_assert!(is_admitted, "a node has room for the requests of all its processes");
        queue.push(way, node, address, bytes, number, offset);
    }

    /// The first barrier of all nodes, for which this one announces `together`.
    ///
    /// # Errors
    /// *Fatal*.
    pub fn meet_as_node(
        &mut self,
        together: Together,
        purpose: Purpose,
        attr: SyncAttr<'_>,
    ) -> Result<Announced> {
        let LocalState { changes, residents, .. } = &mut self.tables.local;
        changes.registered = together.kinds.has(Announced::REGISTERED);
        changes.resized = together.kinds.has(Announced::RESIZED);
        residents.as_mut().expect("this process is a node").announced = together;
        self.meet(purpose, attr)
    }

    /// What all nodes have announced.
    pub fn agreed_by_nodes(&self) -> Summary {
        self.agreed()
    }

    /// What follows the barrier of a full sync: the requests between nodes are carried out, by a process with these slots,
    /// unless `found` is an error.
    ///
    /// # Errors
    /// *Fatal*.
    pub fn complete_as_node(
        &mut self,
        announced: Announced,
        slots: &SlotTable,
        found: Result<()>,
    ) -> Result<()> {
        self.residents().show_first(Some(slots));
        let completed = self.complete_sync(announced, found);
        self.residents().show_first(None);
        completed
    }

    /// What follows a barrier for another purpose.
    ///
    /// # Errors
    /// *Fatal*.
    pub fn end_barrier_as_node(&mut self, purpose: Purpose) -> Result<()> {
        let ended = self.engine.end_barrier(&mut self.tables, purpose);
        self.ended(ended)
    }

    /// Before the barrier of a rehook.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused.
    pub fn prepare_rehook_as_node(&mut self) -> Result<()> {
        self.engine.prepare_rehook(&self.tables.local)
    }

    /// The node in the inner section, after the barrier, with the same processes.
    ///
    /// # Errors
    /// As [`Engine::rehook`].
    pub fn rehook_as_node(&mut self, residents: Residents) -> Result<Self> {
        let inner = self.engine.rehook(&self.tables.local);
        let inner = inner.and_then(|inner| inner.into_node(residents));
        self.ended(inner)
    }

    /// The node leaves the section: all of its processes have.
    pub fn leave_as_node(&mut self) {
        self.is_outside = true;
        if self.engine.maker().is_here() {
            self.engine.leave(&mut self.tables, self.dead.is_some());
        }
    }

    /// Memory for the next inbox, with the rings of all processes of a node.
    ///
    /// # Errors
    /// As [`Engine::add_inbox`].
    pub fn add_inbox_as_node(&mut self, shape: InboxShape) -> Result<()> {
        let Tables { local, links } = &mut self.tables;
        self.engine.add_inbox(local, shape)?;
        links.add_inbox(local, shape);
        Ok(())
    }

    /// Opens a link between processes of two nodes.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_as_node(&mut self, opening: Opening) -> Result<Link> {
        self.alive()?;
        let opening = Opening { is_withheld: true, ..opening };
        let opened = self.engine.open(&mut self.tables, opening);
        self.ended(opened)
    }

    /// Carries out a call on the links of this node's processes.
    ///
    /// # Errors
    /// Those of the call.
    #[inline]
    pub fn on_node_links<C: LinkCall>(&mut self, call: C) -> Result<C::Output> {
        self.alive()?;
        self.on_links(call)
    }

    /// A message of a link between nodes that was awaited and is not released; `bring` gives the link its counts.
    ///
    /// # Errors
    /// *Misuse* if the link is not open.
    pub fn arrival_at_node(
        &mut self,
        link: Link,
        nth: u64,
        bring: impl FnOnce(&mut OpenLink),
    ) -> Result<Arrival> {
        let Process { tables: Tables { local, links }, engine, .. } = self;
        let open = links.get_mut(local, link)?;
        bring(open);
        Ok(engine.arrival(open, nth))
    }

    /// The failure that has ended this node's part of the section.
    pub fn failure_of_node(&self) -> Option<&Error> {
        self.dead.as_ref()
    }
}
