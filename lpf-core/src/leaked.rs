//! Leaked memory: it is never freed, because a network may access it at any time.

use std::any::Any;

use parking_lot::Mutex;

struct Leaked {
    _value: Box<dyn Any>,
}

// SAFETY: the value is not used any more, and never dropped.
unsafe impl Send for Leaked {}

/// Leaks a value. It stays reachable, so that tools that search for lost memory do not report it.
pub fn leak<T: 'static>(value: T) {
    static LEAKED: Mutex<Vec<Leaked>> = Mutex::new(Vec::new());
    let leaked = Leaked { _value: Box::new(value) };
    LEAKED.lock().push(leaked);
}
