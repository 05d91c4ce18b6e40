//! LPF over TCP: the network on sockets between processes that a rendezvous has connected.
//!
//! - [`sockets`]: messages between two processes on non-blocking sockets, on which the protocol of
//!   `lpf_messages` runs;
//! - [`job`]: makes a job of what a rendezvous of [`lpf_control`] has connected.

pub mod sockets;
mod tcp_job;

pub use tcp_job::{TcpJob, TcpProcess, job};
