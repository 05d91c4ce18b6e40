//! The conformance suite between processes: this program starts itself again, as often as a section
//! needs processes, and meets what it started over TCP. On a cluster (`ci/cluster.sh`), some of them on
//! other hosts.

mod harness;
mod members;

use lpf_core::settings::Exchange;

use harness::Tcp;

mod direct {
    lpf_conformance::primitives!(super::Tcp(super::Exchange::Direct));
}

mod bruck {
    lpf_conformance::primitives!(super::Tcp(super::Exchange::Bruck));
}

/// What this program does where a section started it; in an ordinary run, nothing.
#[test]
fn serve() {
    // Bounds on time are looked at here, too.
    lpf_conformance::begin(&Tcp(Exchange::Direct));
    members::serve_if_asked();
}
