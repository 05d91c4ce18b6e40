//! The message-passing protocol: supersteps, links and sections on any network that moves tagged
//! messages between two processes.
//!
//! A backend brings a [`Transport`] (MPI, sockets) and a [`Control`] plane; everything that the
//! contract says is here, once.

mod blob;
pub mod code;
mod contexts;
pub mod control;
mod job;
mod links;
mod meeting;
mod memory;
pub mod network;
mod process;
mod protocol;
mod sections;
mod superstep;
mod tags;
mod tickets;
mod traffic;
pub mod transport;
mod turns;
mod watch;
mod wire;

pub use control::{Control, Order, SectionId};
pub use job::{Environment, Host, Network};
pub use meeting::exchange_for;
pub use process::Messages;
pub use sections::{exec, follow, hook};
pub use traffic::Traffic;
pub use transport::{Broken, Outcome, Piece, Rank, SharedMemory, Tag, Ticket, Transport};
pub use watch::now;
