//! `lpf bench`: each pattern beside a bare program, measured in the same run.
//!
//! The two sides take turns, a few batches each, for many rounds: what else the machine does then
//! falls on both. Medians over all batches.

mod batches;
mod cases;
mod collectives;
mod figure;
mod limits;
mod measured;
pub(crate) mod options;
mod pace;
mod patterns;
mod plot;
mod reduce;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use lpf::Pid;
use lpf::measure::stats::Samples;
use lpf::measure::task::unwatched;
use lpf::measure::unchecked;
use lpf::settings::cores;
use lpf::threads::Config;
use serde::{Serialize, Serializer};

use self::cases::{Case, Program};
#[cfg(feature = "mpi")]
pub(crate) use self::collectives::answer_mpi_orders;
pub(crate) use self::collectives::{Messages, Ours};
use self::limits::team::Team;
use self::measured::Order;
pub(crate) use self::measured::{Round, empty_supersteps};
use self::options::{Bench, BenchWhat};
use self::pace::Pace;
pub(crate) use self::reduce::Arriving;
use crate::busy::Busy;
use crate::failure::Result;
use crate::interrupt;
use crate::measuring::Chosen;
use crate::output::{digits, table, time};
use crate::place::{Place, way_name};
use crate::progress::Bar;
use crate::remarks::{self, Remarks};

/// A row of `--json` and `--csv`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BenchRow {
    pub(crate) backend: &'static str,
    pub(crate) p: Pid,
    pub(crate) pattern: &'static str,
    /// What a process sends in one superstep.
    pub(crate) bytes: usize,
    pub(crate) median_ns: f64,
    pub(crate) min_ns: f64,
    pub(crate) max_ns: f64,
    /// The reference: what `limit_ns` measures.
    pub(crate) limit: &'static str,
    pub(crate) limit_ns: f64,
    /// Batches behind the median.
    pub(crate) samples: usize,
    /// Messages of a process in one superstep; none on threads. What is sent to say who has what for
    /// whom, and to answer that.
    #[serde(serialize_with = "count")]
    pub(crate) messages_meta: Option<f64>,
    /// From memory to memory.
    #[serde(serialize_with = "count")]
    pub(crate) messages_data: Option<f64>,
    /// What only synchronises.
    #[serde(serialize_with = "count")]
    pub(crate) messages_barrier: Option<f64>,
    /// How processes say who has what for whom: `direct` or `bruck`.
    pub(crate) exchange: Option<&'static str>,
    pub(crate) remarks: Remarks,
}

/// A mean as the whole number that it is, unless it is none.
fn count<S: Serializer>(mean: &Option<f64>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    match mean {
        None => serializer.serialize_none(),
        Some(mean) if mean.fract() == 0.0 => serializer.serialize_u64(*mean as u64),
        Some(mean) => serializer.serialize_f64(*mean),
    }
}

/// What a ratio below 1 means.
const BELOW_THE_REFERENCE: &str = "a ratio below 1 is noise, or our algorithm suits this machine better than the reference, which is the best bare program known and not a bound";

/// The names of all patterns.
pub(crate) fn names() -> [&'static str; patterns::ALL.len()] {
    patterns::ALL.map(|(name, _)| name)
}

pub(crate) fn run(options: &Bench) -> Result<()> {
    match &options.what {
        Some(BenchWhat::Collectives(options)) => collectives::run(options),
        Some(BenchWhat::Reduce(options)) => reduce::run(options),
        None => patterns(&options.patterns),
    }
}

