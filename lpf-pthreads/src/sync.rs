//! The atomics of the protocols: the standard library's, or loom's where it explores them
//! (`--cfg loom`, see `ci/loom.sh`).

use std::time::{Duration, Instant};

#[cfg(loom)]
pub(crate) use loom::{
    sync::Mutex,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};
// ThreadSanitizer sees into this lock; the standard library is not instrumented.
#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;

use lpf_core::process::PerProcess;
use lpf_core::wait::Waiter;

#[cfg(not(loom))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Spins or yields, as the waiter says; the time to sleep where it is time for that.
#[cfg(not(loom))]
#[inline]
pub(crate) fn pause(waiter: &mut Waiter) -> Option<Duration> {
    waiter.pause(now)
}

/// Every look that is not followed by a sleep lets loom run another thread.
#[cfg(loom)]
pub(crate) fn pause(waiter: &mut Waiter) -> Option<Duration> {
    match waiter.step(now) {
        lpf_core::wait::Step::Sleep(time) => Some(time),
        _ => {
            yield_now();
            None
        }
    }
}

/// The clock of this engine: one for all sections, because threads wait between sections, too.
pub(crate) fn now() -> Duration {
    static BEGAN: PerProcess<Instant> = PerProcess::inherited(Instant::now);
    BEGAN.get().elapsed()
}

/// 128 bytes: two cache lines, because processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
