//! The end of a program whose runtime panics while other processes count on it.

/// Ends the program if it is dropped, which only a panic of [`guarded`]'s function does.
struct AbortIfDropped;

impl Drop for AbortIfDropped {
    fn drop(&mut self) {
        // loom ends a model that fails by a panic, and shows its message.
        #[cfg(not(loom))]
        std::process::abort();
    }
}

/// Runs what must not unwind. While threads are at a barrier, and between the two barriers of a sync, other processes
/// copy from this one's memory: a panic would free it. Only a mistake of the runtime panics there. (A panic of the user
/// that is under way already is not one: a sync may be called by what it drops.)
#[inline]
pub fn guarded<R>(f: impl FnOnce() -> R) -> R {
    let guard = AbortIfDropped;
    let result = f();
    std::mem::forget(guard);
    result
}
