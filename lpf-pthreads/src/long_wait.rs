//! What a process does about a meeting that takes long: it says so, and gives up after
//! `LPF_TIMEOUT`.

use std::time::{Duration, Instant};

use lpf_core::waits::Doing;
use lpf_core::{Cause, Error, Pid};

use crate::superstep::bits;
use crate::sync::yield_now;
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
        if let Some(limit) = self.process.comm.environment.timeout.filter(|&limit| waited >= limit)
        {
            self.give_up(limit);
        }
    }

    fn give_up(&self, limit: Duration) {
        let Threads { comm, pid, superstep, meeting, epoch, .. } = self.process;
        if comm.failure.is_set() || comm.failure.decide(*epoch, false) {
            return;
        }
        let absent = |who: &usize| *who != *pid as usize && !self.has_arrived(*who);
        let missing = (0..comm.processes()).find(absent).unwrap_or(*pid as usize);
        let cause = Cause::Late { limit, state: "computing".into() };
        comm.failure.declare(*meeting, Error::fatal(missing as Pid, *superstep, cause));
        comm.ring_all();
    }

    fn has_arrived(&self, who: usize) -> bool {
        let epoch = self.process.epoch;
        self.process.comm.barrier.line(who, epoch).has_reached(epoch)
    }

    /// Whether this meeting, which is complete, was given up by somebody before anybody departed.
    #[inline]
    pub(crate) fn was_given_up(&self) -> bool {
        let Threads { comm, epoch, .. } = self.process;
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
