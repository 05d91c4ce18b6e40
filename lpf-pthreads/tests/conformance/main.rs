//! The conformance suite on threads.

mod harness;

use lpf_core::conformance::PROCS;

lpf_core::conformance!(harness::Threads(PROCS));
