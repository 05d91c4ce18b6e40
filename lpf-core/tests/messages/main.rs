//! The message-passing protocol under the conformance suite, on a network in memory that hands out
//! messages late and in any order that its rules allow: more orders than real networks show.

mod control;
mod network;
mod traffic;

use std::sync::Arc;
use std::time::Duration;

use lpf_core::conformance::{Harness, Hooked, Mode, PROCS, Pace, cases};
use lpf_core::machine::{Growth, Parameters};
use lpf_core::messages::{self, Environment, Host, Network, Rank, SectionId, Way};
use lpf_core::{Args, Pid, Program, Result};

use control::MemoryControl;
use network::World;

/// The network in memory, with the first exchange made in one way.
struct InMemory {
    way: Way,
    /// What is given up is left alone.
    lets_go: bool,
}

impl InMemory {
    const fn of(way: Way) -> Self {
        InMemory { way, lets_go: true }
    }
}

fn environment(mode: Mode, exchange: Way) -> Environment {
    Environment {
        check: mode.check,
        strict: mode.strict,
        timeout: mode.timeout,
        exchange: Some(exchange),
        parameters: Arc::new(Parameters::guess(Growth::MessagePassing)),
    }
}

fn host() -> Host {
    let cores = lpf_core::settings::cores();
    Host { processes: PROCS as usize, cores, world: PROCS }
}

impl Harness for InMemory {
    fn exec<P: Program>(&self, mode: Mode, procs: Pid, program: P, args: Args<'_>) -> Result<()> {
        let world = World::new(PROCS as usize, self.lets_go);
        let control = MemoryControl::new(PROCS as usize);
        std::thread::scope(|scope| {
            for rank in 1..PROCS {
                let network = Network::new(world.transport(rank, control.at(rank)));
                let control = control.at(rank);
                scope.spawn(move || {
                    while let Some(order) = control.next_order() {
                        let _ = messages::follow(&network, host(), order);
                    }
                });
            }
            let network = Network::new(world.transport(0, control.at(0)));
            let free: Vec<Rank> = (1..PROCS).collect();
            let (environment, section) = (Arc::new(environment(mode, self.way)), SectionId(1));
            let result = messages::exec(
                &network,
                &environment,
                host(),
                section,
                procs,
                &free,
                program,
                args,
            );
            control.finish();
            result
        })
    }

    fn hook<P: Program>(
        &self,
        mode: Mode,
        inputs: &[Vec<u8>],
        output_bytes: usize,
        program: P,
    ) -> Option<Vec<Hooked>> {
        let world = World::new(inputs.len(), self.lets_go);
        let control = MemoryControl::new(inputs.len());
        let one = |rank: usize| {
            let network = Network::new(world.transport(rank as Rank, control.at(rank as Rank)));
            let mut output = vec![0; output_bytes];
            let args = Args::in_out(&inputs[rank], &mut output);
            let result = messages::hook(
                &network,
                environment(mode, self.way),
                host(),
                SectionId(1),
                args,
                |ctx, args| program.run(ctx, args),
            );
            Hooked { result: result.map_err(|error| error.to_string()), output }
        };
        let hooked = std::thread::scope(|scope| {
            let all: Vec<_> = (0..inputs.len())
                .map(|rank| {
                    scope.spawn({
                        let one = &one;
                        move || one(rank)
                    })
                })
                .collect();
            all.into_iter().map(|thread| thread.join().expect("a hook returns")).collect()
        });
        control.finish();
        Some(hooked)
    }

    fn pace(&self) -> Pace {
        Pace::Model
    }
}

mod direct {
    lpf_core::conformance!(super::InMemory::of(super::Way::Direct));
}

mod bruck {
    lpf_core::conformance!(super::InMemory::of(super::Way::Bruck));
}

/// A network may not let go of what it was to write to, as MPI where a body has begun: nobody else has that
/// memory afterwards (AddressSanitizer would see the network write to what was freed).
#[test]
fn what_the_network_does_not_let_go_of_is_kept() {
    for way in [Way::Direct, Way::Bruck] {
        let harness = InMemory { way, lets_go: false };
        cases::an_exec_that_ends_badly_is_fatal_and_the_next_one_works(&harness);
        cases::a_hook_that_ends_badly_is_fatal_for_the_others(&harness);
        cases::a_skipped_call_is_fatal_on_both_sides(&harness);
    }
}

/// How long the network keeps a message back, at most.
const LATE: Duration = Duration::from_micros(50);
