//! A wait that takes long asks whom it waits for: `lpf_core::waits` on shared memory.

use std::time::{Duration, Instant};

use lpf_core::waits::{ASK_AFTER, Doing, Suspicion, Want, last_of_chain, publish_after};
use lpf_core::{Error, Pid, Result};

use crate::long_wait::is_over;
use crate::threads::Threads;

/// What one wait remembers of its questions.
#[derive(Debug, Default)]
pub(super) struct Asking {
    since: Option<Instant>,
    asked: Duration,
    published: bool,
    suspicion: Suspicion,
}

impl Asking {
    /// Called after each sleep of the wait.
    pub(super) fn look(
        &mut self,
        process: &mut Threads,
        wants: &dyn Fn(&Threads) -> Vec<Want>,
    ) -> Result<()> {
        process.check_process()?;
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let limit = process.comm.environment.timeout;
        if waited >= publish_after(limit) && !self.published {
            process.publish(Doing::Waiting(wants(process)));
            self.published = true;
        }
        if let Some(limit) = limit.filter(|&limit| is_over(waited, limit)) {
            process.publish(Doing::Waiting(wants(process)));
            return Err(process.late(&wants(process), limit));
        }
        if waited < self.asked + ASK_AFTER {
            return Ok(());
        }
        self.asked = waited;
        // What came meanwhile is no longer wanted.
        process.publish(Doing::Waiting(wants(process)));
        let comm = process.comm.clone();
        let own = comm.peers[process.local.pid as usize].lock_status().clone();
        let fetch = |pid: Pid| Some(comm.peers[pid as usize].lock_status().clone());
        match self.suspicion.diagnose(process.local.pid, &own, fetch) {
            None => Ok(()),
            Some(fault) => {
                let error = Error::fatal(fault.process, process.local.superstep, fault.cause);
                Err(process.fail_before(process.meeting + 1, error))
            }
        }
    }
}

impl Asking {
    /// The wait is over, and what was published of it.
    #[inline]
    pub(super) fn end(&self, process: &Threads) {
        if self.published {
            process.publish(Doing::Computing);
        }
    }
}

impl Threads {
    /// The wait has taken longer than `LPF_TIMEOUT`.
    #[cold]
    fn late(&mut self, wants: &[Want], limit: Duration) -> Error {
        let missing = wants.first().map_or(self.local.pid, Want::awaited);
        let status = |of: Pid| Some(self.comm.peers[of as usize].lock_status().clone());
        let own = status(self.local.pid).unwrap_or_default();
        let last =
            last_of_chain(self.local.pid, &own, self.local.nprocs, status).unwrap_or(missing);
        self.declare_late(self.meeting + 1, last, limit);
        self.die()
    }

    /// Says what this process is in, for those who ask.
    #[cold]
    pub(crate) fn publish(&self, doing: Doing) {
        let mut status = self.links.status(&self.local);
        status.doing = doing;
        *self.own_peer().lock_status() = status;
    }
}
