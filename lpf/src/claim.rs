//! The place of a process in its job belongs to one process of the machine.
//!
//! A launcher tells a process its place by the environment, which programs inherit that the process starts in
//! turn. A process that joins claims its place first: it binds a socket whose name is made from all that tells
//! jobs and places apart. The name is free again when the process ends, however it ends.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lpf_core::settings::Launched;
use lpf_core::{Error, Pid, Result};
use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket};
use nix::unistd::getuid;

use crate::launcher::WHERE;

/// How variables begin that tell a process its place.
const OF_A_PLACE: [&str; 12] = [
    "LPF_BACKEND",
    "LPF_RANK",
    "LPF_SIZE",
    "LPF_MEET",
    "LPF_SECRET",
    "LPF_JOB",
    WHERE,
    "OMPI_",
    "PMIX_",
    "PMI_",
    "HYDI_",
    "SLURM_",
];

/// A setting that begins like one of them, and is none.
const NO_PLACE: &str = "LPF_MEET_TIMEOUT";

/// A place that this process has claimed.
#[derive(Debug)]
struct Claimed {
    /// It is not a forked child's.
    by: u32,
    key: String,
    _socket: UnixListener,
}

static IS_ANOTHERS: AtomicBool = AtomicBool::new(false);

/// Whether this process was refused because another process has its place in the job: it has only inherited the
/// variables.
pub fn is_in_anothers_place() -> bool {
    IS_ANOTHERS.load(Ordering::Relaxed)
}

static CLAIMED: Mutex<Vec<Claimed>> = Mutex::new(Vec::new());

/// Removes from a command's environment what names this process's place in a job. A program that is started so
/// runs alone; with the whole environment it would be taken for this process, and is refused.
///
/// ```
/// use std::process::Command;
///
/// let mut command = Command::new("true");
/// assert!(lpf::alone(&mut command).status()?.success());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn alone(command: &mut Command) -> &mut Command {
    of_a_place().iter().fold(command, |command, name| command.env_remove(name))
}

/// Which variables of this environment those are.
fn of_a_place() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let is_one = |name: &String| OF_A_PLACE.iter().any(|begin| name.starts_with(begin));
    let mut names: Vec<_> = names.filter(|name| is_one(name) && name != NO_PLACE).collect();
    names.sort_unstable();
    names
}

/// Claims the place that the environment tells for the network over TCP.
///
/// # Errors
/// *Misuse* if another process of this machine has it.
pub(crate) fn claim(job: &Launched) -> Result<()> {
    let Launched { rank, size, meet, job, .. } = job;
    take(*rank, format!("tcp {meet} {job} {rank}/{size}"))
}

/// Claims the place that a launcher of MPI tells.
///
/// # Errors
/// *Misuse* if another process of this machine has it, which `MPI_Init` would end for.
#[cfg(feature = "mpi")]
pub(crate) fn claim_of_mpi() -> Result<()> {
    const JOB: [&str; 6] = [
        WHERE,
        "PMIX_NAMESPACE",
        "OMPI_MCA_ess_base_jobid",
        "SLURM_JOB_ID",
        "SLURM_STEP_ID",
        "PMI_JOBID",
    ];
    let Some((rank, size)) = lpf_core::settings::by_mpi_launcher() else { return Ok(()) };
    let said = JOB.map(|name| std::env::var(name).unwrap_or_default());
    // MPICH's launcher gives its jobs no names. The socket to it is another one for each process.
    let socket = match std::env::var("PMI_FD") {
        Err(_) => String::new(),
        Ok(number) => match std::fs::read_link(format!("/proc/self/fd/{number}")) {
            Ok(file) if file.to_string_lossy().starts_with("socket:") => file.display().to_string(),
            Err(_) if !std::path::Path::new("/proc/self/fd").exists() => String::new(),
            _ => {
                let text = format!(
                    "this process is not process {rank} of the job, though its environment says so: it has no connection to MPI's launcher"
                );
                return Err(refused(&text));
            }
        },
    };
    take(rank, format!("mpi {} {socket} {rank}/{size}", said.join(" ")))
}

