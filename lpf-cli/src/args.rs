//! The command line: one definition gives parser, help and errors.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use lpf::Pid;
use lpf::collectives::Collective;
use lpf::settings::{MAX_PROCS, Settings};

use crate::bench::Pattern;
use crate::failure::{Failure, Result};
use crate::place::Place;
use crate::started;
use crate::{misspelt, output};

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
    /// the time allows enough samples. The table is saved in one file per host. Programs on the same backend use it
    /// from then on. Without -p it measures one process per core, or LPF_PROCS, or those of the job.
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
  samples, host
  remarks          on a busy machine, on LPF_CHECK, on a g below r")]
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

/// What `bench` measures: patterns, unless collectives are named.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) what: Option<BenchWhat>,

    #[command(flatten)]
    pub(crate) patterns: Chosen,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum BenchWhat {
    /// Time every algorithm of every collective, beside a lower bound and MPI's own.
    ///
    /// The row chosen is the default choice of the library. The table also has the prediction of h g + l.
    ///
    /// The bound is measured in the same run. It is the time of one message or cache line, and of the bytes that
    /// have to go from one process to another. These move at the rate of one core or at that of the machine,
    /// whichever takes longer.
    ///
    /// If MPI is built in, its own collective runs in a job of its own, an MPI program with the same number of
    /// processes. It takes turns with ours, also beside --backend threads. On both sides each repetition is timed
    /// from a common start to the last exit. Before it, owners rewrite their contributions and read their results.
    ///
    /// Elements are f64, the operator is the sum. Without -p it measures 2 and 4 processes; on 16 cores and more
    /// 2, 8 and 16.
    #[command(after_help = "Examples:
  lpf bench collectives
  lpf bench collectives --collective allreduce,broadcast -p 4 --seconds 30
  lpf bench collectives --size 8,4096,1048576 --json
  lpf bench collectives --backend tcp -p 2 --svg collectives.svg
  lpf bench collectives --quick

Rows of --json and --csv:
  backend         of MPI's own collective: openmpi or mpich
  p, collective
  algorithm       chosen: the default choice; own: MPI's own
  chosen          in the row chosen: the algorithm that it is
  mode            expected: a superstep ends on expected arrivals; full: it
                  ends in a full sync; null for MPI's own
  elements, element_bytes
                  that one process contributes in all; in a broadcast and a
                  scatter the root
  median_ns, min_ns
  best_ns         in the row chosen: the fastest algorithm, found in every
                  other turn and timed in the others
  bound_ns        null for MPI's own beside tcp, whose bound is that of sockets
  predicted_ns, origin
                  origin of g and l: measured, extrapolated, guess; both null
                  for MPI's own
  samples         repetitions
  remarks         on a busy machine, on LPF_CHECK, on rows that were left out,
                  on a median below the bound

A line under the table counts how often the choice is within 10 % or 300 ns of the best algorithm. \
With --json and --csv this line is on standard error.")]
    Collectives(BenchCollectives),
    /// Time reductions of processes that arrive at different times, by every algorithm.
    ///
    /// Each process sleeps until it arrives, then calls. Every result is compared with that of the
    /// arrival-unaware call. In a repetition all algorithms take their turn, with the same arrivals. The patterns are
    /// those of the paper on SLT and PRR (Fig. 9). Predicted arrivals are exact, or wrong by up to --error percent.
    /// Elements are f64, the operator is the sum, the root is process 0. Without -p it measures 4 processes.
    #[command(after_help = "Examples:
  lpf bench reduce
  lpf bench reduce --call allreduce -p 8 --pattern one-late --delay 20
  lpf bench reduce --algorithm ring,slt,prr,clairvoyant,auto --error 0,10,50,100
  lpf bench reduce --pattern trace --trace arrivals.json -p 3 --svg late.svg

Here arrivals.json has a list for each repetition, in ns after its start:
  [[0, 1500000, 20000], [0, 0, 3000000]]

Columns, and rows of --json and --csv:
  backend           of MPI's own call: openmpi or mpich
  p, call
  algorithm         auto: the default choice; own: MPI's own; chain-ring: the
                    ring of segments; ring: the ring of rounds
  chosen            in the row auto: the algorithms that it used, and in how
                    many repetitions each
  pattern, max_delay_ms
  prediction_error  relative to each arrival: 0.5 is --error 50
  elements, element_bytes
                    that one process contributes
  avg_elapsed_ns    from a process's arrival to its return, averaged over
                    processes; median over repetitions
  run_time_ns       from the first arrival to the last return (of a reduce to
                    the root's); median
  after_last_arrival_ns
                    from the last arrival to the last return; median
  bound_ns          of after_last_arrival_ns: the bytes that the last process
                    has to move at one core's rate, or all remaining bytes at
                    the machine's, through cells, and one message
  schedule_ns       the time for choosing an algorithm and making the schedule,
                    which is part of the other times
  samples           repetitions
  after_last_arrival_samples_ns, avg_elapsed_samples_ns
  remarks

A line under the table counts how often auto is within 5 % or 300 ns of the best algorithm. \
It compares the run time of a reduce and the elapsed time of an all-reduce. \
With --json and --csv this line is on standard error.")]
    Reduce(BenchReduce),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchReduce {
    #[command(flatten)]
    pub(crate) measuring: Measuring,

    /// Only this call: reduce or allreduce (default: both)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    call: Vec<String>,

    /// Only these algorithms, of the call that has them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) algorithm: Vec<String>,

    /// Patterns: none, one-late, random, ascending, bimodal, trace (default: none, one-late, random)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pattern: Vec<String>,

    /// Largest delay of a process, in milliseconds (default: 2 and 20)
    #[arg(long, value_name = "MS", value_delimiter = ',', value_parser = delay)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) delay: Vec<Duration>,

    /// Bytes that one process contributes (default: 64 KiB and 1 MiB)
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = bytes)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) size: Vec<usize>,

    /// Largest relative error of predicted arrivals, in percent (default: 0)
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', value_parser = percent)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) error: Vec<u32>,

    /// Arrivals of the pattern trace
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

impl BenchReduce {
    /// The calls named; both if none is.
    pub(crate) fn calls(&self) -> Result<Vec<Collective>> {
        let both = [Collective::Reduce, Collective::Allreduce];
        let names = both.map(Collective::name);
        if let Some(name) = self.call.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(Failure::Usage(misspelt::one_of("call", name, &names)));
        }
        let named = |one: &Collective| self.call.iter().any(|name| name == one.name());
        Ok(both.into_iter().filter(|one| self.call.is_empty() || named(one)).collect())
    }

    /// The patterns named.
    pub(crate) fn patterns(&self) -> Result<Vec<Pattern>> {
        let all = Pattern::ALL;
        let names = all.map(Pattern::name);
        if let Some(name) = self.pattern.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(Failure::Usage(misspelt::one_of("pattern", name, &names)));
        }
        let usual = [Pattern::None, Pattern::OneLate, Pattern::Random];
        let named = |one: &Pattern| match self.pattern.is_empty() {
            true if self.trace.is_some() => *one == Pattern::Trace,
            true => usual.contains(one),
            false => self.pattern.iter().any(|name| name == one.name()),
        };
        let patterns: Vec<Pattern> = all.into_iter().filter(named).collect();
        let text = match (patterns.contains(&Pattern::Trace), &self.trace) {
            (true, None) => "the pattern trace needs a file of arrivals: add --trace FILE",
            (false, Some(_)) => {
                "--trace is for the pattern trace: add --pattern trace, or leave --pattern out"
            }
            _ => return Ok(patterns),
        };
        Err(Failure::Usage(text.into()))
    }
}

