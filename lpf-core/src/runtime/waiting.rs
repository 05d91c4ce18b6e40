//! The one wait: look, spin, yield, sleep; publish what is awaited, ask whether it can come, and end after the time limit.
//!
//! Every wait has an end: what is awaited arrives, the section fails, the wait is found hopeless ([`crate::waits`]), or it
//! takes longer than `LPF_TIMEOUT`.

use std::time::Duration;

use super::links::{FormerSenders, LinkTable, OpenLink};
use super::tables::Tables;
use super::{LocalState, Purpose};
use crate::Pid;
use crate::arrivals::CallValues;
use crate::error::{Cause, Error, Result};
use crate::lpf::Awaited;
use crate::wait::{LONGEST_SLEEP, Patience, Step, Waiter};
use crate::waits::{
    ASK_AFTER, Consult, Doing, KNOWN_AFTER, Status, Suspicion, Want, last_of_chain, publish_after,
};

/// What a wait needs of the engine.
pub trait Medium {
    /// Whether the wait itself asks the awaited processes. Between processes the control plane asks, for all waits that are
    /// published.
    const ASKS: bool;

    /// This process, and how many there are.
    fn process(&self) -> (Pid, Pid);

    /// How long it spins and yields.
    fn patience(&self) -> Patience;

    /// The time limit of a superstep.
    fn limit(&self) -> Option<Duration>;

    /// The clock: the time since some moment before the wait.
    fn now(&self) -> Duration;

    /// Whether this is the process of the engine between nodes that stands for those of its node. It asks for no waits: each
    /// of those does. A time limit ends for it later than for them, who know better which process is late.
    fn is_node(&self) -> bool {
        false
    }

    /// As [`statuses`](Self::statuses), of a process of any node, if this is a node's wait and knows it.
    fn status_at_node(&self, _pid: Pid) -> Option<Status> {
        None
    }

    /// A look begins.
    #[inline]
    fn look_again(&mut self) {}

    /// The section's failure, if there is one. One load if nothing has happened.
    fn failure(&mut self) -> Option<Error>;

    /// Shows others what this process does.
    fn publish(&mut self, status: Status);

    /// What the others do, as far as it is known; the call may take a moment.
    fn statuses(&self) -> impl FnMut(Pid) -> Option<Status>;

    /// As [`statuses`](Self::statuses), as far as it is known at once.
    fn statuses_now(&self) -> impl FnMut(Pid) -> Option<Status> {
        self.statuses()
    }

    /// The processes that have a link's rings before it does.
    fn former_senders(&self, link: &OpenLink) -> FormerSenders {
        FormerSenders { here: link.former_sender, there: None }
    }

    /// Pauses between two looks.
    fn pause(&mut self, step: Step);
}

/// The purpose of a wait.
pub trait Waiting {
    /// The activity of this process now, with its counts.
    fn status(&self, medium: &impl Medium) -> Status;

    /// A process that has not done what is awaited.
    fn missing(&self, medium: &impl Medium) -> Pid;

    /// The superstep.
    fn superstep(&self) -> u64;

    /// The longest sleep between two looks.
    fn look_every(&self) -> Duration {
        LONGEST_SLEEP
    }

    /// Whether a failure ends this wait at once. One in a later superstep does not: the process that failed there has
    /// left this superstep, so all processes have reached it, and the awaited messages are on their way.
    fn is_concerned_by(&self, report: &Error) -> bool {
        report.superstep().is_none_or(|failed| failed <= self.superstep())
    }
}

/// Waits until `done` is true.
///
/// # Errors
/// Those of `done`; *fatal* if the section fails, or the wait is hopeless or too long.
#[inline]
pub fn wait<M: Medium, W: Waiting>(
    medium: &mut M,
    what: &mut W,
    mut done: impl FnMut(&mut W, &mut M) -> Result<bool>,
) -> Result<()> {
    let mut waiter = Waiter::new(medium.patience());
    let mut long = LongWait::default();
    loop {
        medium.look_again();
        if done(what, medium)? {
            waiter.learn();
            long.end(medium, what);
            // What has arrived may be what a peer that failed in this superstep left of it.
            return match medium.failure() {
                Some(report) if what.is_concerned_by(&report) => Err(report),
                _ => Ok(()),
            };
        }
        if let Some(report) = medium.failure()
            && (what.is_concerned_by(&report) || long.grace_is_over(medium))
        {
            return Err(report);
        }
        match waiter.step(|| medium.now()) {
            Step::Sleep(time) => {
                medium.pause(Step::Sleep(time.min(what.look_every())));
                long.look(medium, what)?;
            }
            step => medium.pause(step),
        }
    }
}

/// How long a wait goes on after a failure that does not concern it.
const GRACE: Duration = Duration::from_millis(250);

/// The memory of a wait that has become long.
#[derive(Debug, Default)]
pub struct LongWait {
    failed: Option<Duration>,
    since: Option<Duration>,
    is_published: bool,
    /// When it is published again.
    again: Duration,
    asked: Duration,
    suspicion: Suspicion,
}

