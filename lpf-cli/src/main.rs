//! The program `lpf`: what communication costs on this machine.
//!
//! `probe` measures r, g and l and saves them; `comply` checks that every pattern keeps h·g + l;
//! `bench` compares with what the machine can do; `info` shows machine, tables and settings.

mod args;
mod bench;
mod comply;
mod failure;
mod info;
mod output;
mod plot;
mod probe;
mod progress;

use std::process::ExitCode;

use crate::args::Command;
use crate::failure::Failure;

fn main() -> ExitCode {
    let done = args::parse().and_then(|command| match command {
        Command::Probe(options) => probe::run(&options),
        Command::Comply(options) => comply::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Info(options) => info::run(&options),
    });
    match done {
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(Failure::Said) => ExitCode::FAILURE,
        Err(Failure::Failed(text)) => {
            eprintln!("lpf: {text}");
            ExitCode::FAILURE
        }
        Err(Failure::Usage(text)) => {
            eprintln!("lpf: {text}");
            ExitCode::from(2)
        }
    }
}
