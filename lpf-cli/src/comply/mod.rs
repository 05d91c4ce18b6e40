//! `lpf comply`: does every pattern cost at most 1.2 (h g + l), with g and l of the same run?

mod plot;
mod relation;
mod rows;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use lpf::host::Host;
use lpf::machine::{Parameters, Row};
use lpf::measure::batch::{Batch, Timed};
use lpf::measure::conduct::{Leader, conduct};
use lpf::measure::schedule::Schedule;
use lpf::measure::stats::Samples;
use lpf::measure::superstep::{Pattern, Timing};
use lpf::measure::task::{Task, Watch};
use lpf::measure::{Measured, Plan};
use lpf::{Context, Pid};
use serde::{Deserialize, Serialize};

use self::rows::Case;
use crate::busy::Busy;
use crate::failure::{Failure, Result, UNDECIDED};
use crate::interrupt;
use crate::measuring::Chosen;
use crate::output::{digits, size, table, time};
use crate::place::{Measurement, Place};
use crate::probe;
use crate::progress::Bar;
use crate::remarks::{self, Remarks};
use crate::uncertainty::UNCERTAIN;

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
    /// The verdict; none where it is not decided.
    pub(crate) compliant: Option<bool>,
    /// Whether h g + l is known well enough for a verdict.
    pub(crate) decided: bool,
    pub(crate) remarks: Remarks,
}

/// The share of the time in which g and l are measured.
const FOR_PARAMETERS: f64 = 0.4;

pub(crate) fn run(chosen: &Chosen) -> Result<()> {
    let options = &chosen.measuring;
    let mut place = Place::find(options)?;
    place.check_plot(options)?;
    let host = Host::this();
    let (time, growth) = (options.time(10, 90), place.growth());
    let mut plans = Vec::new();
    for p in place.processes(options)? {
        let time = time.mul_f64(FOR_PARAMETERS);
        plans.push(Plan::for_host(&host, p, growth, time, options.quick));
    }
    let cases: Vec<_> =
        plans.iter().flat_map(|plan| rows::all(&host, plan.p, &plan.words)).collect();
    let names: BTreeSet<_> = cases.iter().map(|case| case.name.as_str()).collect();
    chosen.check_names(names)?;
    place.enter()?;
    let (mut all, mut end) = (Vec::new(), Ok(()));
    for mut plan in plans {
        let p = plan.p;
        let busy = Busy::begin(&place);
        let (measured, ended) = interrupt::split(probe::measure(&mut place, &plan));
        end = ended;
        let (Some(Measured { parameters, largest, .. }), Ok(())) = (measured, &end) else { break };
        // What was too large for the time of g is too large for that of a pattern.
        for (word, largest) in plan.words.iter_mut().zip(largest) {
            word.largest = largest;
        }
        let mut cases = rows::all(&host, p, &plan.words);
        cases.retain(|case| chosen.has(&case.name));
        let bounds = cases.iter().map(|case| COMPLIANT * model(case, &parameters)).collect();
        let time = time.mul_f64(1.0 - FOR_PARAMETERS);
        let order = Order { cases, bounds, time };
        let bar = Bar::new(&format!("comply p = {p}"), time);
        let (samples, ended) = interrupt::split(place.measure::<Costs>(p, &order, bar.watch()));
        end = ended;
        let Some(samples) = samples else { break };
        let cases = order.cases;
        let mut common = busy.remarks();
        let timed = samples.iter().filter(|samples| !samples.is_empty()).count();
        common.extend(interrupt::remark(&end, [timed, cases.len()], "patterns"));
        let timed = cases.iter().zip(&samples).filter(|(_, samples)| !samples.is_empty());
        all.extend(timed.map(|(case, samples)| {
            let model_ns = model(case, &parameters);
            let median_ns = samples.median();
            let decided = uncertainty(case.h_bytes, case.word, &parameters) < UNCERTAIN;
            ComplyRow {
                backend: place.backend,
                p,
                pattern: case.name.clone(),
                h_bytes: case.h_bytes,
                median_ns,
                bound_ns: COMPLIANT * model_ns,
                ratio: median_ns / model_ns,
                compliant: decided.then_some(median_ns <= COMPLIANT * model_ns),
                decided,
                remarks: common.iter().cloned().collect(),
            }
        }));
        if end.is_err() {
            break;
        }
    }
    if all.is_empty() {
        return interrupt::without_rows(end);
    }
    options.print(&all, |out| shown(out, &all))?;
    if let Some(path) = &options.svg {
        plot::draw(path, &format!("{}, {}", place.backend, host.name), &all)?;
    }
    let verdicts: Vec<_> = all.iter().map(|row| row.compliant).collect();
    if options.is_for_programs() && verdicts.contains(&None) {
        crate::output::say(summary(&verdicts));
    }
    end.and_then(|()| verdict(&verdicts))
}

