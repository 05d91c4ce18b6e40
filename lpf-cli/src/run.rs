//! `lpf run`: the processes of a job on this machine, started, watched and ended.
//!
//! # The course of a job
//! 1. The port where the processes will meet is bound here, and process 0 asks for its socket: nobody else
//!    can take it in between. Then all are started, in the order of their numbers.
//! 2. They run. Who ends other than well is noted; what that means for the others is between them and
//!    process 0, whose end decides.
//! 3. Process 0 has ended, or never will by itself: the others have a time of grace to follow. Then they
//!    are asked to (SIGTERM), and after the same time again they are killed. A signal to this program is
//!    passed on, and counts as having asked.
//! 4. When nobody is left, what went wrong is said, its root cause last.
//!
//! # Launchers of MPI
//! With `--backend mpi` the launcher of an MPI starts the processes, each under a shepherd, which reports
//! how it ended; the rest is the same.
//!
//! # Nobody is left behind
//! A process has children of its own: a script starts programs. This program takes in those whose
//! parents have ended (`PR_SET_CHILD_SUBREAPER`), so its descendants are the whole job, and the job is over
//! when there are none. If this program itself is killed, the processes that it started are killed by the
//! system (`PR_SET_PDEATHSIG`); what those have started is their own to end.

mod descendants;
mod desk;
mod mpi;
pub(crate) mod options;
mod report;
mod shepherd;
mod signals;
mod start;
mod tags;
mod tcp;
mod verdict;
mod watch;

use std::time::Duration;

use lpf::control::files::{make_room as make_room_for, raise};
use lpf::settings::{Settings, Source};
use nix::sys::prctl;

use crate::failure::{Failure, Result};
use crate::output;
use desk::Desk;
use options::Run;
use report::Reports;
pub(crate) use shepherd::run as shepherd;
pub(crate) use signals::{AGAIN, Heard, Signals, ending};
use start::{Inherited, Job, Refused};
use tcp::Starter;
use watch::Watch;

pub(crate) fn run(options: &Run) -> Result<()> {
    // Else each process would report what is wrong.
    let settings = Settings::from_environment()?;
    let backend = backend(options, &settings)?;
    let (program, arguments) = options.program()?;
    let size = options.size()?;
    let launcher = matches!(backend, Backend::Mpi).then(mpi::find).transpose()?;
    let signals = Signals::take().map_err(system)?;
    // Where the system cannot do this, only what a process starts and leaves behind is not found.
    let _ = prctl::set_child_subreaper(true);
    let inherited = Inherited { mask: signals.before(), files: raise() };
    let job = Job { program, arguments, size, tag: options.tag, inherited };
    make_room(&job)?;
    let reports = Reports::open().map_err(system)?;
    let address = reports.address();
    let listener = launcher.is_none().then(tcp::listen).transpose()?;
    let meet = listener.as_ref().map(|(_, meet)| meet.clone());
    let (desk, output) = Desk::open(listener, options.tag).map_err(system)?;
    let mut watch = Watch::new(signals, reports, desk, output, size, options.grace);
    let short = match (launcher, meet) {
        (None, meet) => {
            let meet = meet.unwrap_or_default();
            start_each(Starter::new(job, meet, address)?, &mut watch)?
        }
        (Some(found), _) => {
            watch.launcher(mpi::start(found, &job, address)?);
            None
        }
    };
    let over = watch.finish();
    let host = lpf::host::Host::this().name;
    for text in over.remarks(size, &host) {
        output::say(text);
    }
    match (short, over.status()) {
        (Some(text), _) => Err(Failure::Failed(text)),
        (None, 0) => Ok(()),
        (None, status) => Err(Failure::Ended(status)),
    }
}

/// That this program may have as many files open as it will.
fn make_room(job: &Job<'_>) -> Result<()> {
    /// Its own, and what starting a process takes for a moment.
    const OWN: usize = 24;
    let pipes = if job.tag { 2 * job.size } else { 0 };
    make_room_for(pipes + OWN).map_err(|limit| match job.tag {
        true => Failure::Failed(format!("no process was started: {limit}; or leave --tag out")),
        false => Failure::Failed(format!("no process was started: {limit}")),
    })
}

/// Starts one process after the other; what to say if there is no room for all, who are ended then.
fn start_each(mut starter: Starter<'_>, watch: &mut Watch) -> Result<Option<String>> {
    let (mut short, size) = (None, watch.size());
    while starter.rank() < size && !watch.is_ending() {
        match starter.start() {
            Ok(started) => watch.take(started),
            Err(Refused::Program(text)) if starter.rank() == 0 => return Err(Failure::Usage(text)),
            Err(refused) => {
                short = Some(too_few(starter.rank(), size, &refused));
                watch.end();
            }
        }
        watch.hear();
    }
    watch.all_started();
    Ok(short)
}

fn too_few(started: lpf::Pid, size: lpf::Pid, refused: &Refused) -> String {
    match started {
        0 => format!("no process could be started: {refused}"),
        _ => format!(
            "only {started} of {size} processes could be started, and these were ended: {refused}"
        ),
    }
}

/// What connects the processes.
#[derive(Clone, Copy, Debug)]
enum Backend {
    Tcp,
    Mpi,
}

fn backend(options: &Run, settings: &Settings) -> Result<Backend> {
    let environment = &settings.backend;
    let environment = (environment.source != Source::Default).then_some(&*environment.value);
    Err(Failure::Usage(match options.backend.as_deref().or(environment).unwrap_or("tcp") {
        "tcp" => return Ok(Backend::Tcp),
        "mpi" => return Ok(Backend::Mpi),
        "threads" => {
            let instead = "start the program itself, with LPF_PROCS for the number of threads";
            format!("backend \"threads\" is one process: {instead}, or give --backend tcp")
        }
        other => format!(
            "lpf run does not start processes for the backend \"{other}\" (LPF_BACKEND, --backend): there are tcp, and mpi for a program built with --features mpi"
        ),
    }))
}

fn system(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("the system refused to start processes: {error}"))
}

/// What is left of a time, for poll: rounded up, else the last millisecond would be spent in a loop.
fn milliseconds(time: Duration) -> nix::poll::PollTimeout {
    let rounded = time + Duration::from_micros(999);
    nix::poll::PollTimeout::try_from(rounded).unwrap_or(nix::poll::PollTimeout::MAX)
}
