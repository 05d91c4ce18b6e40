//! The command line: one definition gives parser, help and errors.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use lpf::settings::misspelt::{is_close, meant};

use crate::bench::{self, options::Bench};
use crate::cost::Cost;
use crate::failure::{Failure, Result};
use crate::info::Info;
use crate::measuring::{Chosen, Measuring};
use crate::output;
use crate::run::options::{Run, Shepherd};
use crate::schedule::options::Schedule;
use crate::started;

/// Starts programs on several processes; measures what communication costs on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "lpf",
    version,
    max_term_width = output::WIDTH,
    after_help = "Examples:
  lpf run -n 4 PROGRAM   four processes of a program, over TCP
  lpf probe              r, g and l of this machine, saved for programs to use
  lpf comply -p 4        does every pattern cost at most 1.2 (h g + l)?
  lpf bench --json       each pattern beside what the machine can do
  lpf bench collectives  each algorithm of each collective, beside MPI's own
  lpf cost allreduce     each algorithm's cost by h g + l, and the one chosen
  lpf schedule --help    schedules of reductions by processes that arrive late
  lpf info               topology, backends, tables, settings

Every setting is an environment variable; lpf info lists them. If something cannot be written, for \
example on a full disk, the exit status of every command is not 0. A closed pipe is not an error."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start N processes of a program on this machine, watch them and end them.
    ///
    /// lpf::run in the program joins them over TCP. The code before it in main runs in every process and
    /// should have no side effects. The code after it runs in process 0 only. Standard input goes to process 0;
    /// input that process 0 does not read stays for the next command. Ctrl-C, SIGTERM, SIGHUP and SIGQUIT go to all
    /// processes; those that have not ended after --grace are killed. A second signal kills at once. When
    /// process 0 has ended, the others have --grace to end, too. Failures are reported on standard error, the
    /// root cause last.
    #[command(override_usage = "lpf run [OPTIONS] [--] PROGRAM [ARGS]...")]
    #[command(after_help = "Examples:
  lpf run -n 4 target/release/my-program --size 1000
  lpf run -n 2 --tag -- python3 solve.py

Exit status:
  N        of process 0; if that is 0, or lpf had to end process 0, of the
           first other process that failed
  128 + N  signal N ended that process, or signal N to lpf ended the job
  1        the system has no room for N processes
  2        PROGRAM or an argument cannot be used; nothing is started

With --backend mpi the launcher of an MPI starts the processes. lpf adds the flags for running as \
root, for few cores, and for survivors of a failure to live on. The launcher reads \
standard input, and passes it on to process 0, only if it is a terminal.

Over TCP each process finds LPF_RANK, LPF_SIZE, LPF_MEET, LPF_SECRET, LPF_JOB and LPF_BACKEND in its \
environment. The control plane is encrypted. Data stays on this machine and is not, unless you set \
LPF_SEAL_DATA=1.")]
    Run(Run),

    /// Print a random secret of 128 bits, for LPF_SECRET.
    ///
    /// All processes of a job on several machines need the same one. Pass it on in a file that no other
    /// user can read.
    #[command(after_help = "Examples:
  (umask 077; lpf secret >~/lpf-secret)
  export LPF_SECRET=$(lpf secret)")]
    Secret,

    /// Look after one process that an MPI's launcher starts.
    #[command(hide = true)]
    Shepherd(Shepherd),

    /// Measure r, g and l by the method of the LPF paper and save them.
    ///
    /// Total exchanges of words of 8, 64, 1024 and 1048576 bytes are timed in random order, until the
    /// 95 % intervals are narrow or the time is up. The gap is g = (T(n_max) - T(2p)) / (n_max - 2p). The latency
    /// l is the largest of T(0) and 2T(kp) - T(2kp) for k = 1, 2, 4. Here n_max is the largest h of which
    /// the time allows enough samples. The table is saved in one file per host: HOST.json in the folder LPF_TABLE, by
    /// default ~/.local/share/lpf. Programs on the same backend use it from then on. Without -p it measures one process
    /// per core, or LPF_PROCS, or those of the job.
    #[command(after_help = "Examples:
  lpf probe
  lpf probe -p 2,4 --seconds 120
  lpf probe --quick --json
  lpf probe --backend tcp -p 4       between processes, which it starts
  lpf run -n 4 lpf probe             the same, in a job
  lpf probe --svg probe.svg          T(h), the fit and its interval

