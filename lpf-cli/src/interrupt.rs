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

/// From now on the first Ctrl-C is noted.
pub(crate) fn heed() {
    handle(SaFlags::SA_RESETHAND);
}

/// From now on every Ctrl-C is noted: in a process of a job, which receives it from the terminal and from `lpf run`, and
/// is ended by the command that began the job.
pub(crate) fn heed_in_a_job() {
    handle(SaFlags::empty());
}

fn handle(flags: SaFlags) {
    let action = SigAction::new(SigHandler::Handler(note), flags, SigSet::empty());
    // SAFETY: the handler stores a word, and nothing else. If the system refuses it, Ctrl-C ends the program.
    let _ = unsafe { sigaction(Signal::SIGINT, &action) };
}

/// Whether it came.
pub(crate) fn came() -> bool {
    CAME.load(Relaxed)
}

/// How measuring has ended: jobs have an interrupt, too, and fail in the middle.
pub(crate) fn ended(measured: Result<()>) -> Result<()> {
    if came() { Err(Failure::Ended(STATUS)) } else { measured }
}

/// What was found, if anything was, and how measuring has ended.
pub(crate) fn split<T>(measured: Result<T>) -> (Option<T>, Result<()>) {
    match measured {
        Ok(found) => (Some(found), ended(Ok(()))),
        Err(failure) => (None, ended(Err(failure))),
    }
}

/// What to say beside what was measured, if that is not all: so many of so many.
pub(crate) fn remark(end: &Result<()>, [done, all]: [usize; 2], what: &str) -> Option<String> {
    let cut = if came() { "interrupted" } else { "ended by a failure" };
    end.is_err().then(|| format!("{cut}, when {done} of {all} {what} were measured"))
}
