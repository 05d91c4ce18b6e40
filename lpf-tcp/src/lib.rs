//! LPF between processes that share a network.
//!
//! - [`rendezvous`]: how processes that were started separately find each other, with a shared
//!   secret;
//! - [`control`]: the control plane, which every backend between processes uses: heartbeats, failures,
//!   the board, orders to begin a section;
//! - [`sockets`]: messages between two processes on non-blocking sockets, on which the protocol of
//!   `lpf_core::messages` runs.

mod at_exit;
pub mod carried;
pub mod control;
mod ended;
pub mod files;
mod job;
pub mod rendezvous;
mod seal;
pub mod sockets;
mod stream;
mod tcp_info;

pub use at_exit::at_exit;
pub use job::{Job, TcpProcess, has_joined, is_forked_from_member};
