//! Pinned threads that repeat a step together, timed in batches of about a millisecond.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use lpf::measure::superstep::nanoseconds;

use crate::bench::batches::Batches;

/// Threads, each on a core of its own where there are enough.
#[derive(Clone, Debug)]
pub(crate) struct Team {
    threads: usize,
    cores: Vec<usize>,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Timed {
    /// The whole step.
    Step,
    /// What the step says it took, in nanoseconds: a part of it.
    Inside,
}

impl Team {
    /// A team of `threads` on the cores that this program may use, neighbours first.
    pub(crate) fn new(threads: usize) -> Self {
        let cores = lpf::threads::topology().cores.iter().map(|core| core.number).collect();
        Team { threads, cores }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// How many cores the threads share.
    pub(crate) fn cores(&self) -> usize {
        self.cores.len().clamp(1, self.threads)
    }

    /// The core, counted from 0, of a thread: neighbours share one where there are too few.
    pub(crate) fn core_of(&self, thread: usize) -> usize {
        thread * self.cores() / self.threads
    }

    /// Times `batches` batches of steps: `make` is called by every thread, with its number, for
    /// the step that it will repeat; all threads take the same number of steps. Nanoseconds per
    /// step at thread 0.
    pub(crate) fn time<S: FnMut() -> f64>(
        &self,
        batches: usize,
        timed: Timed,
        make: impl Fn(usize) -> S + Sync,
    ) -> Vec<f64> {
        let (ready, steps) = (Barrier::new(self.threads), AtomicU32::new(1));
        let mut batches = Batches::new(batches);
        std::thread::scope(|scope| {
            for thread in 1..self.threads {
                let (make, ready, steps) = (&make, &ready, &steps);
                scope.spawn(move || {
                    pin(self.cores.get(self.core_of(thread)).copied());
                    let mut step = make(thread);
                    follow(ready, steps, &mut step);
                });
            }
            let leader = scope.spawn(|| {
                pin(self.cores.get(self.core_of(0)).copied());
                let mut step = make(0);
                lead(&ready, &steps, &mut step, timed, &mut batches);
            });
            leader.join().expect("the leader does not panic");
        });
        batches.into_times()
    }
}

fn lead(
    ready: &Barrier,
    steps: &AtomicU32,
    step: &mut impl FnMut() -> f64,
    timed: Timed,
    batches: &mut Batches,
) {
    while let Some(n) = batches.next() {
        steps.store(n, Relaxed);
        ready.wait();
        // Untimed: after it all threads are here, however late the barrier woke them.
        step();
        let start = Instant::now();
        let inside: f64 = (0..n).map(|_| step()).sum();
        let whole = nanoseconds(start) / f64::from(n);
        batches.note(whole, if timed == Timed::Step { whole } else { inside / f64::from(n) });
    }
    steps.store(0, Relaxed);
    ready.wait();
}

fn follow(ready: &Barrier, steps: &AtomicU32, step: &mut impl FnMut() -> f64) {
    loop {
        ready.wait();
        let n = steps.load(Relaxed);
        if n == 0 {
            return;
        }
        for _ in 0..=n {
            step();
        }
        // The leader writes `steps` only after its own last step, which waited for this one's.
    }
}

/// Pins this thread; a refusal leaves it where it is.
fn pin(core: Option<usize>) {
    #[cfg(target_os = "linux")]
    if let Some(core) = core.filter(|&core| core < 8 * size_of::<libc::cpu_set_t>()) {
        // SAFETY: a zeroed cpu_set_t is an empty set, the core's number is below its size, and the
        // call reads the set and changes this thread alone.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = core;
}
