//! Waiting for the network: look, spin, yield, sleep; and see to it that every wait has an end.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::control::{Control, SectionId};
use super::transport::{Broken, Rank, Transport};
use lpf_core::Pid;
use lpf_core::error::{Cause, Error, Result};
use lpf_core::wait::{LONGEST_SLEEP, Patience, Step, Waiter};
use lpf_core::waits::{KNOWN_AFTER, Status, last_of_chain, publish_after};

/// The section as its waits see it.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) section: SectionId,
    pub(super) members: Box<[Rank]>,
    pub(super) pid: Pid,
    pub(super) patience: Patience,
    pub(super) timeout: Option<Duration>,
    /// The control plane's count of failures when it was last asked.
    seen: u64,
    /// Supersteps done, as the control plane sees them.
    pub(super) supersteps: Arc<AtomicU64>,
}

/// What a wait is, for those who ask who waits for what, and for the report when it is late.
pub(super) trait Waiting {
    /// What this process is doing now, with its counts.
    fn status(&self) -> Status;

    /// A process that has not done what is awaited.
    fn missing(&self) -> Pid;

    /// The longest sleep between two looks.
    fn look_every(&self) -> Duration {
        LONGEST_SLEEP
    }

    /// The superstep, for the report of a failure.
    fn superstep(&self) -> u64;

    /// Whether a failure ends this wait at once. One in a later superstep does not: who failed there has
    /// left this superstep, so everybody has come to it, and what is awaited is on its way.
    fn is_concerned_by(&self, report: &Error) -> bool {
        report.superstep().is_none_or(|failed| failed <= self.superstep())
    }
}

impl Watch {
    pub(super) fn new(
        section: SectionId,
        members: Box<[Rank]>,
        pid: Pid,
        patience: Patience,
        timeout: Option<Duration>,
    ) -> Self {
        Watch {
            section,
            members,
            pid,
            patience,
            timeout,
            seen: u64::MAX,
            supersteps: Arc::default(),
        }
    }

    /// The process of the section that has this rank.
    pub(super) fn pid_of(&self, rank: Rank) -> Pid {
        let at = self.members.iter().position(|&member| member == rank);
        at.map_or(self.pid, |pid| pid as Pid)
    }

    /// The process that the others wait for, and that waits for none itself.
    #[cold]
    fn latest<T: Transport, W: Waiting>(&self, net: &T, what: &W) -> Pid {
        let statuses = net.control().statuses(self.section);
        let fetch = |pid: Pid| statuses.get(pid as usize).cloned().flatten();
        let last = last_of_chain(self.pid, &what.status(), self.members.len() as Pid, fetch);
        last.unwrap_or_else(|| what.missing())
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
        let pid = broken.peer.map_or(self.pid, |rank| self.pid_of(rank));
        let error = Error::fatal(pid, superstep, Cause::Died { reason: broken.reason });
        control.declare(self.section, error)
    }

    /// What ends a call that cannot go on.
    #[cold]
    pub(super) fn stopped<C: Control>(&self, control: &C, superstep: u64, stop: Stop) -> Error {
        match stop {
            Stop::Fatal(error) => control.declare(self.section, error),
            Stop::Broken(broken) => self.broken(control, superstep, broken),
        }
    }

    /// Waits until `done` says so.
    ///
    /// # Errors
    /// The section's failure, a broken connection, or that the wait was too long.
    #[inline]
    pub(super) fn wait<T: Transport, W: Waiting>(
        &mut self,
        net: &mut T,
        what: &mut W,
        mut done: impl FnMut(&mut W, &mut T) -> std::result::Result<bool, Stop>,
    ) -> Result<()> {
        let mut waiter = Waiter::new(self.patience);
        let mut long = Long::default();
        loop {
            net.look_again();
            match done(what, net) {
                Ok(true) => {
                    waiter.learn();
                    if long.published {
                        let mut status = what.status();
                        status.doing = lpf_core::waits::Doing::Computing;
                        net.control().publish(self.section, status);
                    }
                    // What has come may be what a peer that failed in this superstep left of it.
                    return match self.failure(net.control()) {
                        Some(report) if what.is_concerned_by(&report) => Err(report),
                        _ => Ok(()),
                    };
                }
                Ok(false) => {}
                Err(stop) => return Err(self.stopped(net.control(), what.superstep(), stop)),
            }
            if let Some(report) = self.failure(net.control())
                && (what.is_concerned_by(&report) || long.grace_is_over())
            {
                return Err(report);
            }
            match waiter.step() {
                // A look at the network is pause enough.
                Step::Spin => {}
                Step::Yield => std::thread::yield_now(),
                Step::Sleep(time) => {
                    net.idle(time.min(what.look_every()));
                    long.look(self, net, what)?;
                }
            }
        }
    }
}

/// Why a wait cannot go on.
#[derive(Debug)]
pub(super) enum Stop {
    Broken(Broken),
    /// Of everybody.
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

/// How long a wait goes on after a failure that does not concern it.
const GRACE: Duration = Duration::from_millis(250);

#[derive(Default)]
struct Long {
    failed: Option<Instant>,
    since: Option<Instant>,
    published: bool,
    again: Duration,
}

impl Long {
    #[cold]
    fn grace_is_over(&mut self) -> bool {
        self.failed.get_or_insert_with(Instant::now).elapsed() >= GRACE
    }

    /// Called after each sleep.
    #[cold]
    fn look<T: Transport, W: Waiting>(&mut self, watch: &Watch, net: &T, what: &W) -> Result<()> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let publish_after = publish_after(watch.timeout);
        if waited >= publish_after && waited >= self.again {
            // Again from time to time: what came meanwhile is no longer wanted.
            net.control().publish(watch.section, what.status());
            self.published = true;
            self.again = waited + publish_after;
        }
        if let Some(limit) = watch.timeout.filter(|&limit| waited >= limit + KNOWN_AFTER) {
            let cause = Cause::Late { limit, state: "computing".into() };
            let error = Error::fatal(watch.latest(net, what), what.superstep(), cause);
            return Err(net.control().declare(watch.section, error));
        }
        Ok(())
    }
}
