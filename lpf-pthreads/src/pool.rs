//! Threads that outlive sections.
//!
//! A section takes workers from the pool and gives them back when it ends; the pool grows to what
//! was needed at the same time. A worker between sections spins a moment, then sleeps.
//!
//! Threads do not survive `fork`: a child has a pool of its own, which is empty at first.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use lpf_core::process::{Maker, PerProcess, end_child};
use lpf_core::wait::{Patience, Waiter};
use lpf_core::{Cause, Error, Result};
use parking_lot::Mutex;

use crate::sync::now;
use crate::{futex, memory};

/// As the main thread has it: SPMD functions are whole programs.
const STACK_BYTES: usize = 8 << 20;
const EMPTY: u32 = 0;
const FULL: u32 = 1;
/// Empty, and the worker sleeps or is about to. Only then it is woken, because that is a system call.
const ASLEEP: u32 = 2;

/// How long a worker looks for its next section before it sleeps: about what the sequential part
/// between two sections of a loop takes.
const BETWEEN_SECTIONS: Patience = Patience { spins: 4_000, yields: 0 };

#[derive(Debug)]
struct Worker {
    mail: AtomicU32,
    job: UnsafeCell<Option<Job>>,
}

// SAFETY: `job` is written by whoever took the worker out of the idle list, before `mail` becomes
// FULL, and read by the worker after that: never at the same time.
unsafe impl Sync for Worker {}
// SAFETY: a job may be run by any thread (see `Job`).
unsafe impl Send for Worker {}

/// A closure of a section that is under way, and the latch that says when all are done.
#[derive(Debug)]
struct Job {
    run: unsafe fn(*const (), usize),
    data: *const (),
    number: usize,
    latch: Arc<Latch>,
}

/// Set in the word of a latch if the thread that waits sleeps, or is about to.
const AWAITED: u32 = 1 << 31;

#[derive(Debug)]
struct Latch {
    running: AtomicU32,
}

impl Latch {
    fn done(&self) {
        if self.running.fetch_sub(1, Ordering::AcqRel) == AWAITED | 1 {
            futex::wake(&self.running);
        }
    }

    fn wait(&self, patience: Patience) {
        let mut waiter = Waiter::new(patience);
        loop {
            let running = self.running.load(Ordering::Acquire);
            if running & !AWAITED == 0 {
                return;
            }
            if let Some(time) = waiter.pause(now) {
                self.running.fetch_or(AWAITED, Ordering::Relaxed);
                futex::sleep(&self.running, running | AWAITED, time);
            }
        }
    }
}

/// The threads of one process of the system.
#[derive(Debug, Default)]
struct Pool {
    idle: Mutex<Vec<Arc<Worker>>>,
    /// Workers that look for their next section and do not sleep yet.
    awake: AtomicUsize,
    /// Sections that run now.
    running: AtomicUsize,
    /// Threads that were asked for and do not run yet.
    starting: AtomicUsize,
    /// The system's numbers of all workers.
    workers: Mutex<Vec<i32>>,
}

static POOL: PerProcess<Pool> = PerProcess::new(Pool::default);

/// Idle workers that use a core at this moment.
pub(crate) fn awake() -> usize {
    POOL.get().awake.load(Ordering::Relaxed)
}

/// The system's numbers of all workers.
pub(crate) fn workers() -> Vec<i32> {
    POOL.get().workers.lock().clone()
}

/// Whether no section of this program runs.
pub(crate) fn is_quiet() -> bool {
    POOL.get().running.load(Ordering::Relaxed) == 0
}

impl Worker {
    fn spawn(pool: &'static Pool) -> std::io::Result<Arc<Worker>> {
        let worker = Arc::new(Worker { mail: AtomicU32::new(EMPTY), job: UnsafeCell::new(None) });
        let own = worker.clone();
        std::thread::Builder::new()
            .name("lpf".into())
            .stack_size(STACK_BYTES)
            .spawn(move || own.serve(pool))?;
        Ok(worker)
    }

    fn serve(self: Arc<Self>, pool: &'static Pool) {
        let maker = Maker::this();
        // It has all its mappings.
        pool.starting.fetch_sub(1, Ordering::Relaxed);
        pool.workers.lock().push(thread_number());
        crate::pin::everywhere();
        loop {
            self.await_mail(pool);
            // SAFETY: the mail is FULL, so the job was written and nobody else touches it.
            let job = unsafe { (*self.job.get()).take() };
            self.mail.store(EMPTY, Ordering::Relaxed);
            let Some(job) = job else { continue };
            // SAFETY: `run` keeps the closure alive until the latch is down, and the closure is
            // Sync. Panics of user code are caught inside it; this guards the pool alone.
            let _ = catch_unwind(AssertUnwindSafe(|| unsafe { (job.run)(job.data, job.number) }));
            if !maker.is_here() {
                end_child();
            }
            pool.idle.lock().push(self.clone());
            job.latch.done();
        }
    }

