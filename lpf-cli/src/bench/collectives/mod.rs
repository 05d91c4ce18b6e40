//! `lpf bench collectives`: every algorithm of every collective beside its lower bound and MPI's own.
//!
//! A [`Cell`] is one algorithm in one mode (or the default choice, or MPI's own collective) on one length and
//! number of processes. Cells of one length of one collective make a [`Point`]: they are compared, so they are timed
//! soon after each other, in random order. Points are drawn in random order, a few at a time: ours, then
//! MPI's own, then the next. First each is timed once, then for as long as there is time.

mod bare;
pub(super) mod bound;
pub(super) mod common;
pub(super) mod harness;
#[cfg(feature = "mpi")]
pub(super) mod mpi;
pub(super) mod options;
pub(super) mod own;
mod plot;
mod points;
pub(super) mod rival;
mod rows;
pub(super) mod shapes;

use std::time::{Duration, Instant};

use lpf::Pid;
use lpf::collectives::Mode;
use lpf::measure::Random;
use lpf::measure::task::unwatched;
use lpf::settings::cores;

use self::bound::Bound;
use self::common::{ALONE, SPINS, least_window, origins, shuffle};
use self::harness::{MOST, Pacing, Timed};
use self::options::BenchCollectives;
use self::own::Wanted;
use self::points::{Cell, Point};
use self::rival::{Asked, Rival};
use self::rows::Sides;
use crate::busy::Busy;
use crate::failure::Result;
use crate::interrupt;
use crate::output;
use crate::place::Place;
use crate::progress::Bar;
use crate::remarks;

pub(crate) use self::bare::Messages;
#[cfg(feature = "mpi")]
pub(crate) use self::mpi::answer_orders as answer_mpi_orders;
#[cfg(feature = "mpi")]
pub(super) use self::mpi::call as own_of_mpi;
pub(crate) use self::own::Ours;

pub(crate) fn run(options: &BenchCollectives) -> Result<()> {
    let mut place = Place::find(&options.measuring)?;
    let (points, left_out) = points::select(options, &place)?;
    place.check_plot(&options.measuring)?;
    place.enter()?;
    let time = options.measuring.time(20, 180);
    let bar = Bar::new("bench", time);
    let busy = Busy::begin(&place);
    let mut bench = Bench::new(&place, points, time)?;
    let end = interrupt::ended(bench.measure(&mut place, &bar));
    drop(bar);
    let Bench { mut points, bounds, rival, .. } = bench;
    let all = points.len();
    points.retain(Point::is_measured);
    if points.is_empty() {
        return interrupt::without_rows(end);
    }
    let rival_name = rival.name();
    let mut remarks = busy.remarks();
    remarks.extend(left_out);
    remarks.extend(interrupt::remark(&end, [points.len(), all], "points"));
    remarks.extend(rival.missing());
    let is_oversubscribed = points.iter().any(|point| point.p > cores());
    remarks.extend((is_oversubscribed && rival_name == Some("mpich")).then(|| SPINS.to_string()));
    let sides = Sides { backend: place.backend, rival: rival_name };
    let printed = print(options, sides, &points, &bounds, &remarks);
    end.and(printed)
}

fn print(
    options: &BenchCollectives,
    sides: Sides,
    points: &[Point],
    bounds: &[Bound],
    remarks: &[String],
) -> Result<()> {
    let bound =
        |point: &Point| bounds.iter().find(|b| b.p() == point.p).map_or(0.0, |b| b.ns(point.shape));
    let rows = rows::of(sides, points, bound, remarks);
    let share = rows::Share::of(points);
    options.measuring.print(&rows, |out| {
        rows::table(out, points, sides, bound)?;
        writeln!(out, "{share}")?;
        origins(out, sides.backend, bounds)?;
        let chosen = rows.iter().filter(|row| row.algorithm == rows::CHOSEN);
        remarks::print(out, chosen.map(|row| (row.name(), &row.remarks)))
    })?;
    if options.measuring.is_for_programs() {
        // Rows have no field for it.
        output::say(share);
    }
    match &options.measuring.svg {
        Some(path) => plot::draw(path, &rows),
        None => Ok(()),
    }
}

