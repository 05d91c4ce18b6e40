//! How many files a process may have open: connections, pipes and the like count as such.

use std::fmt;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// A limit that is too small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooFew {
    /// The number of files that this process may have open at once.
    pub limit: u64,
    /// The number that it would need.
    pub needed: u64,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFew { limit, needed } = self;
        write!(
            f,
            "this process may have {limit} open files (the hard limit, ulimit -Hn), and needs {needed}. Raise that limit before it starts (in /etc/security/limits.conf, LimitNOFILE= of a service, --ulimit nofile= of a container), or start fewer processes"
        )
    }
}

/// Raises the soft limit of this process to the hard one; returns both as they were before.
pub fn raise() -> (rlim_t, rlim_t) {
    let limits = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((rlim_t::MAX, rlim_t::MAX));
    if limits.0 < limits.1 {
        // Where it is refused, the limit stays as it is, and is compared with what is needed.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, limits.1, limits.1);
    }
    limits
}

/// Raises the limit, and checks that `more` files can be opened beside those that are.
///
/// # Errors
/// The limit and the number needed, if the limit is too small.
pub fn make_room(more: usize) -> Result<(), TooFew> {
    raise();
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(rlim_t::MAX, |(soft, _)| soft);
    let needed = (open() + more) as u64;
    if needed > limit { Err(TooFew { limit, needed }) } else { Ok(()) }
}

/// What this process has open.
fn open() -> usize {
    /// Standard streams, where the system does not tell more.
    const LEAST: usize = 3;
    std::fs::read_dir("/proc/self/fd").map_or(LEAST, |entries| entries.count())
}
