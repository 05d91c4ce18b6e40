//! Waiting for the network: look, spin, yield, sleep; and see to it that every wait has an end.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use super::control::{Control, SectionId};
use super::transport::{Broken, Rank, Transport};
use super::wire::nonsense;
use lpf_core::Pid;
use lpf_core::error::{Cause, Error, Result};
use lpf_core::process::PerProcess;
use lpf_core::runtime::{Medium, Nodes, Residents, Statuses, Waiting, wait};
use lpf_core::wait::{Patience, Step};
use lpf_core::waits::Status;

/// The clock of this engine: the time since this process first asked.
pub fn now() -> Duration {
    static BEGAN: PerProcess<Instant> = PerProcess::inherited(Instant::now);
    BEGAN.get().elapsed()
}

/// The processes that a member stands for.
#[derive(Debug)]
struct AtNode {
    /// The section of the members.
    alone: SectionId,
    nodes: Nodes,
    pids: Range<Pid>,
    /// What they have published, once they have begun.
    statuses: Arc<OnceLock<Weak<dyn Statuses>>>,
}

/// The section as its waits see it.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) section: SectionId,
    pub(super) members: Box<[Rank]>,
    pub(super) pid: Pid,
    /// The processes that the members stand for, if they stand for nodes.
    node: Option<AtNode>,
    /// For a wait for one process, and for one for all.
    patience: Patience,
    patience_for_all: Patience,
    pub(super) timeout: Option<Duration>,
    /// The control plane's count of failures when it was last asked.
    seen: u64,
    /// Supersteps done, as the control plane sees them.
    pub(super) supersteps: Arc<AtomicU64>,
}

impl Watch {
    pub(super) fn new(
        section: SectionId,
        members: Box<[Rank]>,
        pid: Pid,
        [patience, patience_for_all]: [Patience; 2],
        timeout: Option<Duration>,
    ) -> Self {
        Watch {
            section,
            members,
            pid,
            node: None,
            patience,
            patience_for_all,
            timeout,
            seen: u64::MAX,
            supersteps: Arc::default(),
        }
    }

    /// From now on the members stand for nodes. The control plane knows the section by its processes, under another name.
    pub(super) fn stand_for<C: Control>(
        &mut self,
        control: &C,
        residents: &Residents,
        patience: [Patience; 2],
    ) {
        [self.patience, self.patience_for_all] = patience;
        let nodes = residents.nodes().clone();
        let members = (0..nodes.processes()).map(|pid| self.members[nodes.of(pid)]);
        let section = self.section.child(0, None);
        control.enter(section, &members.collect::<Vec<_>>());
        control.track(section, self.supersteps.clone());
        let statuses = residents.statuses.clone();
        self.node = Some(AtNode { alone: self.section, nodes, pids: residents.pids(), statuses });
        (self.section, self.seen) = (section, u64::MAX);
    }

    /// The sections that the control plane knows this one by.
    pub(super) fn sections(&self) -> impl Iterator<Item = SectionId> + use<> {
        let alone = self.node.as_ref().map(|node| node.alone);
        std::iter::once(self.section).chain(alone)
    }

    /// A process by the number of its member: the first one of a node.
    pub(super) fn known_as(&self, member: Pid) -> Pid {
        self.node.as_ref().map_or(member, |node| node.nodes.node(member).first)
    }

    /// The process of the section that has this rank.
    fn pid_of(&self, rank: Rank) -> Pid {
        let at = self.members.iter().position(|&member| member == rank);
        self.known_as(at.unwrap_or(self.pid))
    }

    /// The report that ends the section, if there is one. One load if nothing has happened.
    #[inline]
    pub(super) fn failure<C: Control>(&mut self, control: &C) -> Option<Error> {
        let failures = control.failures();
        if failures == self.seen {
            return None;
        }
        let report = control.failure(self.section);
        if report.is_none() {
            self.seen = failures;
        }
        report
    }

    /// Makes a broken connection the section's failure; the control plane may know better why.
    #[cold]
    pub(super) fn broken<C: Control>(&self, control: &C, superstep: u64, broken: Broken) -> Error {
        let pid = broken.peer.map_or(self.known_as(self.pid), |rank| self.pid_of(rank));
        let error = Error::fatal(pid, superstep, Cause::Died { reason: broken.reason });
        control.declare(self.section, error)
    }

    /// Makes an invalid message of a member the section's failure.
    #[cold]
    pub(super) fn invalid<C: Control>(&self, control: &C, superstep: u64, from: Pid) -> Error {
        control.declare(self.section, nonsense(self.known_as(from), superstep))
    }