Rows of --json and --csv:
  backend, p       the number of processes is p
  word_bytes       w, the size of a message
  r_ns_per_byte    time of a local copy
  g_ns_per_byte    the gap
  g_ci95           half of its interval; unknown if that is g or more
  l_ns, l_ci95     the latency, and half of its interval
  g_over_r         g in units of r
  l_words          l in units of r w
  n_max_bytes      the largest h of which there were enough samples
  samples, host
  remarks          on a busy machine, on LPF_CHECK, on a quick probe, on a g
                   below r")]
    Probe(Measuring),

    /// Check that every pattern costs at most 1.2 (h g + l).
    ///
    /// g and l are measured first, in the same run. If h g + l is known to +-50 % or worse, the pattern is
    /// undecided.
    #[command(after_help = "Examples:
  lpf comply
  lpf comply -p 2,4 --json
  lpf comply --pattern random-8B,mixed-8B
  lpf comply --quick --svg comply.svg
  lpf comply --backend tcp -p 2

Exit status:
  0  no pattern costs more, and at least half of them are decided
  1  a pattern costs more
  3  no pattern costs more, but more than half are undecided

Rows of --json and --csv:
  backend, p, pattern, h_bytes
  median_ns  measured
  bound_ns   1.2 (h g + l)
  ratio      of the median to h g + l; up to 1.2 is compliant
  compliant  true or false; null (in CSV empty) if undecided
  decided    whether h g + l is known better than to +-50 %
  remarks    on a busy machine, on LPF_CHECK")]
    Comply(Chosen),

    /// Time each pattern beside a bare program, measured in the same run.
    ///
    /// The bare program, the reference, moves the same bytes without the guarantees of LPF. It is the fastest one
    /// known, not a lower bound. It runs on pinned threads, or on bare sockets or raw MPI between the processes that are
    /// measured. In both, owners rewrite their sources and read their destinations before each superstep. Both
    /// sides take turns; the table has medians over all turns. Without -p it measures 2 and 4 processes, and 8 for
    /// sync; on 16 cores and more 2, 8 and 16. In a job it measures the processes of the job.
    #[command(after_help = "Examples:
  lpf bench
  lpf bench --pattern sync,put8 -p 2
  lpf bench --json --seconds 120
  LPF_PIN=compact lpf bench --pattern sync
  lpf bench --backend tcp -p 2   beside bare sockets; starts the processes
  mpirun -n 4 lpf bench          beside raw MPI, in this job
  LPF_EXCHANGE=bruck lpf bench --backend tcp -p 2,4,8,16 --pattern sync

Rows of --json and --csv:
  backend, p, pattern
  bytes             that a process sends in one superstep
  median_ns, min_ns, max_ns
  limit, limit_ns   the reference, and its median
  samples
  messages_meta     between processes, of one process in one superstep:
                    messages that announce requests and answer them,
  messages_data     messages from memory to memory,
  messages_barrier  messages that only synchronise
  exchange          of the announcements: direct or bruck
  remarks           on a busy machine, on LPF_CHECK, on patterns that were left
                    out, on a ratio below 1

