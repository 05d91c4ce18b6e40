//! Entering LPF from threads that exist already.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lpf_core::runtime::Node;
use lpf_core::settings::Pin;
use lpf_core::{Cause, Context, Error, Lpf, Pid, Result, Runtime};
use parking_lot::{Condvar, Mutex};

use crate::comm::Comm;
use crate::environment::Environment;
use crate::threads::{self, Threads};

/// How long a member waits for the others to join.
const JOIN_TIME: Duration = Duration::from_secs(30);

/// A number of threads that will hook together: clone it to each, and each joins once.
///
/// Joined threads never enter the pool and are never pinned.
#[derive(Clone, Debug)]
pub struct Team(Arc<Gate>);

#[derive(Debug)]
struct Gate {
    comm: Arc<Comm>,
    joined: Mutex<Vec<bool>>,
    change: Condvar,
}

/// One member of a complete team; it may hook any number of times, together with all others.
#[derive(Debug)]
pub struct Init {
    outer: Threads,
}

impl Team {
    /// A team of `members` threads, under the settings of the environment.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, *misuse* for a setting that cannot be understood or a
    /// team without members.
    pub fn new(members: Pid) -> Result<Self> {
        crate::Config::from_environment()?.team(members)
    }

    pub(crate) fn of(members: Pid, environment: &Arc<Environment>) -> Result<Self> {
        if members == 0 {
            return Err(Error::setting("a team needs at least 1 member"));
        }
        let comm = Comm::new((Node::of_all(members), None), environment, &Pin::None)?;
        let joined = Mutex::new(vec![false; members]);
        Ok(Team(Arc::new(Gate { comm, joined, change: Condvar::new() })))
    }

    /// Joins as process `pid` and waits up to 30 s for all others.
    ///
    /// # Errors
    /// *Misuse* for a number that does not exist or is taken; *fatal* if others do not arrive in
    /// time; the text names them. They get the same error if they join later.
    pub fn join(&self, pid: Pid) -> Result<Init> {
        self.join_within(pid, JOIN_TIME)
    }

    /// As [`join`](Self::join), waiting up to `time`.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_within(&self, pid: Pid, time: Duration) -> Result<Init> {
        let gate = &*self.0;
        let members = gate.comm.node.processes;
        if pid >= members {
            return Err(Error::misuse(pid, 0, Cause::NoSuchProcess { pid, last: members - 1 }));
        }
        let outer = threads::process(gate.comm.clone(), pid, 1)?;
        // As long as a clock can say.
        let until = Instant::now().checked_add(time);
        let mut joined = gate.joined.lock();
        if std::mem::replace(&mut joined[pid], true) {
            let text = format!("process {pid} of the team was joined already");
            return Err(Error::misuse(pid, 0, Cause::Team(text)));
        }
        gate.change.notify_all();
        while !joined.iter().all(|&j| j) {
            if let Some(report) = gate.comm.failure.report() {
                return Err(report);
            }
            let left = until
                .map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                let missing: Vec<String> =
                    (0..members).filter(|&who| !joined[who]).map(|who| who.to_string()).collect();
                let text = format!(
                    "{} of {members} processes did not join within {} s: {}",
                    missing.len(),
                    time.as_secs_f64(),
                    missing.join(", ")
                );
                let first = joined.iter().position(|&joined| !joined).unwrap_or(pid);
                let error = Error::fatal(first, 0, Cause::Team(text));
                gate.comm.declare(0, error.clone());
                gate.change.notify_all();
                return Err(error);
            }
            gate.change.wait_for(&mut joined, left.min(Duration::from_secs(3600)));
        }
        match gate.comm.failure.report() {
            Some(report) => Err(report),
            None => Ok(Init { outer }),
        }
    }
}

impl Init {
    /// This thread's number in the team.
    pub fn pid(&self) -> Pid {
        self.outer.pid()
    }

    /// Runs `f` on the team's threads, and returns its value at each. Collective; the time of an empty full sync to enter; a
    /// flush, a barrier (two if `f` made an inbox) and O(p) work to leave.
    ///
    /// # Errors
    /// *Fatal* if any process of the section failed (the team may hook again) or a member left
    /// the team.
    pub fn hook<F, R>(&mut self, f: F) -> Result<R>
    where
        F: for<'s> FnOnce(&mut Context<'s, Threads>) -> Result<R>,
    {
        self.outer.rehook(f)
    }
}

impl Drop for Init {
    /// A member that goes must not keep the others waiting in their next hook.
    fn drop(&mut self) {
        let cause = Cause::Team("it left the team and hooks no more".into());
        let error = Error::fatal(self.outer.pid(), 0, cause);
        self.outer.fail(error);
    }
}
