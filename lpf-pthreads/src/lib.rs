//! Lightweight Parallel Foundations on the threads of one machine.
//!
//! A process is a thread. A full `sync` is the paper's four phases on shared memory: a barrier, the exchange of
//! requests, their execution by each destination, and a barrier. The protocols are described in their
//! modules: the barrier in `barrier`, the four phases in `superstep`, failures in `failure`, expected arrivals in
//! `links`.
//!
//! ```
//! use lpf_core::MAX_P;
//!
//! lpf_pthreads::exec(MAX_P, |ctx, _args| {
//!     ctx.resize(1, 0)?;
//!     ctx.sync()?;
//!     println!("process {} of {}", ctx.pid(), ctx.nprocs());
//!     Ok(())
//! })?;
//! # Ok::<(), lpf_core::Error>(())
//! ```

mod barrier;
mod bits;
mod changes;
#[cfg(all(test, not(loom)))]
mod checked;
mod comm;
mod config;
mod engine;
mod environment;
mod failure;
mod futex;
mod hook;
mod links;
mod long_wait;
mod memory;
#[cfg(loom)]
mod models;
mod pin;
mod pin_choice;
mod pool;
mod section;
mod strays;
mod superstep;
mod sync;
mod threads;
mod topology;
mod tune;

pub use barrier::{Gather, Level, Shape};
pub use comm::Outside;
pub use config::{Config, exec};
pub use hook::{Init, Team};
pub use pin::unpinned;
pub use threads::{ThreadEngine, Threads};
pub use topology::{Core, MachineTopology, topology};
