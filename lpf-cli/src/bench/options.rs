//! The options of `lpf bench`.

use clap::{Args, Subcommand};

use super::collectives::options::BenchCollectives;
use super::reduce::options::BenchReduce;
use crate::measuring::Chosen;

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
