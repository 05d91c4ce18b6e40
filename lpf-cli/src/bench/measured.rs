//! The measured side: batches of a pattern's supersteps on a backend; between processes with those of
//! the bare programs that it is held against, in the same section.

use std::time::Instant;

use lpf::AnyEngine;
use lpf::measure::batch::{Batch, Timed};
use lpf::measure::conduct::{Leader, conduct};
use lpf::measure::superstep::{Areas, Pattern, Timing, nanoseconds};
use lpf::measure::task::{Task, Watch, unwatched};
use lpf::messages::Traffic;
use lpf::runtime::Process;
use lpf::settings::Exchange;
use lpf::threads::Config;
use lpf::{Args, Context, Pid};
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

    fn run(ctx: &mut Context<'_>, order: &Order, _watch: &Watch) -> lpf::Result<Times> {
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
    fn between(begin: Traffic, end: Traffic) -> Self {
        Messages {
            meta: (end.meta - begin.meta) as f64,
            data: (end.data - begin.data) as f64,
            barrier: (end.barrier - begin.barrier) as f64,
            exchange: end.exchange,
        }
    }

    /// In a superstep of a pattern, if there are messages. Collective.
    fn of(
        ctx: &mut Context<'_>,
        pattern: &dyn Pattern<Process<AnyEngine>>,
    ) -> lpf::Result<Option<Self>> {
        ctx.rehook(|ctx| {
            ctx.resize(2, pattern.requests())?;
            ctx.sync()?;
            let (sources, destinations) = (ctx.area(pattern.bytes())?, ctx.area(pattern.bytes())?);
            ctx.sync()?;
            let (areas, begin) = (Areas { sources, destinations }, ctx.raw().engine().traffic());
            pattern.queue(ctx, &areas, 0)?;
            ctx.sync()?;
            let end = ctx.raw().engine().traffic();
            Ok(begin.zip(end).map(|(begin, end)| Self::between(begin, end)))
        })
    }
}

/// The batches of one section, on any backend, and its messages where there are any; empty at all
/// processes but 0.
fn supersteps(
    ctx: &mut Context<'_>,
    kind: Kind,
    batches: usize,
) -> lpf::Result<(Vec<f64>, Option<Messages>)> {
    let Some(pattern) = kind.pattern(ctx.nprocs()) else { return Ok((Vec::new(), None)) };
    let (timing, per_superstep) = match kind {
        Kind::PutCall => (Timing::Queueing, CALLS as f64),
        _ => (Timing::Whole, 1.0),
    };
    let (pattern, mut rounds) = ([pattern], Rounds(Batches::new(batches)));
    conduct(ctx, &pattern, timing, &mut rounds)?;
    let times = rounds.0.into_times().into_iter().map(|ns| ns / per_superstep);
    Ok((times.collect(), Messages::of(ctx, &*pattern[0])?))
}

struct Rounds(Batches);

impl Leader for Rounds {
    fn next(&mut self, before: Option<Timed>) -> Option<Batch> {
        if let Some(Timed { ns, .. }) = before {
            self.0.note(ns, ns);
        }
        Some(Batch { pattern: 0, repetitions: self.0.next()?, warm: true })
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
