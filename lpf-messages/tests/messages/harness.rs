//! Sections on the network in memory.

use std::sync::Arc;

use lpf_conformance::{Harness, Hooked, Mode, PROCS, Pace, Story};
use lpf_core::machine::{Growth, Parameters};
use lpf_core::runtime::{Process, section};
use lpf_core::settings::Exchange;
use lpf_core::{Args, Pid, Result, run_section};
use lpf_messages::{self, Environment, Host, Messages, Network, Rank, SectionId};

use crate::control::MemoryControl;
use crate::network::{MemoryTransport, World};

/// The network in memory, with the first exchange made in one way.
pub(crate) struct InMemory {
    pub(crate) way: Exchange,
    /// What is given up is left alone.
    pub(crate) lets_go: bool,
}

impl InMemory {
    pub(crate) const fn of(way: Exchange) -> Self {
        InMemory { way, lets_go: true }
    }
}

fn environment(mode: Mode, exchange: Exchange) -> Environment {
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
    Host { processes: PROCS, cores, is_agreed: false, world: PROCS }
}

impl Harness for InMemory {
    type Process = Process<Messages<MemoryTransport>>;

    fn exec(
        &self,
        mode: Mode,
        procs: Pid,
        story: impl Story<Self::Process>,
        args: Args<'_>,
    ) -> Result<()> {
        let world = World::new(PROCS, self.lets_go);
        let control = MemoryControl::new(PROCS);
        std::thread::scope(|scope| {
            for rank in 1..PROCS {
                let network = Network::new(world.transport(rank, control.at(rank)));
                let control = control.at(rank);
                scope.spawn(move || {
                    while let Some(order) = control.next_order() {
                        let _ = lpf_messages::follow(&network, host(), order);
                    }
                });
            }
            let network = Network::new(world.transport(0, control.at(0)));
            let free: Vec<Rank> = (1..PROCS).collect();
            let environment = Arc::new(environment(mode, self.way));
            let result = lpf_messages::exec(
                &network,
                &environment,
                host(),
                SectionId(1),
                procs,
                &free,
                args,
                section(story),
                section(story),
            );
            control.finish();
            result
        })
    }

    fn hook(
        &self,
        mode: Mode,
        inputs: &[Vec<u8>],
        output_bytes: usize,
        story: impl Story<Self::Process>,
    ) -> Option<Vec<Hooked>> {
        let world = World::new(inputs.len(), self.lets_go);
        let control = MemoryControl::new(inputs.len());
        let one = |rank: usize| {
            let network = Network::new(world.transport(rank, control.at(rank)));
            let mut output = vec![0; output_bytes];
            let args = Args::in_out(&inputs[rank], &mut output);
            let result = lpf_messages::hook(
                &network,
                environment(mode, self.way),
                host(),
                SectionId(1),
                |process| run_section(process, |ctx| story(ctx, args)),
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
