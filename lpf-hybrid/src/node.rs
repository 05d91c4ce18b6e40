//! What the threads of a node share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use lpf_core::arrivals::InboxShape;
use lpf_core::runtime::links::LinkTable;
use lpf_core::runtime::{
    Carrier, Engine, LinkCall, LinkMedium, LocalState, Nodes, Process, Residents, Summary, Tables,
};
use lpf_core::waits::Status;
use lpf_core::{Cause, Error, Lpf, Pid, Result, Runtime};
use lpf_pthreads::{Outside, Threads};
use parking_lot::{Mutex, MutexGuard};

/// The node of a section as its threads share it.
#[derive(Debug)]
pub(crate) struct Node<N: Engine> {
    pub(crate) nodes: Nodes,
    /// The processes that all nodes have room for.
    pub(crate) room: Pid,
    /// Its number among the nodes.
    pub(crate) number: usize,
    process: Mutex<Process<N>>,
    /// What all nodes announced at the last barrier, and whether requests between them were carried out. Written by one
    /// thread between two barriers of the node.
    pub(crate) announced: AtomicU32,
    /// What all nodes agreed on at the last barrier with news. Written by one thread between two barriers of the node.
    pub(crate) agreed: Mutex<Option<Summary>>,
    inner: Mutex<Inner<N>>,
    /// Threads that have left.
    left: AtomicUsize,
    /// Inboxes that the process of `N` has.
    pub(crate) inboxes: Mutex<usize>,
    /// Whether a thread of this node is still in an inner context, which has the network.
    is_inside: Arc<AtomicBool>,
    /// That of the outer node, if this one is of an inner context. Dropped after the process, which gives the network back.
    _outer: Option<Inside>,
}

/// An inner context has the network until this is dropped.
#[derive(Debug)]
struct Inside(Arc<AtomicBool>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The node of a rehook.
#[derive(Debug)]
struct Inner<N: Engine> {
    /// From the barrier of the rehook until all threads have fetched it.
    next: Option<Arc<Node<N>>>,
    to_fetch: Pid,
}

/// The longest sleep of a thread that needs the network, while another one of its node is still in an inner context.
const NAP: Duration = Duration::from_micros(100);

impl<N: Engine> Node<N> {
    pub(crate) fn new(nodes: Nodes, room: Pid, number: usize, process: Process<N>) -> Arc<Self> {
        Self::within(nodes, room, number, process, None)
    }

    fn within(
        nodes: Nodes,
        room: Pid,
        number: usize,
        process: Process<N>,
        outer: Option<Inside>,
    ) -> Arc<Self> {
        Arc::new(Node {
            nodes,
            room,
            number,
            process: Mutex::new(process),
            announced: AtomicU32::new(0),
            agreed: Mutex::default(),
            inner: Mutex::new(Inner { next: None, to_fetch: 0 }),
            left: AtomicUsize::new(0),
            inboxes: Mutex::default(),
            is_inside: Arc::default(),
            _outer: outer,
        })
    }

    /// Its threads.
    pub(crate) fn threads(&self) -> lpf_core::runtime::Node {
        self.nodes.node(self.number)
    }

    /// Whether a process is a thread of this node.
    #[inline]
    pub(crate) fn has(&self, pid: Pid) -> bool {
        self.threads().has(pid)
    }

    /// The shape of the inbox of `N` beside an inbox of the threads.
    pub(crate) fn shape_between(&self, shape: InboxShape) -> InboxShape {
        InboxShape { rings: shape.rings.saturating_mul(self.nodes.most()), ..shape }
    }

    /// Its process of the engine between nodes. Held for one call, except by the thread that carries out the exchange of a
    /// full sync, when all others wait for it. Waits until all threads have left an inner context.
    #[inline]
    pub(crate) fn process(&self) -> MutexGuard<'_, Process<N>> {
        while self.has_inner() {
            std::thread::sleep(NAP);
        }
        self.process.lock()
    }

    /// As [`process`](Self::process), unless another thread has it: that one looks at the network for all; or the network.
    #[inline]
    pub(crate) fn try_process(&self) -> Option<MutexGuard<'_, Process<N>>> {
        if self.has_inner() { None } else { self.process.try_lock() }
    }

    /// Whether a thread of this node is still in an inner context.
    fn has_inner(&self) -> bool {
        self.is_inside.load(Ordering::Acquire)
    }

    /// The node of a rehook, for each thread to fetch once.
    pub(crate) fn begin_inner(&self, inner: Process<N>) {
        self.is_inside.store(true, Ordering::Release);
        let outer = Some(Inside(self.is_inside.clone()));
        let next = Self::within(self.nodes.clone(), self.room, self.number, inner, outer);
        *self.inner.lock() = Inner { next: Some(next), to_fetch: self.threads().processes };
    }

    /// As a thread fetches it, after the barrier of the rehook.
    pub(crate) fn fetch_inner(&self) -> Arc<Node<N>> {
        let mut inner = self.inner.lock();
        inner.to_fetch -= 1;
        let next = if inner.to_fetch == 0 { inner.next.take() } else { inner.next.clone() };
        next.expect("the first thread has made it before the last barrier")
    }

    /// Residents like those of this node, for a section of the same processes.
    pub(crate) fn residents(&self, is_checked: bool) -> Residents {
        let mut residents = Residents::new(self.nodes.clone(), self.number);
        if is_checked {
            residents.checks.resize_with(residents.processes(), Default::default);
        }
        residents
    }

    /// The global slots of a thread have moved, or there are more.
    pub(crate) fn show_slots(&self, local: &LocalState) {
        let seat = self.threads().seat(local.pid);
        self.process().residents().show_slots(seat, local.slots.global_place());
    }

    /// What the node shows of a thread: its checks in checked mode, and its state.
    pub(crate) fn show(&self, process: &Threads) {
        // Each thread would give the same.
        let _ = self.process().residents().statuses.set(process.engine().statuses());
        if let Some(checks) = process.checks() {
            let seat = self.threads().seat(process.pid());
            self.process().residents().checks[seat] = checks.clone();
        }
    }

    /// No thread has begun: the other nodes learn why.
    pub(crate) fn fail_to_begin(&self, error: &Error) {
        if self.left.load(Ordering::Acquire) == 0 {
            let cause = Cause::Returned { message: error.to_string() };
            self.process().fail(Error::fatal(self.threads().first, 0, cause));
        }
    }

    /// The time limit of a superstep, which is the same at both levels.
    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.process().on_node_links(TimeLimit).ok().flatten()
    }

    /// What all processes do, as far as the engine between nodes finds it in a moment.
    pub(crate) fn statuses(&self) -> Vec<Option<Status>> {
        let all = AllStatuses(self.nodes.processes());
        self.process().on_node_links(all).unwrap_or_default()
    }

    /// A thread has left the section; the last one leaves for the node.
    pub(crate) fn leave(&self) {
        if self.left.fetch_add(1, Ordering::AcqRel) + 1 == self.threads().processes {
            self.process().leave_as_node();
        }
    }
}

