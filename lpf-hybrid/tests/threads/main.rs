//! Nodes made of threads, under both suites: the engine between nodes is that of threads, too.

mod harness;

use harness::Nodes;

mod two_by_four {
    lpf_conformance::primitives!(super::Nodes(&[4, 4]));
}

mod unequal {
    lpf_conformance::primitives!(super::Nodes(&[4, 2, 2]));
}

mod collectives {
    lpf_conformance::collectives!(super::Nodes(&[2, 3, 3]));
}
