//! The options of `lpf schedule`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::values::seconds;

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
  lpf schedule clairvoyant --instance late.json --algorithm linear --json

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

    /// Algorithm: linear or bits (default: bits, the fastest); both give the same schedule
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,
}

/// Processes of a schedule that is only timed.
fn segments(text: &str) -> std::result::Result<u32, String> {
    let wanted = "it has to be a number of processes from 2 to 8192";
    text.parse().ok().filter(|p| (2..=8192).contains(p)).ok_or(wanted.into())
}
