//! Sections between processes of this program.

use std::sync::{Arc, Mutex, PoisonError};

use lpf_conformance::{Harness, Hooked, Mode, PROCS, Pace};
use lpf_core::settings::Exchange;
use lpf_core::{Args, Pid, Program, Result};
use lpf_tcp::TcpJob;

use crate::members::{self, Role, Team, hook_here};

/// Sections between processes, with the first exchange made in one way. With Bruck's the connections are sealed, so that
/// the suite runs on both kinds.
pub(crate) struct Tcp(pub(crate) Exchange);

/// The servers of all sections, one section at a time: on unsealed and on sealed connections.
static TEAMS: Mutex<[Option<(Team, TcpJob)>; 2]> = Mutex::new([None, None]);

impl Tcp {
    fn is_sealed(&self) -> bool {
        self.0 == Exchange::Bruck
    }
}

impl Harness for Tcp {
    fn exec<P: Program>(&self, mode: Mode, procs: Pid, program: P, args: Args<'_>) -> Result<()> {
        let mut teams = TEAMS.lock().unwrap_or_else(PoisonError::into_inner);
        let team = &mut teams[usize::from(self.is_sealed())];
        let start = || Team::start(PROCS, Role::Serve, self.is_sealed());
        team.get_or_insert_with(start).1.exec(
            &Arc::new(mode.between_processes(self.0)),
            procs,
            program,
            args,
        )
    }

    fn hook<P: Program>(
        &self,
        mode: Mode,
        inputs: &[Vec<u8>],
        output_bytes: usize,
        program: P,
    ) -> Option<Vec<Hooked>> {
        let role = Role::hook(mode.between_processes(self.0), inputs, output_bytes, program);
        let (team, mut job) = Team::start(inputs.len() as Pid, role, self.is_sealed());
        let own =
            hook_here(&mut job, mode.between_processes(self.0), &inputs[0], output_bytes, program);
        Some(std::iter::once(own).chain(team.outcomes(job)).collect())
    }

    fn pace(&self) -> Pace {
        Pace::of_processes(members::are_apart())
    }
}
