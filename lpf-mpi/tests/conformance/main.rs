//! The conformance suite on MPI: the tests run here, the sections on processes that MPI's launcher starts
//! once for all of them (`machine`). Hooks are made on communicators of the size they need.

mod hooks;
#[allow(dead_code, reason = "the rest is of the stories")]
#[path = "../stories/launch.rs"]
mod launch;
mod machine;
mod sizes;

use lpf_core::conformance::{Harness, Hooked, Mode, Pace};
use lpf_core::messages::Way;
use lpf_core::{Args, Pid, Program, Result};

use machine::Asked;

/// Sections on MPI, with the first exchange made in one way.
struct OnMpi(Way);

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

mod direct {
    lpf_core::conformance!(super::OnMpi(super::Way::Direct));
}

mod bruck {
    lpf_core::conformance!(super::OnMpi(super::Way::Bruck));
}

/// What this program does where the launcher started it; in an ordinary run, nothing.
#[test]
fn serve() {
    // Bounds on time are looked at here, too.
    lpf_core::conformance::begin(&OnMpi(Way::Direct));
    machine::serve_if_asked();
}
