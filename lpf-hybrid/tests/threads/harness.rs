//! Sections on nodes that are threads.

use lpf_conformance::{Harness, Mode, Pace, Story};
use lpf_core::runtime::{Process, section};
use lpf_core::{Args, Pid, Result};
use lpf_hybrid::{Hybrid, run_node};
use lpf_pthreads::{Config, ThreadEngine};

/// Nodes with room for these numbers of processes.
pub(crate) struct Nodes(pub(crate) &'static [Pid]);

impl Nodes {
    fn config(mode: Mode) -> Config {
        let config = Config::from_environment().expect("settings that can be understood");
        config.check(mode.check).strict(mode.strict).timeout(mode.timeout)
    }
}

impl Harness for Nodes {
    type Process = Process<Hybrid<ThreadEngine>>;

    fn exec(
        &self,
        mode: Mode,
        procs: Pid,
        story: impl Story<Self::Process>,
        args: Args<'_>,
    ) -> Result<()> {
        let (between, inside) = (Self::config(mode).procs(self.0.len()), Self::config(mode));
        let node = |process: Process<ThreadEngine>, args: Args<'_>| {
            use lpf_core::Lpf;
            let room = self.0[process.pid()];
            run_node(process, &inside, (room, procs), args, section(story), section(story))
        };
        between.exec_processes(procs.min(self.0.len()), args, node, node)
    }

    fn spreads_over_nodes(&self) -> bool {
        true
    }

    fn pace(&self) -> Pace {
        Pace::Model
    }
}
