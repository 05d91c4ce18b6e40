//! How cases run: under which settings, with how many processes, and never for ever.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use lpf_core::{Args, Pid, Result, panic_text};

use crate::verdict::{LATE, SLOWDOWN, contention, harness};
use crate::{Harness, Mode, Story};

/// How much longer than on a fast harness a case may take, at most, before it counts as hanging.
const SLOWEST: u32 = 3;

/// How long a case may take before it counts as hanging. `CASE_LIMIT` sets other seconds: `ci/mutations.sh` breaks rules
/// so that cases do hang, and waits for each.
fn limit() -> Duration {
    let seconds = std::env::var("CASE_LIMIT")
        .map(|text| text.parse().expect("CASE_LIMIT is a number of seconds"));
    Duration::from_secs(seconds.unwrap_or(60))
}

/// Held shared by cases that may run side by side, and exclusively by those that measure time.
static MACHINE: RwLock<()> = RwLock::new(());

/// Tells the watchdog that its case has ended, also by a panic.
struct Ended<'a>(&'a AtomicBool, Thread);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

/// Runs `f`; if it takes longer than [`limit`], as widened for harness and load, says which case hangs and ends the process:
/// nothing less stops processes that wait for each other.
pub(crate) fn watched<R>(case: &str, f: impl FnOnce() -> R) -> R {
    let (ended, start) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        let watchdog = scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                let limit = limit() * SLOWDOWN * harness().min(SLOWEST) * contention();
                if start.elapsed() >= limit {
                    // Written past the capture of test output, which is lost with the process.
                    let seconds = limit.as_secs();
                    let text = format!("conformance: case {case} hangs: {seconds} s are over\n");
                    let _ = std::io::stderr().write_all(text.as_bytes());
                    std::process::abort();
                }
                std::thread::park_timeout(limit.saturating_sub(start.elapsed()));
            }
        });
        let result = {
            let _ended = Ended(&ended, watchdog.thread().clone());
            f()
        };
        // Joined here and not by the scope: ThreadSanitizer sees the end of a thread in a join only.
        let _ = watchdog.join();
        result
    })
}

/// Runs `f` beside other cases.
pub(crate) fn beside_others<R>(f: impl FnOnce() -> R) -> R {
    let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    f()
}

/// How often a case may be late: another program may have had the cores. After each time it waits longer
/// for that to end.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(2);

/// Runs `f` with no other case at the same time, because it measures time. Where it fails by being
/// late and by nothing else, it is run again, `TRIES` times in all.
pub(crate) fn alone<R>(f: impl Fn() -> R) -> R {
    let _machine = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    for time in 1..TRIES {
        match catch_unwind(AssertUnwindSafe(&f)) {
            Ok(result) => return result,
            Err(panic) if panic_text(&*panic).contains(LATE) => std::thread::sleep(time * PAUSE),
            Err(panic) => resume_unwind(panic),
        }
    }
    f()
}

/// One section of a case; the error names case, settings and number of processes.
pub(crate) fn section<H: Harness>(
    harness: &H,
    case: &str,
    mode: Mode,
    procs: Pid,
    story: impl Story<H::Process>,
    args: Args<'_>,
) {
    let result = watched(case, || harness.exec(mode, procs, story, args));
    expect_success(case, mode, procs, result);
}

/// Panics with the whole story where `result` is an error.
pub(crate) fn expect_success(case: &str, mode: Mode, procs: Pid, result: Result<()>) {
    if let Err(error) = result {
        panic!("{case}, {procs} processes, {mode:?}: {error}");
    }
}

/// A case with each number of processes, plain and in the checked mode.
pub(crate) fn everywhere<H: Harness>(
    harness: &H,
    case: &str,
    procs: &[Pid],
    story: impl Story<H::Process>,
) {
    for &procs in procs {
        for check in [false, true] {
            let mode = Mode { check, ..Mode::default() };
            beside_others(|| section(harness, case, mode, procs, story, Args::none()));
        }
    }
}

/// A case about expected arrivals: with and without strict mode, plain and checked.
pub(crate) fn both_ways<H: Harness>(
    harness: &H,
    case: &str,
    procs: &[Pid],
    story: impl Story<H::Process>,
) {
    for &procs in procs {
        for (strict, check) in [(false, false), (true, false), (false, true)] {
            let mode = Mode { check, strict, ..Mode::default() };
            beside_others(|| section(harness, case, mode, procs, story, Args::none()));
        }
    }
}

/// A case in the plain mode only.
pub(crate) fn plain<H: Harness>(
    harness: &H,
    case: &str,
    procs: &[Pid],
    story: impl Story<H::Process>,
) {
    for &procs in procs {
        beside_others(|| section(harness, case, Mode::default(), procs, story, Args::none()));
    }
}

/// A case that measures time: once in the plain mode with nothing beside it.
pub(crate) fn timed<H: Harness>(
    harness: &H,
    case: &str,
    procs: &[Pid],
    story: impl Story<H::Process>,
) {
    for &procs in procs {
        alone(|| section(harness, case, Mode::default(), procs, story, Args::none()));
    }
}

/// Defines a case: its sentence, how it runs, with how many processes, and what every process does.
///
/// `everywhere`, `both_ways`, `plain` and `timed` are the functions above.
macro_rules! case {
    ($(#[$meta:meta])* pub fn $name:ident $how:ident [$($procs:expr),*] |$ctx:ident| $body:block) => {
        $(#[$meta])*
        pub fn $name<H: $crate::Harness>(harness: &H) {
            fn story<L: lpf_core::Lpf>(
                $ctx: &mut lpf_core::Context<'_, L>,
                _args: lpf_core::Args<'_>,
            ) -> lpf_core::Result<()> {
                $crate::memory::bury();
                $body
                Ok(())
            }
            let case = stringify!($name);
            $crate::runner::$how(harness, case, &[$($procs),*], story);
        }
    };
}
