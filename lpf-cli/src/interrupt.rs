//! Ctrl-C ends the measuring, and so do the other signals that end a program, and a failure: what was measured so far is
//! printed, for it is worth its time, whatever became of the rest. A second signal ends the program.
//!
//! A thread reads the signals, as `lpf run` does. Unlike a handler it may take a lock, so no signal is handled while a
//! job is started, or while its process number is given up.

use std::io::{self, IsTerminal, Write};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::failure::{Failure, Result};
use crate::output::{self, Standard};
use crate::run::{AGAIN, Heard, Signals, ending};

/// The number of the first signal; 0 before.
static CAME: AtomicI32 = AtomicI32::new(0);

/// The signals that were blocked before this program read any, and are to be in its jobs.
static BLOCKED: OnceLock<SigSet> = OnceLock::new();

/// The jobs that run.
static JOBS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

extern "C" fn note(signal: libc::c_int) {
    let _ = CAME.compare_exchange(0, signal, Relaxed, Relaxed);
}

/// From now on the first signal is noted, announced, and passed on to the jobs. To be called while this program has one
/// thread.
pub(crate) fn heed() -> Result<()> {
    let refused = |error: io::Error| {
        Failure::Failed(format!("the system does not let this program read signals: {error}"))
    };
    let signals = Signals::take().map_err(|errno| refused(errno.into()))?;
    let _ = BLOCKED.set(signals.before());
    thread::Builder::new().spawn(move || listen(&signals)).map_err(refused)?;
    Ok(())
}

fn listen(signals: &Signals) {
    let mut first = None::<Instant>;
    loop {
        let mut descriptors = [PollFd::new(signals.descriptor(), PollFlags::POLLIN)];
        // A wait that ends early is one look more.
        let _ = poll(&mut descriptors, PollTimeout::NONE);
        while let Some(heard) = signals.next() {
            match (heard, first) {
                (Heard::Child, _) => {}
                (Heard::PassOn(signal), _) => end(signal),
                (Heard::End { signal, .. }, None) => {
                    first = Some(Instant::now());
                    interrupt(signal);
                }
                (Heard::End { .. }, Some(first)) if first.elapsed() < AGAIN => {}
                (Heard::End { signal, .. }, Some(_)) => end(signal),
            }
        }
    }
}

/// The measurement ends after the repetition under way: the user learns at once that it will.
fn interrupt(signal: Signal) {
    const TEXT: &str =
        "\nlpf: interrupted; printing what was measured (Ctrl-C again ends at once)\n";
    // The cursor may be behind a bar.
    let text = if io::stderr().is_terminal() { TEXT } else { &TEXT[1..] };
    // Written first, because this program may end as soon as the signal is noted. An error decides the exit status.
    let _ = Standard::Errors.write_all(text.as_bytes());
    let jobs = jobs();
    note(signal as libc::c_int);
    // A job that received the signal from the terminal, too, takes both for one.
    for &job in &*jobs {
        let _ = kill(job, signal);
    }
}

/// Does what a signal does by default.
fn end(signal: Signal) {
    let _ = SigSet::from(signal).thread_unblock();
    let _ = raise(signal);
}

fn jobs() -> MutexGuard<'static, Vec<Pid>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a job blocks, as those of `lpf run` do.
pub(crate) fn blocked() -> SigSet {
    BLOCKED.get().copied().unwrap_or_else(SigSet::empty)
}

/// Starts a job that is interrupted with this program: not after the interrupt, of which it would not learn.
pub(crate) fn start(job: impl FnOnce() -> Result<Child>) -> Result<Child> {
    let mut jobs = jobs();
    ended(Ok(()))?;
    let job = job()?;
    jobs.push(Pid::from_raw(job.id() as libc::pid_t));
    Ok(job)
}

/// Waits for the end of a job.
pub(crate) fn wait(job: &mut Child) -> io::Result<ExitStatus> {
    let pid = Pid::from_raw(job.id() as libc::pid_t);
    // Its number stays its own until its status is taken: no other process gets the signal.
    let _ = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
    jobs().retain(|&one| one != pid);
    job.wait()
}

/// From now on every signal that ends a program is noted: in a process of a job, which receives it from the terminal and
/// from `lpf run`, and is ended by the command that began the job.
pub(crate) fn heed_in_a_job() {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
    for signal in ending() {
        // SAFETY: the handler only accesses an atomic. If the system refuses it, the signal ends the process.
        let _ = unsafe { sigaction(signal, &action) };
    }
}

/// Whether it came.
pub(crate) fn came() -> bool {
    CAME.load(Relaxed) != 0
}

/// How measuring has ended: jobs have an interrupt, too, and fail in the middle.
pub(crate) fn ended(measured: Result<()>) -> Result<()> {
    match CAME.load(Relaxed) {
        0 => measured,
        signal => Err(Failure::Ended(128 + signal as u8)),
    }
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
