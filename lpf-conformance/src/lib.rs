//! The conformance suites: what every backend must pass, the primitives' and the collectives'.
//!
//! A backend says once how it starts sections, as a [`Harness`], and gets one `#[test]` per case:
//!
//! ```
//! use lpf_conformance::{Harness, Mode, PROCS, Story};
//! use lpf_core::{Args, Pid, Result};
//! # use lpf_pthreads::Threads;
//!
//! struct Mine;
//!
//! impl Harness for Mine {
//!     type Process = Threads; // the backend's `Lpf`
//!
//!     fn exec(
//!         &self, mode: Mode, procs: Pid, story: impl Story<Threads>, args: Args,
//!     ) -> Result<()> {
//!         # let _ = (mode, procs, story, args); unreachable!("this example starts nothing");
//!         // … the backend's exec on a machine of PROCS processes, under `mode` …
//!     }
//!     // Without a `hook` its cases are left out.
//! }
//!
//! lpf_conformance::primitives!(Mine);
//!
//! mod collectives {
//!     lpf_conformance::collectives!(super::Mine);
//! }
//! # fn main() {}
//! ```
//!
//! # How it is made
//! - A case is a story whose name is the sentence it checks; a failure names that sentence.
//! - Between operating-system processes captured variables cannot travel, so every case is a [`Story`]: a function
//!   without captures, generic over the backend. What it needs comes in [`Args`](lpf_core::Args), or is part of its type.
//! - A verdict is a panic or an error of the program, which the start of the section returns. Where
//!   the section under test is meant to fail, it runs inside a `rehook`, and every process gives
//!   its verdict in the outer context, which the contract keeps usable.
//! - Every wait of the suite ends: a case that does not is named on standard error and the test
//!   process is aborted.
//! - Cases that measure time run alone; the others may run at the same time.

#[macro_use]
mod runner;

mod harness;
mod listing;
mod memory;
mod no_control;
mod panics;
mod random;
mod verdict;

#[doc(hidden)]
pub mod collectives;
#[doc(hidden)]
pub mod primitives;

pub use harness::{Harness, Hooked, Mode, PROCS, Pace, Story, begin};
pub use no_control::NoControl;
pub use verdict::{allowed, assert_in_time};
