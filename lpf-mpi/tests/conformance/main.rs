//! The conformance suite on MPI: the tests run here, the sections on processes that MPI's launcher starts
//! once for all of them (`machine`). Hooks are made on communicators of the size they need.

mod harness;
mod hooks;
#[allow(dead_code, reason = "the rest is of the stories")]
#[path = "../stories/launch.rs"]
mod launch;
mod machine;
mod sizes;

use lpf_core::settings::Exchange;

use harness::OnMpi;

mod direct {
    lpf_conformance::primitives!(super::OnMpi(super::Exchange::Direct));
}

mod bruck {
    lpf_conformance::primitives!(super::OnMpi(super::Exchange::Bruck));
}

/// What this program does where the launcher started it; in an ordinary run, nothing.
#[test]
fn serve() {
    // Bounds on time are looked at here, too.
    lpf_conformance::begin(&OnMpi(Exchange::Direct));
    machine::serve_if_asked();
}
