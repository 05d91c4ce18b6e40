//! `lpf comply`: does every pattern cost at most 1.2 (h g + l), with g and l of the same run?

mod plot;
mod relation;
mod rows;

use std::io::{self, Write};
use std::sync::Mutex;
use std::time::Duration;

use lpf::host::Host;
use lpf::machine::Parameters;
use lpf::measure::Plan;
use lpf::measure::conduct::{Batch, Leader, Timed, conduct};
use lpf::measure::schedule::Schedule;
use lpf::measure::stats::Samples;
use lpf::measure::superstep::{Pattern, Timing};
use lpf::threads::{Config, Threads};
use lpf::{Args, Pid};
use serde::Serialize;

use self::rows::Case;
use crate::args::Measuring;
use crate::failure::{Failure, Result};
use crate::output::{digits, size, table, time};
use crate::probe;
use crate::progress::Bar;

/// How much a pattern may cost over h g + l and still be compliant.
pub(crate) const COMPLIANT: f64 = 1.2;

/// A row of `--json` and `--csv`. `bound_ns` is 1.2 (h g + l), `ratio` the median to h g + l.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComplyRow {
    pub(crate) backend: &'static str,
    pub(crate) p: Pid,
    pub(crate) pattern: String,
    pub(crate) h_bytes: usize,
    pub(crate) median_ns: f64,
    pub(crate) bound_ns: f64,
    pub(crate) ratio: f64,
    pub(crate) compliant: bool,
}

pub(crate) fn run(options: &Measuring) -> Result<()> {
    let backend = options.check()?;
    let host = Host::this();
    let mut all = Vec::new();
    for p in options.processes()? {
        let time = options.time(10, 90);
        let plan = Plan::for_host(&host, p, time.mul_f64(0.4), options.quick);
        let parameters = probe::measure(&plan)?.parameters;
        warn_if_uncertain(p, &parameters);
        let cases = rows::all(&host, p, options.quick);
        let samples = measure(p, &cases, &parameters, time.mul_f64(0.6))?;
        all.extend(cases.iter().zip(&samples).map(|(case, samples)| {
            let model_ns = model(case, &parameters);
            let median_ns = samples.median();
            ComplyRow {
                backend,
                p,
                pattern: case.name.clone(),
                h_bytes: case.h_bytes,
                median_ns,
                bound_ns: COMPLIANT * model_ns,
                ratio: median_ns / model_ns,
                compliant: median_ns <= COMPLIANT * model_ns,
            }
        }));
    }
    if let Some(path) = &options.svg {
        plot::draw(path, &all)?;
    }
    crate::output::rows(options, &all, |out| shown(out, &all))?;
    if all.iter().all(|row| row.compliant) { Ok(()) } else { Err(Failure::Said) }
}

/// Half an interval as wide as this share of its value makes verdicts of little worth.
const UNCERTAIN: f64 = 0.5;

/// Says that g and l are too uncertain to judge by: a bound made of them may be passed by anything,
/// or by nothing.
fn warn_if_uncertain(p: Pid, parameters: &Parameters) {
    let uncertainty = parameters.uncertainty();
    if uncertainty > UNCERTAIN {
        eprintln!(
            "lpf: g and l for {p} processes are known to +-{:.0} % only, so the verdicts mean little: run comply longer (--seconds) or when nothing else runs",
            100.0 * uncertainty.min(9.99)
        );
    }
}

/// h g(w) + l(w), nanoseconds.
fn model(case: &Case, parameters: &Parameters) -> f64 {
    let p = parameters.p;
    case.h_bytes as f64 * parameters.g_ns_per_byte(p, case.word) + parameters.l_ns(p, case.word)
}

fn measure(
    p: Pid,
    cases: &[Case],
    parameters: &Parameters,
    time: Duration,
) -> Result<Vec<Samples>> {
    let bar = Bar::new(&format!("comply p = {p}"), time);
    let bounds: Vec<f64> = cases.iter().map(|case| COMPLIANT * model(case, parameters)).collect();
    let found = Mutex::new(Vec::new());
    let config = Config::from_environment()?.procs(p);
    config.exec(p, Args::none(), |ctx, _args| {
        let patterns: Vec<Box<dyn Pattern<Threads>>> = cases.iter().map(Case::pattern).collect();
        let mut rounds = Rounds::new(cases, &bounds, time, &bar);
        conduct(ctx, &patterns, Timing::Fresh, &mut rounds)?;
        if ctx.pid() == 0 {
            *found.lock().expect("only process 0 locks") = rounds.schedule.into_samples();
        }
        Ok(())
    })?;
    Ok(found.into_inner().expect("only process 0 locks"))
}

/// Times all patterns in random order until the median of each is clearly on one side of its bound
/// or the time is up.
struct Rounds<'a> {
    cases: &'a [Case],
    bounds: &'a [f64],
    bar: &'a Bar,
    schedule: Schedule,
    shares: Vec<f64>,
    until_look: u32,
}

/// Samples before a median is believed.
const ENOUGH: usize = 15;
/// Batches between two looks at what is clear.
const LOOK_EVERY: u32 = 32;

impl<'a> Rounds<'a> {
    fn new(cases: &'a [Case], bounds: &'a [f64], time: Duration, bar: &'a Bar) -> Self {
        let (schedule, shares) = (Schedule::new(cases.len(), time), vec![1.0; cases.len()]);
        Rounds { cases, bounds, bar, schedule, shares, until_look: 0 }
    }

    fn is_clear(&self, case: usize) -> bool {
        let (samples, bound) = (self.schedule.samples(case), self.bounds[case]);
        let clear = |(low, high)| high <= bound || low > bound;
        samples.len() >= ENOUGH && samples.interval().is_some_and(clear)
    }

    fn look(&mut self) {
        let share = |case| if self.is_clear(case) { 0.0 } else { 1.0 };
        self.shares = (0..self.cases.len()).map(share).collect();
        self.bar.show(self.schedule.elapsed(), || {
            let ratio = |i: usize| COMPLIANT * self.schedule.samples(i).median() / self.bounds[i];
            let worst = (0..self.cases.len()).max_by(|&a, &b| ratio(a).total_cmp(&ratio(b)));
            worst.map_or(String::new(), |i| {
                format!("worst so far: {} at {} (h g + l)", self.cases[i].name, digits(ratio(i)))
            })
        });
    }
}

impl Leader for Rounds<'_> {
    fn next(&mut self, before: Option<Timed>) -> Option<Batch> {
        self.schedule.note(before);
        if self.until_look == 0 {
            self.until_look = LOOK_EVERY;
            self.look();
        }
        self.until_look -= 1;
        self.schedule.choose(&self.shares)
    }
}

fn shown(out: &mut dyn Write, rows: &[ComplyRow]) -> io::Result<()> {
    let mut all = table(["pattern", "p", "h", "time", "1.2 (h g + l)", "ratio", ""], 1);
    for row in rows {
        all.add_row([
            row.pattern.clone(),
            row.p.to_string(),
            size(row.h_bytes),
            time(row.median_ns),
            time(row.bound_ns),
            digits(row.ratio),
            if row.compliant { "" } else { "NOT COMPLIANT" }.into(),
        ]);
    }
    writeln!(out, "{all}")?;
    let broken = rows.iter().filter(|row| !row.compliant).count();
    match broken {
        0 => writeln!(out, "all {} patterns cost at most 1.2 (h g + l)", rows.len()),
        _ => writeln!(out, "{broken} of {} patterns cost more than 1.2 (h g + l)", rows.len()),
    }
}
