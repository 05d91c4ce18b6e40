//! The message-passing protocol under the conformance suite and that of the collectives, on a network in memory that
//! hands out messages late and in any order that its rules allow: more orders than real networks show.

mod control;
mod harness;
mod network;
mod traffic;

use lpf_conformance::primitives::cases;
use lpf_core::settings::Exchange;

use harness::InMemory;

mod direct {
    lpf_conformance::primitives!(super::InMemory::of(super::Exchange::Direct));
}

mod bruck {
    lpf_conformance::primitives!(super::InMemory::of(super::Exchange::Bruck));
}

mod collectives {
    lpf_conformance::collectives!(super::InMemory::of(super::Exchange::Direct));
}

/// A network may not let go of what it was to write to, as MPI where a body has begun: nobody else has that
/// memory afterwards (AddressSanitizer would see the network write to what was freed).
#[test]
fn what_the_network_does_not_let_go_of_is_kept() {
    for way in [Exchange::Direct, Exchange::Bruck] {
        let harness = InMemory { way, lets_go: false };
        cases::an_exec_that_ends_badly_is_fatal_and_the_next_one_works(&harness);
        cases::a_hook_that_ends_badly_is_fatal_for_the_others(&harness);
        cases::a_skipped_call_is_fatal_on_both_sides(&harness);
    }
}