    fn await_mail(&self, pool: &Pool) {
        let mut waiter = Waiter::new(BETWEEN_SECTIONS);
        pool.awake.fetch_add(1, Ordering::Relaxed);
        while self.mail.load(Ordering::Acquire) != FULL {
            if waiter.pause(now).is_some() {
                pool.awake.fetch_sub(1, Ordering::Relaxed);
                // Unless it is full by now.
                let _ =
                    self.mail.compare_exchange(EMPTY, ASLEEP, Ordering::Relaxed, Ordering::Relaxed);
                futex::sleep(&self.mail, ASLEEP, Duration::from_secs(3600));
                pool.awake.fetch_add(1, Ordering::Relaxed);
            }
        }
        pool.awake.fetch_sub(1, Ordering::Relaxed);
    }

    fn give(&self, job: Job) {
        // SAFETY: the worker is not in the idle list and its mail is not FULL: it does not look.
        unsafe { *self.job.get() = Some(job) };
        if self.mail.swap(FULL, Ordering::Release) == ASLEEP {
            futex::wake(&self.mail);
        }
    }
}

/// The system's number of this thread.
fn thread_number() -> i32 {
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes nothing.
    let number = unsafe { libc::gettid() };
    #[cfg(not(target_os = "linux"))]
    let number = 0;
    number
}

/// Takes `wanted` workers, starting what is missing; all or nothing.
fn take(pool: &'static Pool, wanted: usize) -> Result<Vec<Arc<Worker>>> {
    let mut workers = {
        let mut idle = pool.idle.lock();
        let keep = idle.len().saturating_sub(wanted);
        idle.split_off(keep)
    };
    // The one that became idle last is asked first: its caches are warm, and the order of
    // processes on workers stays from section to section.
    workers.reverse();
    let started = start(pool, wanted, &mut workers);
    if started.is_err() {
        pool.idle.lock().append(&mut workers);
    }
    started.map(|()| workers)
}

/// Starts the workers that are missing of `wanted`.
fn start(pool: &'static Pool, wanted: usize, workers: &mut Vec<Arc<Worker>>) -> Result<()> {
    let missing = wanted - workers.len();
    if missing == 0 {
        return Ok(());
    }
    let starting = pool.starting.fetch_add(missing, Ordering::Relaxed) + missing;
    let started = memory::check_threads(starting).and_then(|()| {
        while workers.len() < wanted {
            workers.push(Worker::spawn(pool).map_err(|error| {
                let (started, reason) = (workers.len(), memory::reason_with_limits(&error));
                Error::refused(Cause::NoThreads { started, wanted, reason })
            })?);
        }
        Ok(())
    });
    pool.starting.fetch_sub(wanted - workers.len(), Ordering::Relaxed);
    started
}

/// Runs `member(0..workers)` on workers and `own` on this thread; returns when all are done.
pub(crate) fn run<M: Fn(usize) + Sync>(
    workers: usize,
    member: &M,
    own: impl FnOnce(),
) -> Result<()> {
    /// # Safety
    /// `data` is a `&M` that lives through the call.
    unsafe fn call<M: Fn(usize)>(data: *const (), number: usize) {
        // SAFETY: the caller's promise.
        unsafe { (*data.cast::<M>())(number) }
    }
    let pool = POOL.get();
    let maker = Maker::this();
    let team = take(pool, workers)?;
    pool.running.fetch_add(1, Ordering::Relaxed);
    let latch = Arc::new(Latch { running: AtomicU32::new(workers as u32) });
    for (number, worker) in team.iter().enumerate() {
        let data = std::ptr::from_ref(member).cast();
        worker.give(Job { run: call::<M>, data, number, latch: latch.clone() });
    }
    // Workers hold a reference to `member`: they are awaited whatever `own` does.
    let result = catch_unwind(AssertUnwindSafe(own));
    let cores = lpf_core::settings::cores();
    // A child that `own` has forked has no workers.
    if maker.is_here() {
        latch.wait(Patience::for_processes(workers + 1, cores));
    }
    pool.running.fetch_sub(1, Ordering::Relaxed);
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
    Ok(())
}
