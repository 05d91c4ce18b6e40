//! What the machine can do: bare programs that move the same bytes as a pattern and promise nothing
//! else (no slots of others, no errors, no waiting for the absent).
//!
//! Between processes there is one program ([`between`]) for each network ([`sockets`], `mpi`). On
//! threads each file is one. Those share pinned threads timed in batches ([`team`]), the best
//! barriers we know ([`barrier`]), and raw memory that owners rewrite and read as the patterns'
//! owners do ([`memory`]).

pub(super) mod barrier;
pub(crate) mod between;
pub(super) mod exchange;
pub(super) mod handover;
pub(super) mod memory;
#[cfg(feature = "mpi")]
pub(super) mod mpi;
pub(crate) mod network;
pub(super) mod put_get;
pub(super) mod queue;
pub(super) mod rivals;
pub(crate) mod sockets;
pub(super) mod streaming;
pub(super) mod team;
