//! How many messages supersteps take.

use lpf_core::settings::Exchange;

/// Messages that a process has passed to the network in full syncs, rehooks and leaving since it entered the section, by
/// purpose. Messages on links are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The algorithm of the first exchange.
    pub exchange: Exchange,
    /// Messages of both exchanges of meta-data: the announcements of requests, and the answers. The first one is the
    /// barrier, too.
    pub meta: u64,
    /// Messages from user memory to user memory.
    pub data: u64,
    /// Messages that only synchronise: the barriers of rehook and of leaving.
    pub barrier: u64,
}

impl Traffic {
    /// No messages yet.
    pub fn new(exchange: Exchange) -> Self {
        Traffic { exchange, meta: 0, data: 0, barrier: 0 }
    }
}
