//! Starting groups of processes, with the launcher of the MPI that this was built with.

use std::ffi::c_char;
use std::process::{Command, exit};

use mpi::ffi;

/// Whether the library says of itself that it is Open MPI.
pub(crate) fn is_open_mpi() -> bool {
    let mut text = [0_u8; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize];
    let mut length = 0;
    // SAFETY: the buffer is as long as MPI asks for; this may be called before MPI is initialised.
    unsafe {
        ffi::MPI_Get_library_version(text.as_mut_ptr().cast::<c_char>(), &mut length);
    }
    String::from_utf8_lossy(&text).contains("Open MPI")
}

/// The launcher, by the names that Debian gives it where both MPIs are installed, and flags.
pub(crate) fn launcher(processes: usize) -> Command {
    let is_open_mpi = is_open_mpi();
    let names = match is_open_mpi {
        true => ["mpirun.openmpi", "mpirun"],
        false => ["mpiexec.mpich", "mpiexec"],
    };
    let is_there = |name: &&&str| Command::new(**name).arg("--version").output().is_ok();
    let Some(name) = names.iter().find(is_there) else {
        eprintln!("neither {} nor {} is there to start processes", names[0], names[1]);
        exit(1);
    };
    let mut command = Command::new(name);
    command.arg("-n").arg(processes.to_string());
    if is_open_mpi {
        command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    command
}

/// Tells the launcher to let survivors of a death live on.
#[allow(dead_code, reason = "of the stories about deaths")]
pub(crate) fn keep_going(launcher: &mut Command) {
    match is_open_mpi() {
        true => launcher.arg("--enable-recovery"),
        // It tells survivors with a signal, which they must not die of. And UCX, below it, ends a process
        // that is copying from the memory of another when that one dies: it is not to copy like that.
        false => launcher.env("UCX_TLS", "self,posix,sysv").arg("-disable-auto-cleanup").args([
            "sh",
            "-c",
            r#"trap "" USR1; "$0" "$@"; exit $?"#,
        ]),
    };
}

/// Runs processes of this program, each on a core of its own, and shows what they print.
#[allow(dead_code, reason = "of the benchmark")]
pub(crate) fn pinned(processes: usize) {
    let mut command = launcher(processes);
    let flag = if is_open_mpi() { "--bind-to" } else { "-bind-to" };
    let status = command.args([flag, "core"]).arg(std::env::current_exe().unwrap()).arg("child");
    exit(status.status().unwrap().code().unwrap_or(1));
}

/// Runs one job. How many stories it told.
fn job(processes: usize, name: &str, filter: &str) -> usize {
    let mut command = launcher(processes);
    command.arg(std::env::current_exe().unwrap()).args(["child", name, filter]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    let told = text.lines().find_map(|line| line.strip_prefix("told ")?.parse().ok());
    // Open MPI's launcher finds an end without a finalisation improper.
    let is_proper = output.status.success() || name == "last";
    let Some(told) = told.filter(|_| is_proper) else {
        println!(
            "test result: FAILED. 0 passed; 1 failed; {processes} processes: {}",
            output.status
        );
        exit(1);
    };
    told
}

/// Runs jobs, each so many processes and a name; of their stories those whose names contain `filter`.
pub(crate) fn all<'a>(jobs: impl IntoIterator<Item = (usize, &'a str)>, filter: &str) {
    let told: usize = jobs.into_iter().map(|(processes, name)| job(processes, name, filter)).sum();
    println!("test result: ok. {told} passed; 0 failed");
}