The patterns put-call and exec exist on threads only.
For collectives see lpf bench collectives --help.")]
    Bench(Box<Bench>),

    /// Show what each algorithm of a collective costs by h g + l, and which one is chosen.
    ///
    /// Nothing is measured. Supersteps, bytes and messages follow from the algorithm. g and l are those of this
    /// machine's table or of --table FILE, which another machine may have saved, or a guess. The algorithm with the
    /// smallest prediction is chosen; of those within 5 % of it, the one with the fewest supersteps.
    ///
    /// There may be up to 65536 processes (2^16) and 2^40 elements. A number may be written as 1000000, 1_000_000
    /// or 1e6. Blocks hold whole elements. If each process gets another part (reduce-scatter, scatter, alltoall),
    /// the elements are rounded up to equal parts, because collectives refuse others. The forms with counts
    /// (gather_v, scatter_v, allgather_v, alltoall_v) are priced like the even ones with the same total.
    #[command(after_help = "Examples:
  lpf cost allreduce -n 1000000 -p 64
  lpf cost broadcast -n 1000 --element 4 --backend tcp
  lpf cost alltoall -n 4096 -p 16 --table cluster.json --json

Rows of --json, one for each algorithm:
  backend, p, collective, algorithm
  elements, element_bytes  that one process contributes in all; in a broadcast
                           and a scatter the root
  supersteps
  h_bytes, messages        of the busiest process, in all supersteps
  predicted_ns
  chosen                   true for the one that is chosen
  origin                   of g and l: measured, extrapolated, guess")]
    Cost(Cost),

    /// Show schedules of reductions by processes that arrive at different, known times.
    ///
    /// The instance is in a file: one JSON object, whose other keys are ignored. The schedule is computed and shown;
    /// no processes are started.
    Schedule(Schedule),

    /// Measure as the lpf orders that started this one as a process of a job.
    #[command(hide = true)]
    Measure,

    /// Measure MPI's own collectives as another lpf orders.
    #[cfg(feature = "mpi")]
    #[command(hide = true)]
    MpiOwn,

    /// Show topology, cores, backends, tables and every setting.
    #[command(after_help = "Examples:
  lpf info
  lpf info --json
  LPF_PROCS=8 LPF_PIN=compact lpf info")]
    Info(Info),

    /// Print the completions of a shell.
    ///
    /// The shell then completes commands, options and values of lpf at the Tab key.
    #[command(after_help = "Examples:
  lpf completions bash >~/.local/share/bash-completion/completions/lpf
  lpf completions zsh >~/.zfunc/_lpf   with ~/.zfunc in $fpath, before compinit
  lpf completions fish >~/.config/fish/completions/lpf.fish")]
    Completions {
        /// bash, zsh, fish, elvish or powershell.
        shell: clap_complete::Shell,
    },

    /// Write the manual pages into a folder.
    ///
    /// One page for lpf and one for each command: lpf.1, lpf-run.1, ... The folder is made if there is none.
    #[command(after_help = "Example:
  lpf man ~/.local/share/man/man1 && man lpf-run")]
    Man {
        /// The folder.
        dir: PathBuf,
    },
}

impl Command {
    /// Whether it is a part of another command, which reports for it.
    pub(crate) fn is_hidden(&self) -> bool {
        match self {
            Command::Measure | Command::Shepherd(_) => true,
            #[cfg(feature = "mpi")]
            Command::MpiOwn => true,
            _ => false,
        }
    }
}

/// Prints what completes the command line in a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<()> {
    // Hidden commands are completed, too, unless they are left out.
    let all = Cli::command();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut visible =
        clap::Command::new("lpf").version(env!("CARGO_PKG_VERSION")).subcommands(visible);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible, "lpf", &mut script);
    let mut out = output::standard();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

/// Writes the manual pages.
pub(crate) fn manual(folder: &Path) -> Result<()> {
    let failed = |error| {
        Failure::Failed(format!(
            "the manual pages cannot be written into {}: {error}",
            output::named(folder.display())
        ))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)
}

