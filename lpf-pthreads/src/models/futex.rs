//! Sleeping in a model: for ever, unless woken. A wake-up that is lost is a deadlock, which loom
//! finds; the real sleep is bounded, so that there it would cost 20 ms.

use std::time::Duration;

use loom::sync::{Condvar, Mutex};

use crate::sync::{AtomicU32, Ordering};

loom::lazy_static! {
    static ref SLEEPERS: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// Words that can be slept on.
pub(crate) trait Word {
    fn value(&self) -> u32;
}

impl Word for AtomicU32 {
    fn value(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }
}

/// The pool keeps the standard library's atomics: it is not modelled.
impl Word for std::sync::atomic::AtomicU32 {
    fn value(&self) -> u32 {
        self.load(std::sync::atomic::Ordering::Relaxed)
    }
}

pub(crate) fn sleep(word: &impl Word, expected: u32, _time: Duration) {
    let guard = SLEEPERS.0.lock().unwrap();
    if word.value() == expected {
        drop(SLEEPERS.1.wait(guard).unwrap());
    }
}

pub(crate) fn wake(_word: &impl Word) {
    let _guard = SLEEPERS.0.lock().unwrap();
    SLEEPERS.1.notify_all();
}
