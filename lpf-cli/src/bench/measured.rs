//! The measured side: batches of a pattern's supersteps on a backend; between processes with those of
//! the bare programs that it is held against, in the same section.

use std::time::Instant;

use lpf::Traffic;
use lpf::measure::conduct::{Batch, Leader, Timed, conduct};
use lpf::measure::superstep::{Timing, nanoseconds};
use lpf::measure::task::{Task, Watch, unwatched};
use lpf::settings::Exchange;
use lpf::threads::Config;
use lpf::{Args, Context, Lpf, Pid};
use serde::{Deserialize, Serialize};

use super::batches::Batches;
use super::limits::between::{self, Bare};
use super::patterns::{CALLS, Kind};
use crate::failure::Result;
use crate::place::{Measurement, Place};

/// Nanoseconds per superstep (per call, for the call of put) of `batches` batches on threads.
pub(super) fn on_threads(config: &Config, p: Pid, kind: Kind, batches: usize) -> Result<Vec<f64>> {
    if kind == Kind::Exec {
        return sections(config, p, batches);
    }
    let run = |ctx: &mut Context<'_>, _args: Args<'_>| supersteps(ctx, kind, batches);
    let (times, _) = lpf::exec_with(config, p, Args::none(), run)?;
    Ok(times)
}

/// A few batches of a pattern between processes, and of the bare programs beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round;

/// Which.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(super) kind: Kind,
    pub(super) batches: usize,
    pub(super) limits: Vec<Bare>,
}

/// Nanoseconds per superstep, and per step of each bare program, batch by batch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(super) own: Vec<f64>,
    pub(super) messages: Option<Messages>,
    /// As ordered.
    pub(super) limits: Vec<Vec<f64>>,
}

impl Task for Round {
    type Order = Order;
    type Found = Times;

    fn run<L: Lpf>(ctx: &mut Context<'_, L>, order: &Order, _watch: &Watch) -> lpf::Result<Times> {
        // Its memory goes with the inner context.
        let (own, messages) = ctx.rehook(|ctx| supersteps(ctx, order.kind, order.batches))?;
        let bare = |bare: &Bare| between::time(ctx, *bare, order.kind, order.batches);
        let limits = order.limits.iter().map(bare).collect::<lpf::Result<_>>()?;
        Ok(Times { own, messages, limits })
    }
}

/// So many batches of empty supersteps, beside nothing.
pub(crate) fn empty_supersteps(place: &mut Place, p: Pid, batches: usize) -> Result<Vec<f64>> {
    let order = Order { kind: Kind::Sync, batches, limits: Vec::new() };
    Ok(place.measure::<Round>(p, &order, unwatched())?.own)
}

impl Measurement for Round {
    const NAME: &str = "round";
}

/// Messages of process 0 in one superstep, by what they are for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Messages {
    pub(super) meta: f64,
    pub(super) data: f64,
    pub(super) barrier: f64,
    pub(super) exchange: Exchange,
}

impl Messages {
    fn between(begin: Traffic, end: Traffic, supersteps: u32) -> Self {
        let each = |begin: u64, end: u64| (end - begin) as f64 / f64::from(supersteps);
        Messages {
            meta: each(begin.meta, end.meta),
            data: each(begin.data, end.data),
            barrier: each(begin.barrier, end.barrier),
            exchange: end.exchange,
        }
    }
}

/// The batches of one section, on any backend, and its messages where there are any; empty at all
/// processes but 0.
fn supersteps<L: Lpf>(
    ctx: &mut Context<'_, L>,
    kind: Kind,
    batches: usize,
) -> lpf::Result<(Vec<f64>, Option<Messages>)> {
    let Some(pattern) = kind.pattern(ctx.nprocs()) else { return Ok((Vec::new(), None)) };
    let (timing, per_superstep) = match kind {
        Kind::PutCall => (Timing::Queueing, CALLS as f64),
        _ => (Timing::Whole, 1.0),
    };
    let mut rounds = Rounds { batches: Batches::new(batches), messages: None };
    conduct(ctx, &[pattern], timing, &mut rounds)?;
    let times = rounds.batches.into_times().into_iter().map(|ns| ns / per_superstep);
    Ok((times.collect(), rounds.messages))
}

struct Rounds {
    batches: Batches,
    messages: Option<Messages>,
}

impl Leader for Rounds {
    fn next(&mut self, before: Option<Timed>) -> Option<Batch> {
        if let Some(Timed { ns, .. }) = before {
            self.batches.note(ns, ns);
        }
        Some(Batch { pattern: 0, repetitions: self.batches.next()?, warm: true })
    }

    fn count(&mut self, begin: Traffic, end: Traffic, supersteps: u32) {
        self.messages = Some(Messages::between(begin, end, supersteps));
    }
}

/// Sections that do nothing, from the pool.
fn sections(config: &Config, p: Pid, batches: usize) -> Result<Vec<f64>> {
    let mut batches = Batches::new(batches);
    while let Some(n) = batches.next() {
        let start = Instant::now();
        for _ in 0..n {
            lpf::exec_with(config, p, Args::none(), |_ctx, _args| Ok(()))?;
        }
        let ns = nanoseconds(start) / f64::from(n);
        batches.note(ns, ns);
    }
    Ok(batches.into_times())
}
