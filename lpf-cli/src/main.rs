//! The program `lpf`: starts programs, and tells what communication costs on this machine.
//!
//! `run` starts the processes of a program; `probe` measures r, g and l and saves them; `comply`
//! checks that every pattern keeps h·g + l; `bench` compares with what the machine can do; `info`
//! shows machine, tables and settings; `cost` says what collectives cost; `schedule` makes schedules for
//! processes that arrive at different times.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod bench;
mod busy;
mod comply;
mod cost;
mod failure;
mod given;
mod info;
mod interrupt;
mod measuring;
mod misspelt;
mod orders;
mod output;
mod place;
mod plot;
mod probe;
mod progress;
mod remarks;
mod run;
mod schedule;
mod started;
mod uncertainty;
mod values;

use std::io::Write;
use std::process::ExitCode;

use crate::args::Command;
use crate::failure::Failure;

fn secret() -> failure::Result<()> {
    let secret = lpf::control::rendezvous::Secret::random();
    let secret = secret.map_err(|error| Failure::Failed(error.to_string()))?;
    let mut out = output::standard();
    writeln!(out, "{}", secret.text())?;
    Ok(out.flush()?)
}

fn main() -> ExitCode {
    let done = args::parse().and_then(|command| {
        if !command.is_hidden() && place::speaks() {
            misspelt::say();
        }
        match command {
            Command::Run(options) => run::run(&options),
            Command::Secret => secret(),
            Command::Shepherd(options) => run::shepherd(&options),
            Command::Measure => orders::answer(),
            #[cfg(feature = "mpi")]
            Command::MpiOwn => bench::answer_mpi_orders(),
            Command::Probe(options) => probe::run(&options),
            Command::Comply(options) => comply::run(&options),
            Command::Bench(options) => bench::run(&options),
            Command::Cost(options) => cost::run(&options),
            Command::Schedule(options) => schedule::run(&options),
            Command::Info(options) => info::run(&options),
            Command::Completions { shell } => args::completions(shell),
            Command::Man { dir } => args::manual(&dir),
        }
    });
    let status = match done {
        Ok(()) | Err(Failure::Output) => 0,
        Err(Failure::Said) => 1,
        Err(Failure::Ended(status)) => status,
        Err(Failure::Failed(text)) => {
            output::say(text);
            1
        }
        Err(Failure::Usage(text)) => {
            if place::speaks() {
                output::say(text);
            }
            2
        }
    };
    let Some(error) = output::lost() else { return ExitCode::from(status) };
    output::say(format!("the output cannot be written: {error}"));
    ExitCode::from(status.max(1))
}
