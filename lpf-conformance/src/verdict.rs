//! What cases assert about errors and time, and how a section that is meant to fail is looked at.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lpf_core::{Context, Error, Lpf, Pid, Result};

/// The bound within which others learn of a failure; multiplied by what the harness says.
pub(crate) const BOUND: Duration = Duration::from_secs(SLOWDOWN as u64);

/// What bounds on time are multiplied by besides: of the slowest harness of this process.
static HARNESS: AtomicU32 = AtomicU32::new(1);

pub(crate) fn slow_down(factor: u32) {
    HARNESS.fetch_max(factor, Ordering::Relaxed);
}

/// A bound on time, as it holds for this harness, this build and this machine at this moment.
///
/// Every test that bounds a time from above uses it: the bound is that of a machine with a core for each process, and
/// the machine may be shared with other programs.
pub fn allowed(bound: Duration) -> Duration {
    bound * harness() * contention()
}

pub(crate) fn harness() -> u32 {
    HARNESS.load(Ordering::Relaxed)
}

/// 1 if there is a core for each thread that is ready to run, else twice the number of such threads per core: a thread
/// waits for its turn, and so does each thread that it waits for.
///
/// The threads are those of all programs: the number at this moment, or the average over the last minute if that is
/// larger.
pub(crate) fn contention() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Without this file (on other systems than Linux) nothing is known, and bounds are those of a busy machine.
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    ready(&text).map_or(4, |ready| {
        if ready <= cores as f64 { 1 } else { (2.0 * ready / cores as f64).ceil() as u32 }
    })
}

/// The number of threads that are ready to run, by a line such as `2.05 1.10 0.70 3/119 5418`.
fn ready(loadavg: &str) -> Option<f64> {
    let mut words = loadavg.split_whitespace();
    let average: f64 = words.next()?.parse().ok()?;
    let now: f64 = words.nth(2)?.split('/').next()?.parse().ok()?;
    Some(average.max(now))
}

/// Begins every complaint about time, so that the case can be tried again: see
/// [`alone`](crate::runner::alone).
pub(crate) const LATE: &str = "too late";

/// Asserts that a wait was not longer than `bound`.
pub fn assert_in_time(waited: Duration, bound: Duration) {
    let bound = allowed(bound);
    assert!(waited <= bound, "{LATE}: after {} ms, not {}", waited.as_millis(), bound.as_millis());
}

/// What bounds on time are multiplied by under the sanitizers, which make everything several times slower.
pub(crate) const SLOWDOWN: u32 = if cfg!(any(tsan, asan)) { 10 } else { 1 };

/// Asserts that a result is an error of one kind and cause, and gives the error.
macro_rules! refused {
    ($result:expr, $kind:ident, $($cause:tt)+) => {
        match $result {
            Err(error) => {
                assert!(
                    error.kind() == lpf_core::Kind::$kind
                        && matches!(error.cause(), lpf_core::Cause::$($cause)+),
                    "expected {} with cause {}, got: {error}",
                    stringify!($kind),
                    stringify!($($cause)+),
                );
                error
            }
            Ok(_) => panic!(
                "expected {} with cause {}, got success",
                stringify!($kind),
                stringify!($($cause)+)
            ),
        }
    };
}
pub(crate) use refused;

/// The text of an error, with `HERE` for the source location of its call.
pub(crate) fn told(error: &Error) -> String {
    let text = error.to_string();
    match text.rsplit_once("(called at ") {
        Some((before, place)) if place.contains(".rs:") => format!("{before}(called at HERE)"),
        _ => text,
    }
}

/// Asserts that each call is a misuse with this text, behind kind, process and superstep. `HERE` stands for its source
/// location.
macro_rules! refuses {
    ($ctx:ident; $($($call:expr),+ => $text:expr;)+) => {$($(
        let error = $call.map(drop).expect_err($text);
        let head = format!("misuse: process {}, superstep {}: ", $ctx.pid(), $ctx.superstep());
        assert_eq!($crate::verdict::told(&error), head + $text);
    )+)+};
}
pub(crate) use refuses;

/// Asserts that the text of a fatal error names all these processes.
pub(crate) fn assert_fatal_naming(error: &Error, processes: &[Pid]) {
    assert!(error.is_fatal(), "expected a fatal error, got: {error}");
    let text = error.to_string();
    for &process in processes {
        assert!(names(&text, process), "this error has to name process {process}: {text}");
    }
}

/// Whether `text` contains "process N" for this N, not as the beginning of a longer number.
pub(crate) fn names(text: &str, process: Pid) -> bool {
    let name = format!("process {process}");
    text.match_indices(&name)
        .any(|(at, _)| !text[at + name.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

/// Runs `f` in a rehook that has to fail with a fatal error at every process, and gives what `f`
/// saw at this one, with the error that rehook returned. The context is used afterwards, which
/// shows that it stays usable.
pub(crate) fn failing_rehook<L: Lpf, R>(
    ctx: &mut Context<'_, L>,
    f: impl for<'r> FnOnce(&mut Context<'r, L>) -> Result<R>,
) -> (Option<R>, Error) {
    let mut seen = None;
    let result = ctx.rehook(|inner| {
        seen = Some(f(inner)?);
        Ok(())
    });
    let error = result.expect_err("the rehook should have failed");
    ctx.sync().expect("the context that started a failed rehook stays usable");
    (seen, error)
}

/// Full syncs until one is fatal, three at the most: others learn of a failure at the latest in a
/// superstep that needs something from the failed process.
pub(crate) fn sync_until_fatal<L: Lpf>(ctx: &mut Context<'_, L>) -> Error {
    for _ in 0..3 {
        if let Err(error) = ctx.sync() {
            assert!(error.is_fatal(), "a sync fails with fatal only, got: {error}");
            return error;
        }
    }
    panic!("process {} has seen no fatal error after three syncs", ctx.pid());
}

/// Asks until `f` has an answer; panics where it has none within ten times the bound.
pub(crate) fn wait_for<R>(what: &str, mut f: impl FnMut() -> Option<R>) -> R {
    let start = Instant::now();
    loop {
        if let Some(answer) = f() {
            return answer;
        }
        assert!(start.elapsed() < allowed(10 * BOUND), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Slots and requests for a case, in force on return.
pub(crate) fn room<L: Lpf>(ctx: &mut Context<'_, L>, slots: usize, requests: usize) -> Result<()> {
    ctx.resize(slots, requests)?;
    ctx.sync()
}

#[cfg(test)]
mod tests {
    use super::ready;

    #[test]
    fn the_threads_that_are_ready_to_run_are_those_of_now_or_of_the_last_minute() {
        assert_eq!(ready("0.06 0.29 0.50 3/95 2700\n"), Some(3.0));
        assert_eq!(ready("6.50 0.29 0.50 3/95 2700\n"), Some(6.5));
        assert_eq!(ready(""), None);
        assert_eq!(ready("of another system"), None);
    }
}
