//! What a call is written into: memory that all groups of a context share, so that no call allocates.

use lpf_core::Pid;

use crate::schedule::Schedule;

/// One for a context.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) schedule: Schedule,
    /// Where the blocks of a call end that have different lengths: those sent, and those received.
    pub(crate) ends: [Vec<usize>; 2],
}

impl Workspace {
    /// For `nprocs` processes.
    ///
    /// # Errors
    /// The bytes that were refused.
    pub(crate) fn new(nprocs: Pid) -> Result<Self, usize> {
        let schedule = Schedule::with_capacity(64 + 12 * nprocs, 16 + 2 * nprocs)?;
        Ok(Workspace { schedule, ends: [0; 2].map(|_| Vec::with_capacity(nprocs)) })
    }
}
