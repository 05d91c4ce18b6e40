//! The command line: one definition gives parser, help and errors.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};
use lpf::Pid;
use lpf::settings::{MAX_PROCS, Settings};

use crate::failure::{Failure, Result};

/// Measures, checks and shows what communication costs on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "lpf",
    version,
    after_help = "Examples:
  lpf probe              r, g and l of this machine, saved for programs to use
  lpf comply -p 4        does every pattern cost at most 1.2 (h g + l)?
  lpf bench --json       each pattern beside what the machine can do
  lpf info               topology, backends, tables, settings

Every setting is an environment variable; lpf info lists them."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure r, g and l by the method of the LPF paper and save them.
    ///
    /// Total exchanges of 8, 64, 1024 and 1048576-byte words are timed in random order until the
    /// 95 % intervals are narrow or the time is up. g = (T(n_max) - T(2p)) / (n_max - 2p) and
    /// l = max{T(0), 2T(kp) - T(2kp) for k = 1, 2, 4}, where n_max is four times the last cache or
    /// an eighth of the memory, whichever is smaller. The table is saved in one file per host and used by every
    /// program from then on.
    #[command(after_help = "Examples:
  lpf probe
  lpf probe -p 2,4 --seconds 120
  lpf probe --quick --json
  lpf probe --svg probe.svg          T(h), the fit and its interval

Rows of --json and --csv: backend, p, word_bytes, r_ns_per_byte, g_ns_per_byte, g_ci95 (half of
the interval), l_ns, l_ci95, g_over_r, l_words (l in units of r * word), samples, host.")]
    Probe(Measuring),

    /// Check that every pattern costs at most 1.2 (h g + l).
    ///
    /// g and l are measured first, in the same run. Exit status 1 if any pattern costs more.
    #[command(after_help = "Examples:
  lpf comply
  lpf comply -p 2,4 --json
  lpf comply --quick --svg comply.svg

Rows of --json and --csv: backend, p, pattern, h_bytes, median_ns, bound_ns, ratio (median to
h g + l; compliant up to 1.2), compliant.")]
    Comply(Measuring),

    /// Time each pattern beside the physical limit, measured in the same run.
    ///
    /// A limit is a bare program of pinned threads that moves the same bytes and promises nothing
    /// else. Owners rewrite their sources and read their destinations before each superstep, in
    /// both. Both sides take turns; medians over all turns. Without -p: 2 and 4 processes, and 8
    /// for sync; on 16 cores and more 2, 8 and 16.
    #[command(after_help = "Examples:
  lpf bench
  lpf bench --pattern sync,put8 -p 2
  lpf bench --json --seconds 120
  LPF_PIN=compact lpf bench --pattern sync

Rows of --json and --csv: backend, p, pattern, bytes, median_ns, min_ns, max_ns, limit, limit_ns,
samples. bytes is what a process sends in one superstep.")]
    Bench(Bench),

    /// Show topology, cores, backends, tables and every setting.
    #[command(after_help = "Examples:
  lpf info
  lpf info --json
  LPF_PROCS=8 LPF_PIN=compact lpf info")]
    Info(Info),
}

/// What every measuring command takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Measuring {
    /// Number of processes, or several as 2,4; more than cores is allowed
    #[arg(short, value_name = "N", value_delimiter = ',', value_parser = processes)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) p: Vec<Pid>,

    /// Measure less: for a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Seconds to measure: for each number of processes, in bench for all
    #[arg(long, value_name = "S", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) seconds: Option<Duration>,

    /// Print one JSON object per row and nothing else
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Print rows as comma-separated values with a header
    #[arg(long)]
    pub(crate) csv: bool,

    /// Also draw a plot into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Backend to measure (default: LPF_BACKEND, else threads)
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) measuring: Measuring,

    /// Only these patterns, as sync,put8
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) pattern: Vec<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Info {
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

impl Measuring {
    /// The numbers of processes: those named, else the machine's size.
    pub(crate) fn processes(&self) -> Result<Vec<Pid>> {
        match self.p.is_empty() {
            true => Ok(vec![Settings::from_environment()?.procs.value]),
            false => Ok(self.p.clone()),
        }
    }

    /// Whether standard output is rows and nothing else.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.json || self.csv
    }

    /// The time for each number of processes.
    pub(crate) fn time(&self, quick: u64, full: u64) -> Duration {
        self.seconds.unwrap_or(Duration::from_secs(if self.quick { quick } else { full }))
    }

    /// Everything that can be wrong before measuring begins is found here, not after it.
    pub(crate) fn check(&self) -> Result<&'static str> {
        let settings = Settings::from_environment()?;
        let backend = lpf::backend(self.backend.as_ref().unwrap_or(&settings.backend.value))?;
        if let Some(path) = &self.svg {
            let fresh = !path.exists();
            let open = OpenOptions::new().create(true).append(true).open(path);
            open.and_then(|mut file| file.flush()).map_err(|error| {
                let path = path.display();
                Failure::Usage(format!(
                    "--svg {path} cannot be written ({error}); name another file"
                ))
            })?;
            if fresh {
                drop(std::fs::remove_file(path));
            }
        }
        Ok(backend)
    }
}

