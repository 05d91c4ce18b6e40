//! Waking processes of one host: each has a word in the memory they share, which says that it sleeps.
//!
//! Who is about to sleep says so, looks once more, and sleeps while the word says it. Who has written what another
//! may wait for looks at that one's word, after it, and wakes it. The write may still be on its way out of the core
//! when the word is read, and the sleeper's word on its way into it: both at once would lose the wake-up. To exclude it
//! would cost every message a fence; the sleeper yields before it looks, which is longer than any write is under
//! way, and sleeps for a bounded time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::near::Mapping;

/// A word has a cache line to itself.
pub(crate) const LINE: usize = 64;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The words of all processes of a host.
pub(crate) struct Bells {
    memory: Arc<Mapping>,
    start: usize,
    own: usize,
}

impl Bells {
    /// # Safety
    /// From `start` on there is a line for each process, which is used as a bell alone and was made of noughts;
    /// `start` is a whole number of lines. `own`, and whoever is rung, is one of them.
    pub(crate) unsafe fn new(memory: Arc<Mapping>, start: usize, own: usize) -> Self {
        Bells { memory, start, own }
    }

    #[inline]
    fn word(&self, process: usize) -> &AtomicU32 {
        let word = self.memory.base.wrapping_add(self.start + LINE * process);
        // SAFETY: the promise of who made this; the memory is mapped as long as this lives.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    /// Sleeps until somebody rings, for `time` at most; the first time only says so, and the caller looks again
    /// before it comes back.
    pub(crate) fn sleep(&self, time: Duration) {
        let word = self.word(self.own);
        if word.load(Ordering::Relaxed) == AWAKE {
            word.store(ASLEEP, Ordering::SeqCst);
            std::thread::yield_now();
        } else {
            std::thread::yield_now();
            wait(word, time);
        }
    }

    /// Something was written that a process may wait for.
    #[inline]
    pub(crate) fn ring(&self, process: usize) {
        let word = self.word(process);
        if word.load(Ordering::Relaxed) == ASLEEP {
            Self::wake(word);
        }
    }

    #[cold]
    fn wake(word: &AtomicU32) {
        if word.swap(AWAKE, Ordering::Relaxed) == ASLEEP {
            wake(word);
        }
    }
}

/// Sleeps while the word says so, until woken, or for `time` at most.
#[cfg(target_os = "linux")]
fn wait(word: &AtomicU32, time: Duration) {
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos() as libc::c_long,
    };
    let (word, wait) = (word.as_ptr(), libc::FUTEX_WAIT);
    // SAFETY: the word and the time live through the call; an error of any kind is an early return.
    unsafe { libc::syscall(libc::SYS_futex, word, wait, ASLEEP, &raw const time) };
}

#[cfg(target_os = "linux")]
fn wake(word: &AtomicU32) {
    // SAFETY: waking reads nothing and writes nothing in this process.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

/// Elsewhere a sleeper looks again by itself.
#[cfg(not(target_os = "linux"))]
fn wait(_word: &AtomicU32, time: Duration) {
    std::thread::sleep(time);
}

#[cfg(not(target_os = "linux"))]
fn wake(_word: &AtomicU32) {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::Instant;

    use lpf_conformance::allowed;

    use super::super::near::Shared;
    use super::*;

    /// Bells of two processes, each with a mapping of its own of what they share.
    fn two() -> [Bells; 2] {
        let made = Shared::make(2).expect("two processes have room");
        let found = Shared::open(made.offer(), 2).expect("it is there");
        let all = [(0, made), (1, found)].map(|(own, shared)| {
            let (memory, start) = shared.bells();
            // SAFETY: the memory of bells, of these two.
            (unsafe { Bells::new(memory, start, own) }, shared.identity)
        });
        let [(one, of_one), (other, of_other)] = all;
        assert_eq!(of_one, of_other, "both have the same memory");
        [one, other]
    }

    #[test]
    fn who_sleeps_is_woken_by_who_rings_after_it_has_written() {
        const LONG: Duration = Duration::from_secs(20);
        const TURNS: u64 = 2_000;
        let [one, other] = two();
        let written = AtomicU64::new(0);
        let start = Instant::now();
        // In turns: each writes a number, and waits for the next one of the other. Whoever is not woken sleeps too
        // long.
        let play = |bells: &Bells, own: u64| {
            for turn in (own..2 * TURNS).step_by(2) {
                while written.load(Ordering::Acquire) != turn {
                    bells.sleep(LONG);
                    assert!(start.elapsed() < allowed(LONG), "nobody rang in turn {turn}");
                }
                if turn % 100 < 2 {
                    // Long enough for the other one to be asleep, and not about to be.
                    std::thread::sleep(Duration::from_millis(2));
                }
                written.store(turn + 1, Ordering::Release);
                bells.ring(1 - own as usize);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| play(&other, 1));
            play(&one, 0);
        });
    }

    #[test]
    fn a_sleep_ends_by_itself() {
        let [one, _other] = two();
        let start = Instant::now();
        // The first time it only says that it will sleep.
        (0..3).for_each(|_| one.sleep(Duration::from_millis(5)));
        assert!(start.elapsed() >= Duration::from_millis(10));
    }
}
