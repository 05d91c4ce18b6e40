//! Ctrl-C ends the measuring: what was measured so far is printed. A second one ends the program.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Of a program that was interrupted.
pub(crate) const STATUS: u8 = 128 + Signal::SIGINT as u8;

static CAME: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    CAME.store(true, Relaxed);
}

/// From now on it is noted.
pub(crate) fn heed() {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESETHAND, SigSet::empty());
    // SAFETY: the handler stores a word, and nothing else. Where the system refuses, Ctrl-C ends the program.
    let _ = unsafe { sigaction(Signal::SIGINT, &action) };
}

/// Whether it came.
pub(crate) fn came() -> bool {
    CAME.load(Relaxed)
}