/// How the command ends: well if nothing costs too much, and half of it or more is known.
fn verdict(verdicts: &[Option<bool>]) -> Result<()> {
    let decided = verdicts.iter().flatten().count();
    match verdicts {
        _ if verdicts.contains(&Some(false)) => Err(Failure::Said),
        _ if 2 * decided >= verdicts.len() => Ok(()),
        _ => Err(Failure::Ended(UNDECIDED)),
    }
}

/// What the verdicts come to.
fn summary(verdicts: &[Option<bool>]) -> String {
    let count = |verdict| verdicts.iter().filter(|&&one| one == verdict).count();
    let (all, broken) = (verdicts.len(), count(Some(false)));
    let (decided, bound) = (all - count(None), "1.2 (h g + l)");
    let patterns = |n: usize| format!("{n} pattern{}", if n == 1 { "" } else { "s" });
    let cost = |n: usize| if n == 1 { "costs" } else { "cost" };
    if decided == all {
        return match broken {
            0 if all == 1 => format!("the pattern costs at most {bound}"),
            0 => format!("all {} cost at most {bound}", patterns(all)),
            _ => format!("{broken} of {} {} more than {bound}", patterns(all), cost(broken)),
        };
    }
    let known =
        "known to +-50 % or worse only; run comply longer (--seconds) or on a quiet machine";
    let of_these = match broken {
        _ if decided == 0 => return format!("no pattern decided: g or l is {known}"),
        0 => format!(" (at most {bound})"),
        _ => format!(" ({broken} {} more than {bound})", cost(broken)),
    };
    format!("{decided} of {} decided{of_these}: for the others g or l is {known}", patterns(all))
}

/// Half of the interval of h g + l as a share of it. Between two word sizes the worse counts, for
/// both are in the number.
fn uncertainty(h_bytes: usize, word: usize, parameters: &Parameters) -> f64 {
    let rows = &parameters.rows;
    let above = rows.partition_point(|row| row.word_bytes < word);
    let exact = rows.get(above).is_some_and(|row| row.word_bytes == word);
    let first = if exact { above } else { above.saturating_sub(1) };
    let used = &rows[first..rows.len().min(above + 1)];
    let worst = |share: fn(&Row) -> f64| used.iter().map(share).fold(0.0, f64::max);
    let p = parameters.p;
    let (g, l) = (h_bytes as f64 * parameters.g_ns_per_byte(p, word), parameters.l_ns(p, word));
    let (of_g, of_l) =
        (worst(|row| row.g_ci95 / row.g_ns_per_byte), worst(|row| row.l_ci95 / row.l_ns));
    (g * of_g + l * of_l) / (g + l)
}

/// h g(w) + l(w), nanoseconds.
fn model(case: &Case, parameters: &Parameters) -> f64 {
    let p = parameters.p;
    case.h_bytes as f64 * parameters.g_ns_per_byte(p, case.word) + parameters.l_ns(p, case.word)
}

/// Measuring what patterns cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs;

/// The patterns, each with its bound, and the time for all.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    cases: Vec<Case>,
    bounds: Vec<f64>,
    time: Duration,
}

impl Task for Costs {
    type Order = Order;
    /// As the cases.
    type Found = Vec<Samples>;

    fn run(ctx: &mut Context<'_>, order: &Order, watch: &Watch) -> lpf::Result<Vec<Samples>> {
        let patterns: Vec<Box<dyn Pattern<_>>> = order.cases.iter().map(Case::pattern).collect();
        let mut rounds = Rounds::new(order, watch);
        conduct(ctx, &patterns, Timing::Fresh, &mut rounds)?;
        Ok(rounds.schedule.into_samples())
    }
}

impl Measurement for Costs {
    const NAME: &str = "costs";
}

/// Times all patterns in random order until the median of each is clearly on one side of its bound
/// or the time is up.
struct Rounds<'a> {
    cases: &'a [Case],
    bounds: &'a [f64],
    watch: &'a Watch,
    schedule: Schedule,
    shares: Vec<f64>,
    until_look: u32,
}

/// Samples before a median is believed.
const ENOUGH: usize = 15;
/// Batches between two looks at what is clear.
const LOOK_EVERY: u32 = 32;

impl<'a> Rounds<'a> {
    fn new(order: &'a Order, watch: &'a Watch) -> Self {
        let Order { cases, bounds, time } = order;
        let (schedule, shares) = (Schedule::new(cases.len(), *time), vec![1.0; cases.len()]);
        Rounds { cases, bounds, watch, schedule, shares, until_look: 0 }
    }

