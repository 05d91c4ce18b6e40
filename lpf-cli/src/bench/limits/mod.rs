//! What the machine can do: bare programs of pinned threads that move the same bytes as a pattern
//! and promise nothing else (no slots of others, no errors, no waiting for the absent).
//!
//! Each file is one program. They share pinned threads timed in batches ([`team`]), the best
//! barriers we know ([`barrier`]), and raw memory that owners rewrite and read as the patterns'
//! owners do ([`memory`]).

pub(super) mod barrier;
pub(super) mod exchange;
pub(super) mod handover;
pub(super) mod memory;
pub(super) mod put_get;
pub(super) mod queue;
pub(super) mod rivals;
pub(super) mod streaming;
pub(super) mod team;
