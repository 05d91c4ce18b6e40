//! Sections on the processes of MPI's launcher.

use lpf_conformance::{Harness, Hooked, Mode, Pace, Story};
use lpf_core::settings::Exchange;
use lpf_core::{Args, Pid, Result};
use lpf_mpi::MpiProcess;

use crate::hooks;
use crate::machine::{self, Asked};

/// Sections on MPI, with the first exchange made in one way.
pub(crate) struct OnMpi(pub(crate) Exchange);

impl Harness for OnMpi {
    type Process = MpiProcess;

    fn exec(
        &self,
        mode: Mode,
        procs: Pid,
        story: impl Story<Self::Process>,
        args: Args<'_>,
    ) -> Result<()> {
        let environment = mode.between_processes(self.0);
        let asked = Asked::exec(environment, procs, story, &args);
        machine::ask(&asked, args.output)
    }

    fn hook(
        &self,
        mode: Mode,
        inputs: &[Vec<u8>],
        output_bytes: usize,
        story: impl Story<Self::Process>,
    ) -> Option<Vec<Hooked>> {
        Some(hooks::hook(mode.between_processes(self.0), inputs, output_bytes, story))
    }

    fn pace(&self) -> Pace {
        Pace::of_processes(machine::is_apart())
    }
}
