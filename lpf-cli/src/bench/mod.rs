//! `lpf bench`: each pattern beside the physical limit, measured in the same run.
//!
//! The two sides take turns, a few batches each, for many rounds: what else the machine does then
//! falls on both. Medians over all batches.

mod cases;
mod limits;
mod measured;
mod patterns;
mod plot;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use comfy_table::CellAlignment;
use lpf::Pid;
use lpf::measure::stats::Samples;
use lpf::settings::cores;
use lpf::threads::Config;
use serde::Serialize;

use self::cases::Case;
use self::limits::team::Team;
use self::patterns::Kind;
use crate::args::Bench;
use crate::failure::Result;
use crate::output::{self, digits, table, time};
use crate::progress::Bar;

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
    /// What `limit_ns` measures.
    pub(crate) limit: &'static str,
    pub(crate) limit_ns: f64,
    /// Batches behind the median.
    pub(crate) samples: usize,
}

/// Rounds of a quick and of an ordinary run that are made even if the time is up.
const FEWEST_ROUNDS: [usize; 2] = [1, 3];

pub(crate) fn run(options: &Bench) -> Result<()> {
    let backend = options.measuring.check()?;
    let cases = cases::select(&options.pattern, &options.measuring.p, cores())?;
    let quick = options.measuring.quick;
    let time = options.measuring.time(10, 90);
    let largest = cases.iter().map(|case| case.p).max().unwrap_or(1);
    let config = Config::from_environment()?.procs(largest);
    let mut measured: Vec<Measured> = cases.iter().map(Measured::new).collect();
    let bar = Bar::new("bench", time);
    let start = Instant::now();
    let fewest = FEWEST_ROUNDS[usize::from(!quick)];
    let mut round = 0;
    while round < fewest || start.elapsed() < time {
        for one in &mut measured {
            bar.show(start.elapsed(), || one.estimate());
            // A round that begins in time may end late; a case does not begin late.
            if round < fewest || start.elapsed() < time {
                one.round(&config)?;
            }
        }
        round += 1;
    }
    drop(bar);
    let rows: Vec<BenchRow> = measured.iter().flat_map(|one| one.rows(backend)).collect();
    if let Some(path) = &options.measuring.svg {
        plot::draw(path, &rows)?;
    }
    output::rows(&options.measuring, &rows, |out| shown(out, &rows))
}

/// A case and what was measured of it.
struct Measured<'a> {
    case: &'a Case,
    team: Team,
    own: Samples,
    /// As `case.limits`.
    limits: Vec<Vec<Samples>>,
}

impl<'a> Measured<'a> {
    fn new(case: &'a Case) -> Self {
        let limits = case.limits.iter().map(|row| vec![Samples::default(); row.len()]).collect();
        let team = Team::new(case.p as usize);
        Measured { case, team, own: Samples::default(), limits }
    }

    /// A few batches of ours, a few of each limit.
    fn round(&mut self, config: &Config) -> Result<()> {
        let batches = match self.case.kind {
            Kind::Bulk(_) => 5,
            _ => 20,
        };
        for ns in measured::on_threads(config, self.case.p, self.case.kind, batches)? {
            self.own.push(ns);
        }
        // Threads of the section that has just ended may still look for work for a moment.
        std::thread::sleep(Duration::from_millis(5));
        for (row, samples) in self.case.limits.iter().zip(&mut self.limits) {
            for (limit, samples) in row.iter().zip(samples) {
                (limit.run)(&self.team, batches).into_iter().for_each(|ns| samples.push(ns));
            }
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
        format!("{name}, p = {p}: {}, {ratio} times the limit", time(self.own.median()))
    }

    fn rows(&self, backend: &'static str) -> impl Iterator<Item = BenchRow> {
        self.case.limits.iter().zip(&self.limits).filter_map(move |(row, samples)| {
            let fastest = row
                .iter()
                .zip(samples)
                .min_by(|(_, a), (_, b)| a.median().total_cmp(&b.median()))?;
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
            })
        })
    }
}

fn shown(out: &mut dyn Write, rows: &[BenchRow]) -> io::Result<()> {
    let mut all = table(["pattern", "p", "median", "min", "limit", "ratio", "the limit is"], 1);
    if let Some(column) = all.column_mut(6) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    for row in rows {
        all.add_row([
            row.pattern.to_string(),
            row.p.to_string(),
            time(row.median_ns),
            time(row.min_ns),
            time(row.limit_ns),
            digits(row.median_ns / row.limit_ns),
            row.limit.to_string(),
        ]);
    }
    writeln!(out, "{all}")
}
