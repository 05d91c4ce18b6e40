//! The measured side: batches of a pattern's supersteps on a backend.

use std::sync::Mutex;
use std::time::Instant;

use lpf::measure::conduct::{Batch, Leader, Timed, conduct, repetitions};
use lpf::measure::superstep::{Timing, nanoseconds};
use lpf::threads::Config;
use lpf::{Args, Context, Lpf, Pid};

use super::patterns::{CALLS, Kind};
use crate::failure::Result;

/// Nanoseconds per superstep (per call, for the call of put) of `batches` batches on threads.
pub(super) fn on_threads(config: &Config, p: Pid, kind: Kind, batches: usize) -> Result<Vec<f64>> {
    if kind == Kind::Exec {
        return sections(config, p, batches);
    }
    let found = Mutex::new(Vec::new());
    config.exec(p, Args::none(), |ctx, _args| {
        let times = supersteps(ctx, kind, batches)?;
        if ctx.pid() == 0 {
            *found.lock().expect("only process 0 locks") = times;
        }
        Ok(())
    })?;
    Ok(found.into_inner().expect("only process 0 locks"))
}

/// The batches of one section, on any backend; empty at all processes but 0.
fn supersteps<L: Lpf>(
    ctx: &mut Context<'_, L>,
    kind: Kind,
    batches: usize,
) -> lpf::Result<Vec<f64>> {
    let Some(pattern) = kind.pattern(ctx.nprocs()) else { return Ok(Vec::new()) };
    let (timing, per_superstep) = match kind {
        Kind::PutCall => (Timing::Queueing, CALLS as f64),
        _ => (Timing::Whole, 1.0),
    };
    let mut rounds = Rounds { left: WARM_UP + batches, batches, times: Vec::new() };
    conduct(ctx, &[pattern], timing, &mut rounds)?;
    Ok(rounds.times.into_iter().map(|ns| ns / per_superstep).collect())
}

/// Batches before the first that counts: they settle pages and caches and say how many supersteps
/// make a millisecond.
const WARM_UP: usize = 2;

struct Rounds {
    left: usize,
    batches: usize,
    times: Vec<f64>,
}

impl Leader for Rounds {
    fn next(&mut self, before: Option<Timed>) -> Option<Batch> {
        if let Some(timed) = before
            && self.left < self.batches
        {
            self.times.push(timed.ns);
        }
        self.left = self.left.checked_sub(1)?;
        let ns = before.map_or(f64::INFINITY, |timed| timed.ns);
        Some(Batch { pattern: 0, repetitions: repetitions(ns) })
    }
}

/// Sections that do nothing, from the pool.
fn sections(config: &Config, p: Pid, batches: usize) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(batches);
    let mut n = 1;
    for batch in 0..WARM_UP + batches {
        let start = Instant::now();
        for _ in 0..n {
            config.exec(p, Args::none(), |_ctx, _args| Ok(()))?;
        }
        let ns = nanoseconds(start) / f64::from(n);
        if batch >= WARM_UP {
            times.push(ns);
        }
        n = repetitions(ns);
    }
    Ok(times)
}
