//! The job of a program that was started as several processes: joined at its first section, left when
//! the program ends.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use lpf_control::rendezvous::{By, Meeting};
use lpf_core::process::{PerProcess, end_child};
use lpf_core::{Args, Cause, Error, Pid, Result};

use crate::Context;
use crate::launcher::{is_told_to_lpf_run, say, told};
use crate::meeting::meeting;
use crate::member::Member;

/// This process in this program's job.
static JOB: PerProcess<Mutex<Option<Member>>> = PerProcess::new(Mutex::default);

thread_local! {
    /// Whether this thread is in a section that [`run`] began, or serves one.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// This thread runs a section until the value is gone.
pub(crate) struct Runs;

impl Runs {
    pub(crate) fn begin() -> Result<Self> {
        if RUNS.replace(true) {
            let text = "lpf::run was called inside a section that it began; in a section call ctx.exec or ctx.rehook";
            return Err(Error::setting(text));
        }
        Ok(Runs)
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        RUNS.set(false);
    }
}

/// Runs `f` on up to `procs` processes of this process's job, if it is number 0; any other serves
/// until the job is over, and ends there.
pub(crate) fn run<F, R>(backend: &'static str, procs: Pid, args: Args<'_>, f: F) -> Result<R>
where
    F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Copy + Send + Sync,
{
    let _runs = Runs::begin()?;
    if lpf_control::is_forked_from_member() {
        return Err(Error::setting(
            "this process was forked from a process of a job, which goes on as the member: lpf::run cannot be called here; lpf::exec can, on threads",
        ));
    }
    let mut job = JOB.get().lock().unwrap_or_else(PoisonError::into_inner);
    let member = match &mut *job {
        Some(member) => member,
        none => {
            let member = none.insert(join(backend)?);
            lpf_control::at_exit(leave);
            member
        }
    };
    member.start(procs, args, f)
}

fn join(backend: &'static str) -> Result<Member> {
    let between = backend.strip_prefix("hybrid:");
    let member = match between.unwrap_or(backend) {
        #[cfg(feature = "mpi")]
        "mpi" => Member::with_mpi()?,
        _ => {
            let meeting = Meeting { by: By::Run, ..meeting()? };
            let rank = meeting.rank;
            let joined = Member::new(meeting);
            if rank > 0 && joined.as_ref().is_err_and(is_said_by_lpf_run) {
                std::process::exit(1);
            }
            joined?
        }
    };
    serve_unless_first(if between.is_some() { member.on_nodes()? } else { member })
}

/// Whether the last line of `lpf run` has an error, once for all processes that report the same.
fn is_said_by_lpf_run(error: &Error) -> bool {
    error.is_fatal() && is_told_to_lpf_run()
}

/// Beyond this point a program is process 0's alone.
fn serve_unless_first(member: Member) -> Result<Member> {
    if member.rank() == 0 {
        return Ok(member);
    }
    let served = told(member.rank(), member.serve());
    match &served {
        Err(error) if matches!(error.cause(), Cause::Forked { .. }) => end_child(),
        Err(error) if !is_said_by_lpf_run(error) => {
            say(&format!("process {} of the job ends: {error}", member.rank()));
        }
        _ => {}
    }
    drop(member);
    std::process::exit(i32::from(served.is_err()))
}

/// Leaves the job of [`run`](crate::run), if this process has joined one: the end of the program does so
/// by itself, for a program that goes on long without it this is earlier. The other processes end.
pub fn leave() {
    // A process that ends in the middle of a section holds the lock: it does not leave in order.
    if let Ok(mut job) = JOB.get().try_lock() {
        drop(job.take());
    }
}
