//! Which pattern is timed with how many processes, and what it is held against.

use lpf::Pid;

use super::limits::barrier::Barrier;
use super::limits::between::Bare;
use super::limits::sockets::Idle;
use super::limits::team::Team;
use super::limits::{barrier, exchange, handover, put_get, queue, rivals};
use super::patterns::{ALL, CALLS, Kind};
use crate::failure::{Failure, Result};
use crate::measuring::Chosen;
use crate::place::Place;

/// A pattern with its limits.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) p: Pid,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// A row for each; of the programs of one row the fastest counts.
    pub(super) limits: Vec<Vec<Limit>>,
    /// What a reader should know about this choice.
    pub(super) remark: Option<String>,
}

/// A bare program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) name: &'static str,
    pub(super) program: Program,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Program {
    /// Of pinned threads.
    Threads(fn(&Team, usize) -> Vec<f64>),
    /// Of the processes that are measured.
    Processes(Bare),
}

/// Why a get between processes takes longer than its reference.
const OF_A_GET: &str = "a get takes two consecutive messages, the request and the answer with its bytes; the reference is one message";

/// Cores from which on our barrier is compared with two that programs use.
const MANY_CORES: usize = 16;

/// All cases: the patterns named (all where none are) for the processes named (2 and 4, and 8 for
/// `sync`, where none are).
pub(super) fn select(options: &Chosen, place: &Place, cores: usize) -> Result<Vec<Case>> {
    options.check_names(super::names())?;
    let on_threads = place.backend == "threads";
    let is_there = |kind: Kind| on_threads || !matches!(kind, Kind::PutCall | Kind::Exec);
    let named = |name: &str| options.has(name) && !options.has_all();
    if let Some((name, _)) = ALL.iter().find(|(name, kind)| named(name) && !is_there(*kind)) {
        let text =
            format!("{name} is measured on threads only; leave it out, or give --backend threads");
        return Err(Failure::Usage(text));
    }
    let processes = place.named(&options.measuring);
    let (mut cases, mut left_out) = (Vec::new(), Vec::new());
    for (name, kind) in ALL {
        if !options.has(name) || !is_there(kind) {
            continue;
        }
        let default: &[Pid] = match kind {
            Kind::Sync if cores >= MANY_CORES => &[2, 4, 8, 16],
            Kind::Sync => &[2, 4, 8],
            _ if cores >= MANY_CORES => &[2, 8, 16],
            _ => &[2, 4],
        };
        for &p in if processes.is_empty() { default } else { &processes } {
            // Alone there is nobody to exchange with or to hand over to.
            if p > 1 || matches!(kind, Kind::Sync) {
                let limits = match place.backend {
                    "threads" => on_threads_limits(kind, p, cores),
                    "mpi" => vec![vec![mpi(kind, p)]],
                    _ => vec![sockets(kind, p, cores)],
                };
                let remark = (kind == Kind::Get8 && !on_threads).then(|| OF_A_GET.to_string());
                cases.push(Case { p, name, kind, limits, remark });
            } else {
                left_out.push(name);
            }
        }
    }
    if cases.is_empty() {
        let text = "these patterns need at least two processes; give -p 2 or more";
        return Err(Failure::Usage(text.into()));
    }
    if !left_out.is_empty() {
        let remark = format!(
            "these patterns need at least two processes and were left out: {}",
            left_out.join(", ")
        );
        for alone in cases.iter_mut().filter(|case| case.p == 1) {
            alone.remark = Some(remark.clone());
        }
    }
    Ok(cases)
}

/// Bare sockets between the same processes, by what they do while nothing comes.
fn sockets(kind: Kind, p: Pid, cores: usize) -> Vec<Limit> {
    let limit = |name, idle| Limit { name, program: Program::Processes(Bare::Sockets(idle)) };
    // Where processes share a core, one that keeps looking keeps another from what it waits for.
    let look = if p <= cores { Idle::Polling } else { Idle::Yielding };
    match kind {
        Kind::Sync | Kind::Put8 | Kind::Get8 if p == 2 => vec![
            limit("16 B each way on one socket, polled", look),
            limit("16 B each way on one socket, asleep in poll", Idle::Sleeping),
        ],
        Kind::Sync | Kind::Put8 | Kind::Get8 => vec![
            limit("all-to-all of 16 B on sockets, looking again", look),
            limit("all-to-all of 16 B on sockets, asleep in poll", Idle::Sleeping),
        ],
        Kind::Exchange(1000, 8) => [look, Idle::Sleeping]
            .map(|idle| limit("one message of 16-byte records each way, packed and unpacked", idle))
            .to_vec(),
        Kind::Exchange(..) => [look, Idle::Sleeping]
            .map(|idle| limit("one gathered write of all blocks each way", idle))
            .to_vec(),
        _ => [look, Idle::Sleeping]
            .map(|idle| limit("one bare stream each way at once", idle))
            .to_vec(),
    }
}

/// Raw MPI between the same processes.
fn mpi(kind: Kind, p: Pid) -> Limit {
    let name = match kind {
        Kind::Sync | Kind::Put8 | Kind::Get8 if p == 2 => "MPI_Sendrecv of 16 B",
        Kind::Sync | Kind::Put8 | Kind::Get8 => "MPI_Alltoall of 16 B",
        Kind::Exchange(1000, 8) => {
            "one MPI message of 16-byte records each way, packed and unpacked"
        }
        Kind::Exchange(..) => "one MPI message of an hindexed type each way, made each time",
        _ => "one MPI message each way at once",
    };
    Limit { name, program: Program::Processes(Bare::Mpi) }
}

fn on_threads_limits(kind: Kind, p: Pid, cores: usize) -> Vec<Vec<Limit>> {
    type Run = fn(&Team, usize) -> Vec<f64>;
    let limit = |name, run: Run| Limit { name, program: Program::Threads(run) };
    let one = |name, run: Run| vec![limit(name, run)];
    match kind {
        Kind::Sync => {
            let name = Barrier::new(&Team::new(p)).name();
            let mut rows = vec![one(name, barrier::barrier)];
            if cores >= MANY_CORES && p >= 8 && p <= cores {
                rows.push(one("central counter", rivals::central_counter));
                rows.push(one("std::sync::Barrier", rivals::standard));
            }
            rows
        }
        Kind::Put8 => vec![one("descriptor, barrier, copy, barrier", put_get::put8)],
        Kind::Get8 => vec![one("two barriers and a copy", put_get::get8)],
        Kind::Exchange(1000, 8) => vec![one(
            "queue of 16-byte descriptors, real call, prefetched, executed by the other",
            |team, batches| queue::exchange(team, batches, 1000, 8),
        )],
        Kind::Exchange(..) => {
            vec![one("the bare copies", |team, batches| exchange::copies(team, batches, 256, 4096))]
        }
        Kind::Bulk(_) => vec![vec![
            limit("all copies at once, memcpy", |team, batches| {
                exchange::bulk(team, batches, 64 << 20, false)
            }),
            limit("all copies at once, non-temporal", |team, batches| {
                exchange::bulk(team, batches, 64 << 20, true)
            }),
        ]],
        Kind::PutCall => vec![one("inlined loop storing 16 bytes each", |team, batches| {
            queue::stores(team, batches, CALLS)
        })],
        Kind::Exec => vec![one("parked threads, bare futex hand-over", handover::handover)],
    }
}