fn processes(text: &str) -> std::result::Result<Pid, String> {
    let most = most_processes();
    let wanted = format!(
        "it has to be a number of processes from 1 to {most} ({PER_CORE} for each core: more cannot be measured in useful time)"
    );
    text.parse().ok().filter(|p| (1..=most).contains(p)).ok_or(wanted)
}

/// Processes that share a core at the most where something is measured: each pair of them has
/// messages for each other.
const PER_CORE: Pid = 64;

fn most_processes() -> Pid {
    (PER_CORE * lpf::settings::cores() as Pid).min(MAX_PROCS)
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let wanted = "it has to be a number of seconds above 0, as 2.5";
    let seconds = text.parse::<f64>().ok().filter(|&s| s > 0.0 && s <= 1e7);
    seconds.map(Duration::from_secs_f64).ok_or(wanted.into())
}

/// Parses the arguments; help and version are printed here.
pub(crate) fn parse() -> Result<Command> {
    match Cli::try_parse() {
        Ok(cli) => Ok(cli.command),
        Err(error) if !error.use_stderr() => {
            // A closed pipe is no error here either.
            drop(error.print());
            Err(Failure::ClosedPipe)
        }
        Err(error) => Err(Failure::Usage(explain(&error))),
    }
}

/// One plain sentence and what to do, from clap's error.
fn explain(error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    let suggestion = |kind| text(kind).map_or(String::new(), |s| format!("; did you mean {s}?"));
    let sentence = match error.kind() {
        ErrorKind::ValueValidation | ErrorKind::InvalidValue if !value.is_empty() => {
            let source = std::error::Error::source(error).map(ToString::to_string);
            let reason = source.unwrap_or_else(|| "it is not one of the values allowed".into());
            format!("{argument} is \"{value}\"; {reason}")
        }
        ErrorKind::InvalidValue => format!("{argument} needs a value"),
        ErrorKind::UnknownArgument => {
            format!("there is no argument {argument}{}", suggestion(ContextKind::SuggestedArg))
        }
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let suggestion = suggestion(ContextKind::SuggestedSubcommand);
            format!(
                "there is no command {name}{suggestion}; there are probe, comply, bench and info"
            )
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing; there are probe, comply, bench and info".into()
        }
        ErrorKind::ArgumentConflict => {
            let other = text(ContextKind::PriorArg).unwrap_or_default();
            if argument == other {
                format!("{argument} is given twice")
            } else {
                format!("{argument} and {other} exclude each other")
            }
        }
        _ => error.to_string().lines().next().unwrap_or_default().replace("error: ", ""),
    };
    format!("{sentence} (lpf --help tells more)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(arguments: &[&str]) -> String {
        let all = ["lpf"].iter().chain(arguments);
        explain(&Cli::try_parse_from(all).expect_err("these arguments are wrong"))
    }

    #[test]
    fn the_definitions_are_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn wrong_arguments_give_one_sentence_that_says_what_to_do() {
        let cases: &[(&[&str], &str)] = &[
            (&["probe", "-p", "0"], "-p <N> is \"0\"; it has to be a number of processes from 1"),
            (&["probe", "-p", "2,x"], "\"x\""),
            (&["probe", "--seconds", "-1"], "-1"),
            (&["probe", "--seconds", "soon"], "above 0, as 2.5"),
            (&["probe", "-p"], "-p <N> needs a value"),
            (&["bench", "--json", "--csv"], "exclude each other"),
            (&["probe", "--jsn"], "did you mean --json?"),
            (&["prob"], "did you mean probe?"),
            (&[], "a command is missing"),
        ];
        for (arguments, expected) in cases {
            let said = sentence(arguments);
            assert!(said.contains(expected), "{arguments:?}: {said}");
            assert!(!said.contains('\n'), "{arguments:?}: {said}");
        }
    }
}
