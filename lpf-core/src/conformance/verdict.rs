//! What cases assert about errors and time, and how a section that is meant to fail is looked at.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::Pid;
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::lpf::Lpf;

/// The bound within which others learn of a failure; multiplied by what the harness says.
pub const BOUND: Duration = Duration::from_secs(SLOWDOWN as u64);

/// What bounds on time are multiplied by besides: of the slowest harness of this process.
static HARNESS: AtomicU32 = AtomicU32::new(1);

pub(super) fn slow_down(factor: u32) {
    HARNESS.fetch_max(factor, Ordering::Relaxed);
}

/// A bound on time, as it holds for this harness.
pub(super) fn allowed(bound: Duration) -> Duration {
    bound * HARNESS.load(Ordering::Relaxed)
}

/// Begins every complaint about time, so that the case can be tried again: see
/// [`alone`](super::runner::alone).
pub(super) const LATE: &str = "too late";

/// Asserts that a wait was not longer than `bound`.
pub fn assert_in_time(waited: Duration, bound: Duration) {
    let bound = allowed(bound);
    assert!(waited <= bound, "{LATE}: after {} ms, not {}", waited.as_millis(), bound.as_millis());
}

/// What bounds on time are multiplied by: the sanitizers make everything several times slower, and
/// `./test` runs them beside other checks.
pub(super) const SLOWDOWN: u32 = if cfg!(any(tsan, asan)) { 10 } else { 1 };

/// Asserts that a result is an error of one kind and cause, and gives the error.
macro_rules! refused {
    ($result:expr, $kind:ident, $($cause:tt)+) => {
        match $result {
            Err(error) => {
                assert!(
                    error.kind() == $crate::error::Kind::$kind
                        && matches!(error.cause(), $crate::error::Cause::$($cause)+),
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
pub(super) use refused;

/// Asserts that the text of a fatal error names all these processes.
pub fn assert_fatal_naming(error: &Error, processes: &[Pid]) {
    assert!(error.is_fatal(), "expected a fatal error, got: {error}");
    let text = error.to_string();
    for &process in processes {
        assert!(names(&text, process), "this error has to name process {process}: {text}");
    }
}

/// Whether `text` contains "process N" for this N, not as the beginning of a longer number.
pub(super) fn names(text: &str, process: Pid) -> bool {
    let name = format!("process {process}");
    text.match_indices(&name)
        .any(|(at, _)| !text[at + name.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

/// Runs `f` in a rehook that has to fail with a fatal error at every process, and gives what `f`
/// saw at this one, with the error that rehook returned. The context is used afterwards, which
/// shows that it stays usable.
pub fn failing_rehook<L: Lpf, R>(
    ctx: &mut Context<'_, L>,
    f: impl for<'r> FnOnce(&mut Context<'r, L>) -> Result<R>,
) -> (Option<R>, Error) {
    let mut seen = None;
    let result = ctx.rehook(Args::none(), |inner, _args| {
        seen = Some(f(inner)?);
        Ok(())
    });
    let error = result.expect_err("the rehook should have failed");
    ctx.sync().expect("the context that started a failed rehook stays usable");
    (seen, error)
}

/// Full syncs until one is fatal, three at the most: others learn of a failure at the latest in a
/// superstep that needs something from the failed process.
pub fn sync_until_fatal<L: Lpf>(ctx: &mut Context<'_, L>) -> Error {
    for _ in 0..3 {
        if let Err(error) = ctx.sync() {
            assert!(error.is_fatal(), "a sync fails with fatal only, got: {error}");
            return error;
        }
    }
    panic!("process {} has seen no fatal error after three syncs", ctx.pid());
}

/// Asks until `f` has an answer; panics where it has none within ten times the bound.
pub(super) fn wait_for<R>(what: &str, mut f: impl FnMut() -> Option<R>) -> R {
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
pub(super) fn room<L: Lpf>(ctx: &mut Context<'_, L>, slots: usize, requests: usize) -> Result<()> {
    ctx.resize(slots, requests)?;
    ctx.sync()
}
