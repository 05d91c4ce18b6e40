//! Rows, the table for people, and how often the choice is right.

use std::fmt;
use std::io::{self, Write};

use lpf::Pid;
use lpf::collectives::Mode;
use serde::Serialize;

use super::points::{Cell, Point};
use super::shapes::ELEMENT;
use crate::output::{self, digits, size, time};

/// A row of `--json` and `--csv`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// Of MPI's own collective: which MPI.
    pub(super) backend: &'static str,
    pub(super) p: Pid,
    pub(super) collective: &'static str,
    /// Its name, `chosen` for the default choice, `own` for MPI's own.
    pub(super) algorithm: &'static str,
    /// How supersteps end: on `expected` arrivals, or in `full` syncs. Of the default choice too; nothing for
    /// MPI's own.
    pub(super) mode: Option<&'static str>,
    /// What one process contributes in all.
    pub(super) elements: usize,
    pub(super) element_bytes: usize,
    pub(super) median_ns: f64,
    pub(super) min_ns: f64,
    pub(super) bound_ns: f64,
    /// By h g + l; nothing for MPI's own.
    pub(super) predicted_ns: Option<f64>,
    /// Repetitions behind the median.
    pub(super) samples: usize,
}

/// All rows; of a point its algorithms, the choice and MPI's own.
pub(super) fn of(
    backend: &'static str,
    rival: Option<&'static str>,
    points: &[Point],
    bound: impl Fn(&Point) -> f64,
) -> Vec<Row> {
    let row = |point: &Point, cell: &Cell, of: (&'static str, &'static str, Option<Mode>)| Row {
        backend: of.0,
        p: point.p,
        collective: point.shape.collective().name(),
        algorithm: of.1,
        mode: of.2.map(Mode::name),
        elements: point.shape.elements,
        element_bytes: ELEMENT,
        median_ns: cell.median(),
        min_ns: cell.samples().min(),
        bound_ns: bound(point),
        predicted_ns: cell.predicted_ns,
        samples: cell.samples().len(),
    };
    let mut rows = Vec::new();
    for point in points {
        for cell in &point.own {
            let (name, mode) = (cell.algorithm.unwrap_or("chosen"), cell.mode);
            rows.push(row(point, cell, (backend, name, mode.or(Some(Mode::Expected)))));
        }
        if let Some(rival) = rival.filter(|_| !point.mpi.samples().is_empty()) {
            rows.push(row(point, &point.mpi, (rival, "own", None)));
        }
    }
    rows
}

/// A line for each point.
pub(super) fn table(
    out: &mut dyn Write,
    points: &[Point],
    rival: Option<&'static str>,
    bound: impl Fn(&Point) -> f64,
) -> io::Result<()> {
    let rival = rival.unwrap_or("MPI's own");
    let header = [
        "collective",
        "chosen",
        "best",
        "p",
        "bytes",
        "time",
        "in full",
        "best's",
        "ratio",
        rival,
        "ratio",
        "bound",
        "ratio",
        "predicted",
    ];
    let mut table = output::table(header, 3);
    for point in points {
        let (choice, best) = (point.choice(), point.best());
        let (ns, best_ns, bound_ns) = (choice.median(), best.median(), bound(point));
        let theirs = (!point.mpi.samples().is_empty()).then(|| point.mpi.median());
        table.add_row([
            point.shape.collective().name().to_string(),
            point.chosen.clone(),
            match (best.algorithm.unwrap_or_default(), best.mode) {
                (name, Some(Mode::Full)) => format!("{name} in full"),
                (name, _) => name.to_string(),
            },
            point.p.to_string(),
            size(point.shape.bytes()),
            time(ns),
            point.in_full().map_or("-".into(), |cell| time(cell.median())),
            time(best_ns),
            digits(ns / best_ns),
            theirs.map_or("-".into(), time),
            theirs.map_or("-".into(), |theirs| digits(ns / theirs)),
            time(bound_ns),
            digits(ns / bound_ns),
            choice.predicted_ns.map_or("-".into(), time),
        ]);
    }
    writeln!(out, "{table}")?;
    let sentence = "time is that of the default choice, in full that of its algorithm in full supersteps; each ratio is that time over the one before it";
    writeln!(out, "{sentence}")
}

/// In how many points the choice is as good as the best algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    good: usize,
    all: usize,
}

impl Share {
    /// Slower by this share, or by so many nanoseconds, is as good.
    const SHARE: f64 = 0.1;
    const NS: f64 = 300.0;

    pub(super) fn of(points: &[Point]) -> Self {
        let good = points.iter().filter(|point| Self::is_good(point)).count();
        Share { good, all: points.len() }
    }

    /// The best may be the one that was chosen, timed once more: what they differ by is noise then.
    fn is_good(point: &Point) -> bool {
        let best = point.best();
        let (chosen, best_ns) = (point.choice().median(), best.median());
        best.algorithm == Some(&*point.chosen) && best.mode != Some(Mode::Full)
            || chosen <= (best_ns * (1.0 + Self::SHARE)).max(best_ns + Self::NS)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Share { good, all } = *self;
        let percent = digits(100.0 * good as f64 / all.max(1) as f64);
        write!(
            f,
            "the choice is within 10 % or 300 ns of the best algorithm in {good} of {all} cells ({percent} %)"
        )
    }
}
