//! Ctrl-C ends the measuring, and so does a failure: what was measured so far is printed, for it is worth its time,
//! whatever became of the rest. A second Ctrl-C ends the program.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::failure::{Failure, Result};

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

/// How measuring has ended: jobs have an interrupt, too, and fail in the middle.
pub(super) fn ended(measured: Result<()>) -> Result<()> {
    if came() { Err(Failure::Ended(STATUS)) } else { measured }
}

/// What to say beside what was measured, if that is not all: so many of so many.
pub(super) fn remark(end: &Result<()>, [done, all]: [usize; 2], what: &str) -> Option<String> {
    let cut = if came() { "interrupted" } else { "ended by a failure" };
    end.is_err().then(|| format!("{cut}, when {done} of {all} {what} were measured"))
}
