//! Attributes: promises of the caller that may only make a superstep cheaper.

use crate::arrivals::Expect;

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
