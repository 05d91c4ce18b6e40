//! What the build scripts of the crates `mpi` and `mpi-sys` ask: where MPI is.
//!
//! It stands in for the crate of this name on crates.io (`[patch.crates-io]` in the workspace's
//! Cargo.toml), because the bindings' own scripts panic at length where MPI or libclang is missing. They
//! all depend on this crate, so its own build script runs before any of them; it looks for both, and
//! says in one sentence what is not there. Changes of `MPICC` and the like make the bindings anew.

mod search;

pub use search::{Library, probe};
