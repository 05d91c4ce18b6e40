//! LPF on MPI: the network that the message-passing protocol of `lpf_core::messages` runs on.
//!
//! Without the feature `mpi` this crate is empty, so that a workspace with it builds where there is
//! no MPI.
//!
#![cfg_attr(feature = "mpi", doc = "```no_run")]
#![cfg_attr(not(feature = "mpi"), doc = "```ignore")]
//! use std::time::Duration;
//!
//! use lpf_core::messages::{Control, Network, Outcome};
//! use lpf_mpi::{Mpi, World};
//!
//! fn join<C: Control>(plane: impl Fn(u32, &[u8]) -> C) -> Outcome<Network<Mpi<C>>> {
//!     let patience = Duration::from_secs(60);
//!     let mut world = World::init(patience)?;
//!     // What process 0 says is where the control plane is, and its secret.
//!     let address = world.broadcast(b"[::1]:4711 open sesame", patience)?;
//!     let control = plane(world.rank(), &address);
//!     Ok(Network::new(world.network(control)?))
//! }
//! ```
//!
//! # What travels
//! A *frame* for every message: its tag and its bytes, or of a long one tag and length.
//!
//! Between hosts all frames are under one tag of MPI's on a duplicate of the communicator, and up to 4 KB long. A
//! long one's bytes are its *body*: a message of MPI's from memory to memory, under a number as MPI's tag; a very
//! long one is several, cut in the same places on both sides.
//!
//! On a host frames go through rings in memory that its processes share, where they can have such memory: a line
//! goes from core to core, where MPI takes locks and a copy more. A long message stays with its sender until its
//! receiver wants it, and then comes through the ring in parts, copied out while the next is copied in.
//!
//! # Why messages are matched here and not by MPI
//! MPI's tags are small (28 bits with MPICH, 15 are all that it promises), and the protocol counts
//! contexts in 32 bits and channels in 24, without end. Folding them would let a message that an ended
//! context left behind be taken for one of a new context; here it is recognised and dropped, whenever
//! it comes. A receive that has not met its message is in no list of MPI's, so it can be cancelled at
//! any time, and a message that does not fit is found before MPI would write it. One question to MPI
//! serves all receives that are posted. It costs nothing that can be measured: the frames go into
//! receives that are always posted, from anybody.
//!
//! # Receiving
//! A frame's bytes are copied where they belong, and its receive is posted again. A body is received
//! into the pieces of its receive, which it has met by its frame. What waits for a receive is kept
//! here, 64 MiB from one process at most; a body that waits stays with its sender.
//!
//! # Sending
//! Frames are copied into buffers that are used again. A body leaves its pieces when MPI says so; many
//! small pieces are packed first.
//!
//! # Giving up
//! A receive that has met no body is cancelled at once, and so is what was packed, and what goes in parts. A body that MPI has
//! begun cannot be stopped (its cancellation of sends does nothing in Open MPI): what is given up
//! together has 50 ms to end by itself, and is given up as *still touched* after that. MPI may then
//! read a send's memory, or write a receive's, until the other side has done its part. It does when it
//! forgets the context: a body that nobody wants is received into a buffer and dropped, so that its
//! sender's memory becomes free, and its number can be used again.
//!
//! # Who drives it
//! Nobody but the caller: `test`, `progress`, and waiting for what is given up. MPI does nothing
//! outside of its calls, and nothing wakes a process when a message comes from another host: `idle` sleeps at most
//! 200 us, and not at all while a body has just begun. Processes of one host wake each other.
//!
//! A helper thread that looks every 50 us or every millisecond was tried and left out (`LPF_TEST_PROGRESS=1
//! cargo test --release -p lpf-mpi --features mpi --test stories`; three runs, Open MPI 4.1.4, two processes
//! on the two cores they compute on): beside 5 ms of computing an exchange of 8 MiB is seen for
//! 0.98 to 1.10 ms without it and 1.08 to 1.30 ms with it, 1 MiB for 89 to 181 us and 154 to 338 us. Where
//! processes compute on all cores the helper takes the time that it saves, and a lock around every call
//! besides; where a core is free, a program can give it to a process.
//!
//! # Errors
//! Every call's return code is looked at where it says anything. An error of MPI's is the last of its calls: all others on
//! the network are errors from then on. The same can be had from outside with the `OffSwitch`, for
//! when a process has died. A message that does not fit, is no frame, or waits beyond the 64 MiB ends
//! the traffic with its sender alone.
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