fn take(rank: Pid, key: String) -> Result<()> {
    /// The process that had it may be about to end.
    const ATTEMPTS: u32 = 5;
    let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
    let by = std::process::id();
    claimed.retain(|one| one.by == by);
    if claimed.iter().any(|one| one.key == key) {
        return Ok(());
    }
    let name = name(&key);
    for _ in 0..ATTEMPTS {
        let address = SocketAddr::from_abstract_name(&name);
        match address.and_then(|address| UnixListener::bind_addr(&address)) {
            Ok(socket) => {
                claimed.push(Claimed { by, key, _socket: socket });
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => match holder(&name) {
                Holder::Process(pid) => return Err(taken(rank, Some(pid))),
                Holder::Unknown => return Err(taken(rank, None)),
                Holder::Stranger => return Ok(()),
                Holder::Gone => std::thread::sleep(Duration::from_millis(1)),
            },
            // A sandbox without such sockets: nothing is known.
            Err(_) => return Ok(()),
        }
    }
    Err(taken(rank, None))
}

fn name(key: &str) -> String {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    format!("lpf-member-{:016x}", hasher.finish())
}

/// The process that has a name.
enum Holder {
    /// This one of this user.
    Process(i32),
    /// The system does not say.
    Unknown,
    /// One of another user, who cannot take part, and is not to keep others from it.
    Stranger,
    Gone,
}

fn holder(name: &str) -> Holder {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None);
    let (Ok(socket), Ok(address)) = (socket, UnixAddr::new_abstract(name.as_bytes())) else {
        return Holder::Unknown;
    };
    match connect(socket.as_raw_fd(), &address) {
        Err(Errno::ECONNREFUSED) => return Holder::Gone,
        // So many ask that it may have no more.
        Err(_) => return Holder::Unknown,
        Ok(()) => {}
    }
    match getsockopt(&socket, PeerCredentials) {
        Ok(peer) if peer.uid() != getuid().as_raw() => Holder::Stranger,
        Ok(peer) => Holder::Process(peer.pid()),
        Err(_) => Holder::Unknown,
    }
}

/// The error of a process whose rank another process of this machine has, which the system calls `other` if that is known.
fn taken(rank: Pid, other: Option<i32>) -> Error {
    let own = std::process::id();
    let other = other.map_or("another".into(), |pid| format!("process {pid} of the system"));
    refused(&format!(
        "two processes of this machine have rank {rank} of the job, {other} and this one ({own}): each process of a job needs its own (LPF_RANK, or the launcher's)"
    ))
}

/// The error of a process that is not the one that its environment names.
fn refused(why: &str) -> Error {
    IS_ANOTHERS.store(true, Ordering::Relaxed);
    let there = of_a_place();
    let is_there = |begin: &&&str| there.iter().any(|name| name.starts_with(**begin));
    let names = OF_A_PLACE.iter().filter(is_there).map(|begin| match begin.ends_with('_') {
        true => format!("all that begin with {begin}"),
        false => (*begin).to_owned(),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    Error::setting(format!(
        "{why}. A program that a process of a job starts inherits its environment. To run it alone, start it by lpf::alone(&mut command), or without these variables: {names}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_claimed_once_for_a_process_and_named_to_another() {
        let key = format!("test {}", std::process::id());
        take(3, key.clone()).unwrap();
        take(3, key.clone()).unwrap();
        // As another process that has not claimed it.
        CLAIMED.lock().unwrap().iter_mut().for_each(|one| one.by = 0);
        let held = std::mem::take(&mut *CLAIMED.lock().unwrap());
        let text = take(3, key.clone()).unwrap_err().to_string();
        let own = std::process::id();
        let both = format!(
            "two processes of this machine have rank 3 of the job, process {own} of the system and this one ({own}): each"
        );
        assert!(text.contains(&both), "{text}");
        drop(held);
        take(3, key).unwrap();
    }

    #[test]
    fn many_who_ask_do_not_wait() {
        let name = format!("lpf-asked-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        for _ in 0..5000 {
            assert!(matches!(holder(&name), Holder::Process(_) | Holder::Unknown));
        }
        assert!(matches!(holder("lpf-nobody"), Holder::Gone));
    }
}
