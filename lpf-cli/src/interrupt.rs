//! Ctrl-C ends the measuring, and so does a failure: what was measured so far is printed, for it is worth its time,
//! whatever became of the rest. A second Ctrl-C ends the program.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::failure::{Failure, Result};
use crate::output;

/// Of a program that was interrupted.
const STATUS: u8 = 128 + Signal::SIGINT as u8;

static CAME: AtomicBool = AtomicBool::new(false);
/// Whether the cursor may be behind a bar.
static HAS_BAR: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    CAME.store(true, Relaxed);
}

/// The measurement ends after the repetition under way: the user learns at once that it will.
extern "C" fn note_and_say(signal: libc::c_int) {
    const TEXT: &[u8] =
        b"\nlpf: interrupted; printing what was measured (Ctrl-C again ends at once)\n";
    note(signal);
    let text = if HAS_BAR.load(Relaxed) { TEXT } else { &TEXT[1..] };
    // The interrupted code may be about to read its own.
    let errno = Errno::last_raw();
    // SAFETY: write may be called in a handler; pointer and length are those of a constant.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    Errno::set_raw(errno);
}

/// From now on the first Ctrl-C is noted and announced.
pub(crate) fn heed() {
    HAS_BAR.store(std::io::stderr().is_terminal(), Relaxed);
    handle(note_and_say, SaFlags::SA_RESETHAND);
}

/// From now on every Ctrl-C is noted: in a process of a job, which receives it from the terminal and from `lpf run`, and
/// is ended by the command that began the job.
pub(crate) fn heed_in_a_job() {
    handle(note, SaFlags::empty());
}

fn handle(handler: extern "C" fn(libc::c_int), flags: SaFlags) {
    let action = SigAction::new(SigHandler::Handler(handler), flags, SigSet::empty());
    // SAFETY: both handlers only access atomics and call write, and leave errno as it was. If the system refuses them,
    // Ctrl-C ends the program.
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

/// The end of a command that has nothing to print: if an interrupt is the cause, it says so.
pub(crate) fn without_rows(end: Result<()>) -> Result<()> {
    if came() {
        output::say("nothing was measured before the interrupt");
    }
    end
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
