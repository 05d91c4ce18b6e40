//! Rows, the table for people, and how often the choice is right.

use std::fmt;
use std::io::{self, Write};

use comfy_table::CellAlignment;
use lpf::Pid;
use lpf::collectives::Mode;
use lpf::machine::Origin;
use serde::Serialize;

use super::points::{Cell, Point};
use super::shapes::ELEMENT;
use crate::output::{self, digits, size, time};
use crate::remarks::Remarks;

/// The algorithm of the row of the default choice.
pub(super) const CHOSEN: &str = "chosen";

/// What a ratio below 1 means.
const BELOW_THE_BOUND: &str = "less than its bound: the copies or messages of the bound took longer when they were timed, at other moments of the run; measure again, or longer";

/// The same between processes of MPI.
const BELOW_MPI: &str = "less than its bound, which is that of MPI's messages: between processes of one host LPF uses shared memory of its own";

/// A row of `--json` and `--csv`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// Of MPI's own collective: which MPI.
    pub(super) backend: &'static str,
    pub(super) p: Pid,
    pub(super) collective: &'static str,
    /// Its name, [`CHOSEN`] for the default choice, `own` for MPI's own.
    pub(super) algorithm: &'static str,
    /// Of the default choice: the algorithm that it is.
    pub(super) chosen: Option<String>,
    /// How supersteps end: on `expected` arrivals, or in `full` syncs. Of the default choice too; nothing for
    /// MPI's own.
    pub(super) mode: Option<&'static str>,
    /// What one process contributes in all.
    pub(super) elements: usize,
    pub(super) element_bytes: usize,
    pub(super) median_ns: f64,
    pub(super) min_ns: f64,
    /// Of the default choice: the fastest algorithm, found in every other turn and timed in the others.
    pub(super) best_ns: Option<f64>,
    /// Nothing for MPI's own beside sockets: it does not go through them.
    pub(super) bound_ns: Option<f64>,
    /// By h g + l; nothing for MPI's own.
    pub(super) predicted_ns: Option<f64>,
    /// Where that g and l come from.
    pub(super) origin: Option<Origin>,
    /// Repetitions behind the median.
    pub(super) samples: usize,
    pub(super) remarks: Remarks,
}

