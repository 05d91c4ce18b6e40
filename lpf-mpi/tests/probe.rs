//! The tests of what looks for MPI at build time: they stand in its files.

#[allow(dead_code, unreachable_pub, reason = "the rest is of the build scripts")]
#[path = "../probe/src/check.rs"]
mod check;