/// A turn is about as long, where cells are short.
const TURN: Duration = Duration::from_millis(250);
/// Points of a turn at the most, so that MPI's own come soon after ours.
const POINTS: usize = 12;
/// A turn of points that take more memory has no other: it is made and given back with the turn.
const MEMORY: usize = 16 << 20;
/// Nanoseconds of a cell in one turn, where that is more than a repetition or two.
const CELL_NS: f64 = 1e6;
/// The share of the time that goes into bounds.
const FOR_BOUNDS: f64 = 0.1;

struct Bench {
    points: Vec<Point>,
    bounds: Vec<Bound>,
    rival: Rival,
    random: Random,
    time: Duration,
    start: Instant,
    bounds_took: Duration,
    windows: Vec<(Pid, Window)>,
}

/// Nanoseconds to the common start, on our side and on MPI's.
#[derive(Clone, Copy, Debug)]
struct Window {
    least: [u64; 2],
    now: [u64; 2],
}

impl Window {
    /// How many times the least it can be.
    const GROWTH: u64 = 4;

    fn new(place: &Place, p: Pid) -> Self {
        let oversubscribed = p > cores();
        let least = [place.backend, "mpi"].map(|backend| least_window(backend, oversubscribed));
        Window { least, now: least }
    }

    /// Where most came late it gets longer, and shorter again when they do no more: it may have been another
    /// program that had their cores.
    fn note<'a>(&mut self, side: usize, timed: impl Iterator<Item = &'a Timed>) {
        let (mut late, mut all) = (0, 0);
        for one in timed {
            late += one.late.len();
            all += one.late.len() + one.ns.len();
        }
        let (now, least) = (self.now[side], self.least[side]);
        let next = if 2 * late > all { 2 * now } else { now / 2 };
        self.now[side] = next.clamp(least, Self::GROWTH * least);
    }
}

impl Bench {
    fn new(place: &Place, points: Vec<Point>, time: Duration) -> Result<Self> {
        let mut processes: Vec<Pid> = points.iter().map(|point| point.p).collect();
        processes.dedup();
        let shapes = |p| points.iter().filter(move |point| point.p == p).map(|point| point.shape);
        let at_once = |p: Pid| match place.backend {
            "threads" => cores().min(p),
            _ => p,
        };
        let bounds = processes.iter().map(|&p| Bound::new(p, at_once(p), shapes(p))).collect();
        let windows = processes.iter().map(|&p| (p, Window::new(place, p))).collect();
        Ok(Bench {
            bounds,
            rival: Rival::new(place),
            random: Random::new(points.len() as u64),
            time,
            start: Instant::now(),
            bounds_took: Duration::ZERO,
            windows,
            points,
        })
    }

    fn left(&self) -> Duration {
        self.time.saturating_sub(self.start.elapsed())
    }

    fn measure(&mut self, place: &mut Place, bar: &Bar) -> Result<()> {
        let all: Vec<usize> = (0..self.points.len()).collect();
        self.turns(place, bar, all, true)?;
        loop {
            let drawn = self.draw();
            if drawn.is_empty() || interrupt::came() {
                return Ok(());
            }
            self.turns(place, bar, drawn, false)?;
        }
    }

    /// Points for one more round: each with a chance that gives all the same share of the time that is left.
    fn draw(&mut self) -> Vec<usize> {
        let left = self.left().as_nanos() as f64;
        let share = left / self.points.len() as f64 / 2.0;
        let mut drawn = Vec::new();
        for (nth, point) in self.points.iter().enumerate() {
            let cost = point.next_ns();
            if cost < left && self.random.fraction() * cost < share.max(cost.min(left / 10.0)) {
                drawn.push(nth);
            }
        }
        drawn
    }

    /// Times these points, in random order; `all`: also if there is no time left.
    fn turns(
        &mut self,
        place: &mut Place,
        bar: &Bar,
        mut points: Vec<usize>,
        all: bool,
    ) -> Result<()> {
        shuffle(&mut points, &mut self.random);
        while let Some(&first) = points.first().filter(|_| !interrupt::came()) {
            self.bounds(place)?;
            let turn = self.turn(&mut points);
            let cost: f64 = turn.iter().map(|&nth| self.points[nth].next_ns()).sum();
            if !all && cost > self.left().as_nanos() as f64 {
                continue;
            }
            let point = &self.points[first];
            bar.show(self.start.elapsed(), || point.estimate());
            self.ours(place, &turn)?;
            if !interrupt::came() {
                self.theirs(place, &turn)?;
            }
        }
        Ok(())
    }

