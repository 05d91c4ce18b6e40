//! What is done when the process ends.

use std::sync::OnceLock;

use lpf_core::process::Maker;

/// Calls `f` when the process ends by the end of `main` or by `exit`, but not if it is killed, and not in a child that
/// this process forks. If the system has no room to note it, `f` is not called.
pub fn at_exit(f: fn()) {
    static F: OnceLock<(fn(), Maker)> = OnceLock::new();
    extern "C" fn call() {
        if let Some((f, maker)) = F.get()
            && maker.is_here()
        {
            // A panic must not leave a function that C called.
            let _ = std::panic::catch_unwind(f);
        }
    }
    if F.set((f, Maker::this())).is_ok() {
        // SAFETY: a function that may be called at any time and never unwinds.
        unsafe { libc::atexit(call) };
    }
}
