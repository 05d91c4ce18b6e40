//! Lightweight Parallel Foundations: what every backend shares.
//!
//! # Why it is cut like this
//! LPF is twelve primitives, each with a guaranteed upper bound on its cost: a superstep costs at most h·g + l for every
//! pattern. So a bulk-synchronous algorithm that is proven optimal in the model is so on every machine, and only g and l
//! change. A backend keeps that guarantee for one kind of machine. So there is one trait, [`Lpf`], which a
//! backend implements on byte ranges of slots. The parts that all backends need are here, once: slots, the request pool,
//! conflict resolution, the arithmetic of credits, the errors. On top of the
//! trait is one typed layer, [`Context`], which makes ordinary use safe Rust at no cost.
//!
//! An SPMD function is written against the context and runs on any backend:
//!
//! ```
//! use lpf_core::{Context, Lpf, Result};
//!
//! /// Sends this process's number to the right and returns the left one's.
//! fn left_neighbour<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<usize> {
//!     ctx.resize(2, 2)?;
//!     ctx.sync()?;
//!     let (mut own, left) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
//!     ctx.sync()?;
//!     ctx.write(&mut own)[0] = ctx.pid();
//!     let right = (ctx.pid() + 1) % ctx.nprocs();
//!     ctx.put(&own, .., right, &left, 0)?;
//!     ctx.sync()?;
//!     Ok(ctx.read(&left)[0])
//! }
//! ```
//!
//! Sources: Suijlen and Yzelman, "Lightweight Parallel Foundations: a model-compliant communication
//! layer" (the primitives, the four phases of sync, the cost model).

pub mod args;
pub mod arrivals;
pub mod attr;
pub mod board;
pub mod check;
pub mod conflict;
pub mod copy;
pub mod error;
pub mod host;
pub mod leaked;
pub mod machine;
pub mod process;
pub mod request;
pub mod runtime;
pub mod settings;
pub mod slot;
pub mod wait;
pub mod waits;

mod context;
mod lpf;
mod raw;
mod typed;

pub use args::{Args, Symbol};
pub use arrivals::{Call, CallValues, Expect, InboxShape, InboxSlot, Link, Travel};
pub use attr::SyncAttr;
pub use context::{Context, captures_nothing, panic_text, run_section};
pub use error::{Cause, Error, Kind, Result};
pub use lpf::{Awaited, Leaving, Links, Lpf, Runtime};
pub use machine::Machine;
pub use raw::Raw;
pub use slot::{GlobalSlot, LocalSlot, Registrant, Slot};
pub use typed::access::Access;
pub use typed::alloc::Lengths;
pub use typed::area::{Area, AreaRegistration, Local, Memory};
pub use typed::channel::{Channel, Landing};
pub use typed::element::Element;
pub use typed::message::Message;
pub use typed::outbox::{Flushed, Part, Sent};
pub use typed::releases::Closings;

/// The number of a process, or a number of processes, which is at most [`MAX_PROCS`](settings::MAX_PROCS). It is a
/// `usize`, so that programs use it as an index. Between processes it travels in 32 bits.
pub type Pid = usize;

/// All processors that are available: the argument of `exec` that means *as many as there are*.
pub const MAX_P: Pid = Pid::MAX;
