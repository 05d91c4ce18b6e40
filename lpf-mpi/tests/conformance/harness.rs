//! Sections on the processes of MPI's launcher.

use lpf_conformance::{Harness, Hooked, Mode, Pace};
use lpf_core::settings::Exchange;
use lpf_core::{Args, Pid, Program, Result};

use crate::hooks;
use crate::machine::{self, Asked};

/// Sections on MPI, with the first exchange made in one way.
pub(crate) struct OnMpi(pub(crate) Exchange);

impl Harness for OnMpi {
    fn exec<P: Program>(&self, mode: Mode, procs: Pid, program: P, args: Args<'_>) -> Result<()> {
        let environment = mode.between_processes(self.0);
        let asked = Asked::exec(environment, procs, program, &args);
        machine::ask(&asked, args.output)
    }

    fn hook<P: Program>(
        &self,
        mode: Mode,
        inputs: &[Vec<u8>],
        output_bytes: usize,
        program: P,
    ) -> Option<Vec<Hooked>> {
        Some(hooks::hook(mode.between_processes(self.0), inputs, output_bytes, program))
    }

    fn pace(&self) -> Pace {
        Pace::of_processes(machine::is_apart())
    }
}
