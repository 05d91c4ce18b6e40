//! A wait that takes long asks whom it waits for: `lpf_core::waits` on shared memory.

use std::time::{Duration, Instant};

use lpf_core::runtime::LocalState;
use lpf_core::waits::{ASK_AFTER, Doing, Suspicion, Want, last_of_chain, publish_after};
use lpf_core::{Error, Pid, Result};

use crate::long_wait::is_over;
use crate::threads::{Tables, ThreadEngine};

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
        engine: &ThreadEngine,
        tables: &Tables,
        wants: &dyn Fn(&Tables) -> Vec<Want>,
    ) -> Result<()> {
        engine.check_process(&tables.local)?;
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let limit = engine.comm.environment.timeout;
        if waited >= publish_after(limit) && !self.published {
            engine.publish(tables, Doing::Waiting(wants(tables)));
            self.published = true;
        }
        if let Some(limit) = limit.filter(|&limit| is_over(waited, limit)) {
            engine.publish(tables, Doing::Waiting(wants(tables)));
            return Err(engine.late(&tables.local, &wants(tables), limit));
        }
        if waited < self.asked + ASK_AFTER {
            return Ok(());
        }
        self.asked = waited;
        // What came meanwhile is no longer wanted.
        engine.publish(tables, Doing::Waiting(wants(tables)));
        let (comm, local) = (&engine.comm, &tables.local);
        let own = engine.peer(local).lock_status().clone();
        let fetch = |pid: Pid| Some(comm.peers[pid as usize].lock_status().clone());
        match self.suspicion.diagnose(local.pid, &own, fetch) {
            None => Ok(()),
            Some(fault) => Err(Error::fatal(fault.process, local.superstep, fault.cause)),
        }
    }

    /// The wait is over, and what was published of it.
    #[inline]
    pub(super) fn end(&self, engine: &ThreadEngine, tables: &Tables) {
        if self.published {
            engine.publish(tables, Doing::Computing);
        }
    }
}

impl ThreadEngine {
    /// The wait has taken longer than `LPF_TIMEOUT`.
    #[cold]
    fn late(&self, local: &LocalState, wants: &[Want], limit: Duration) -> Error {
        let missing = wants.first().map_or(local.pid, Want::awaited);
        let status = |of: Pid| Some(self.comm.peers[of as usize].lock_status().clone());
        let own = status(local.pid).unwrap_or_default();
        let last = last_of_chain(local.pid, &own, local.nprocs, status).unwrap_or(missing);
        self.declare_late(local, self.meeting + 1, last, limit);
        self.report(local)
    }

    /// Says what this process is in, for those who ask.
    #[cold]
    pub(crate) fn publish(&self, tables: &Tables, doing: Doing) {
        let mut status = tables.links.status(&tables.local);
        status.doing = doing;
        *self.peer(&tables.local).lock_status() = status;
    }
}
