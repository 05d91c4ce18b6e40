//! Lightweight Parallel Foundations: bulk-synchronous programs, with an upper bound on the time of every pattern of
//! communication.
//!
//! A program adds this crate to its `Cargo.toml`. It re-exports `lpf-core` (the context, the typed layer,
//! errors, arguments) and the backends. It adds
//!
//! - [`exec`], which starts a section with the settings and the machine's saved table;
//! - [`run`], which chooses the backend at start;
//! - [`measure`], which measures g and l, and [`tables`], which saves them.
//!
//! ```
//! use lpf::prelude::*;
//!
//! fn main() -> lpf::Result<()> {
//!     lpf::exec(4, |ctx| {
//!         ctx.resize(2, 2)?; // room for two areas and two requests
//!         ctx.sync()?;
//!         let (mut own, left) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
//!         ctx.sync()?;
//!         ctx.write(&mut own)[0] = ctx.pid();
//!         let right = (ctx.pid() + 1) % ctx.nprocs();
//!         ctx.put(&own, .., right, &left, 0)?;
//!         ctx.sync()?; // costs at most h·g + l
//!         println!("process {} got {} from its left", ctx.pid(), ctx.read(&left)[0]);
//!         Ok(())
//!     })
//! }
//! ```
#![deny(unsafe_code)]

pub mod host;
pub mod measure;
pub mod prelude;
pub mod tables;

mod any;
mod backend;
mod claim;
mod exec;
mod job;
#[doc(hidden)]
pub mod launcher;
mod meeting;
mod member;
mod run;
mod unknown;

pub use any::{AnyBoard, AnyEngine};
pub use backend::{BACKENDS, backend, chosen};
pub use claim::alone;
#[doc(hidden)]
pub use claim::is_in_anothers_place;
pub use exec::{exec, exec_args, exec_with, parameters, team};
pub use job::leave;
pub use lpf_core::*;
pub use lpf_pthreads::unpinned;
pub use member::Member;
pub use run::{run, run_args};

/// One process of a section; see [`lpf_core::Context`]. Without `L` it is that of a program, on any backend that is built
/// in. A library that works on every backend is generic over `L: Lpf`.
pub type Context<'s, L = lpf_core::runtime::Process<AnyEngine>> = lpf_core::Context<'s, L>;

/// Broadcasts, reductions and exchanges, the same on every backend.
pub use lpf_collectives as collectives;

/// Sections between processes that MPI connects. Only with the feature `mpi`.
#[cfg(feature = "mpi")]
pub use lpf_mpi as mpi;

/// The message-passing protocol.
#[doc(no_inline)]
pub use lpf_messages as messages;

/// What the processes of a job need between each other, whichever network moves their data: the rendezvous, failures.
pub use lpf_control as control;

/// Sections between processes whose data goes over TCP.
pub use lpf_tcp as tcp;

/// The shared-memory backend: sections of threads, hooks from existing threads.
pub use lpf_pthreads as threads;
