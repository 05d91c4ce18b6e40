//! How many messages supersteps take.

use super::meeting::Way;

/// Messages that a process has handed to the network in full syncs, rehooks and leaving, by what they are
/// for: since it entered the section. What goes over links is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// How the first exchange is made.
    pub exchange: Way,
    /// Of both exchanges of meta-data: who has what for whom, and the answers. The first one is the
    /// barrier, too.
    pub meta: u64,
    /// From user memory to user memory.
    pub data: u64,
    /// What only synchronises: the meetings of rehook and of leaving.
    pub barrier: u64,
}

impl Traffic {
    pub(super) fn new(exchange: Way) -> Self {
        Traffic { exchange, meta: 0, data: 0, barrier: 0 }
    }
}
