//! What a process does about a meeting that takes long: it says so, and gives up after
//! `LPF_TIMEOUT`.

use std::time::{Duration, Instant};

use lpf_core::waits::Doing;
use lpf_core::{Cause, Error, Pid};

use crate::superstep::bits;
use crate::sync::{Ordering, fence};
use crate::threads::Threads;

/// A wait this long is published, so that whoever asks learns of it. Well under the time after
/// which others ask, well over what a superstep takes.
pub(crate) const PUBLISH_AFTER: Duration = Duration::from_millis(100);

pub(crate) struct LongWait<'a> {
    process: &'a Threads,
    kind: u32,
    since: Option<Instant>,
    published: bool,
}

impl<'a> LongWait<'a> {
    #[inline]
    pub(crate) fn new(process: &'a Threads, kind: u32) -> Self {
        LongWait { process, kind, since: None, published: false }
    }

    /// Called whenever the waiter is about to sleep.
    #[cold]
    pub(crate) fn look(&mut self) {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited >= PUBLISH_AFTER && !self.published {
            let left = self.kind & bits::CLOSE != 0;
            self.process.publish(if left {
                Doing::Left
            } else {
                Doing::FullSync(self.process.superstep)
            });
            self.published = true;
        }
        if self.process.comm.environment.timeout.is_some_and(|limit| waited >= limit) {
            self.give_up(waited);
        }
    }

    fn give_up(&self, waited: Duration) {
        let Threads { comm, pid, superstep, meeting, .. } = self.process;
        if comm.failure.is_set() {
            return;
        }
        let absent = |who: &usize| *who != *pid as usize && !self.has_arrived(*who);
        let missing = (0..comm.processes()).find(absent).unwrap_or(*pid as usize);
        let cause = Cause::Late { seconds: waited.as_secs(), state: "computing".into() };
        comm.failure.declare(*meeting, Error::fatal(missing as Pid, *superstep, cause));
        comm.ring_all();
    }

    fn has_arrived(&self, who: usize) -> bool {
        let epoch = self.process.epoch;
        self.process.comm.barrier.line(who, epoch).has_reached(epoch)
    }

    /// Whether somebody gave up this meeting although it became complete. Who gives up writes the
    /// failure and then looks whether the meeting is complete; who departs looks for the failure;
    /// a fence on both sides lets at least one of them see the other.
    #[inline]
    pub(crate) fn was_given_up(&self) -> bool {
        let comm = &self.process.comm;
        if comm.environment.timeout.is_none() {
            return false;
        }
        fence(Ordering::SeqCst);
        comm.failure.prevents(self.process.meeting)
    }
}
