//! What the system and the user have to say, one after the other.
//!
//! Signals are blocked and read from a descriptor, so one loop without handlers hears everything: ends of
//! processes, signals to pass on, and whether a signal came from the terminal.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::Result;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// These end a job.
const ENDING: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];

/// These are the program's business, and are passed on.
const PASSED_ON: [Signal; 2] = [Signal::SIGUSR1, Signal::SIGUSR2];

/// A second signal so long after the first means that the user does not want to wait. Sooner it is the
/// same once more: timeout(1) sends its signal to the program and then to the group.
pub(crate) const AGAIN: Duration = Duration::from_millis(500);

/// Something to react to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard {
    /// A child has ended.
    Child,
    /// A signal that is passed on.
    PassOn(Signal),
    /// A signal that ends the job.
    End {
        signal: Signal,
        /// It came from the terminal, which sends it to all in the foreground, children too.
        to_all: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    /// From now on signals are read here. To be called while this program has one thread.
    pub(crate) fn take() -> Result<Self> {
        // SAFETY: the default action runs no code of this program. Children of a process that ignores
        // this signal, as whoever started it may have decided, end without leaving a status.
        unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
        let set: SigSet = heeded(&PASSED_ON).chain(ending()).chain([Signal::SIGCHLD]).collect();
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Signals { descriptor: SignalFd::with_flags(&set, flags)?, before })
    }

    /// What was blocked before, and is to be in a child.
    pub(crate) fn before(&self) -> SigSet {
        self.before
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// The next that has come, if any.
    pub(crate) fn next(&self) -> Option<Heard> {
        let info = self.descriptor.read_signal().ok()??;
        match Signal::try_from(info.ssi_signo as i32).ok()? {
            Signal::SIGCHLD => Some(Heard::Child),
            signal if PASSED_ON.contains(&signal) => Some(Heard::PassOn(signal)),
            // Positive codes are the kernel's (sigaction(2)): no process has sent it.
            signal => Some(Heard::End { signal, to_all: info.ssi_code > 0 }),
        }
    }
}

/// The signals that end a job.
pub(crate) fn ending() -> impl Iterator<Item = Signal> {
    heeded(&ENDING)
}

/// Leaves out the signals that this program was started to ignore: nohup, or a shell that starts it in the background,
/// means the job.
fn heeded(signals: &[Signal]) -> impl Iterator<Item = Signal> {
    let ignored = ignored();
    signals.iter().copied().filter(move |&signal| ignored & (1 << (signal as u32 - 1)) == 0)
}

/// The signals that this program was started to ignore, as bits (proc(5)).
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