    fn is_clear(&self, case: usize) -> bool {
        let (samples, bound) = (self.schedule.samples(case), self.bounds[case]);
        let clear = |(low, high)| high <= bound || low > bound;
        samples.len() >= ENOUGH && samples.interval().is_some_and(clear)
    }

    fn look(&mut self) {
        let share = |case| if self.is_clear(case) { 0.0 } else { 1.0 };
        self.shares = (0..self.cases.len()).map(share).collect();
        (self.watch)(self.schedule.elapsed(), &|| {
            let ratio = |i: usize| COMPLIANT * self.schedule.samples(i).median() / self.bounds[i];
            let timed = (0..self.cases.len()).filter(|&i| !self.schedule.samples(i).is_empty());
            let worst = timed.max_by(|&a, &b| ratio(a).total_cmp(&ratio(b)));
            worst.map_or(String::new(), |i| {
                format!("worst so far: {} at {} (h g + l)", self.cases[i].name, digits(ratio(i)))
            })
        });
    }
}

impl Leader for Rounds<'_> {
    fn next(&mut self, before: Option<Timed>) -> Option<Batch> {
        self.schedule.note(before);
        if interrupt::came() {
            return None;
        }
        if self.until_look == 0 {
            self.until_look = LOOK_EVERY;
            self.look();
        }
        self.until_look -= 1;
        self.schedule.choose(&self.shares)
    }
}

fn shown(out: &mut dyn Write, rows: &[ComplyRow]) -> io::Result<()> {
    let mut all = table(["pattern", "p", "h", "time", "bound", "ratio", ""], 1);
    for row in rows {
        all.add_row([
            row.pattern.clone(),
            row.p.to_string(),
            size(row.h_bytes),
            time(row.median_ns),
            time(row.bound_ns),
            digits(row.ratio),
            match row.compliant {
                Some(true) => "",
                Some(false) => "exceeded",
                None => "undecided",
            }
            .into(),
        ]);
    }
    writeln!(out, "{}", all.trim_fmt())?;
    writeln!(out, "bound: 1.2 (h g + l); ratio: the time divided by h g + l")?;
    writeln!(out, "{}", summary(&rows.iter().map(|row| row.compliant).collect::<Vec<_>>()))?;
    // All rows of a number of processes have the same.
    remarks::print(out, rows.iter().map(|row| (format!("p = {}", row.p), &row.remarks)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lpf::machine::Growth;

    #[test]
    fn a_bound_is_as_uncertain_as_what_it_is_made_of() {
        let mut parameters = Parameters::guess(Growth::SharedMemory);
        for row in &mut parameters.rows {
            (row.g_ci95, row.l_ci95) = (0.02 * row.g_ns_per_byte, 0.02 * row.l_ns);
        }
        parameters.rows[0].g_ci95 = parameters.rows[0].g_ns_per_byte;
        let of = |h_bytes, word| uncertainty(h_bytes, word, &parameters);
        assert!(of(1 << 20, 8) > 0.9 && of(1 << 20, 1) > 0.9, "g of 8-byte words is not known");
        assert!(of(1 << 20, 32) > 0.9, "nor what lies between");
        assert!(of(0, 8) < 0.03, "an empty superstep costs l alone");
        for word in [64, 512, 1 << 20, 1 << 22] {
            assert!(of(1 << 20, word) < 0.03, "{word}");
        }
    }

    #[test]
    fn what_is_undecided_is_neither_kept_nor_broken() {
        let (yes, no, open) = (Some(true), Some(false), None);
        let status = |verdicts: &[Option<bool>]| match verdict(verdicts) {
            Ok(()) => 0,
            Err(Failure::Ended(status)) => status,
            Err(_) => 1,
        };
        assert_eq!(status(&[yes, yes, open]), 0);
        assert_eq!(status(&[yes, open]), 0);
        assert_eq!(status(&[yes, open, open]), 3);
        assert_eq!(status(&[no, open, open]), 1);
        assert_eq!(summary(&[yes]), "the pattern costs at most 1.2 (h g + l)");
        assert_eq!(summary(&[yes, yes]), "all 2 patterns cost at most 1.2 (h g + l)");
        assert_eq!(summary(&[no, yes]), "1 of 2 patterns costs more than 1.2 (h g + l)");
        for (verdicts, begin) in [
            (&[yes, open][..], "1 of 2 patterns decided (at most 1.2 (h g + l)): for the others"),
            (&[open, no, yes], "2 of 3 patterns decided (1 costs more than 1.2 (h g + l)): for"),
            (&[open, open], "no pattern decided: g or l is known to +-50 % or worse"),
        ] {
            assert!(summary(verdicts).starts_with(begin), "{}", summary(verdicts));
        }
    }
}