impl LongWait {
    /// Whether others may have learned of it.
    #[inline]
    pub fn is_published(&self) -> bool {
        self.is_published
    }

    #[cold]
    fn grace_is_over<M: Medium>(&mut self, medium: &M) -> bool {
        let now = medium.now();
        now - *self.failed.get_or_insert(now) >= GRACE
    }

    /// Publishes what the process waits for, if the wait is long; how long it is.
    #[cold]
    pub fn show<M: Medium, W: Waiting>(&mut self, medium: &mut M, what: &W) -> Duration {
        let now = medium.now();
        let waited = now - *self.since.get_or_insert(now);
        let publish_after = publish_after(medium.limit());
        if waited >= publish_after && waited >= self.again {
            // Published again from time to time, because messages that have arrived since are no longer awaited.
            medium.publish(what.status(medium));
            self.is_published = true;
            self.again = waited + publish_after;
        }
        waited
    }

    /// To be called beside each sleep.
    ///
    /// # Errors
    /// *Fatal* if the wait is hopeless or too long.
    #[cold]
    pub fn look<M: Medium, W: Waiting>(&mut self, medium: &mut M, what: &W) -> Result<()> {
        let waited = self.show(medium, what);
        let limit = medium.limit();
        let ((pid, nprocs), superstep) = (medium.process(), what.superstep());
        let known_after = KNOWN_AFTER * if medium.is_node() { 2 } else { 1 };
        if let Some(limit) = limit.filter(|&limit| waited >= limit + known_after) {
            let last = || last_of_chain(pid, &what.status(medium), nprocs, medium.statuses());
            let late = if medium.is_node() { None } else { last() };
            let late = late.unwrap_or_else(|| what.missing(medium));
            let cause = Cause::Late { limit, state: "computing".into() };
            return Err(Error::fatal(late, superstep, cause));
        }
        if !M::ASKS || medium.is_node() || waited < self.asked + ASK_AFTER {
            return Ok(());
        }
        self.asked = waited;
        let own = what.status(medium);
        medium.publish(own.clone());
        match self.suspicion.diagnose(pid, &own, medium.statuses_now()) {
            None => Ok(()),
            Some(fault) => Err(Error::fatal(fault.process, superstep, fault.cause)),
        }
    }

    /// The wait is over, and what was published of it.
    #[inline]
    pub fn end<M: Medium, W: Waiting>(&self, medium: &mut M, what: &W) {
        if self.is_published {
            medium.publish(Status { doing: Doing::Computing, ..what.status(medium) });
        }
    }
}

/// The status of a process at a barrier.
pub fn status_at(
    local: &LocalState,
    links: &LinkTable,
    purpose: Purpose,
    medium: &impl Medium,
) -> Status {
    let doing = match purpose {
        Purpose::Count | Purpose::Close => Doing::Left,
        _ => Doing::FullSync(local.superstep),
    };
    Status { doing, ..links.status(local, |link| medium.former_senders(link)) }
}

/// A wait for messages or a flush.
#[derive(Debug)]
pub struct ForLinks<'a> {
    /// Of the process.
    pub tables: &'a mut Tables,
    /// What is awaited.
    pub awaited: Awaited<'a>,
    /// Those of the call that waits, if they are known.
    pub values: Option<&'a dyn CallValues>,
}

impl Waiting for ForLinks<'_> {
    fn status(&self, medium: &impl Medium) -> Status {
        let Tables { local, links } = &*self.tables;
        let former = |link: &OpenLink| medium.former_senders(link);
        Status {
            doing: Doing::Waiting(links.wants(self.awaited, former)),
            values: self.values.map(CallValues::own).unwrap_or_default(),
            ..links.status(local, former)
        }
    }

    fn missing(&self, medium: &impl Medium) -> Pid {
        let Tables { local, links } = &*self.tables;
        let wants = links.wants(self.awaited, |link| medium.former_senders(link));
        wants.first().map_or(local.pid, Want::awaited)
    }

    fn superstep(&self) -> u64 {
        self.tables.local.superstep
    }
}

/// A wait for a record of the board.
#[derive(Debug)]
pub struct ForBoard<'a> {
    /// Of the process.
    pub tables: &'a mut Tables,
    /// What is awaited.
    pub wait: Consult<'a>,
}

impl Waiting for ForBoard<'_> {
    fn status(&self, medium: &impl Medium) -> Status {
        let Tables { local, links } = &*self.tables;
        let status = links.status(local, |link| medium.former_senders(link));
        Status { doing: Doing::Waiting(self.wait.wants(links.call, &status)), ..status }
    }

    fn missing(&self, _medium: &impl Medium) -> Pid {
        self.wait.from
    }

    fn superstep(&self) -> u64 {
        self.tables.local.superstep
    }

    fn look_every(&self) -> Duration {
        self.wait.look_every
    }
}