/// Milliseconds.
fn delay(text: &str) -> std::result::Result<Duration, String> {
    let wanted = "it has to be a number of milliseconds from 0 to 3600000, as 20 or 0.5";
    let ms = text.parse::<f64>().ok().filter(|ms| (0.0..=3.6e6).contains(ms));
    ms.map(|ms| Duration::from_secs_f64(ms / 1e3)).ok_or(wanted.into())
}

fn percent(text: &str) -> std::result::Result<u32, String> {
    let wanted = "it has to be a whole number of percent from 0 to 100";
    text.parse().ok().filter(|percent| (0..=100).contains(percent)).ok_or(wanted.into())
}

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchCollectives {
    #[command(flatten)]
    pub(crate) measuring: Measuring,

    /// Only this collective; may be repeated, and have several names with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    collective: Vec<String>,

    /// Bytes that one process contributes in all, or several (default: 8 bytes to 64 MiB)
    ///
    /// Rounded up to whole elements of 8 bytes. If each process gets another part, to one element for each.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = bytes)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) size: Vec<usize>,
}

impl BenchCollectives {
    /// The collectives named; all if none is.
    pub(crate) fn collectives(&self) -> Result<Vec<Collective>> {
        let named: Result<Vec<_>> = self.collective.iter().map(|name| collective(name)).collect();
        let named = named?;
        let has = |one: &Collective| named.is_empty() || named.contains(one);
        Ok(Collective::ALL.into_iter().filter(has).collect())
    }
}

