//! Waking processes of one host: each has a word in shared memory that says whether it sleeps.
//!
//! A process that is about to sleep sets its word, looks for messages once more, and sleeps while the word is set. A
//! process that has written a message reads the receiver's word after that, and wakes the receiver if the word is set.
//! The wake-up is lost if the message is still in the writer's store buffer when the receiver looks, and the receiver's
//! word in the receiver's when the writer reads it. A fence would exclude that, at the cost of a fence per message.
//! Instead the receiver yields before it looks, which takes longer than a store buffer needs, and it sleeps for a bounded
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::mapping::Mapping;

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
    /// The memory has a line of zeros for each process from `start` on, which is used as a bell only. `start` is a
    /// multiple of [`LINE`]. `own` and the processes that are rung are among these processes.
    pub(crate) unsafe fn new(memory: Arc<Mapping>, start: usize, own: usize) -> Self {
        Bells { memory, start, own }
    }

    #[inline]
    fn word(&self, process: usize) -> &AtomicU32 {
        let word = self.memory.base.wrapping_add(self.start + LINE * process);
        // SAFETY: `new` requires that the word is inside the memory, aligned, and used as an atomic only; the memory stays
        // mapped as long as this value lives.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    /// Sleeps until another process rings, for `time` at most. The first call only sets the word: the caller looks for
    /// messages and calls again.
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

    /// Wakes a process for which a message was written, if it sleeps.
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

/// Sleeps while the word is set, until woken, for `time` at most.
#[cfg(target_os = "linux")]
fn wait(word: &AtomicU32, time: Duration) {
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos() as libc::c_long,
    };
    let (word, wait) = (word.as_ptr(), libc::FUTEX_WAIT);
    // SAFETY: the word and the time are valid during the call. An error only makes it return early.
    unsafe { libc::syscall(libc::SYS_futex, word, wait, ASLEEP, &raw const time) };
}

#[cfg(target_os = "linux")]
fn wake(word: &AtomicU32) {
    // SAFETY: waking reads nothing and writes nothing in this process.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

/// On other systems a process looks again when the time is over.
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

    /// Bells of two processes, each with its own mapping of the shared memory.
    fn two() -> [Bells; 2] {
        let made = Shared::make(2).expect("two processes have room");
        let found = Shared::open(made.offer(), 2).expect("it is there");
        let all = [(0, made), (1, found)].map(|(own, shared)| {
            let (memory, start) = shared.bells();
            // SAFETY: the file was made for the bells of two processes, of zeros.
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
        // In turns each writes a number and waits for the other's next one. A process that is not woken sleeps too long.
        let play = |bells: &Bells, own: u64| {
            for turn in (own..2 * TURNS).step_by(2) {
                while written.load(Ordering::Acquire) != turn {
                    bells.sleep(LONG);
                    assert!(start.elapsed() < allowed(LONG), "nobody rang in turn {turn}");
                }
                if turn % 100 < 2 {
                    // Long enough for the other process to be asleep.
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
        // The first call only sets the word.
        (0..3).for_each(|_| one.sleep(Duration::from_millis(5)));
        assert!(start.elapsed() >= Duration::from_millis(10));
    }
}
