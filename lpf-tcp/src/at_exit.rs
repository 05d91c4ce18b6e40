//! What is done when the process ends.

use std::sync::OnceLock;

use lpf_core::process::Maker;

/// Has `f` called when the process ends in order: by the end of `main` or by `exit`, and not where it is
/// killed. Not in a child that this process forks, which ends for itself. Where the system has no room for it, it is not
/// called.
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
