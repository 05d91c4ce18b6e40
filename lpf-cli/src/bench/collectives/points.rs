//! What is measured: collectives, lengths and numbers of processes, and all that is compared there.

use lpf::Pid;
use lpf::collectives::{Algorithm, Mode};
use lpf::host::Host;
use lpf::measure::stats::Samples;
use lpf::settings::cores;

use super::harness::Timed;
use super::options::BenchCollectives;
use super::own::Predicted;
use super::shapes::Shape;
use crate::failure::{Failure, Result};
use crate::output::{size, time};
use crate::place::Place;

/// Bytes that one process contributes, where none are named.
const SIZES: [usize; 9] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 64 << 20];
/// For a first look.
const QUICK: [usize; 4] = [8, 512, 32 << 10, 2 << 20];

/// A length of a collective with a number of processes.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) p: Pid,
    pub(super) shape: Shape,
    /// Every algorithm in every mode, and the default choice behind them.
    pub(super) own: Vec<Cell>,
    pub(super) mpi: Cell,
    /// The algorithm that is chosen.
    pub(super) chosen: String,
}

/// One thing that is timed.
#[derive(Debug, Default)]
pub(super) struct Cell {
    /// None: what is chosen, or MPI's own.
    pub(super) algorithm: Option<&'static str>,
    /// How its rounds end; none: what is chosen, or MPI's own.
    pub(super) mode: Option<Mode>,
    in_time: Samples,
    /// Of repetitions to which somebody came late.
    late: Samples,
    /// Those in time by turns, of which every other one is in the same half.
    halves: [Samples; 2],
    turns: usize,
    pub(super) predicted: Option<Predicted>,
    /// Nanoseconds of a repetition with all that is not timed of it: in the last turn, and the least.
    each_ns: Option<(f64, f64)>,
}

impl Cell {
    pub(super) fn note(&mut self, timed: Timed, predicted: Option<Predicted>) {
        self.halves[self.turns % 2].extend(timed.ns.iter().copied());
        self.turns += 1;
        self.in_time.extend(timed.ns);
        self.late.extend(timed.late);
        let least = self.each_ns.map_or(timed.each_ns, |(_, least)| least.min(timed.each_ns));
        self.each_ns = Some((timed.each_ns, least));
        self.predicted = predicted;
    }

    /// Nanoseconds of the repetitions that count.
    pub(super) fn samples(&self) -> &Samples {
        if self.in_time.is_empty() { &self.late } else { &self.in_time }
    }

    pub(super) fn median(&self) -> f64 {
        self.samples().median()
    }

    /// Nanoseconds that a repetition will take with all that is not timed of it; nothing where it was not
    /// timed. Something else may have had the cores in the last turn, and may have left them.
    pub(super) fn each_ns(&self) -> Option<f64> {
        self.each_ns.map(|(last, least)| (last * least).sqrt())
    }

    /// What its next turn takes, about.
    fn next_ns(&self) -> f64 {
        self.each_ns().map_or(0.0, |ns| (2.0 * ns).max(super::CELL_NS))
    }
}

impl Point {
    pub(super) fn new(p: Pid, shape: Shape) -> Self {
        let all = shape.collective().algorithms(shape.p, shape.bytes());
        let modes = |one: &Algorithm| {
            let algorithm = Some(one.name);
            [Mode::Expected, Mode::Full].map(|mode| Cell {
                algorithm,
                mode: Some(mode),
                ..Cell::default()
            })
        };
        let own = all.iter().flat_map(modes).chain([Cell::default()]).collect();
        Point { p, shape, own, mpi: Cell::default(), chosen: String::new() }
    }

    /// Nanoseconds of the next turn with it, about; 0 if nothing is known.
    pub(super) fn next_ns(&self) -> f64 {
        self.own.iter().chain([&self.mpi]).map(Cell::next_ns).sum()
    }

    /// Whether everything of ours was timed.
    pub(super) fn is_measured(&self) -> bool {
        self.own.iter().all(|cell| !cell.samples().is_empty())
    }

    /// The default choice.
    pub(super) fn choice(&self) -> &Cell {
        &self.own[self.own.len() - 1]
    }

    /// The fastest algorithm, in whichever mode.
    pub(super) fn best(&self) -> &Cell {
        let named = self.own[..self.own.len() - 1].iter();
        named.min_by(|a, b| a.median().total_cmp(&b.median())).unwrap_or(self.choice())
    }

