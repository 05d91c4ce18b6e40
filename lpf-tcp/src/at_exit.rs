//! What is done when the process ends.

/// Has `f` called when the process ends in order: by the end of `main` or by `exit`, and not where it is
/// killed. Where the system has no room for it, it is not called.
pub fn at_exit(f: fn()) {
    static F: std::sync::OnceLock<fn()> = std::sync::OnceLock::new();
    extern "C" fn call() {
        if let Some(f) = F.get() {
            // A panic must not leave a function that C called.
            let _ = std::panic::catch_unwind(f);
        }
    }
    if F.set(f).is_ok() {
        // SAFETY: a function that may be called at any time and never unwinds.
        unsafe { libc::atexit(call) };
    }
}
