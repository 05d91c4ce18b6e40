//! The options of every measuring command.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lpf::Pid;
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::misspelt;
use crate::output;
use crate::values::{processes, seconds};

/// Arguments of every measuring command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Measuring {
    /// Number of processes, or several as 2,4; more than cores is allowed
    #[arg(short, value_name = "N", value_delimiter = ',', value_parser = processes)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) p: Vec<Pid>,

    /// Measure less: for a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Seconds to measure: for each number of processes; in bench for all rows together
    ///
    /// Without it: probe 60 (5 with --quick), comply and bench 90 (10), bench collectives 180 (20), bench
    /// reduce 60 (10).
    ///
    /// A measurement that would not end in time does not begin. But every pattern is measured once, however short
    /// the time is. Memory is prepared and freed outside this time: a few seconds for each number of processes,
    /// more with more processes than cores. With less than 10 seconds for g and l (in comply they get 40 % of the
    /// time) fewer bytes are moved, as with --quick.
    ///
    /// Ctrl-C, SIGTERM, SIGHUP and SIGQUIT end the measurement. The command prints the rows measured until then, and
    /// exits with 128 plus the number of the signal: 130 after Ctrl-C.
    #[arg(long, value_name = "S", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) seconds: Option<Duration>,

    /// Print one JSON object per row and nothing else
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Print rows as comma-separated values with a header
    #[arg(long)]
    pub(crate) csv: bool,

    /// Also draw a plot into this file; several plots into files beside it, with a name added
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Backend to measure: threads, tcp, mpi (default: LPF_BACKEND, else the launcher's, else threads)
    ///
    /// Between processes (tcp, mpi) the command starts them itself, by lpf run, for each number of
    /// processes. Under lpf run, mpirun or srun it measures in that job, and process 0 prints.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
}

impl Measuring {
    /// The numbers of processes named, each once.
    pub(crate) fn named(&self) -> Vec<Pid> {
        let first = |(nth, p): (usize, &Pid)| (!self.p[..nth].contains(p)).then_some(*p);
        self.p.iter().enumerate().filter_map(first).collect()
    }

    /// Whether standard output is rows and nothing else.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.json || self.csv
    }

    /// The time for each number of processes.
    pub(crate) fn time(&self, quick: u64, full: u64) -> Duration {
        self.seconds.unwrap_or(Duration::from_secs(if self.quick { quick } else { full }))
    }

    /// Prints rows in the form that was asked for; `table` prints for people.
    pub(crate) fn print<R: Serialize>(
        &self,
        rows: &[R],
        table: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        if !self.is_for_programs() {
            return Ok(output::people(table)?);
        }
        let mut out = output::standard();
        if self.json {
            output::json(&mut out, rows)?;
        } else {
            let mut csv = csv::Writer::from_writer(&mut out);
            for row in rows {
                csv.serialize(row)?;
            }
            csv.flush()?;
        }
        Ok(out.flush()?)
    }
}

/// The options of a command that measures patterns.
#[derive(Args, Clone, Debug)]
pub(crate) struct Chosen {
    #[command(flatten)]
    pub(crate) measuring: Measuring,

    /// Only this pattern; may be repeated, and have several names with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pattern: Vec<String>,
}

impl Chosen {
    /// Whether a pattern shall be measured.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.pattern.is_empty() || self.pattern.iter().any(|wanted| wanted == name)
    }

    /// Whether no pattern was named.
    pub(crate) fn has_all(&self) -> bool {
        self.pattern.is_empty()
    }

    /// An error if a name is not one of `all`.
    pub(crate) fn check_names<'a>(&self, all: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let all: Vec<_> = all.into_iter().collect();
        match self.pattern.iter().find(|wanted| !all.contains(&wanted.as_str())) {
            None => Ok(()),
            Some(name) => Err(Failure::Usage(misspelt::pattern(name, &all))),
        }
    }
}
