//! What a process does about a meeting that takes long: it gives up after `LPF_TIMEOUT`.

use std::time::Instant;

use lpf_core::{Cause, Error, Pid};

use crate::comm::Comm;
use crate::sync::{Ordering, fence};

pub(crate) struct LongWait<'a> {
    comm: &'a Comm,
    pid: Pid,
    superstep: u64,
    meeting: u64,
    epoch: u32,
    since: Option<Instant>,
}

impl<'a> LongWait<'a> {
    #[inline]
    pub(crate) fn new(comm: &'a Comm, pid: Pid, superstep: u64, meeting: u64, epoch: u32) -> Self {
        LongWait { comm, pid, superstep, meeting, epoch, since: None }
    }

    /// Called whenever the waiter is about to sleep.
    #[cold]
    pub(crate) fn look(&mut self) {
        let since = *self.since.get_or_insert_with(Instant::now);
        let Some(limit) = self.comm.environment.timeout else {
            return;
        };
        if since.elapsed() < limit || self.comm.failure.is_set() {
            return;
        }
        let missing = (0..self.comm.processes())
            .find(|&who| who != self.pid as usize && !self.has_arrived(who))
            .unwrap_or(self.pid as usize);
        let cause = Cause::Late { seconds: limit.as_secs(), state: "computing".into() };
        let error = Error::fatal(missing as Pid, self.superstep, cause);
        self.comm.failure.declare(self.meeting, error);
        self.comm.ring_all();
    }

    fn has_arrived(&self, who: usize) -> bool {
        self.comm.barrier.line(who, self.epoch).has_reached(self.epoch)
    }

    /// Whether somebody gave up this meeting although it became complete. Who gives up writes the
    /// failure and then looks whether the meeting is complete; who departs looks for the failure;
    /// a fence on both sides lets at least one of them see the other.
    #[inline]
    pub(crate) fn was_given_up(&self) -> bool {
        if self.comm.environment.timeout.is_none() {
            return false;
        }
        fence(Ordering::SeqCst);
        self.comm.failure.prevents(self.meeting)
    }
}
