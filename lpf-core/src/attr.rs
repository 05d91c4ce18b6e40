//! Attributes: promises of the caller that may only make a superstep cheaper.

use crate::arrivals::{Expect, Link};

/// How a put is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PutAttr {
    /// At the next full sync.
    #[default]
    Default,
    /// As the next message of a link: into the next cell of its ring at the peer.
    Channel(Link),
    /// As the next messages of a link, each of this many bytes except the last: for data that does not fit one cell
    /// and is used part by part. [`Lpf::longest_part`](crate::Lpf::longest_part) has the longest part. It counts as one
    /// put among the W between two syncs of any kind. The receiver may read a part in the sender's memory, as threads do.
    /// Then a flush waits until the last part is released.
    Parts(Link, usize),
    /// As the next message of a link, straight into the area that the peer offers for it (a
    /// *landing*; `offer`).
    Landing(Link),
}

/// When a get is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GetAttr {
    /// At the next full sync.
    #[default]
    Default,
}

/// What a sync waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncAttr<'a> {
    /// All processes, and all requests; conflicts between writers are resolved.
    #[default]
    Default,
    /// As `Default`, promising that no two requests of this superstep write the same byte. It has
    /// effect if every process gives it. If the promise is broken, or given by some processes only, the ranges named
    /// have any bytes, and nothing else changes. Threads treat it as `Default`, because the destination applies its
    /// requests in order anyway.
    NoConflict,
    /// These messages, and nothing else: no barrier. Ordinary requests stay pending.
    Expected(&'a [Expect]),
    /// Until the puts on this process's links have left its memory.
    Flush,
}

impl SyncAttr<'_> {
    /// Whether this is a full sync: one that all processes join and that completes requests.
    #[inline]
    pub fn is_full(&self) -> bool {
        matches!(self, SyncAttr::Default | SyncAttr::NoConflict)
    }
}
