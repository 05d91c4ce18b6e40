//! How a wait goes on: spin briefly, then yield, then sleep in the kernel.
//!
//! Measured on two cores: a partner 20 ms late releases a sleeper in 66 us and a yielding waiter
//! in 2 us. So with a core for each process, a wait yields long before it sleeps. With more processes
//! than cores a spin costs the partner its time slice, so no process spins for long.
//!
//! The clock is the engine's. It is a closure that gives the time since a fixed moment, called by few of the looks.

use std::cell::Cell;
use std::time::Duration;

/// How long a wait stays in each stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Looks with a pause instruction between them.
    pub spins: u32,
    /// Looks with `sched_yield` between them.
    pub yields: u32,
}

impl Patience {
    /// For processes that have a core each.
    pub const CORES_TO_SPARE: Patience = Patience { spins: 1_000, yields: 4_000 };
    /// For more processes than cores.
    pub const OVERSUBSCRIBED: Patience = Patience { spins: 0, yields: 50 };

    /// The same for a wait for messages of all processes. With more processes than cores it spins for about as long as a
    /// core needs to change processes: what the processes on other cores send arrives meanwhile. A wait for one process
    /// does not spin then, because that process may need this core.
    ///
    /// Measured on two cores, in turns: a full sync of 4 processes of MPI takes 3.0 us with these looks and 7.1 without, one
    /// of 8 takes 14 and 47 us. Waits for one process took half as long again.
    pub fn for_all(self) -> Self {
        Patience { spins: self.spins.max(32), ..self }
    }

    /// The same number of looks, for looks that yield themselves.
    pub fn without_yields(self) -> Self {
        Patience { spins: self.spins + self.yields, yields: 0 }
    }

    /// The same number of looks, for looks that are system calls, each of which takes as long as many others. A partner
    /// that is running answers within a few of them. A yield costs little more, and lets another program that shares the
    /// core go on.
    pub fn yielding(self) -> Self {
        let spins = self.spins / 64;
        Patience { spins, yields: self.spins - spins + self.yields }
    }

    /// The patience for `processes` on `cores`.
    pub fn for_processes(processes: usize, cores: usize) -> Self {
        if processes <= cores { Self::CORES_TO_SPARE } else { Self::OVERSUBSCRIBED }
    }
}

/// A wait that takes longer sleeps, however few its looks: where other programs want the cores, a yield
/// takes as long as they run (12 ms were seen), and four thousand of them half a minute.
const LONGEST_AWAKE: Duration = Duration::from_millis(10);
/// Spins between two looks at the clock.
const SPINS_PER_CLOCK: u32 = 64;

/// The longest sleep between two looks, so that no lost wake-up can hang a process.
pub const LONGEST_SLEEP: Duration = Duration::from_millis(20);
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);

/// The action of a waiter before its next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A pause instruction.
    Spin,
    /// `sched_yield`.
    Yield,
    /// Sleep in the kernel for at most this long.
    Sleep(Duration),
}

/// The fewest spins that a thread comes down to.
const FEWEST_SPINS: u32 = 64;

thread_local! {
    /// Spins that this thread takes to be worth while: halved by a wait that they did not end,
    /// doubled by one that they did. Two threads that were put on one core would else spin through
    /// each other's time.
    static SPINS: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// The state of one wait.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    patience: Patience,
    looks: u32,
    sleep: Duration,
    awake_since: Option<Duration>,
    is_asleep: bool,
}

impl Waiter {
    /// A wait that begins now.
    #[inline]
    pub fn new(patience: Patience) -> Self {
        let patience = Patience { spins: patience.spins.min(SPINS.get()), ..patience };
        Waiter { patience, looks: 0, sleep: SHORTEST_SLEEP, awake_since: None, is_asleep: false }
    }

    /// To be called when the wait is over: the next one of this thread spins as long as was good
    /// for this one.
    #[inline]
    pub fn learn(&self) {
        let spins = self.patience.spins;
        if spins > 0 {
            let ended_spinning = self.looks <= spins && !self.is_asleep;
            let next = if ended_spinning { spins.saturating_mul(2) } else { spins / 2 };
            // Not by `LocalKey::set`, which is a call.
            SPINS.with(|spins| spins.set(next.max(FEWEST_SPINS)));
        }
    }

    /// The action before the next look.
    #[inline]
    pub fn step(&mut self, clock: impl FnOnce() -> Duration) -> Step {
        self.looks = self.looks.saturating_add(1);
        let Patience { spins, yields } = self.patience;
        if self.looks <= spins.saturating_add(yields) && !self.is_asleep {
            let spins = self.looks <= spins;
            if spins && !self.looks.is_multiple_of(SPINS_PER_CLOCK) {
                return Step::Spin;
            }
            let now = clock();
            if now - *self.awake_since.get_or_insert(now) < LONGEST_AWAKE {
                return if spins { Step::Spin } else { Step::Yield };
            }
        }
        self.is_asleep = true;
        let sleep = self.sleep;
        self.sleep = (2 * sleep).min(LONGEST_SLEEP);
        Step::Sleep(sleep)
    }

    /// Spins or yields; returns the time to sleep if it is time for that.
    #[inline]
    pub fn pause(&mut self, clock: impl FnOnce() -> Duration) -> Option<Duration> {
        match self.step(clock) {
            Step::Spin => {
                std::hint::spin_loop();
                None
            }
            Step::Yield => {
                std::thread::yield_now();
                None
            }
            Step::Sleep(time) => Some(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that stands still.
    fn still() -> Duration {
        Duration::ZERO
    }

    fn spins_of_next_wait() -> u32 {
        let mut waiter = Waiter::new(Patience { spins: 1_000, yields: 1 });
        let mut spins = 0;
        while waiter.step(still) == Step::Spin {
            spins += 1;
        }
        spins
    }

    #[test]
    fn a_wait_spins_then_yields_then_sleeps_longer_and_longer() {
        let mut waiter = Waiter::new(Patience { spins: 2, yields: 1 });
        let steps: Vec<Step> = (0..5).map(|_| waiter.step(still)).collect();
        let sleep = |factor| Step::Sleep(SHORTEST_SLEEP * factor);
        assert_eq!(steps, [Step::Spin, Step::Spin, Step::Yield, sleep(1), sleep(2)]);
    }

    #[test]
    fn a_wait_whose_looks_take_long_sleeps() {
        for patience in [Patience { spins: 0, yields: 1_000 }, Patience { spins: 1_000, yields: 0 }]
        {
            let mut waiter = Waiter::new(patience);
            let mut looks = 0;
            while !matches!(waiter.step(|| looks * LONGEST_AWAKE / 64), Step::Sleep(_)) {
                looks += 1;
            }
            assert!(looks <= 2 * SPINS_PER_CLOCK, "{looks} looks with {patience:?}");
            assert!(matches!(waiter.step(still), Step::Sleep(_)), "once asleep, it stays so");
        }
    }

    #[test]
    fn spins_that_end_no_wait_become_fewer_and_come_back() {
        for expected in [1_000, 500, 250, 125, 64, 64] {
            assert_eq!(spins_of_next_wait(), expected);
            let mut waiter = Waiter::new(Patience { spins: 1_000, yields: 1 });
            while waiter.step(still) == Step::Spin {}
            waiter.learn();
        }
        for _ in 0..10 {
            let mut waiter = Waiter::new(Patience { spins: 1_000, yields: 1 });
            waiter.step(still);
            waiter.learn();
        }
        assert_eq!(spins_of_next_wait(), 1_000);
    }
}
