//! Sleeping until a word changes, for a bounded time.

#[cfg(not(loom))]
use std::time::Duration;

#[cfg(loom)]
pub(crate) use crate::models::futex::{sleep, wake};
#[cfg(not(loom))]
use crate::sync::AtomicU32;

/// Sleeps while `word` is `expected`, until woken or for `time` at most. May return early.
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) fn sleep(word: &AtomicU32, expected: u32, time: Duration) {
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos() as libc::c_long,
    };
    // SAFETY: the word and the time live through the call; an error of any kind is an early return.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const time,
        );
    }
}

/// Wakes everybody who sleeps on `word`.
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: waking reads nothing and writes nothing in this process.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}

/// Elsewhere a sleeper looks again by itself.
#[cfg(all(not(target_os = "linux"), not(loom)))]
pub(crate) fn sleep(_word: &AtomicU32, _expected: u32, time: Duration) {
    std::thread::sleep(time.min(Duration::from_micros(100)));
}

#[cfg(all(not(target_os = "linux"), not(loom)))]
pub(crate) fn wake(_word: &AtomicU32) {}

#[cfg(all(target_os = "linux", not(loom)))]
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Whether the system lets this process call [`barrier_everywhere`]. It has to be asked once, which takes memory: every
/// section does so at its beginning, because a superstep allocates nothing.
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) fn is_registered() -> bool {
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    static REGISTERED: lpf_core::process::PerProcess<bool> =
        lpf_core::process::PerProcess::new(|| membarrier(REGISTER_PRIVATE_EXPEDITED));
    *REGISTERED.get()
}

/// Makes every thread of the program pass a full fence before this returns, so that who publishes
/// a word and then looks for sleepers needs none. False if the system has no such call: the
/// sleeper's bounded sleep is then its only protection.
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) fn barrier_everywhere() -> bool {
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    is_registered() && membarrier(PRIVATE_EXPEDITED)
}

#[cfg(any(not(target_os = "linux"), loom))]
pub(crate) fn barrier_everywhere() -> bool {
    crate::sync::fence(crate::sync::Ordering::SeqCst);
    false
}

#[cfg(any(not(target_os = "linux"), loom))]
pub(crate) fn is_registered() -> bool {
    false
}
