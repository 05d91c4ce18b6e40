//! The suite of the collectives between processes over TCP: this program starts itself again, see the
//! conformance suite's `members`.

#[path = "../conformance/harness.rs"]
mod harness;
#[path = "../conformance/members.rs"]
mod members;

use lpf_core::settings::Exchange;

use harness::Tcp;

// The two ways of the first exchange differ in full syncs alone: one is enough here.
lpf_conformance::collectives!(Tcp(Exchange::Direct));

/// What this program does where a section started it; in an ordinary run, nothing.
#[test]
fn serve() {
    // Bounds on time are looked at here, too.
    lpf_conformance::begin(&Tcp(Exchange::Direct));
    members::serve_if_asked();
}
