//! Which pattern is timed with how many processes, and what it is held against.

use lpf::Pid;

use super::limits::barrier::Barrier;
use super::limits::team::Team;
use super::limits::{barrier, exchange, handover, put_get, queue, rivals};
use super::patterns::{ALL, CALLS, Kind};
use crate::failure::{Failure, Result};

/// A pattern with its limits.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) p: Pid,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// A row for each; of the programs of one row the fastest counts.
    pub(super) limits: Vec<Vec<Limit>>,
}

/// A bare program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) name: &'static str,
    pub(super) run: fn(&Team, usize) -> Vec<f64>,
}

/// Cores from which on our barrier is compared with two that programs use.
const MANY_CORES: usize = 16;

/// All cases: the patterns named (all where none are) for the processes named (2 and 4, and 8 for
/// `sync`, where none are).
pub(super) fn select(patterns: &[String], processes: &[Pid], cores: usize) -> Result<Vec<Case>> {
    for name in patterns {
        if !ALL.iter().any(|(known, _)| known == name) {
            let known: Vec<_> = ALL.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            return Err(Failure::Usage(format!(
                "there is no pattern \"{name}\"; there are {known}"
            )));
        }
    }
    let mut cases = Vec::new();
    for (name, kind) in ALL {
        if !patterns.is_empty() && !patterns.iter().any(|wanted| wanted == name) {
            continue;
        }
        let default: &[Pid] = match kind {
            Kind::Sync if cores >= MANY_CORES => &[2, 4, 8, 16],
            Kind::Sync => &[2, 4, 8],
            _ if cores >= MANY_CORES => &[2, 8, 16],
            _ => &[2, 4],
        };
        for &p in if processes.is_empty() { default } else { processes } {
            // Alone there is nobody to exchange with or to hand over to.
            if p > 1 || matches!(kind, Kind::Sync) {
                cases.push(Case { p, name, kind, limits: limits(kind, p, cores) });
            }
        }
    }
    if cases.is_empty() {
        let text = "these patterns need at least two processes; give -p 2 or more";
        return Err(Failure::Usage(text.into()));
    }
    Ok(cases)
}

fn limits(kind: Kind, p: Pid, cores: usize) -> Vec<Vec<Limit>> {
    let one = |name, run| vec![Limit { name, run }];
    match kind {
        Kind::Sync => {
            let name = Barrier::new(&Team::new(p as usize)).name();
            let mut rows = vec![one(name, barrier::barrier)];
            if cores >= MANY_CORES && p >= 8 && p as usize <= cores {
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
            Limit {
                name: "all copies at once, memcpy",
                run: |team, batches| exchange::bulk(team, batches, 64 << 20, false),
            },
            Limit {
                name: "all copies at once, non-temporal",
                run: |team, batches| exchange::bulk(team, batches, 64 << 20, true),
            },
        ]],
        Kind::PutCall => vec![one("inlined loop storing 16 bytes each", |team, batches| {
            queue::stores(team, batches, CALLS)
        })],
        Kind::Exec => vec![one("parked threads, bare futex hand-over", handover::handover)],
    }
}