/// Parses the arguments; help and version are printed here.
pub(crate) fn parse() -> Result<Command> {
    match Cli::try_parse() {
        Ok(cli) => Ok(cli.command),
        Err(error) if !error.use_stderr() => {
            let mut out = output::standard();
            let text = error.render();
            match is_coloured() {
                true => write!(out, "{}", text.ansi())?,
                false => write!(out, "{text}")?,
            }
            out.flush()?;
            Err(Failure::Output)
        }
        Err(error) => {
            let first: Vec<OsString> = std::env::args_os().skip(1).take(2).collect();
            Err(Failure::Usage(explain(&error, &first)))
        }
    }
}

/// Whether what is printed may be coloured: on a terminal, unless `NO_COLOR` is set.
fn is_coloured() -> bool {
    let forbids = |name| std::env::var_os(name).is_some_and(|value: OsString| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stdout().is_terminal() && !is_dumb && !forbids("NO_COLOR")
}

/// How the number of processes is given, if this command has one: other commands, and other launchers, have another
/// option.
fn number_of_processes(command: &clap::Command, path: &[&str]) -> Option<String> {
    let (option, program) = if path == ["run"] { ('n', " PROGRAM") } else { ('p', "") };
    let has_it = command.get_arguments().any(|one| one.get_short() == Some(option));
    let example = format!("lpf {} -{option} 4{program}", path.join(" "));
    has_it.then(|| format!("; the number of processes is -{option}, as in {example}"))
}

/// The end of a sentence on a name that does not exist.
fn did_you_mean(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!("; did you mean {name}?"))
}

/// The error for an unknown measurement. The name may be that of a pattern, given without `--pattern`.
fn bench_has_no(name: &str, suggestion: &str) -> String {
    let patterns = bench::names();
    let begins = patterns.iter().find(|one| !name.is_empty() && one.starts_with(name));
    let pattern = begins.copied().or_else(|| meant(name, patterns));
    let suggestion = match pattern.filter(|_| suggestion.is_empty()) {
        Some(pattern) => format!("; did you mean --pattern {pattern}?"),
        None if suggestion.is_empty() => {
            "; there are collectives and reduce, and patterns by --pattern NAME".into()
        }
        None => suggestion.into(),
    };
    let help = started::command("bench --help");
    output::named(format!("bench has nothing called {name}{suggestion} ({help} explains more)"))
}

