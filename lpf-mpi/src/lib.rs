//! LPF on MPI: the network that the message-passing protocol of `lpf_messages` runs on.
//!
//! Without the feature `mpi` this crate is empty, so that a workspace with it builds where there is
//! no MPI.
//!
#![cfg_attr(feature = "mpi", doc = "```no_run")]
#![cfg_attr(not(feature = "mpi"), doc = "```ignore")]
//! use std::time::Duration;
//!
//! use lpf_messages::{Control, Network, Outcome};
//! use lpf_mpi::{Mpi, World};
//!
//! fn join<C: Control>(plane: impl Fn(usize, &[u8]) -> C) -> Outcome<Network<Mpi<C>>> {
//!     let patience = Duration::from_secs(60);
//!     let mut world = World::init(patience)?;
//!     // Process 0 sends the address and the secret of the control plane.
//!     let address = world.broadcast(b"[::1]:4711 open sesame", patience)?;
//!     let control = plane(world.rank(), &address);
//!     Ok(Network::new(world.network(control)?))
//! }
//! ```
//!
//! # What travels
//! Every message is a *frame*: its tag and its bytes, or for a long message its tag and length.
//!
//! Between hosts all frames travel under one tag of MPI's, on a duplicate of the communicator, and are up to 4 KB long.
//! The bytes of a long message are its *body*: a message of MPI's from memory to memory, under a number as MPI's tag. A
//! very long body is several messages, cut at the same positions on both sides.
//!
//! On a host frames go through rings in memory that its processes share, if they can have such memory. A line then goes
//! from core to core, while MPI takes locks and one more copy. A long message stays with its sender until its
//! receiver wants it. It then travels through the ring in parts, one copied out while the next is copied in.
//!
//! # Why messages are matched here and not by MPI
//! MPI's tags are small: 28 bits with MPICH, and only 15 are guaranteed. The protocol counts contexts in 32 bits and
//! channels in 24, without end. With folded tags a message that an ended context left behind could be taken for one of a
//! new context; here it is recognised and dropped. A receive without a matching message is in no list of MPI's, so it
//! can be cancelled at any time. A message that does not fit is found before MPI would write it. One question to MPI
//! serves all receives that are posted. The cost is not measurable: the receives for frames are always posted, from any
//! process.
//!
//! # Receiving
//! The bytes of a frame are copied to their destination, and its receive is posted again. A body is received
//! into the pieces of the receive that its frame has matched. Frames without a receive are kept here, at most 64 MiB from
//! one process; a body without a receive stays with its sender.
//!
//! # Sending
//! Frames are copied into buffers that are used again. A body leaves its pieces when MPI reports that it has; many
//! small pieces are packed first.
//!
//! # Giving up
//! A receive without a matching body is cancelled at once. So is a packed message, and one that travels in parts. A body
//! that MPI has begun cannot be stopped (Open MPI does not cancel sends). Sends and receives that are given up together
//! have 50 ms to end by themselves; after that they are *still touched*. MPI may then read a send's memory, or write a
//! receive's, until the other side has done its part. That side does so when it forgets the context. It receives a body
//! without a receive into a buffer and drops it, so that its sender's memory becomes free and its number can be reused.
//!
//! # Progress
//! Only calls make progress: `test`, `progress`, and waiting for sends and receives that are given up. MPI does nothing
//! outside of its calls, and nothing wakes a process when a message arrives from another host. So `idle` sleeps at most
//! 200 us, and not at all while a body has just begun. Processes of one host wake each other.
//!
//! A helper thread does not pay. If processes compute on all cores, it takes the time that it saves, and a lock
//! around every call. If a core is free, a program can give it to a process. Measured without and with a helper that looks
//! every 50 us, beside 5 ms of computing (`LPF_TEST_PROGRESS=1 cargo test --release -p lpf-mpi --features mpi --test
//! stories`; three runs, Open MPI 4.1.4, two processes on two cores):
//!
//! | exchange of | without | with |
//! |---|---|---|
//! | 8 MiB | 0.98 to 1.10 ms | 1.08 to 1.30 ms |
//! | 1 MiB | 89 to 181 us | 154 to 338 us |
//!
//! # Errors
//! The return code of every call is checked if it has a meaning. An error of MPI is the last of its calls: all later
//! calls on the network are errors. The `OffSwitch` has the same effect from outside, after the death of a process. A
//! message that does not fit, is not a frame, or exceeds the 64 MiB without a receive ends the traffic with its sender
//! only.
//!
//! # Threads
//! MPI is initialised with `MPI_THREAD_SERIALIZED`: one thread at a time. A program that brought it up
//! itself with `MPI_THREAD_FUNNELED` can be hooked to, but from its main thread only; this is checked.
#![cfg(feature = "mpi")]

mod arena;
mod bells;
mod bodies;
mod frames;
mod hosts;
mod job;
mod library;
mod mapping;
mod matching;
mod near;
mod network;
mod pieces;
mod start;
mod transport;
mod world;

pub use hosts::Hosts;
pub use job::{MpiJob, MpiProcess, join, refused};
pub use library::{Comm, OffSwitch};
pub use start::{is_up, library_version};
pub use transport::Mpi;
pub use world::World;
