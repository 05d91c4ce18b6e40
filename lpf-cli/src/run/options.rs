//! The options of `lpf run`, and of its part that a launcher of MPI starts.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use lpf::Pid;
use lpf::settings::Settings;

use crate::failure::{Failure, Result};
use crate::values::{seconds, size};

#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    /// Number of processes (default: LPF_PROCS, else the cores); more than cores is allowed
    #[arg(short, value_name = "N", value_parser = size, allow_negative_numbers = true)]
    pub(crate) n: Option<Pid>,

    /// Backend between the processes: tcp, or mpi if PROGRAM has it built in (default: LPF_BACKEND, else tcp)
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,

    /// Begin each line of output with the number of its process, as 3| text
    ///
    /// A line that is not finished, as a prompt or a progress bar, is shown after 0.2 s.
    #[arg(long)]
    pub(crate) tag: bool,

    /// Seconds that processes have to end: after process 0 ended, and again after a signal
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "5")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) grace: Duration,

    /// The program, found as a shell finds it, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl Run {
    /// The number of processes.
    pub(crate) fn size(&self) -> Result<Pid> {
        match self.n {
            Some(n) => Ok(n),
            None => Ok(Settings::from_environment()?.procs.value),
        }
    }

    /// The program that each process runs, and its arguments.
    pub(crate) fn program(&self) -> Result<(&OsString, &[OsString])> {
        self.command.split_first().ok_or(Failure::Usage("PROGRAM is missing".into()))
    }
}

/// The process that an MPI's launcher starts for `lpf run` in place of the program.
#[derive(Args, Clone, Debug)]
pub(crate) struct Shepherd {
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

impl Shepherd {
    /// The program that it watches.
    pub(crate) fn program(&self) -> Result<(&OsString, &[OsString])> {
        self.command.split_first().ok_or(Failure::Usage("PROGRAM is missing".into()))
    }
}