    /// Nanoseconds of the fastest algorithm: found in every other turn, timed in the others, and the other way
    /// round. The smallest of many medians is smaller than what it is a median of, by chance alone.
    pub(super) fn best_ns(&self) -> f64 {
        let named = &self.own[..self.own.len() - 1];
        let halves = [0, 1].map(|half| {
            let (seen, timed) = (|cell: &Cell| cell.halves[half].median(), 1 - half);
            let has_both = |cell: &&Cell| cell.halves.iter().all(|half| !half.is_empty());
            let best = named.iter().filter(has_both).min_by(|a, b| seen(a).total_cmp(&seen(b)));
            best.map(|best| best.halves[timed].median())
        });
        match halves {
            [Some(one), Some(other)] => (one + other) / 2.0,
            _ => self.best().median(),
        }
    }

    /// The algorithm that is chosen, in full supersteps.
    pub(super) fn in_full(&self) -> Option<&Cell> {
        let is_chosen = |cell: &&Cell| cell.algorithm == Some(&*self.chosen);
        self.own.iter().filter(is_chosen).find(|cell| cell.mode == Some(Mode::Full))
    }

    /// For the bar.
    pub(super) fn estimate(&self) -> String {
        let what = self.shape.collective().name();
        let text = format!("{what}, {}, p = {}", size(self.shape.bytes()), self.p);
        match self.choice().median() {
            0.0 => text,
            ns => format!("{text}: {}", time(ns)),
        }
    }
}

/// All points, in the order of the rows, and what to say of those that were left out.
pub(super) fn select(
    options: &BenchCollectives,
    place: &Place,
) -> Result<(Vec<Point>, Option<String>)> {
    let collectives = options.collectives()?;
    let default = if cores() >= 16 { vec![2, 8, 16] } else { vec![2, 4] };
    let named = place.named(&options.measuring);
    let processes = if named.is_empty() { default } else { named };
    if processes.contains(&1) {
        return Err(Failure::Usage(super::ALONE.into()));
    }
    let mut sizes = match (options.size.is_empty(), options.measuring.quick) {
        (false, _) => options.size.clone(),
        (true, true) => QUICK.to_vec(),
        (true, false) => SIZES.to_vec(),
    };
    sizes.sort_unstable();
    // Of a machine's memory MPI's own copy and what lies between take as much again.
    let most = Host::this().memory_bytes / 6;
    let (mut points, mut left_out): (Vec<Point>, Vec<String>) = Default::default();
    for &p in &processes {
        for &collective in &collectives {
            let shapes = sizes.iter().map(|&bytes| Shape::new(collective, p, bytes));
            let mut shapes: Vec<Shape> = shapes.collect();
            shapes.dedup();
            for shape in shapes {
                if shape.memory() <= most {
                    points.push(Point::new(p, shape));
                } else {
                    let name = collective.name();
                    left_out.push(format!("{name} of {} (p = {p})", size(shape.bytes())));
                }
            }
        }
    }
    if points.is_empty() {
        let text = format!("they need more than {} of memory; give a smaller --size", size(most));
        return Err(Failure::Usage(text));
    }
    let left_out = (!left_out.is_empty())
        .then(|| format!("these do not fit the memory and were left out: {}", left_out.join(", ")));
    Ok((points, left_out))
}

#[cfg(test)]
mod tests {
    use lpf::collectives::Collective;

    use super::*;

    #[test]
    fn the_best_is_not_timed_where_it_was_found() {
        let mut point = Point::new(2, Shape::new(Collective::Broadcast, 2, 8));
        let timed = |ns: f64| Timed { ns: vec![ns], ..Timed::default() };
        for (nth, cell) in point.own.iter_mut().enumerate() {
            let turns = match nth {
                0 => [10.0, 30.0],
                1 => [20.0, 20.0],
                _ => [40.0, 40.0],
            };
            cell.note(timed(turns[0]), None);
            if nth == 1 {
                assert_eq!(cell.median(), 20.0);
            }
            cell.note(timed(turns[1]), None);
        }
        // The first is the fastest by its first turn, and took 30 in the other; the second by its second.
        assert_eq!((point.best().median(), point.best_ns()), (20.0, 25.0));
    }

    #[test]
    fn of_one_turn_the_fastest_is_the_best() {
        let mut point = Point::new(2, Shape::new(Collective::Broadcast, 2, 8));
        for (nth, cell) in point.own.iter_mut().enumerate() {
            cell.note(Timed { ns: vec![10.0 + nth as f64], ..Timed::default() }, None);
        }
        assert_eq!(point.best_ns(), 10.0);
    }
}
