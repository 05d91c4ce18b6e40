//! Sections between processes of this story.

use std::sync::{Arc, Mutex, PoisonError};

use lpf_conformance::{Harness, Hooked, Mode, PROCS, Pace, Story};
use lpf_core::runtime::section;
use lpf_core::settings::Exchange;
use lpf_core::{Args, Pid, Result};
use lpf_tcp::{TcpJob, TcpProcess};

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
    type Process = TcpProcess;

    fn exec(
        &self,
        mode: Mode,
        procs: Pid,
        story: impl Story<Self::Process>,
        args: Args<'_>,
    ) -> Result<()> {
        let mut teams = TEAMS.lock().unwrap_or_else(PoisonError::into_inner);
        let team = &mut teams[usize::from(self.is_sealed())];
        let start = || Team::start(PROCS, Role::Serve, self.is_sealed());
        team.get_or_insert_with(start).1.exec(
            &Arc::new(mode.between_processes(self.0)),
            procs,
            args,
            section(story),
            section(story),
        )
    }

    fn hook(
        &self,
        mode: Mode,
        inputs: &[Vec<u8>],
        output_bytes: usize,
        story: impl Story<Self::Process>,
    ) -> Option<Vec<Hooked>> {
        let role = Role::hook(mode.between_processes(self.0), inputs, output_bytes, story);
        let (team, mut job) = Team::start(inputs.len(), role, self.is_sealed());
        let own =
            hook_here(&mut job, mode.between_processes(self.0), &inputs[0], output_bytes, story);
        Some(std::iter::once(own).chain(team.outcomes(job)).collect())
    }

    fn pace(&self) -> Pace {
        Pace::of_processes(members::are_apart())
    }
}
