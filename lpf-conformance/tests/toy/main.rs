//! The smallest engine that passes both suites: the processes of a section are threads of this program, and all that they
//! share is one structure under a lock. The page "How to write an engine" of the book walks through it.

mod engine;
mod links;
mod section;

use lpf_conformance::{Harness, Mode, PROCS, Story};
use lpf_core::runtime::{self, Process};
use lpf_core::{Args, Pid, Result};

use engine::Toy;
use section::exec;

// ANCHOR: harness
struct Toys;

impl Harness for Toys {
    type Process = Process<Toy>;

    fn exec(
        &self,
        mode: Mode,
        procs: Pid,
        story: impl Story<Process<Toy>>,
        args: Args<'_>,
    ) -> Result<()> {
        let story = runtime::section(story);
        exec(mode, procs, PROCS, args, story, story)
    }
}

lpf_conformance::primitives!(Toys);

mod collectives {
    lpf_conformance::collectives!(super::Toys);
}
// ANCHOR_END: harness
