//! The conformance suite on threads.

mod harness;

use lpf_conformance::PROCS;

lpf_conformance::primitives!(harness::Threads(PROCS));
