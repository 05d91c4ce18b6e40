//! What the processes of a job need between each other, whichever network moves their data.
//!
//! - [`rendezvous`]: how processes that were started separately find each other, with a shared
//!   secret;
//! - [`plane`]: the control plane, which every backend between processes uses: heartbeats, failures,
//!   the board, orders to begin a section;
//! - [`Job`]: a process that has joined others, on any network;
//! - [`connection`]: what a connection between two processes is made of: its seal, its end, and what the
//!   system knows of it.

mod at_exit;
pub mod carried;
pub mod connection;
pub mod files;
mod job;
pub mod plane;
pub mod rendezvous;

pub use at_exit::at_exit;
pub use job::{Job, has_joined, is_forked_from_member};
