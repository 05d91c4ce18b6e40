//! Reports from the processes of a job to `lpf run`, which has started them: a datagram each, to a socket
//! that it named in the environment. Under other launchers no report is sent.
//!
//! A process [asks](ask) `lpf run` for the descriptors that it needs; a message carries them. Descriptors that a
//! process inherits do not survive every program between the two.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::time::Duration;

use lpf_control::carried::{self, MOST};
use lpf_core::{Cause, Error, Pid};
use serde::{Deserialize, Serialize};

/// The variable with the address of the reports. It is not a setting.
pub const WHERE: &str = "_LPF_REPORT";

/// The longest text of an error that is told.
const LONGEST_TEXT: usize = 4096;

/// The longest letter: JSON may write six bytes for one.
pub const LONGEST: usize = 6 * LONGEST_TEXT + 1024;

/// `lpf run` answers within this, unless it is stopped.
const ANSWER: Duration = Duration::from_secs(10);

/// A report of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// Its shepherd has started it.
    Started {
        /// Which.
        rank: Pid,
        /// Its process identifier.
        pid: i32,
    },
    /// Its shepherd asks for the standard streams that it is to have: input, output, errors. Any of them may
    /// be the shepherd's own.
    AsksForStreams {
        /// Which.
        rank: Pid,
    },
    /// Process 0 asks for the socket on which it listens for the others.
    AsksForListener {
        /// `LPF_MEET`: there is no socket for another job that this process began.
        meet: String,
    },
    /// It waits for the others to join.
    Meets {
        /// Which.
        rank: Pid,
    },
    /// It has joined them.
    Joined {
        /// Which.
        rank: Pid,
    },
    /// It begins to leave the job, and waits some time for the others to do so.
    Leaves {
        /// Which.
        rank: Pid,
    },
    /// It has left, and may go on by itself.
    Left {
        /// Which.
        rank: Pid,
    },
    /// It could not join the others, or a section of it failed.
    Failed {
        /// Which.
        rank: Pid,
        /// The error's text.
        text: String,
        /// The process that the error names.
        blamed: Option<Pid>,
        /// The process that did not arrive in time, if that is the cause.
        late: Option<Pid>,
        /// The process whose end is the cause, if one is.
        died: Option<Pid>,
    },
    /// It has ended, as its shepherd saw.
    Ended {
        /// Which.
        rank: Pid,
        /// Its process identifier.
        pid: i32,
        /// How, as wait(2) gives it.
        status: i32,
    },
}

/// A report, and what shows that it comes from a process of the job.
#[derive(Debug, Serialize, Deserialize)]
pub struct Letter {
    /// A secret of the job. Other users of this machine see the name of the socket, but not this.
    pub token: String,
    /// The report.
    pub report: Report,
}

/// Reports to an address, a name and a token with a space between.
///
/// # Errors
/// If no process listens there.
pub fn send(address: &str, report: Report) -> io::Result<()> {
    let (name, token) = address.split_once(' ').ok_or(io::ErrorKind::InvalidInput)?;
    let letter = serde_json::to_vec(&Letter { token: token.into(), report })?;
    let to = SocketAddr::from_abstract_name(name)?;
    UnixDatagram::unbound()?.send_to_addr(&letter, &to).map(drop)
}

/// Reports what asks for descriptors, and waits for them.
///
/// # Errors
/// If no process listens there.
pub fn ask(address: &str, report: Report) -> io::Result<[Option<OwnedFd>; MOST]> {
    let (name, token) = address.split_once(' ').ok_or(io::ErrorKind::InvalidInput)?;
    let letter = serde_json::to_vec(&Letter { token: token.into(), report })?;
    let (own, theirs) = UnixStream::pair()?;
    carried::send(&UnixDatagram::unbound()?, Some(name), &letter, &[theirs.as_fd()])?;
    drop(theirs);
    own.set_read_timeout(Some(ANSWER))?;
    let mut which = [0];
    let (bytes, descriptors) = carried::receive(&own, &mut which)?;
    if bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut descriptors = descriptors.into_iter();
    Ok(std::array::from_fn(|nth| if which[0] >> nth & 1 == 1 { descriptors.next() } else { None }))
}

/// Answers what was asked on a socket that came with a report.
///
/// # Errors
/// If the process that asked has ended.
pub fn answer(asked: &OwnedFd, given: [Option<BorrowedFd<'_>>; MOST]) -> io::Result<()> {
    let which = given.iter().rev().fold(0u8, |which, one| which << 1 | u8::from(one.is_some()));
    let descriptors: Vec<_> = given.into_iter().flatten().collect();
    carried::send(asked, None, &[which], &descriptors)
}

/// Whether `lpf run` has started this process.
pub(crate) fn is_told_to_lpf_run() -> bool {
    std::env::var_os(WHERE).is_some()
}

/// Reports to `lpf run`, if that has started this process. A child that was forked from a process of the job is not the
/// one that `lpf run` knows by this number.
pub(crate) fn tell(report: Report) {
    if let Ok(address) = std::env::var(WHERE)
        && !lpf_control::is_forked_from_member()
    {
        // Where it is gone, nobody wants to know.
        let _ = send(&address, report);
    }
}

/// Says something of this process's own on standard error, in one piece: others write there, too.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("lpf: {text}\n").as_bytes());
}

/// Says it before the launcher that ends all may end this process, and waits for nobody: where standard error
/// takes nothing more, as nobody is reading, a thread of its own waits.
#[cfg(feature = "mpi")]
pub(crate) fn say_at_once(text: String) {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let stderr = io::stderr();
    let mut room = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    match poll(&mut room, PollTimeout::ZERO) {
        Ok(1) => say(&text),
        _ => drop(std::thread::Builder::new().spawn(move || say(&text))),
    }
}

/// Reports a failure to join, or of a section, and hands the result on.
pub(crate) fn told<R>(rank: Pid, result: lpf_core::Result<R>) -> lpf_core::Result<R> {
    if let Err(error) = &result
        && error.is_fatal()
    {
        let late = error.process().filter(|_| matches!(error.cause(), Cause::Late { .. }));
        let died = error.process().filter(|_| matches!(error.cause(), Cause::Died { .. }));
        tell(Report::Failed { rank, text: text(error), blamed: error.process(), late, died });
    }
    result
}

fn text(error: &Error) -> String {
    let text = error.to_string().replace(['\n', '\r'], " ");
    let end = (0..=LONGEST_TEXT.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text[..end.unwrap_or(0)].to_owned()
}
