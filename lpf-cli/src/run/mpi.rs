//! Starting the processes of a job by the launcher of an MPI, with the flags that it needs here.

use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lpf::control::files::raise;
use lpf::launcher::WHERE;
use lpf::settings::{Launched, Settings, by_mpi_launcher};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid};

use super::milliseconds;
use super::start::{Inherited, Job, check, prepare};
use crate::failure::{Failure, Result};
use crate::output::seconds;

/// The families of launchers, which take different flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    OpenMpi,
    /// MPICH's, and those made from it.
    Hydra,
}

impl Family {
    /// Of the library that this program was built with, by what it calls itself.
    fn of_library(version: &str) -> Self {
        if version.contains("Open MPI") { Family::OpenMpi } else { Family::Hydra }
    }

    /// Of a launcher, by what it prints for `--version`.
    fn of_launcher(version: &str) -> Option<Self> {
        let version = version.to_lowercase();
        let is = |words: &[&str]| words.iter().any(|word| version.contains(word));
        if is(&["open mpi", "openrte", "prrte"]) {
            Some(Family::OpenMpi)
        } else {
            is(&["hydra", "mpich", "intel", "mvapich"]).then_some(Family::Hydra)
        }
    }

    /// Launchers by their names, those first that Debian gives where it has several.
    fn names(self) -> &'static [&'static str] {
        match self {
            Family::OpenMpi => &["mpirun.openmpi", "mpirun", "mpiexec"],
            Family::Hydra => &["mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"],
        }
    }

    fn package(self) -> &'static str {
        match self {
            Family::OpenMpi => "openmpi-bin",
            Family::Hydra => "mpich",
        }
    }

    /// What it needs to be told here; survivors of a process's end live on.
    fn flags(self, oversubscribed: bool) -> &'static [&'static str] {
        match (self, oversubscribed) {
            (Family::OpenMpi, false) => &["--oversubscribe", "--enable-recovery"],
            (Family::OpenMpi, true) => {
                // A process that waits lets others have the core.
                &["--oversubscribe", "--enable-recovery", "--mca", "mpi_yield_when_idle", "1"]
            }
            (Family::Hydra, _) => &["-disable-auto-cleanup"],
        }
    }
}

/// A launcher that was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launcher {
    pub(super) pid: Pid,
    pub(super) name: &'static str,
    /// It has so long for each process.
    pub(super) patience: Duration,
}

/// How long a launcher may take, unless `LPF_MEET_TIMEOUT` says it: processes have as long to find each other.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a launcher prints for `--version`, if it is there; an error if it does not end in time.
fn version_of(launcher: &str, patience: Duration) -> Result<Option<String>> {
    let (until, mut command) = (Instant::now() + patience, Command::new(launcher));
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return Ok(None) };
    let (mut text, mut output) = (Vec::new(), child.stdout.take());
    let mut buffer = [0; 4096];
    while let Some(pipe) = &mut output {
        let time = milliseconds(until.saturating_duration_since(Instant::now()));
        match poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], time) {
            Ok(0) => {
                // Who is gone already need not be told.
                let _ = child.kill();
                let _ = child.wait();
                let time = seconds(patience);
                return Err(Failure::Failed(format!(
                    "{launcher} --version did not end within {time}: run it by hand to see why, or set LPF_MEET_TIMEOUT=SECONDS to wait longer"
                )));
            }
            Ok(_) => match pipe.read(&mut buffer) {
                Ok(n) if n > 0 => text.extend_from_slice(&buffer[..n]),
                _ => output = None,
            },
            Err(_) => {}
        }
    }
    // It has closed its output, which is all that was asked.
    let _ = child.kill();
    let _ = child.wait();
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// What the MPI that this program was built with calls itself, if it was.
fn library() -> Option<String> {
    #[cfg(feature = "mpi")]
    return Some(lpf::mpi::library_version());
    #[cfg(not(feature = "mpi"))]
    None
}

/// A launcher that is here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    family: Family,
    name: &'static str,
    patience: Duration,
}

