//! The shepherd: stands between another launcher and one process of a program, and reports how that ended.
//!
//! Launchers of MPI tell a process's exit status to nobody, and MPICH's ends all others when one is
//! killed by a signal. To them a shepherd ends by itself, whatever became of its process.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use lpf::control::files::raise;
use lpf::launcher::{Report, WHERE, ask, send};
use lpf::settings::by_mpi_launcher;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::getpid;

use super::options::Shepherd;
use super::start::{Inherited, prepare, why};
use crate::failure::{Failure, Result};

pub(crate) fn run(options: &Shepherd) -> Result<()> {
    let (Ok(address), Some((rank, _))) = (std::env::var(WHERE), by_mpi_launcher()) else {
        let text = "shepherd is a part of lpf run --backend mpi; call that";
        return Err(Failure::Usage(text.into()));
    };
    let (program, arguments) = options.program()?;
    // Signals are the program's: `lpf run` sends them to it. What the launcher sends besides, to who
    // survives another, would end it.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(super::system)?;
    // Where `lpf run` is gone, nobody wants to know.
    let tell = |report| drop(send(&address, report));
    let parent = getpid();
    // Whoever is not there is not to be waited for.
    let failed = |pid| tell(Report::Ended { rank, pid, status: 1 << 8 });
    let asked = ask(&address, Report::AsksForStreams { rank });
    let asked = asked.inspect_err(|_| failed(parent.as_raw()));
    let [input, output, errors] = asked.map_err(|error| {
        Failure::Failed(format!("lpf run did not hand over the streams of process {rank}: {error}"))
    })?;
    let inherited = Inherited { mask, files: raise() };
    let mut command = Command::new(program);
    command.args(arguments).env("LPF_BACKEND", "mpi");
    match input {
        Some(input) => command.stdin(input),
        None if rank > 0 => command.stdin(Stdio::null()),
        // A terminal's, which the launcher passes on.
        None => &mut command,
    };
    output.map(|output| command.stdout(output));
    errors.map(|errors| command.stderr(errors));
    // SAFETY: between fork and exec, `prepare` makes system calls on what it is given and nothing
    // else: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(move || prepare(parent, Signal::SIGKILL, &inherited)) };
    let started = command.spawn().inspect_err(|_| failed(parent.as_raw()));
    let mut child = started.map_err(|error| Failure::Usage(why(program, &error)))?;
    // Else it would hold the streams open.
    drop(command);
    let pid = child.id() as i32;
    tell(Report::Started { rank, pid });
    let status = child.wait().inspect_err(|_| failed(pid)).map_err(super::system)?;
    tell(Report::Ended { rank, pid, status: status.into_raw() });
    Ok(())
}
