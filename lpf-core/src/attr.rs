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
    /// As the next messages of a link, each of so many bytes but the last: for what does not fit one cell
    /// and is used part by part. A part is at the most as long as
    /// [`Lpf::longest_part`](crate::Lpf::longest_part) says. One put in the count of W in a superstep. The
    /// receiver may read a part in the sender's memory, as threads do: then a flush waits until the last is
    /// released.
    Parts(Link, usize),
    /// As the next message of a link, straight into the area that the peer offers for it (a
    /// *landing*; `offer`).
    Landing(Link),
}

/// How a get is delivered; there is one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GetAttr {
    /// At the next full sync.
    #[default]
    Default,
}

/// What a sync waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncAttr<'a> {
    /// Everybody, and every request; conflicts between writers are resolved.
    #[default]
    Default,
    /// As `Default`, promising that no two requests of this superstep write the same byte. It has
    /// effect where every process gave it; a promise that is broken or one-sided leaves any bytes in
    /// the ranges named, and nothing worse. Threads cannot exploit it (the destination applies its
    /// requests in order anyway) and treat it as `Default`.
    NoConflict,
    /// These messages, and nothing else: no barrier. Ordinary requests stay pending.
    Expected(&'a [Expect]),
    /// Until the puts on this process's links have left its memory.
    Flush,
}

impl SyncAttr<'_> {
    /// Whether this is a full sync: one that everybody joins and that completes requests.
    #[inline]
    pub fn is_full(&self) -> bool {
        matches!(self, SyncAttr::Default | SyncAttr::NoConflict)
    }
}
