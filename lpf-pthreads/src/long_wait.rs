//! What a process does about a meeting that takes long: it says so, and gives up after
//! `LPF_TIMEOUT`.

use std::io::Write;
use std::time::{Duration, Instant};

use lpf_core::runtime::LocalState;
use lpf_core::waits::{Doing, KNOWN_AFTER, Status, last_of_chain, publish_after};
use lpf_core::{Cause, Error, Pid};

use crate::superstep::bits;
use crate::sync::yield_now;
use crate::threads::{Tables, ThreadEngine};

/// Whether a time limit is over. In models time stands still: there it is over at once.
pub(crate) fn is_over(waited: Duration, limit: Duration) -> bool {
    waited >= limit + if cfg!(loom) { Duration::ZERO } else { KNOWN_AFTER }
}

pub(crate) struct LongWait<'a> {
    engine: &'a ThreadEngine,
    tables: &'a Tables,
    kind: u32,
    since: Option<Instant>,
    published: bool,
}

impl<'a> LongWait<'a> {
    #[inline]
    pub(crate) fn new(engine: &'a ThreadEngine, tables: &'a Tables, kind: u32) -> Self {
        LongWait { engine, tables, kind, since: None, published: false }
    }

    /// Called whenever the waiter is about to sleep.
    #[cold]
    pub(crate) fn look(&mut self) {
        let ThreadEngine { comm, meeting, .. } = self.engine;
        if let Err(forked) = self.engine.check_process(&self.tables.local) {
            comm.failure.declare(*meeting, forked);
            return;
        }
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let limit = comm.environment.timeout;
        if waited >= publish_after(limit) && !self.published && !cfg!(loom) {
            self.engine.publish(self.tables, self.doing());
            self.published = true;
        }
        if let Some(limit) = limit.filter(|&limit| is_over(waited, limit)) {
            self.give_up(limit);
        }
    }

    fn doing(&self) -> Doing {
        match self.kind & bits::CLOSE != 0 {
            true => Doing::Left,
            false => Doing::FullSync(self.tables.local.superstep),
        }
    }

    fn give_up(&self, limit: Duration) {
        let ThreadEngine { comm, meeting, epoch, .. } = self.engine;
        let LocalState { pid, superstep, .. } = &self.tables.local;
        if comm.failure.is_set() || comm.failure.decide(*epoch, false) {
            return;
        }
        let absent = |who: &usize| *who != *pid as usize && !self.has_arrived(*who);
        let missing = (0..comm.processes()).find(absent).unwrap_or(*pid as usize) as Pid;
        // The barrier knows better than a status who has arrived.
        let status = |of: Pid| match self.has_arrived(of as usize) {
            true => Some(Status { doing: self.doing(), ..Status::default() }),
            false => Some(comm.peers[of as usize].lock_status().clone()),
        };
        let own = Status { doing: self.doing(), superstep: *superstep, ..Status::default() };
        let processes = if cfg!(loom) { 0 } else { comm.processes() as Pid };
        let last = last_of_chain(*pid, &own, processes, status).unwrap_or(missing);
        self.engine.declare_late(&self.tables.local, *meeting, last, limit);
    }

    fn has_arrived(&self, who: usize) -> bool {
        let epoch = self.engine.epoch;
        self.engine.comm.barrier.line(who, epoch).has_reached(epoch)
    }

    /// The wait is over, and what was published of it. A process that has left has left for good.
    #[inline]
    pub(crate) fn end(&self) {
        if self.published && self.kind & bits::CLOSE == 0 {
            self.engine.publish(self.tables, Doing::Computing);
        }
    }

    /// Whether this meeting, which is complete, was given up by somebody before anybody departed.
    #[inline]
    pub(crate) fn was_given_up(&self) -> bool {
        let ThreadEngine { comm, epoch, .. } = self.engine;
        if comm.environment.timeout.is_none() || comm.failure.decide(*epoch, true) {
            return false;
        }
        // Who gave it up is about to say why.
        while !comm.failure.is_set() {
            yield_now();
        }
        true
    }
}

impl ThreadEngine {
    /// Process `late` has not come within `limit`. It is a thread, which cannot be ended: so long as it goes on, the
    /// call that started the section does not return, and its error is not seen. So one line says it at once.
    #[cold]
    pub(crate) fn declare_late(
        &self,
        local: &LocalState,
        meeting: u64,
        late: Pid,
        limit: Duration,
    ) {
        let cause = Cause::Late { limit, state: "computing".into() };
        let error = Error::fatal(late, local.superstep, cause);
        if self.comm.failure.declare(meeting, error.clone()) && !cfg!(loom) {
            // Nothing else can be done about a standard error that is closed.
            let _ = writeln!(
                std::io::stderr(),
                "lpf: {error}; the section ends when this process returns"
            );
        }
        self.comm.ring_all();
    }
}
