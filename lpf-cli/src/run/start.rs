//! What starting a process takes, whoever starts it: what it runs, what may be refused.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getppid};

/// What is to be started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) program: &'a OsString,
    pub(super) arguments: &'a [OsString],
    pub(super) size: lpf::Pid,
    /// Whether lines of output begin with the number of their process.
    pub(super) tag: bool,
    /// What a process begins with.
    pub(super) inherited: Inherited,
}

/// What a process begins with, as this program did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inherited {
    /// The signals that are blocked.
    pub(super) mask: SigSet,
    /// How many files may be open: the soft and the hard limit.
    pub(super) files: (u64, u64),
}

/// Why a process was not started.
#[derive(Debug)]
pub(super) enum Refused {
    /// The program cannot be run at all.
    Program(String),
    /// The system has no more.
    System(io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Program(text) => write!(f, "{text}"),
            Refused::System(error) => write!(f, "the system refused the next ({error})"),
        }
    }
}

impl Refused {
    /// Why the system has not started `program`.
    pub(super) fn new(program: &OsString, error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE) => {
                Refused::System(error)
            }
            _ => Refused::Program(why(program, &error)),
        }
    }
}

/// Whether a program is there to be run, as far as can be seen from outside: for where another launcher
/// would say it, once for each process.
pub(super) fn check(program: &OsString) -> Result<(), Refused> {
    use std::io::ErrorKind;

    use nix::unistd::{AccessFlags, access};

    let name = Path::new(program);
    let is_program = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    let found = match program.as_encoded_bytes().contains(&b'/') {
        true if !name.exists() => Err(ErrorKind::NotFound),
        true if !is_program(name) => Err(ErrorKind::PermissionDenied),
        true => Ok(()),
        false => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            let is_in = |folder: std::path::PathBuf| is_program(&folder.join(name));
            let is_there = std::env::split_paths(&folders).any(is_in);
            if is_there { Ok(()) } else { Err(ErrorKind::NotFound) }
        }
    };
    found.map_err(|kind| Refused::Program(why(program, &kind.into())))
}

/// In the child, before it becomes the program, which gets the signal `end` when this process is gone.
///
/// A sandbox may refuse the system calls. Then the program runs without what they are for; an error would be
/// taken for one of the program's file.
pub(super) fn prepare(parent: Pid, end: Signal, inherited: &Inherited) -> io::Result<()> {
    let _ = prctl::set_pdeathsig(end);
    if getppid() != parent {
        // It was killed before that took effect.
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let (soft, hard) = inherited.files;
    let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
    let _ = inherited.mask.thread_set_mask();
    Ok(())
}

/// One sentence about a program that the system does not run.
pub(super) fn why(program: &OsString, error: &io::Error) -> String {
    let path = Path::new(program);
    let name = path.display();
    // Else it is looked for in PATH.
    let has_folder = program.as_encoded_bytes().contains(&b'/');
    match error.kind() {
        _ if program.is_empty() => "the name of the program is empty".into(),
        // A folder of PATH may refuse to be searched.
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            if !has_folder && path.is_file() =>
        {
            format!("there is no program {name} in PATH; did you mean ./{name}?")
        }
        io::ErrorKind::NotFound if !has_folder => format!("there is no program {name} in PATH"),
        io::ErrorKind::NotFound if path.exists() => {
            format!("{name} exists, but the interpreter in its first line, or its loader, does not")
        }
        io::ErrorKind::NotFound => format!("{name} does not exist"),
        io::ErrorKind::PermissionDenied if path.is_dir() => {
            format!("{name} is a folder, not a program")
        }
        io::ErrorKind::PermissionDenied if is_executable(path) => format!(
            "{name} may be executed by its mode, and the system refuses it: it is on a file system without programs (noexec), or a sandbox forbids it"
        ),
        io::ErrorKind::PermissionDenied if path.is_file() => {
            format!("{name} may not be executed (chmod +x {name} allows it)")
        }
        _ => format!("{name} cannot be started: {error}"),
    }
}

/// Whether a file has the mode of a program.
fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_current_folder_is_suggested() {
        for code in [libc::ENOENT, libc::EACCES] {
            let text = why(&"Cargo.toml".into(), &io::Error::from_raw_os_error(code));
            assert!(text.ends_with("in PATH; did you mean ./Cargo.toml?"), "{text}");
        }
    }

    #[test]
    fn a_file_with_the_mode_of_a_program_is_not_blamed_for_what_the_system_refuses() {
        let refused = io::Error::from_raw_os_error(libc::EPERM);
        let text = why(&std::env::current_exe().unwrap().into(), &refused);
        assert!(text.contains("by its mode, and the system refuses it"), "{text}");
        let text = why(&"/proc/self/status".into(), &refused);
        assert!(text.contains("(chmod +x /proc/self/status allows it)"), "{text}");
    }
}