impl<N: Engine> Outside for Node<N> {
    fn look(&self) -> Option<Error> {
        // A thread that has the process looks itself.
        let mut process = self.try_process()?;
        if let Some(failure) = process.failure_of_node() {
            return Some(failure.clone());
        }
        process.on_node_links(Look).unwrap_or_else(Some)
    }

    fn published(&self) {
        // A thread that has the process for long waits for all, and publishes for all.
        if let Some(mut process) = self.try_process() {
            // A failure shows in the wait.
            let _ = process.on_node_links(Publish);
        }
    }
}

/// The threads of a node have published what they do; the engine between nodes may have to pass it on.
struct Publish;

impl LinkCall for Publish {
    type Output = ();

    fn run<M: LinkMedium>(self, medium: &mut M, _tables: &mut Tables) -> Result<()> {
        medium.publish(Status::default());
        Ok(())
    }
}

/// The time limit of a superstep.
struct TimeLimit;

impl LinkCall for TimeLimit {
    type Output = Option<Duration>;

    fn run<M: LinkMedium>(self, medium: &mut M, _tables: &mut Tables) -> Result<Option<Duration>> {
        Ok(medium.limit())
    }
}

/// What all processes do.
struct AllStatuses(Pid);

impl LinkCall for AllStatuses {
    type Output = Vec<Option<Status>>;

    fn run<M: LinkMedium>(self, medium: &mut M, _tables: &mut Tables) -> Result<Self::Output> {
        Ok((0..self.0).map(medium.statuses()).collect())
    }
}

/// What a process of another node does, if the engine between nodes knows it at once.
pub(crate) struct StatusOf(pub(crate) Pid);

impl LinkCall for StatusOf {
    type Output = Option<Status>;

    fn run<M: LinkMedium>(self, medium: &mut M, _tables: &mut Tables) -> Result<Option<Status>> {
        Ok(medium.status_at_node(self.0))
    }
}

/// A look at the network between nodes: moves what can move, and gives the failure of the section, if there is one.
pub(crate) struct Look;

impl LinkCall for Look {
    type Output = Option<Error>;

    fn run<M: LinkMedium>(self, medium: &mut M, tables: &mut Tables) -> Result<Option<Error>> {
        medium.look_again();
        if let Some(failure) = medium.failure() {
            return Ok(Some(failure));
        }
        let Tables { local, links } = tables;
        let mut carrier = medium.carrier();
        let looked = carrier.look().and_then(|()| hear(&mut carrier, links));
        looked.map_err(|stop| carrier.error(local, stop))?;
        Ok(None)
    }
}

fn hear<C: Carrier>(carrier: &mut C, links: &mut LinkTable) -> lpf_core::runtime::Stopped<C, ()> {
    carrier.hear(links)
}