fn patterns(options: &Chosen) -> Result<()> {
    let mut place = Place::find(&options.measuring)?;
    let cases = cases::select(options, &place, cores())?;
    place.check_plot(&options.measuring)?;
    place.enter()?;
    let time = options.measuring.time(10, 90);
    let largest = cases.iter().map(|case| case.p).max().unwrap_or(1);
    let config = unchecked(Config::from_environment()?.procs(largest));
    let mut measured: Vec<Measured> = cases.iter().map(Measured::new).collect();
    let bar = Bar::new("bench", time);
    let (busy, start) = (Busy::begin(&place), Instant::now());
    let mut round = || -> Result<bool> {
        let mut goes_on = false;
        for (nth, one) in measured.iter_mut().enumerate() {
            if interrupt::came() {
                return Ok(false);
            }
            bar.show(start.elapsed(), || one.estimate());
            let left = time.saturating_sub(start.elapsed());
            // An even share of the time left, so that no round costs another its own.
            goes_on |= one.round(&mut place, &config, left / (cases.len() - nth) as u32)?;
        }
        Ok(goes_on)
    };
    let end = interrupt::ended(loop {
        match round() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    });
    drop(bar);
    let has_reference = |one: &Measured<'_>| one.limits.iter().flatten().any(|of| !of.is_empty());
    measured.retain(|one| !one.own.is_empty() && has_reference(one));
    if measured.is_empty() {
        return interrupt::without_rows(end);
    }
    let mut common = busy.remarks();
    common.extend(interrupt::remark(&end, [measured.len(), cases.len()], "patterns"));
    let rows = |one: &Measured<'_>| one.rows(place.backend, &common).collect::<Vec<_>>();
    let rows: Vec<BenchRow> = measured.iter().flat_map(rows).collect();
    options.measuring.print(&rows, |out| shown(out, &rows))?;
    if let Some(path) = &options.measuring.svg {
        plot::draw(path, &rows)?;
    }
    end
}

/// A case and what was measured of it.
struct Measured<'a> {
    case: &'a Case,
    pace: Pace,
    team: Team,
    own: Samples,
    /// Of a superstep of the last round.
    messages: Option<measured::Messages>,
    /// As `case.limits`.
    limits: Vec<Vec<Samples>>,
}

impl<'a> Measured<'a> {
    fn new(case: &'a Case) -> Self {
        let limits = case.limits.iter().map(|row| vec![Samples::default(); row.len()]).collect();
        let team = Team::new(case.p);
        let (pace, own) = (Pace::new(case.kind), Samples::default());
        Measured { case, pace, team, own, messages: None, limits }
    }

    /// A few batches of ours, a few of each limit; false if there is no time for any.
    fn round(&mut self, place: &mut Place, config: &Config, time: Duration) -> Result<bool> {
        let batches = self.pace.next(time);
        if batches == 0 {
            return Ok(false);
        }
        let start = Instant::now();
        if place.backend == "threads" {
            self.round_on_threads(config, batches)?;
        } else {
            self.round_between_processes(place, batches)?;
        }
        self.pace.note(batches, start.elapsed());
        Ok(true)
    }

    fn round_on_threads(&mut self, config: &Config, batches: usize) -> Result<()> {
        let own = measured::on_threads(config, self.case.p, self.case.kind, batches)?;
        self.own.extend(own);
        // Threads of the section that has just ended may still look for work for a moment.
        std::thread::sleep(Duration::from_millis(5));
        for (limit, samples) in
            self.case.limits.iter().flatten().zip(self.limits.iter_mut().flatten())
        {
            if let Program::Threads(run) = limit.program {
                samples.extend(run(&self.team, batches));
            }
        }
        Ok(())
    }

    fn round_between_processes(&mut self, place: &mut Place, batches: usize) -> Result<()> {
        let bare = |limit: &cases::Limit| match limit.program {
            Program::Processes(bare) => Some(bare),
            Program::Threads(_) => None,
        };
        let limits = self.case.limits.iter().flatten().filter_map(bare).collect();
        let order = Order { kind: self.case.kind, batches, limits };
        // The bar is that of all rounds.
        let times = place.measure::<Round>(self.case.p, &order, unwatched())?;
        self.own.extend(times.own);
        self.messages = times.messages;
        for (samples, times) in self.limits.iter_mut().flatten().zip(times.limits) {
            samples.extend(times);
        }
        Ok(())
    }

    fn estimate(&self) -> String {
        let Case { name, p, .. } = self.case;
        if self.own.is_empty() {
            return format!("{name}, p = {p}");
        }
        let limit = self.limits[0].iter().map(Samples::median).fold(f64::INFINITY, f64::min);
        let ratio = digits(self.own.median() / limit);
        format!("{name}, p = {p}: {}, {ratio} times the reference", time(self.own.median()))
    }

