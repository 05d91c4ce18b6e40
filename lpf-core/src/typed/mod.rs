//! The typed layer: ordinary use of the primitives in safe Rust.
//!
//! Memory belongs to the runtime; user code holds handles. What the compiler forbids: a slice alive
//! across a sync, element types mixed, a local area as the remote side, an area of another section,
//! a message read before its sync or after its release, an outbox part rewritten before the flush.
//! What remains for the run time: ranges, more than W unreleased messages, a message forgotten with
//! `mem::forget` (its credit is lost), the flush of an outbox, the order of registrations.

pub(crate) mod access;
pub(crate) mod alloc;
pub(crate) mod area;
pub(crate) mod channel;
pub(crate) mod element;
pub(crate) mod heap;
pub(crate) mod message;
pub(crate) mod outbox;
pub(crate) mod releases;