/// A launcher: of the MPI that this program was built with, else any. It is asked for its version, so this is done
/// while signals still end this program.
pub(super) fn find() -> Result<Found> {
    let patience = Settings::from_environment()?.meet_timeout.value.unwrap_or(PATIENCE);
    let library = library();
    let families = match &library {
        Some(library) => vec![Family::of_library(library)],
        None => vec![Family::OpenMpi, Family::Hydra],
    };
    for &family in &families {
        for name in family.names() {
            let version = version_of(name, patience)?;
            if version.is_some_and(|text| Family::of_launcher(&text) == Some(family)) {
                return Ok(Found { family, name, patience });
            }
        }
    }
    let packages: Vec<_> = families.iter().map(|family| family.package()).collect();
    let (packages, of) = (packages.join(" or "), library.as_deref().unwrap_or("any MPI"));
    Err(Failure::Usage(format!(
        "no launcher of {of} is in PATH; Debian has it in the package {packages}"
    )))
}

/// Starts the launcher, which starts the whole job. It is told to end when the thread that calls this
/// does: then it ends all processes, and removes their files.
pub(super) fn start(found: Found, job: &Job<'_>, reports: String) -> Result<Launcher> {
    let Found { family, name, patience } = found;
    let mut command = command(job, reports, family, name)?;
    let refused = |error| Failure::Failed(format!("no process could be started: {error}"));
    check(job.program).map_err(|error| Failure::Usage(error.to_string()))?;
    // It needs as many files as it may have.
    let mask = job.inherited.mask;
    let (parent, inherited) = (getpid(), Inherited { mask, files: raise() });
    // SAFETY: between fork and exec, `prepare` makes system calls on what it is given and nothing
    // else: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(move || prepare(parent, Signal::SIGTERM, &inherited)) };
    let child = command.spawn().map_err(refused)?;
    Ok(Launcher { pid: Pid::from_raw(child.id() as libc::pid_t), name, patience })
}

/// Removes the files of a launcher that was killed. Open MPI's keeps them in a folder named after its process;
/// other launchers have none.
pub(super) fn tidy_after(launcher: Pid) {
    let hosts = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for host in hosts.filter(|host| host.file_name().as_encoded_bytes().starts_with(b"ompi.")) {
        // Other folders of this name are other users', or of launchers that run.
        let _ = std::fs::remove_dir_all(host.path().join(format!("pid.{launcher}")));
    }
}

fn command(job: &Job<'_>, reports: String, family: Family, launcher: &str) -> Result<Command> {
    let own = std::env::current_exe().map_err(super::system)?;
    let oversubscribed = job.size > lpf::settings::cores();
    let mut command = Command::new(launcher);
    // What tells of a job that this is a part of; the rest may be the user's settings.
    if by_mpi_launcher().is_some() || Launched::from_environment()?.is_some() {
        lpf::alone(&mut command);
    }
    command
        .args(["-n", &job.size.to_string()])
        .args(family.flags(oversubscribed))
        .arg(own)
        .arg("shepherd")
        .arg("--")
        .arg(job.program)
        .args(job.arguments)
        .env(WHERE, reports)
        // It reads ahead, for whichever process it gives the input to; see `Desk::hand_streams`.
        .stdin(if std::io::stdin().is_terminal() { Stdio::inherit() } else { Stdio::null() })
        // It refuses to be root's without both.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    if family == Family::OpenMpi && std::env::var_os("PMIX_OUTPUT_REDIRECT").is_none() {
        // At each process that ends badly its daemon complains of errors of its own, which tell nobody
        // anything; what MPI and its launcher have to say is not among them.
        command.env("PMIX_OUTPUT_REDIRECT", "syslog");
    }
    if family == Family::Hydra && std::env::var_os("UCX_TLS").is_none() {
        // Shared memory, and nothing else that UCX knows: with cma it ends a process that reads from one
        // that has died, and over tcp MPI_Finalize waited for ever after one job of five in which long
        // messages had gone that way (UCX 1.13).
        command.env("UCX_TLS", "self,posix,sysv");
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_and_libraries_are_recognised() {
        assert_eq!(Family::of_library("Open MPI v4.1.4"), Family::OpenMpi);
        assert_eq!(Family::of_library("MPICH Version: 4.0.2"), Family::Hydra);
        let of = Family::of_launcher;
        assert_eq!(of("mpirun (Open MPI) 4.1.4\n\nReport bugs to ..."), Some(Family::OpenMpi));
        assert_eq!(of("mpirun.real (OpenRTE) 4.1.4"), Some(Family::OpenMpi));
        assert_eq!(of("HYDRA build details:\n    Version: 4.0.2"), Some(Family::Hydra));
        assert_eq!(of("Intel(R) MPI Library for Linux* OS"), Some(Family::Hydra));
        assert_eq!(of("ls (GNU coreutils) 9.1"), None);
    }
}
