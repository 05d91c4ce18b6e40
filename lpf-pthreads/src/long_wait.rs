//! What a wait needs of threads, and what a process does about a meeting that takes long.

use std::time::Duration;

use lpf_core::runtime::{Engine, LocalState, LongWait, Medium, Purpose, Waiting, status_at};
use lpf_core::wait::{Patience, Step};
use lpf_core::waits::Status;
use lpf_core::{Error, Pid};

use crate::futex;
use crate::superstep::bits;
use crate::sync::{Ordering, yield_now};
use crate::threads::{Tables, ThreadEngine};

/// A process that waits.
#[derive(Debug)]
pub(crate) struct OnThread<'a> {
    engine: &'a ThreadEngine,
    pid: Pid,
    /// In a meeting, the status of the processes that have arrived at it: the barrier knows better than what they have
    /// published.
    arrived: Option<Status>,
    /// Whether others ring when the awaited arrives: they do not for a record of the board.
    is_announced: bool,
    /// Whether others are sure to ring, once they have been asked to; and how often they have before this look.
    is_rung: Option<bool>,
    rings: u32,
}

impl<'a> OnThread<'a> {
    pub(crate) fn new(engine: &'a ThreadEngine, pid: Pid) -> Self {
        OnThread { engine, pid, arrived: None, is_announced: true, is_rung: None, rings: 0 }
    }

    /// For a record of the board, which no process rings for: it is looked for again and again.
    pub(crate) fn at_board(engine: &'a ThreadEngine, pid: Pid) -> Self {
        OnThread { arrived: None, is_announced: false, ..Self::new(engine, pid) }
    }

    /// Whether it is about to sleep, so that all releases have to be reported: their sender may be what the awaited
    /// process waits for.
    pub(crate) fn is_sleepy(&self) -> bool {
        self.is_rung.is_some()
    }

    fn bell(&self) -> &'a crate::comm::Bell {
        &self.engine.comm.peers[self.pid as usize].bell
    }
}

impl Medium for OnThread<'_> {
    const ASKS: bool = true;

    fn process(&self) -> (Pid, Pid) {
        (self.pid, self.engine.comm.processes() as Pid)
    }

    fn patience(&self) -> Patience {
        self.engine.patience()
    }

    fn limit(&self) -> Option<Duration> {
        self.engine.comm.environment.timeout
    }

    fn now(&self) -> Duration {
        self.engine.now()
    }

    #[inline]
    fn look_again(&mut self) {
        if self.is_sleepy() {
            self.rings = self.bell().rings.load(Ordering::Acquire);
        }
    }

    #[inline]
    fn failure(&mut self) -> Option<Error> {
        let failure = &self.engine.comm.failure;
        if failure.is_set() { failure.report() } else { None }
    }

    fn publish(&mut self, status: Status) {
        // Models of loom do not look at it.
        if !cfg!(loom) {
            *self.engine.comm.peers[self.pid as usize].lock_status() = status;
        }
    }

    fn statuses(&self) -> impl FnMut(Pid) -> Option<Status> {
        |of| match &self.arrived {
            _ if cfg!(loom) => None,
            Some(arrived) if self.engine.has_arrived(of) => Some(arrived.clone()),
            _ => Some(self.engine.comm.peers[of as usize].lock_status().clone()),
        }
    }

    /// Sleeps until another process rings. The word that asks for it is set before the last look, and a barrier on
    /// all threads lies between: a process that sends after the look sees the word. It is set until the wait ends,
    /// because the barrier interrupts all cores.
    #[inline]
    fn pause(&mut self, step: Step) {
        match step {
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => yield_now(),
            Step::Sleep(time) => match self.is_rung {
                None if !self.is_announced => self.is_rung = Some(false),
                None => {
                    self.bell().asleep.store(1, Ordering::SeqCst);
                    self.is_rung = Some(futex::barrier_everywhere());
                }
                Some(is_rung) => {
                    let barrier = &self.engine.comm.barrier;
                    let time = if is_rung { barrier.longest_sleep() } else { time };
                    futex::sleep(&self.bell().rings, self.rings, time);
                }
            },
        }
    }
}

impl Drop for OnThread<'_> {
    fn drop(&mut self) {
        if self.is_sleepy() {
            self.bell().asleep.store(0, Ordering::Relaxed);
        }
    }
}

/// A meeting that a process waits in.
#[derive(Clone, Copy)]
struct Meeting<'a> {
    engine: &'a ThreadEngine,
    tables: &'a Tables,
    purpose: Purpose,
}

/// A process that waits in a meeting.
pub(crate) struct InMeeting<'a> {
    at: Meeting<'a>,
    long: LongWait,
}

impl<'a> InMeeting<'a> {
    #[inline]
    pub(crate) fn new(engine: &'a ThreadEngine, tables: &'a Tables, kind: u32) -> Self {
        let purpose = if kind & bits::CLOSE != 0 { Purpose::Close } else { Purpose::Sync };
        InMeeting { at: Meeting { engine, tables, purpose }, long: LongWait::default() }
    }

    /// Called whenever the waiter is about to sleep.
    #[cold]
    pub(crate) fn look(&mut self) {
        let looked = self.long.look(&mut self.at.medium(), &self.at);
        let engine = self.at.engine;
        let ThreadEngine { comm, meeting, epoch, .. } = engine;
        // All take one decision about a meeting that may become complete at this very moment.
        if let Err(late) = looked
            && !comm.failure.is_set()
            && !comm.failure.decide(*epoch, false)
        {
            engine.declare_for(*meeting, late);
        }
    }

    /// The wait is over. What was published of a process that has left stays: it has left for good.
    #[inline]
    pub(crate) fn end(&self) {
        if self.long.is_published() && self.at.purpose != Purpose::Close {
            self.long.end(&mut self.at.medium(), &self.at);
        }
    }

    /// Whether this meeting, which is complete, was given up by somebody before anybody departed.
    #[inline]
    pub(crate) fn was_given_up(&self) -> bool {
        let ThreadEngine { comm, epoch, .. } = self.at.engine;
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

impl<'a> Meeting<'a> {
    fn medium(self) -> OnThread<'a> {
        let arrived = Some(Status { counts: Default::default(), ..self.status() });
        OnThread { arrived, ..OnThread::new(self.engine, self.tables.local.pid) }
    }
}

impl Waiting for Meeting<'_> {
    fn status(&self) -> Status {
        status_at(&self.tables.local, &self.tables.links, self.purpose)
    }

    fn missing(&self) -> Pid {
        let LocalState { pid, nprocs, .. } = self.tables.local;
        let is_absent = |who: &Pid| *who != pid && !self.engine.has_arrived(*who);
        (0..nprocs).find(is_absent).unwrap_or(pid)
    }

    fn superstep(&self) -> u64 {
        self.tables.local.superstep
    }
}

impl ThreadEngine {
    /// Whether a process has arrived at the meeting that this one is in.
    fn has_arrived(&self, who: Pid) -> bool {
        self.comm.barrier.line(who as usize, self.epoch).has_reached(self.epoch)
    }
}