    /// Takes the points of a turn: of one number of processes, and not too much of anything.
    fn turn(&self, points: &mut Vec<usize>) -> Vec<usize> {
        let p = self.points[points[0]].p;
        let (mut turn, mut ns) = (Vec::new(), 0.0);
        points.retain(|&nth| {
            let point = &self.points[nth];
            let is_large = point.shape.memory() > MEMORY;
            let fits = ns < TURN.as_nanos() as f64 && turn.len() < POINTS && !is_large;
            if turn.is_empty() || (point.p == p && fits) {
                turn.push(nth);
                ns += if is_large { f64::INFINITY } else { point.next_ns() };
                return false;
            }
            true
        });
        turn
    }

    fn window(&mut self, p: Pid) -> &mut Window {
        let nth = self.windows.iter().position(|(of, _)| *of == p).unwrap_or(0);
        &mut self.windows[nth].1
    }

    fn ours(&mut self, place: &mut Place, turn: &[usize]) -> Result<()> {
        let p = self.points[turn[0]].p;
        let window = self.window(p).now[0];
        let cells = |&nth: &usize| (0..self.points[nth].own.len()).map(move |cell| (nth, cell));
        let mut cells: Vec<(usize, usize)> = turn.iter().flat_map(cells).collect();
        shuffle(&mut cells, &mut self.random);
        let wanted = |&(nth, cell): &(usize, usize)| {
            let (point, cell) = (&self.points[nth], &self.points[nth].own[cell]);
            let algorithm = cell.algorithm.map(str::to_owned);
            let in_full = cell.mode == Some(Mode::Full);
            Wanted { shape: point.shape, algorithm, in_full, pacing: pacing(point, cell, window) }
        };
        let order: Vec<Wanted> = cells.iter().map(wanted).collect();
        let found = place.measure::<Ours>(p, &order, unwatched())?;
        self.window(p).note(0, found.iter().map(|found| &found.timed));
        for ((nth, cell), found) in cells.into_iter().zip(found) {
            let point = &mut self.points[nth];
            if point.own[cell].algorithm.is_none() {
                point.chosen = found.algorithm;
            }
            point.own[cell].note(found.timed, Some(found.predicted));
        }
        if place.backend == "threads" {
            // Threads of the section that has just ended may still look for work for a moment.
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn theirs(&mut self, place: &Place, turn: &[usize]) -> Result<()> {
        let p = self.points[turn[0]].p;
        let window = self.window(p).now[1];
        let mut points: Vec<usize> = turn.to_vec();
        shuffle(&mut points, &mut self.random);
        let order = points.iter().map(|&nth| {
            let point = &self.points[nth];
            (point.shape, pacing(point, &point.mpi, window))
        });
        let asked = Asked::Together(order.collect());
        let Some(found) = self.rival.measure::<Vec<Timed>>(place, p, &asked)? else {
            return Ok(());
        };
        self.window(p).note(1, found.iter());
        for (nth, timed) in points.into_iter().zip(found) {
            self.points[nth].mpi.note(timed, None);
        }
        Ok(())
    }

    /// Bounds, first of all and then as long as their share of the time is not used up.
    fn bounds(&mut self, place: &mut Place) -> Result<()> {
        if self.bounds_took > self.start.elapsed().mul_f64(FOR_BOUNDS) {
            return Ok(());
        }
        let start = Instant::now();
        for bound in &mut self.bounds {
            bound.measure(place)?;
        }
        self.bounds_took += start.elapsed();
        Ok(())
    }
}

/// How a cell is timed in its next turn.
fn pacing(point: &Point, cell: &Cell, window_ns: u64) -> Pacing {
    let oversubscribed = point.p > cores();
    let is_short = point.shape.bytes() <= 256 << 10;
    // Pages, code and lines that were another algorithm's are there after a few.
    let warm_up = if is_short { 4 } else { 0 };
    let repetitions = match cell.each_ns() {
        None if is_short => 4,
        None => 1,
        Some(ns) => (CELL_NS / ns).clamp(1.0, (MOST - 1) as f64) as u32,
    };
    Pacing { repetitions, warm_up, window_ns, oversubscribed }
}
