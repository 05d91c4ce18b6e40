//! Sleeping in a model: until something happens, and for ever if nothing does. A wake-up that is
//! lost is a deadlock, which loom finds; the real sleep is bounded, so that there it costs 20 ms.

use std::time::Duration;

use loom::sync::{Condvar, Mutex};

use crate::sync::{AtomicU32, Ordering};

loom::lazy_static! {
    /// Wake-ups so far.
    static ref EVENTS: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());
}

loom::thread_local! {
    /// Those that this thread knows of.
    static SEEN: std::cell::Cell<u64> = std::cell::Cell::new(0);
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

/// Returns at once where something happened since this thread's last sleep: its caller looks again.
pub(crate) fn sleep(word: &impl Word, expected: u32, _time: Duration) {
    let mut events = EVENTS.0.lock().unwrap();
    if SEEN.with(|seen| seen.get()) == *events && word.value() == expected {
        events = EVENTS.1.wait(events).unwrap();
    }
    SEEN.with(|seen| seen.set(*events));
}

pub(crate) fn wake(_word: &impl Word) {
    something_happened();
}

/// Ends every sleep, as the bound of the real ones does.
pub(crate) fn something_happened() {
    *EVENTS.0.lock().unwrap() += 1;
    EVENTS.1.notify_all();
}
