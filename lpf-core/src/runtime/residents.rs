//! The processes of a hybrid section that live in one process of the engine between nodes.
//!
//! To that engine a node is one process. Requests between nodes name a global slot by a number that holds the slot, the
//! process of the target node, and the process that made the request: so the target finds the memory, and errors name
//! processes, not nodes.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

use super::agreement::Registrations;
use super::engine::Announced;
use super::from_afar::{Counting, FromAfar};
use super::node::{Node, Nodes};
use crate::Pid;
use crate::arrivals::InboxShape;
use crate::check::SharedChecks;
use crate::slot::{Entry, SlotTable};
use crate::waits::{Status, Stream};

/// Slot numbers of engines have 24 bits. Those below this bound also hold the process that made the request.
const WITH_ORIGIN: usize = 1 << 23;

/// What a process of the engine between nodes keeps of the processes that live in it.
#[derive(Debug)]
pub struct Residents {
    nodes: Nodes,
    node: usize,
    /// The global slots of each, as it has shown them last.
    slots: Vec<(*const Entry, usize)>,
    /// By process, the requests of other nodes for it in this superstep.
    aimed: Vec<Counting>,
    /// The slots of the process that carries out an exchange for all, during the exchange.
    first: *const SlotTable,
    /// What checked mode keeps of each; empty without it.
    pub checks: Vec<SharedChecks>,
    /// What they have published of themselves, while they are in the section. They keep this node, so it does not keep
    /// them.
    pub statuses: Arc<OnceLock<Weak<dyn Statuses>>>,
    /// What they announce together.
    pub announced: Together,
}

// SAFETY: the addresses lead to tables of the node's processes, which do not move while this node is in a full sync, and are
// followed only there.
unsafe impl Send for Residents {}
// SAFETY: as above.
unsafe impl Sync for Residents {}

/// What the processes of a node have published of themselves.
pub trait Statuses: Debug + Send + Sync {
    /// The state of one of them.
    fn status(&self, pid: Pid) -> Status;
}

/// What the processes of a node announce at a barrier, if they announce the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Together {
    /// The kinds of announcements.
    pub kinds: Announced,
    /// Their least capacity for requests.
    pub requests: u64,
    /// The lowest and the highest of their collective registrations.
    pub registrations: [Registrations; 2],
    /// Their word for abandoned slots; 0 if they have different ones.
    pub abandoned: u64,
}

impl Residents {
    /// Those of node number `node`, without slots.
    pub fn new(nodes: Nodes, node: usize) -> Self {
        let Node { first, processes } = nodes.node(node);
        let registrations = Registrations { pid: first, ..Registrations::default() };
        Residents {
            aimed: (0..processes).map(|_| Counting::new(nodes.processes())).collect(),
            nodes,
            node,
            slots: vec![(std::ptr::null(), 0); processes],
            first: std::ptr::null(),
            checks: Vec::new(),
            statuses: Arc::default(),
            announced: Together { registrations: [registrations; 2], ..Together::default() },
        }
    }

    /// All nodes.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Their numbers.
    pub fn pids(&self) -> Range<Pid> {
        self.nodes.node(self.node).pids()
    }

    /// What one of them has published of itself.
    pub fn status(&self, pid: Pid) -> Option<Status> {
        let statuses = self.statuses.get().and_then(Weak::upgrade);
        statuses.map(|statuses| statuses.status(pid))
    }

    /// How many live here.
    pub fn processes(&self) -> Pid {
        self.slots.len()
    }

    /// Runs an exchange for all, with the slots of the process that carries it out.
    pub(super) fn show_first(&mut self, slots: Option<&SlotTable>) {
        self.first = slots.map_or(std::ptr::null(), std::ptr::from_ref);
    }

    /// The global slots of a process of this node have moved.
    pub fn show_slots(&mut self, seat: usize, slots: (*const Entry, usize)) {
        self.slots[seat] = slots;
    }

    /// The bytes of an element of a slot, which are the same at all processes.
    pub(super) fn element(&self, slot: usize) -> usize {
        // SAFETY: null, or a table that lives and does not change during the exchange under way.
        unsafe { self.first.as_ref() }.map_or(1, |slots| slots.element(slot))
    }

    /// The ring of this node's inbox in which the messages of a stream end: the rings of each process lie together.
    pub fn ring(&self, stream: &Stream, shape: InboxShape) -> usize {
        let seat = stream.to - self.nodes.node(self.node).first;
        seat * (shape.rings / self.nodes.most()) + stream.ring
    }

    /// The most slots of a process that have numbers.
    pub fn most_slots(&self) -> usize {
        WITH_ORIGIN / self.nodes.most()
    }

    /// The number of a slot at the process with seat `target` at its node, in a request of the one with seat `origin` here.
    #[inline]
    pub fn number(&self, slot: usize, [target, origin]: [usize; 2]) -> usize {
        let width = self.nodes.most();
        let there = slot * width + target;
        let whole = there * width + origin;
        if whole < WITH_ORIGIN { whole } else { WITH_ORIGIN + there }
    }

    /// The slot that a number holds, the seat at the node that it was made for, and that of the process that made it.
    fn split(&self, number: usize) -> (usize, usize, usize) {
        let width = self.nodes.most();
        let (there, origin) = match number.checked_sub(WITH_ORIGIN) {
            None => (number / width, number % width),
            Some(there) => (there, 0),
        };
        (there / width, there % width, origin)
    }

    /// The entry that a number names here, if there is one.
    pub(super) fn entry(&self, number: usize) -> Option<&Entry> {
        let (slot, seat, _) = self.split(number);
        let &(entries, len) = self.slots.get(seat)?;
        // SAFETY: the process has shown its table, of this length, and is in a full sync until the node has left it.
        let entry = (slot < len).then(|| unsafe { &*entries.add(slot) });
        entry.filter(|entry| entry.is_active())
    }

    /// The address of a slot of a process here.
    pub(super) fn base(&self, pid: Pid, slot: usize) -> Option<usize> {
        let (entries, len) = self.slots[self.nodes.node(self.node).seat(pid)];
        // SAFETY: as for `entry`.
        let entry = (slot < len).then(|| unsafe { &*entries.add(slot) });
        entry.filter(|entry| entry.is_active()).map(|entry| entry.base() as usize)
    }

    /// What a request of node `from` names: its process, the process here, and the slot.
    pub(super) fn names(&self, from: usize, number: usize) -> (Pid, Pid, usize) {
        let (slot, seat, origin) = self.split(number);
        (self.nodes.node(from).first + origin, self.nodes.node(self.node).first + seat, slot)
    }

    /// Counts requests of node `from` that name a slot here.
    #[inline]
    pub(super) fn count(&self, from: usize, number: usize, requests: usize) {
        let (_, seat, origin) = self.split(number);
        if let Some(aimed) = self.aimed.get(seat) {
            aimed.count(self.nodes.node(from).first + origin, requests as u32);
        }
    }

    /// The requests of other nodes for a process of this one in the superstep under way, which ends for it.
    pub fn take_aimed(&self, seat: usize) -> FromAfar {
        self.aimed[seat].take()
    }
}
