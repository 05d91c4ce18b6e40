//! Connections between two processes: the control plane's own, and those that a rendezvous makes for data.

mod ended;
pub(crate) mod frame;
pub mod seal;
mod stream;
mod tcp_info;
pub(crate) mod wire;

pub use ended::{CLOSED, reason};
pub use stream::Stream;
pub use tcp_info::TcpInfo;