/// One plain sentence and what to do, from clap's error; `first` are the first arguments, most often a command
/// and its own arguments.
fn explain(error: &clap::Error, first: &[OsString]) -> String {
    let commands = Cli::command();
    let mut path: Vec<&str> = Vec::new();
    let mut command = &commands;
    for argument in first {
        let Some(named) = command.find_subcommand(argument) else { break };
        path.push(named.get_name());
        command = named;
    }
    let there_are = |there: &str| {
        let all: Vec<_> = command.get_subcommands().filter(|one| !one.is_hide_set()).collect();
        let names: Vec<_> = all.iter().map(|one| one.get_name()).collect();
        let (last, others) = names.split_last().unwrap_or((&"none", &[]));
        format!("{there} are {} and {last}", others.join(", "))
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    let suggestion = |kind, wrong: &str| {
        let suggested = text(kind).unwrap_or_default();
        let is_meant = |name: &&str| !name.is_empty() && is_close(wrong, name);
        did_you_mean(suggested.split(", ").find(is_meant))
    };
    let sentence = match error.kind() {
        // Other launchers have -np, which is -n with the value p here.
        ErrorKind::ValueValidation if path == ["run"] && value == "p" => {
            format!("{argument} is \"p\"; write -n 4, not -np 4")
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue if !value.is_empty() => {
            let source = std::error::Error::source(error).map(ToString::to_string);
            let valid = || {
                let all = text(ContextKind::ValidValue).unwrap_or_default();
                match all.rsplit_once(", ") {
                    Some((others, last)) => format!("it has to be {others} or {last}"),
                    None => format!("it has to be {all}"),
                }
            };
            let suggestion = suggestion(ContextKind::SuggestedValue, &value);
            format!("{argument} is \"{value}\"; {}{suggestion}", source.unwrap_or_else(valid))
        }
        ErrorKind::InvalidValue => format!("{argument} needs a value"),
        ErrorKind::UnknownArgument => {
            let is_number = ["-n", "-p", "--np", "--procs", "--nprocs"].contains(&&*argument);
            let number = number_of_processes(command, &path).filter(|_| is_number);
            let suggestion =
                number.unwrap_or_else(|| suggestion(ContextKind::SuggestedArg, &argument));
            format!("there is no argument {argument}{suggestion}")
        }
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let suggestion = suggestion(ContextKind::SuggestedSubcommand, &name);
            if path.first() == Some(&"bench") {
                return bench_has_no(&name, &suggestion);
            }
            // After a question a new sentence begins.
            match (name.is_empty(), suggestion.is_empty()) {
                (true, _) => format!("the name of a command is empty; {}", there_are("there")),
                (_, true) => format!("there is no command {name}; {}", there_are("there")),
                _ => format!("there is no command {name}{suggestion} {}", there_are("There")),
            }
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("a command is missing; {}", there_are("there"))
        }
        ErrorKind::MissingRequiredArgument => {
            format!("{} is missing", argument.replace(['<', '>'], "").trim_end_matches('.'))
        }
        ErrorKind::TooManyValues => {
            format!("{argument} takes no value, and \"{value}\" is one; leave it out")
        }
        ErrorKind::ArgumentConflict => {
            let other = text(ContextKind::PriorArg).unwrap_or_default();
            if argument == other {
                format!("{argument} is given twice")
            } else if argument.is_empty() {
                let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
                let all = command.get_subcommands().map(clap::Command::get_name);
                let closest = meant(&name, all);
                if closest != Some(&name) {
                    return bench_has_no(&name, &did_you_mean(closest));
                }
                let typed = other.replace(", ", " ");
                format!(
                    "{other} has to follow the name of the measurement: lpf bench {name} {typed}"
                )
            } else {
                format!("{argument} and {other} exclude each other")
            }
        }
        _ => error.to_string().lines().next().unwrap_or_default().replace("error: ", ""),
    };
    path.push("--help");
    let help = path.join(" ");
    output::named(format!("{sentence} ({} explains more)", started::command(&help)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(arguments: &[&str]) -> String {
        let all = ["lpf"].iter().chain(arguments);
        let error = Cli::try_parse_from(all).expect_err("these arguments are wrong");
        explain(&error, &arguments.iter().take(2).map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_fits_80_columns_and_its_examples_are_whole() {
        fn check(command: &mut clap::Command) {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            let short = command.render_help().to_string();
            for line in help.lines().chain(short.lines()) {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
            let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in end.lines().filter(|line| line.starts_with("  ")) {
                assert!(help.lines().any(|of_help| of_help == line), "{name} breaks: {line}");
            }
            command.get_subcommands_mut().for_each(check);
        }
        let mut all = Cli::command();
        all.build();
        check(&mut all);
    }

    #[test]
    fn what_follows_a_program_is_its_own() {
        let cases: &[&[&str]] = &[
            &["run", "-n", "3", "prog", "-n", "4", "--tag", "--help", "--", "x"],
            &["run", "-n", "3", "--", "prog", "-n", "4", "--tag", "--help", "--", "x"],
        ];
        for arguments in cases {
            let all = ["lpf"].iter().chain(*arguments);
            let Command::Run(run) = Cli::try_parse_from(all).unwrap().command else { panic!() };
            let (program, own) = run.program().unwrap();
            assert_eq!((run.n, run.tag, program.to_str()), (Some(3), false, Some("prog")));
            assert_eq!(own, ["-n", "4", "--tag", "--help", "--", "x"]);
        }
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
            (&["prob"], "there is no command prob; did you mean probe? There are run, "),
            (&[""], "the name of a command is empty; there are run, "),
            (&["compare"], "there is no command compare; there are"),
            (
                &["run", "-p", "4", "program"],
                "there is no argument -p; the number of processes is -n",
            ),
            (&["probe", "--sized"], "there is no argument --sized ("),
            (&["probe", "-p", "a\u{1b}\n"], "\"a\\u{1b}\\n\""),
            (&["bench", "--size", "8"], "there is no argument --size"),
            (
                &["bench", "colectives"],
                "bench has nothing called colectives; did you mean collectives?",
            ),
            (
                &["bench", "--quick", "collectives"],
                "--quick has to follow the name of the measurement",
            ),
            (
                &["bench", "--json", "colectives"],
                "bench has nothing called colectives; did you mean collectives?",
            ),
            (
                &["bench", "all"],
                "; there are collectives and reduce, and patterns by --pattern NAME",
            ),
            (&["bench", "put"], "bench has nothing called put; did you mean --pattern put8?"),
            (&["bench", "snyc"], "bench has nothing called snyc; did you mean --pattern sync?"),
            (
                &["probe", "-n", "4"],
                "there is no argument -n; the number of processes is -p, as in lpf probe -p 4",
            ),
            (
                &["run", "--np", "2", "true"],
                "there is no argument --np; the number of processes is -n",
            ),
            (
                &["bench", "collectives", "-n", "4"],
                "the number of processes is -p, as in lpf bench collectives -p 4",
            ),
            (&["info", "-n", "4"], "there is no argument -n ("),
            (&["run", "-np", "2", "true"], "-n <N> is \"p\"; write -n 4, not -np 4"),
            (&["probe", "--json=1"], "--json takes no value, and \"1\" is one; leave it out"),
            (
                &["completions", "bsh"],
                "<SHELL> is \"bsh\"; it has to be bash, elvish, fish, powershell or zsh; did you mean bash?",
            ),
            (&["cost"], "COLLECTIVE is missing"),
            (&["cost", "allreduce", "-n", "-1"], "from 0 to"),
            (&["cost", "allreduce", "-n", "1e13"], "from 0 to 1099511627776 (2^40)"),
            (&["cost", "allreduce", "-p", "65537"], "from 1 to 65536"),
            (&["cost", "allreduce", "--element", "0"], "from 1 to"),
            (&["run", "-n", "2"], "PROGRAM is missing"),
            (&["schedule"], "there are clairvoyant, bench, linear, ring, slt and prr"),
            (&["schedule", "pr"], "did you mean prr?"),
            (&["schedule", "prr"], "--instance FILE is missing"),
            (&["schedule", "bench", "-p", "1"], "a number of processes from 2 to 8192"),
            (
                &["run", "-n", "0", "true"],
                "-n <N> is \"0\"; it has to be a number of processes from 1",
            ),
            (&["run", "-n", "-1", "true"], "-n <N> is \"-1\""),
            (&["run", "-n", "70000", "true"], "from 1 to 65536"),
            (&["run", "--tagg", "true"], "did you mean --tag?"),
            (&["run", "--grace", "0", "true"], "above 0"),
            (&[], "a command is missing"),
        ];
        for (arguments, expected) in cases {
            let said = sentence(arguments);
            assert!(said.contains(expected), "{arguments:?}: {said}");
            assert!(!said.contains('\n'), "{arguments:?}: {said}");
            let help = match arguments.first() {
                Some(&"schedule") if arguments.len() > 1 && arguments[1] != "pr" => {
                    format!("schedule {} --help explains more)", arguments[1])
                }
                Some(&"bench") if arguments[1] == "collectives" => {
                    "bench collectives --help explains more)".into()
                }
                Some(&command) if !["", "prob", "compare"].contains(&command) => {
                    format!("{command} --help explains more)")
                }
                _ => "--help explains more)".into(),
            };
            assert!(said.ends_with(&format!(" {help}")), "{arguments:?}: {said}");
        }
    }
}