/// The collective of a name.
fn collective(name: &str) -> Result<Collective> {
    let all = Collective::ALL;
    let of = |name: &str| all.into_iter().find(|one| one.name() == name);
    let even = name.strip_suffix("_v").or(name.strip_suffix("-v")).and_then(of);
    of(name).ok_or_else(|| {
        Failure::Usage(match even {
            Some(even) => format!("{name} counts as its even form here: name {}", even.name()),
            None => misspelt::one_of("collective", name, &all.map(Collective::name)),
        })
    })
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Schedule {
    #[command(subcommand)]
    pub(crate) what: ScheduleWhat,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ScheduleWhat {
    /// A reduction to a root in segments, by rounds (Clairvoyant).
    ///
    /// The file has P (processes), N (segments), root, d_ns (the time of a round) and arrivals_ns (one for each
    /// process), all of them whole numbers.
    #[command(after_help = "Examples:
  lpf schedule clairvoyant --instance late.json
  lpf schedule clairvoyant --instance late.json --svg late.svg
  lpf schedule clairvoyant --instance late.json --algorithm segment-tree --json

Here late.json has, for example:
  {\"P\": 4, \"N\": 4, \"root\": 0, \"d_ns\": 1000, \"arrivals_ns\": [0, 0, 0, 5000]}

--json prints one object:
  P, N, root, d_ns, arrivals_ns, algorithm
  count       number of transfers
  last_round
  fnv1a       FNV-1a of 64 bits over all transfers; each is its round in 8
              bytes, then sender, receiver and segment in 4, little endian
  combines    number of transfers that combine; the others store
  transfers   lists of round, sender, receiver and segment, sorted
  overwrite   for each transfer 1 if it stores, else 0")]
    Clairvoyant(ScheduleClairvoyant),
    /// Time how long it takes to make Clairvoyant schedules, by each algorithm.
    ///
    /// The instances are those of the paper's Table 1, with the same number of segments and processes. Processes arrive
    /// at random (uniform), or all but one arrive at once (skewed). Every algorithm makes the same schedule; this is
    /// checked.
    #[command(after_help = "Columns of the table:
  transfer   time for each transfer
  x fastest  time relative to the fastest algorithm
  bits/cell  memory for each process and segment

Rows of --json:
  algorithm
  arrivals          uniform or skewed
  P, N
  median_ns, min_ns
  transfers         of a schedule, on average
  ns_per_transfer
  bytes_per_cell
  samples           schedules

Ctrl-C prints the rows measured until then.")]
    Bench(ScheduleBench),
    /// An all-reduction along a tree of one branch.
    #[command(after_help = CHAIN)]
    Linear(ScheduleOf),
    /// An all-reduction round a ring.
    #[command(after_help = CHAIN)]
    Ring(ScheduleOf),
    /// An all-reduction along a tree of one branch, in the order of arrival (sorted linear tree).
    #[command(after_help = CHAIN)]
    Slt(ScheduleOf),
    /// An all-reduction round a ring in the order of arrival; early processes reduce first (pre-reduced ring).
    #[command(after_help = CHAIN)]
    Prr(ScheduleOf),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ScheduleBench {
    /// Processes, which are also the segments, or several as 64,512 (default: 4, 8, 16, to 2048)
    #[arg(short, value_name = "P", value_delimiter = ',', value_parser = segments)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) p: Vec<u32>,

    /// Measure less: for a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// Seconds to measure, for all sizes together (default: 60; with --quick 10)
    #[arg(long, value_name = "S", value_parser = seconds)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) seconds: Option<Duration>,

    /// Print one JSON object for each row and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// The end of the help of every schedule along a chain.
const CHAIN: &str = "The file has whole numbers of any unit, for example:
  {\"P\": 4, \"tau\": 1, \"arrivals\": [0, 0, 0, 2]}

  P         processes
  tau       the time in which a segment is sent and combined
  arrivals  one for each process

--json prints one object:
  alg, P, tau, arrivals, id_to_rank, pre_steps_by_id
  last_recv_time  by rank
  programs        by rank; each step is a list of send or recv, the peer's rank,
                  the segment, and reduce or override";

#[derive(Args, Clone, Debug)]
pub(crate) struct ScheduleOf {
    /// The instance: a file with one JSON object
    #[arg(long, value_name = "FILE")]
    pub(crate) instance: PathBuf,

    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw processes as rows over time, with their arrivals and transfers
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ScheduleClairvoyant {
    #[command(flatten)]
    pub(crate) of: ScheduleOf,

    /// Algorithm: linear, segment-tree or bits (default: bits, the fastest); all give the same schedule
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Cost {
    /// Which collective: broadcast, reduce, allreduce, reduce-scatter, scan, exscan, gather, scatter, allgather
    /// or alltoall
    #[arg(value_name = "COLLECTIVE")]
    collective: String,

    /// Elements that one process contributes in all; in a broadcast and a scatter the root
    #[arg(short, value_name = "ELEMENTS", default_value = "1", value_parser = elements)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) n: usize,

    /// Bytes of an element
    #[arg(long, value_name = "BYTES", default_value = "8", value_parser = bytes)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) element: usize,

    /// Number of processes (default: LPF_PROCS, else the cores)
    #[arg(short, value_name = "N", value_parser = size, allow_negative_numbers = true)]
    pub(crate) p: Option<Pid>,

    /// A file of tables that lpf probe has saved, here or on another machine (default: this one's)
    #[arg(long, value_name = "FILE")]
    pub(crate) table: Option<PathBuf>,

    /// Backend: threads, tcp, mpi (default: LPF_BACKEND, else the one that the table is of)
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,

    /// Print one JSON object per algorithm and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

impl Cost {
    /// Which one.
    pub(crate) fn collective(&self) -> Result<Collective> {
        collective(&self.collective)
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    /// Number of processes (default: LPF_PROCS, else the cores); more than cores is allowed
    #[arg(short, value_name = "N", value_parser = size, allow_negative_numbers = true)]
    n: Option<Pid>,

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

#[derive(Args, Clone, Debug)]
pub(crate) struct Info {
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
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

    /// That a plot can be written, by the process that does: found before measuring begins, not after it.
    pub(crate) fn check(&self, place: &Place) -> Result<()> {
        match self.svg.as_ref().filter(|_| place.is_first()) {
            Some(path) => check_plot(path),
            None => Ok(()),
        }
    }
}

/// That a plot can be written there.
pub(crate) fn check_plot(path: &Path) -> Result<()> {
    check_name(path)?;
    let fresh = !path.exists();
    let open = OpenOptions::new().create(true).append(true).open(path);
    open.and_then(|mut file| file.flush()).map_err(|error| {
        let path = output::named(path.display());
        Failure::Usage(format!("--svg {path} cannot be written ({error}); name another file"))
    })?;
    if fresh {
        drop(std::fs::remove_file(path));
    }
    Ok(())
}

/// A plot is SVG under every name, so a name like a.png would mislead.
fn check_name(path: &Path) -> Result<()> {
    const OTHERS: [&str; 8] = ["png", "jpg", "jpeg", "gif", "webp", "pdf", "eps", "ps"];
    let extension = path.extension().map(|name| name.to_string_lossy().to_lowercase());
    match extension.filter(|name| OTHERS.contains(&&**name)) {
        None => Ok(()),
        Some(name) => Err(Failure::Usage(format!(
            "--svg {} would be an SVG file with the name of a {name}; name {}",
            output::named(path.display()),
            output::named(path.with_extension("svg").display())
        ))),
    }
}

fn processes(text: &str) -> std::result::Result<Pid, String> {
    let most = most_processes();
    let wanted = format!(
        "it has to be a number of processes from 1 to {most} ({PER_CORE} for each core: more cannot be measured in useful time)"
    );
    text.parse().ok().filter(|p| (1..=most).contains(p)).ok_or(wanted)
}

/// Processes of a schedule that is only timed.
fn segments(text: &str) -> std::result::Result<u32, String> {
    let wanted = "it has to be a number of processes from 2 to 8192";
    text.parse().ok().filter(|p| (2..=8192).contains(p)).ok_or(wanted.into())
}

fn size(text: &str) -> std::result::Result<Pid, String> {
    let wanted = format!("it has to be a number of processes from 1 to {MAX_PROCS}");
    let n = number(text).and_then(|n| Pid::try_from(n).ok());
    n.filter(|n| (1..=MAX_PROCS).contains(n)).ok_or(wanted)
}

/// A whole number, as 1000000, 1_000_000 or 1e6.
fn number(text: &str) -> Option<usize> {
    /// Up to here a float has every whole number.
    const MOST: f64 = (1u64 << 53) as f64;
    let digits = text.replace('_', "");
    digits.parse().ok().or_else(|| {
        let value = digits.parse::<f64>().ok()?;
        (value.fract() == 0.0 && (0.0..=MOST).contains(&value)).then_some(value as usize)
    })
}

fn bytes(text: &str) -> std::result::Result<usize, String> {
    const MOST: usize = 1 << 30;
    let wanted = format!("it has to be a number of bytes from 1 to {MOST}");
    number(text).filter(|n| (1..=MOST).contains(n)).ok_or(wanted)
}

fn elements(text: &str) -> std::result::Result<usize, String> {
    const MOST: usize = 1 << 40;
    let wanted = format!("it has to be a number of elements from 0 to {MOST} (2^40)");
    number(text).filter(|&n| n <= MOST).ok_or(wanted)
}

/// The largest number of processes that share a core in a measurement: each pair of them exchanges
/// messages.
const PER_CORE: Pid = 64;

fn most_processes() -> Pid {
    (PER_CORE * lpf::settings::cores() as Pid).min(MAX_PROCS)
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let wanted = "it has to be a number of seconds above 0, as 2.5, and at most 10000000";
    let seconds = text.parse::<f64>().ok().filter(|&s| s > 0.0 && s <= 1e7);
    seconds.map(Duration::from_secs_f64).ok_or(wanted.into())
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
        let is_close = |name: &&str| !name.is_empty() && misspelt::is_close(wrong, name);
        let close = suggested.split(", ").find(is_close);
        close.map_or(String::new(), |name| format!("; did you mean {name}?"))
    };
    let sentence = match error.kind() {
        ErrorKind::ValueValidation | ErrorKind::InvalidValue if !value.is_empty() => {
            let source = std::error::Error::source(error).map(ToString::to_string);
            let reason = source.unwrap_or_else(|| "it is not one of the values allowed".into());
            format!("{argument} is \"{value}\"; {reason}")
        }
        ErrorKind::InvalidValue => format!("{argument} needs a value"),
        ErrorKind::UnknownArgument => {
            let suggestion = suggestion(ContextKind::SuggestedArg, &argument);
            format!("there is no argument {argument}{suggestion}")
        }
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let suggestion = suggestion(ContextKind::SuggestedSubcommand, &name);
            if path.first() == Some(&"bench") {
                return output::named(format!(
                    "bench has nothing called {name}{suggestion} ({} explains more)",
                    started::command("bench --help")
                ));
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
        ErrorKind::ArgumentConflict => {
            let other = text(ContextKind::PriorArg).unwrap_or_default();
            if argument == other {
                format!("{argument} is given twice")
            } else if argument.is_empty() {
                format!("{other} has to follow the name of the measurement")
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
    fn numbers_may_be_written_in_several_ways() {
        for text in ["1000000", "1_000_000", "1e6", "0.5e6", "2.5e5"] {
            let expected = match text {
                "0.5e6" => 500_000,
                "2.5e5" => 250_000,
                _ => 1_000_000,
            };
            assert_eq!(number(text), Some(expected), "{text}");
        }
        for text in ["", "_", "1.5", "-1", "1e300", "inf", "nan", "1k", "1 000"] {
            assert_eq!(number(text), None, "{text}");
        }
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
                Some(&command) if !["", "prob", "compare"].contains(&command) => {
                    format!("{command} --help explains more)")
                }
                _ => "--help explains more)".into(),
            };
            assert!(said.ends_with(&format!(" {help}")), "{arguments:?}: {said}");
        }
    }
}
