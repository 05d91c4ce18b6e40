//! Memory that is never freed, because a network may touch it for ever.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

struct Kept {
    _value: Box<dyn Any>,
}

// SAFETY: nobody uses the value any more, nor drops it.
unsafe impl Send for Kept {}

/// Keeps a value for ever: what it owns stays where it is, and within reach, so that nobody who looks for
/// lost memory takes it for that.
pub(crate) fn keep<T: 'static>(value: T) {
    static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    let kept = Kept { _value: Box::new(value) };
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
}
