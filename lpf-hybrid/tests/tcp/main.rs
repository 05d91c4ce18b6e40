//! Both suites on nodes that are processes of the system, connected by TCP: this program starts itself again for each node.

mod harness;
#[allow(dead_code)] // Hooks are those of lpf-tcp.
#[path = "../../../lpf-tcp/tests/conformance/members.rs"]
mod members;

use harness::{Nodes, TwoByFour, Unequal};

mod two_by_four {
    lpf_conformance::primitives!(super::Nodes::<super::TwoByFour>::NEW);
}

mod unequal {
    lpf_conformance::primitives!(super::Nodes::<super::Unequal>::NEW);
}

mod collectives {
    lpf_conformance::collectives!(super::Nodes::<super::Unequal>::NEW);
}

/// What this program does if a section started it; in an ordinary run, nothing.
#[test]
fn serve() {
    lpf_conformance::begin(&Nodes::<TwoByFour>::NEW);
    members::serve_if_asked();
}