impl Row {
    /// For remarks.
    pub(super) fn name(&self) -> String {
        let bytes = size(self.elements * self.element_bytes);
        format!("{} of {bytes} (p = {})", self.collective, self.p)
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides {
    pub(super) backend: &'static str,
    /// Which MPI's own collectives are beside.
    pub(super) rival: Option<&'static str>,
}

impl Sides {
    /// Whether MPI's own are held against the bound of this backend.
    fn bounds_rival(self) -> bool {
        self.backend != "tcp"
    }
}

/// All rows; of a point its algorithms, the choice and MPI's own.
pub(super) fn of(
    sides: Sides,
    points: &[Point],
    bound: impl Fn(&Point) -> f64,
    common: &[String],
) -> Vec<Row> {
    let row = |point: &Point, cell: &Cell, of: (&'static str, &'static str, Option<Mode>)| {
        let is_bounded = of.0 == sides.backend || sides.bounds_rival();
        let bound_ns = is_bounded.then(|| bound(point));
        let below = bound_ns.is_some_and(|bound| cell.median() < bound);
        let why = if of.0 == "mpi" { BELOW_MPI } else { BELOW_THE_BOUND };
        let below = below.then(|| why.to_string());
        Row {
            backend: of.0,
            p: point.p,
            collective: point.shape.collective().name(),
            algorithm: of.1,
            chosen: (of.1 == CHOSEN).then(|| point.chosen.clone()),
            mode: of.2.map(Mode::name),
            elements: point.shape.elements,
            element_bytes: ELEMENT,
            median_ns: cell.median(),
            min_ns: cell.samples().min(),
            best_ns: (of.1 == CHOSEN).then(|| point.best_ns()),
            bound_ns,
            predicted_ns: cell.predicted.map(|predicted| predicted.ns),
            origin: cell.predicted.map(|predicted| predicted.origin),
            samples: cell.samples().len(),
            remarks: common.iter().cloned().chain(below).collect(),
        }
    };
    let mut rows = Vec::new();
    for point in points {
        for cell in &point.own {
            let (name, mode) = (cell.algorithm.unwrap_or(CHOSEN), cell.mode);
            rows.push(row(point, cell, (sides.backend, name, mode.or(Some(Mode::Expected)))));
        }
        if let Some(rival) = sides.rival.filter(|_| !point.mpi.samples().is_empty()) {
            rows.push(row(point, &point.mpi, (rival, "own", None)));
        }
    }
    rows
}

/// A line for each point, in groups of one collective and number of processes: 80 columns at the most.
pub(super) fn table(
    out: &mut dyn Write,
    points: &[Point],
    sides: Sides,
    bound: impl Fn(&Point) -> f64,
) -> io::Result<()> {
    let header = ["bytes", "chosen", "best", "time", "full", "/best", "/mpi", "/bound", "h g + l"];
    let mut table = output::table(header, 0);
    for (nth, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 0));
        if nth == 1 || nth == 2 {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    let mut headings: Vec<(usize, String)> = Vec::new();
    for (nth, point) in points.iter().enumerate() {
        let (choice, best) = (point.choice(), point.best());
        let ns = choice.median();
        let theirs = (!point.mpi.samples().is_empty()).then(|| point.mpi.median());
        let heading = format!("{}, p = {}", point.shape.collective().name(), point.p);
        if headings.last().is_none_or(|(_, last)| *last != heading) {
            headings.push((nth, heading));
        }
        table.add_row([
            size(point.shape.bytes()),
            point.chosen.clone(),
            match (best.algorithm.unwrap_or_default(), best.mode) {
                (name, Some(Mode::Full)) => format!("{name}*"),
                (name, _) => name.to_string(),
            },
            time(ns),
            point.in_full().map_or("-".into(), |cell| time(cell.median())),
            digits(ns / best.median()),
            theirs.map_or("-".into(), |theirs| digits(ns / theirs)),
            digits(ns / bound(point)),
            choice.predicted.map_or("-".into(), |predicted| time(predicted.ns)),
        ]);
    }
    write!(out, "{}", output::grouped(&table, &headings))?;
    let rival = sides.rival.map_or("MPI".into(), |name| format!("MPI ({name})"));
    writeln!(
        out,
        "time: the default choice; full: its algorithm in full supersteps\n\
         best: the fastest algorithm (*: in full supersteps); h g + l: the prediction\n\
         /best, /mpi, /bound: time divided by that of best, {rival}, and the bound"
    )
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

    fn is_good(point: &Point) -> bool {
        let (chosen, best) = (point.choice().median(), point.best_ns());
        chosen <= (best * (1.0 + Self::SHARE)).max(best + Self::NS)
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

#[cfg(test)]
mod tests {
    use lpf::collectives::Collective;

    use super::super::harness::Timed;
    use super::super::shapes::Shape;
    use super::*;

    #[test]
    fn the_longest_names_and_numbers_fit_80_columns() {
        let mut point = Point::new(64, Shape::new(Collective::Allreduce, 64, 10_000_000));
        for cell in &mut point.own {
            let is_best = cell.algorithm == Some("rabenseifner") && cell.mode == Some(Mode::Full);
            let ns = if is_best { 123.4e6 } else { 345.6e6 };
            cell.note(Timed { ns: vec![ns], ..Timed::default() }, None);
        }
        point.mpi.note(Timed { ns: vec![34.5e9], ..Timed::default() }, None);
        point.chosen = "rabenseifner".into();
        let mut out = Vec::new();
        let sides = Sides { backend: "mpi", rival: Some("openmpi") };
        table(&mut out, &[point], sides, |_| 12.3e6).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("9.54 MiB rabenseifner rabenseifner* "), "{text}");
        assert!(text.contains("MPI (openmpi), and the bound"), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
