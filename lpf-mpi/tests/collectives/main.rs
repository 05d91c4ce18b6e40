//! The suite of the collectives on MPI: the tests run here, the sections on processes that MPI's launcher
//! starts once for all of them.

#[path = "../conformance/harness.rs"]
mod harness;
#[path = "../conformance/hooks.rs"]
mod hooks;
#[allow(dead_code, reason = "the rest is of the stories")]
#[path = "../stories/launch.rs"]
mod launch;
#[path = "../conformance/machine.rs"]
mod machine;

use lpf_core::settings::Exchange;

use harness::OnMpi;

// The two ways of the first exchange differ in full syncs alone: one is enough here.
lpf_conformance::collectives!(OnMpi(Exchange::Direct));

/// What this program does where the launcher started it; in an ordinary run, nothing.
#[test]
fn serve() {
    // Bounds on time are looked at here, too.
    lpf_conformance::begin(&OnMpi(Exchange::Direct));
    machine::serve_if_asked();
}
