//! The suite of the collectives on threads, of which there is one more than a power of two.

#[path = "../conformance/harness.rs"]
mod harness;

lpf_conformance::collectives!(harness::Threads(9));