    /// What ends a call that cannot go on.
    #[cold]
    pub(super) fn stopped<C: Control>(&self, control: &C, superstep: u64, stop: Stop) -> Error {
        match stop {
            Stop::Fatal(error) => control.declare(self.section, error),
            Stop::Broken(broken) => self.broken(control, superstep, broken),
            Stop::Invalid(from) => self.invalid(control, superstep, from),
        }
    }

    /// Waits until `done` says so.
    ///
    /// # Errors
    /// The section's failure, a broken connection, or that the wait was too long: declared, because there is no process yet
    /// that would do it while a hook begins.
    #[inline]
    pub(super) fn wait<T: Transport, W: Waiting>(
        &mut self,
        net: &mut T,
        what: &mut W,
        done: impl FnMut(&mut W, &mut T) -> std::result::Result<bool, Stop>,
    ) -> Result<()> {
        OnNetwork::new(self, net, ()).wait(what, done)
    }

    /// As [`wait`](Self::wait), for messages of all processes.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub(super) fn wait_for_all<T: Transport, W: Waiting>(
        &mut self,
        net: &mut T,
        what: &mut W,
        done: impl FnMut(&mut W, &mut T) -> std::result::Result<bool, Stop>,
    ) -> Result<()> {
        let patience = self.patience_for_all;
        OnNetwork { patience, ..OnNetwork::new(self, net, ()) }.wait(what, done)
    }
}

impl<T: Transport> OnNetwork<'_, T, ()> {
    #[inline]
    fn wait<W: Waiting>(
        mut self,
        what: &mut W,
        mut done: impl FnMut(&mut W, &mut T) -> std::result::Result<bool, Stop>,
    ) -> Result<()> {
        let waited = wait(&mut self, what, |what, OnNetwork { watch, net, .. }| {
            let superstep = what.superstep();
            done(what, net).map_err(|stop| watch.stopped(net.control(), superstep, stop))
        });
        waited.map_err(|error| self.net.control().declare(self.watch.section, error))
    }
}

/// A wait of more looks owes every report of its process. A report is a message more, so a shorter one does not.
const SHORT_WAIT: u32 = 32;

/// A process that waits for the network: for what is carried by `rings`, or in a meeting.
pub(super) struct OnNetwork<'a, T, R> {
    pub(super) watch: &'a mut Watch,
    pub(super) net: &'a mut T,
    pub(super) rings: R,
    patience: Patience,
    looks: u32,
}

impl<'a, T, R> OnNetwork<'a, T, R> {
    pub(super) fn new(watch: &'a mut Watch, net: &'a mut T, rings: R) -> Self {
        let patience = watch.patience;
        OnNetwork { watch, net, rings, patience, looks: 0 }
    }

    pub(super) fn is_long(&self) -> bool {
        self.looks >= SHORT_WAIT
    }
}

impl<T: Transport, R> Medium for OnNetwork<'_, T, R> {
    /// The control plane asks.
    const ASKS: bool = false;

    fn process(&self) -> (Pid, Pid) {
        (self.watch.pid, self.watch.members.len())
    }

    fn patience(&self) -> Patience {
        self.patience
    }

    fn limit(&self) -> Option<Duration> {
        self.watch.timeout
    }

    fn now(&self) -> Duration {
        now()
    }

    #[inline]
    fn look_again(&mut self) {
        self.looks = self.looks.saturating_add(1);
        self.net.look_again();
    }

    #[inline]
    fn failure(&mut self) -> Option<Error> {
        self.watch.failure(self.net.control())
    }

    fn is_node(&self) -> bool {
        self.watch.node.is_some()
    }

    /// A node publishes what its processes have published.
    fn publish(&mut self, status: Status) {
        let (control, section) = (self.net.control(), self.watch.section);
        let Some(node) = &self.watch.node else {
            return control.publish(section, self.watch.pid, status);
        };
        if let Some(statuses) = node.statuses.get().and_then(Weak::upgrade) {
            node.pids.clone().for_each(|pid| control.publish(section, pid, statuses.status(pid)));
        }
    }

    fn statuses(&self) -> impl FnMut(Pid) -> Option<Status> {
        let statuses = self.net.control().statuses(self.watch.section);
        move |pid| statuses.get(pid).cloned().flatten()
    }

    #[inline]
    fn pause(&mut self, step: Step) {
        match step {
            // A look at the network is pause enough.
            Step::Spin => {}
            Step::Yield => std::thread::yield_now(),
            Step::Sleep(time) => self.net.idle(time),
        }
    }
}

/// Why a wait cannot go on.
#[derive(Debug)]
pub(super) enum Stop {
    Broken(Broken),
    /// This member has sent an invalid message.
    Invalid(Pid),
    /// An error of the whole section.
    Fatal(Error),
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Self {
        Stop::Broken(broken)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Fatal(error)
    }
}
