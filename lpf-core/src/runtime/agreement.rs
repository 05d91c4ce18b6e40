//! What the processes of a section agree on when they meet, and the errors if they do not.

use super::LocalState;
use crate::Pid;
use crate::error::{Cause, Error};

/// Why a process has arrived at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A full sync.
    Sync,
    /// The end of its function, before the messages of links are counted.
    Count,
    /// The end of its section.
    Close,
    /// The entry of a rehook.
    Rehook,
}

impl Purpose {
    /// All of them, in the order of their numbers.
    pub const ALL: [Purpose; 4] = [Purpose::Sync, Purpose::Count, Purpose::Close, Purpose::Rehook];

    /// As users call it.
    fn name(self) -> &'static str {
        match self {
            Purpose::Sync => "sync",
            Purpose::Count | Purpose::Close => "the end of its function",
            Purpose::Rehook => "rehook",
        }
    }
}

/// The processes of a section have arrived at a barrier for different purposes. `first` gives the lowest process that has
/// arrived for a purpose.
#[cold]
pub fn mismatch(local: &LocalState, first: impl Fn(Purpose) -> Option<Pid>) -> Error {
    let superstep = local.superstep;
    let first = |purpose| first(purpose).map(|pid| local.known_as(pid));
    let lowest = |purposes: [Purpose; 2]| purposes.into_iter().filter_map(first).min();
    let stayed = lowest([Purpose::Sync, Purpose::Rehook]);
    let left = lowest([Purpose::Count, Purpose::Close]);
    if let (Some(left), Some(other)) = (left, stayed) {
        let cause = Cause::LeftEarly { own: superstep, other, next: superstep + 1 };
        return Error::fatal(left, superstep, cause);
    }
    let arrived = Purpose::ALL.into_iter().filter_map(|purpose| Some((first(purpose)?, purpose)));
    let mut arrived: Vec<(Pid, Purpose)> = arrived.collect();
    arrived.sort_by_key(|&(pid, _)| pid);
    let [(pid, own), (other, theirs), ..] = arrived[..] else {
        unreachable!("two purposes make a mismatch")
    };
    let cause = Cause::Mismatch { own: own.name().into(), other, theirs: theirs.name().into() };
    Error::fatal(pid, superstep, cause)
}

/// The collective registrations of one process: how many, and their hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Registrations {
    /// Their hash.
    pub hash: u64,
    /// How many.
    pub calls: u64,
    /// The process.
    pub pid: Pid,
    /// The length in bytes of the area registered last: only the text of an error names it.
    pub area: u64,
}

impl Registrations {
    /// Whether two processes have registered the same.
    #[inline]
    pub fn agree(&self, other: &Self) -> bool {
        (self.hash, self.calls) == (other.hash, other.calls)
    }
}