    fn rows(&self, backend: &'static str, common: &[String]) -> impl Iterator<Item = BenchRow> {
        self.case.limits.iter().zip(&self.limits).filter_map(move |(row, samples)| {
            let fastest = row
                .iter()
                .zip(samples)
                .filter(|(_, samples)| !samples.is_empty())
                .min_by(|(_, a), (_, b)| a.median().total_cmp(&b.median()))?;
            let below = self.own.median() < fastest.1.median();
            let below = below.then(|| BELOW_THE_REFERENCE.to_string());
            Some(BenchRow {
                backend,
                p: self.case.p,
                pattern: self.case.name,
                bytes: self.case.kind.bytes(self.case.p),
                median_ns: self.own.median(),
                min_ns: self.own.min(),
                max_ns: self.own.max(),
                limit: fastest.0.name,
                limit_ns: fastest.1.median(),
                samples: self.own.len(),
                messages_meta: self.messages.map(|messages| messages.meta),
                messages_data: self.messages.map(|messages| messages.data),
                messages_barrier: self.messages.map(|messages| messages.barrier),
                exchange: self.messages.map(|messages| way_name(messages.exchange)),
                remarks: common.iter().chain(&self.case.remark).cloned().chain(below).collect(),
            })
        })
    }
}

fn shown(out: &mut dyn Write, rows: &[BenchRow]) -> io::Result<()> {
    let mut all = table(["pattern", "p", "median", "min", "reference", "", "ratio"], 1);
    let mut references: Vec<&str> = Vec::new();
    for row in rows {
        let nth = references.iter().position(|&of| of == row.limit).unwrap_or_else(|| {
            references.push(row.limit);
            references.len() - 1
        });
        all.add_row([
            row.pattern.to_string(),
            row.p.to_string(),
            time(row.median_ns),
            // The least time of one batch is its median.
            if row.samples > 1 { time(row.min_ns) } else { String::new() },
            time(row.limit_ns),
            format!("({})", nth + 1),
            digits(row.median_ns / row.limit_ns),
        ]);
    }
    writeln!(out, "{}", all.trim_fmt())?;
    writeln!(out, "the references:")?;
    for (nth, reference) in references.iter().enumerate() {
        writeln!(out, "({}) {reference}", nth + 1)?;
    }
    if rows.iter().any(|row| row.samples == 1) {
        let text =
            "a row without min is one batch: the time allowed no more; give more with --seconds S";
        writeln!(out, "{text}")?;
    }
    let name = |row: &BenchRow| format!("{} (p = {})", row.pattern, row.p);
    remarks::print(out, rows.iter().map(|row| (name(row), &row.remarks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_one_batch_has_no_min_and_the_table_says_why() {
        let row = |samples: usize| BenchRow {
            backend: "threads",
            p: 2,
            pattern: "sync",
            bytes: 0,
            median_ns: 300.0,
            min_ns: if samples > 1 { 200.0 } else { 300.0 },
            max_ns: 300.0,
            limit: "a barrier",
            limit_ns: 100.0,
            samples,
            messages_meta: None,
            messages_data: None,
            messages_barrier: None,
            exchange: None,
            remarks: Remarks::default(),
        };
        let printed = |samples: &[usize]| {
            let mut out = Vec::new();
            shown(&mut out, &samples.iter().map(|&n| row(n)).collect::<Vec<_>>()).unwrap();
            String::from_utf8(out).unwrap()
        };
        let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = printed(&[1, 2]);
        let lines: Vec<_> = text.lines().skip(2).map(cells).collect();
        assert_eq!(
            lines[..2],
            ["sync 2 300 ns 100 ns (1) 3.00", "sync 2 300 ns 200 ns 100 ns (1) 3.00"]
        );
        assert!(lines.last().unwrap().starts_with("a row without min is one batch: "), "{text}");
        assert!(!printed(&[2]).contains("without min"));
    }
}
