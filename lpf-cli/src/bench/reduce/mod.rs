//! `lpf bench reduce`: reductions of processes that arrive at different times, the papers' benchmark (Proficz 2018,
//! Fig. 9).
//!
//! A [`Cell`] is a call of a length by p processes that arrive in a pattern. In a repetition all algorithms have their
//! turn, in random order, on the same arrivals; MPI's own has the same arrivals behind them. Repetitions go on while
//! there is time.

mod arrivals;
pub(super) mod options;
mod own;
mod plot;
mod rows;
pub(super) mod wanted;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use lpf::Pid;
use lpf::collectives::Collective;
use lpf::measure::Random;
use lpf::measure::task::unwatched;
use lpf::settings::cores;

pub(crate) use self::arrivals::Pattern;
use self::options::BenchReduce;
pub(crate) use self::own::Arriving;
pub(super) use self::own::algorithms;
use self::own::{OWN, Seen};
#[cfg(feature = "mpi")]
pub(super) use self::own::{arrive, seen, uncut};
use self::wanted::Wanted;
use super::collectives::bound::Bound;
use super::collectives::common::{ALONE, SPINS, least_window, origins, shuffle};
use super::collectives::rival::{Asked, Rival};
use super::collectives::shapes::Shape;
use crate::busy::Busy;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::misspelt;
use crate::output::{self, size, time};
use crate::place::Place;
use crate::progress::Bar;
use crate::remarks;

/// Milliseconds, bytes and processes where none are named.
const DELAYS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];
const SIZES: [usize; 2] = [64 << 10, 1 << 20];
const PROCESSES: Pid = 4;

/// A call by processes that arrive in a pattern.
struct Cell {
    shape: Shape,
    pattern: Pattern,
    delay_ns: u64,
    percent: u32,
    /// By algorithm, and the repetitions of each.
    own: Vec<(String, Vec<Seen>)>,
    mpi: Vec<Seen>,
    /// So many so far.
    repetitions: usize,
}

impl Cell {
    fn p(&self) -> Pid {
        self.shape.p
    }

    /// What the bar says.
    fn story(&self) -> String {
        let (call, bytes) = (self.shape.collective().name(), size(self.shape.bytes()));
        let delay = time(self.delay_ns as f64);
        let text =
            format!("{call} of {bytes}, p = {}, {}, {delay}", self.shape.p, self.pattern.name());
        match self.own.iter().map(|(_, seen)| seen.len()).min() {
            None | Some(0) => text,
            Some(n) => format!("{text}: {n} repetitions"),
        }
    }
}

/// All cells that are asked for, and the trace.
fn select(options: &BenchReduce, place: &Place) -> Result<(Vec<Cell>, Vec<Vec<u64>>)> {
    let named = place.named(&options.measuring);
    let processes = if named.is_empty() { vec![PROCESSES] } else { named };
    if processes.contains(&1) {
        return Err(Failure::Usage(ALONE.into()));
    }
    let or = |given: &[Duration], usual: &[Duration]| match given.is_empty() {
        true => usual.to_vec(),
        false => given.to_vec(),
    };
    let delays = or(&options.delay, &DELAYS);
    let sizes = if options.size.is_empty() { SIZES.to_vec() } else { options.size.clone() };
    let errors = if options.error.is_empty() { vec![0] } else { options.error.clone() };
    let (calls, patterns) = (options.calls()?, options.patterns()?);
    let names = |call| algorithms(call).into_iter().map(|(name, _)| name);
    check_algorithms(&options.algorithm, &calls)?;
    let is_wanted =
        |name: &String| options.algorithm.is_empty() || options.algorithm.contains(name);
    let mut trace = Vec::new();
    let mut cells = Vec::new();
    for &p in &processes {
        if let Some(path) = &options.trace {
            trace = arrivals::trace(path, p)?;
        }
        for &call in &calls {
            let own = || names(call).filter(is_wanted).map(|name| (name, Vec::new()));
            if own().next().is_none() {
                continue;
            }
            for (&bytes, &pattern) in
                sizes.iter().flat_map(|s| patterns.iter().map(move |p| (s, p)))
            {
                let delays = if pattern.has_delay() { &delays[..] } else { &[Duration::ZERO] };
                for (&delay, &percent) in
                    delays.iter().flat_map(|d| errors.iter().map(move |e| (d, e)))
                {
                    cells.push(Cell {
                        shape: Shape::new(call, p, bytes),
                        pattern,
                        delay_ns: delay.as_nanos() as u64,
                        percent,
                        own: own().collect(),
                        mpi: Vec::new(),
                        repetitions: 0,
                    });
                }
            }
        }
    }
    Ok((cells, trace))
}

/// Algorithms that are named have to be of one of these calls.
fn check_algorithms(named: &[String], calls: &[Collective]) -> Result<()> {
    let of = |call: Collective| algorithms(call).into_iter().map(|(name, _)| name);
    let mut all: Vec<String> = calls.iter().flat_map(|&call| of(call)).collect();
    let mut seen = HashSet::new();
    all.retain(|name| seen.insert(name.clone()));
    let Some(name) = named.iter().find(|name| !all.contains(name)) else { return Ok(()) };
    let mut others = [Collective::Reduce, Collective::Allreduce].into_iter();
    Err(Failure::Usage(match others.find(|&call| of(call).any(|of| of == *name)) {
        Some(call) => {
            format!(
                "{name} is an algorithm of {}: leave --call out, or give that call",
                call.name()
            )
        }
        None => {
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            misspelt::one_of("algorithm", name, &all)
        }
    }))
}

pub(crate) fn run(options: &BenchReduce) -> Result<()> {
    let mut place = Place::find(&options.measuring)?;
    let (mut cells, trace) = select(options, &place)?;
    place.check_plot(&options.measuring)?;
    place.enter()?;
    let limit = options.measuring.time(10, 60);
    let least = once(&cells, &trace);
    if least > limit.mul_f64(1.5) {
        let (least, limit) = (least.as_secs_f64().ceil(), limit.as_secs_f64());
        output::say(format!(
            "each algorithm is called once, which takes about {least} s, more than --seconds {limit}: for less time name \
             fewer with --algorithm, or shorter delays"
        ));
    }
    let bar = Bar::new("bench", limit);
    let (busy, start) = (Busy::begin(&place), Instant::now());
    let mut rival = Rival::or_here(&place);
    let mut bounds = bounds(&place, &cells);
    let mut measure = || -> Result<()> {
        let mut random = Random::new(cells.len() as u64);
        let mut in_bounds = Duration::ZERO;
        for repetition in 0.. {
            let before = start.elapsed();
            if in_bounds <= before.mul_f64(FOR_BOUNDS) {
                for bound in &mut bounds {
                    bound.measure(&mut place)?;
                }
                in_bounds += start.elapsed() - before;
            }
            for cell in &mut cells {
                if interrupt::came() || repetition > 0 && start.elapsed() > limit {
                    return Ok(());
                }
                bar.show(start.elapsed(), || cell.story());
                repeat(&mut place, &mut rival, cell, &trace, &mut random)?;
            }
        }
        Ok(())
    };
    let end = interrupt::ended(measure());
    drop(bar);
    let all = cells.len();
    cells.retain(|cell| cell.own.iter().all(|(_, seen)| !seen.is_empty()));
    if cells.is_empty() {
        return interrupt::without_rows(end);
    }
    let rival_name = rival.name();
    let mut remarks = busy.remarks();
    remarks.extend(interrupt::remark(&end, [cells.len(), all], "cells"));
    remarks.extend(rival.missing());
    let is_oversubscribed = cells.iter().any(|cell| cell.p() > cores());
    remarks.extend((is_oversubscribed && rival_name == Some("mpich")).then(|| SPINS.to_string()));
    let printed = print(options, (place.backend, rival_name), &cells, &bounds, &remarks);
    end.and(printed)
}

fn print(
    options: &BenchReduce,
    (backend, rival): (&'static str, Option<&'static str>),
    cells: &[Cell],
    bounds: &[Bound],
    remarks: &[String],
) -> Result<()> {
    let bound = |cell: &Cell| {
        let bound = bounds.iter().find(|bound| bound.p() == cell.p());
        let (one, all) = moved(backend, cell.shape);
        bound.map_or(0.0, |bound| bound.of_bytes(one, all))
    };
    let rows = rows::of(backend, rival, cells, bound, remarks);
    let share = rows::Share::of(&rows);
    options.measuring.print(&rows, |out| {
        rows::table(out, &rows)?;
        writeln!(out, "{share}")?;
        origins(out, backend, bounds)?;
        remarks::print(out, rows.iter().map(|row| (row.name(), &row.remarks)))
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

/// What processes sleep where every algorithm of each cell is called once, and MPI's own.
fn once(cells: &[Cell], trace: &[Vec<u64>]) -> Duration {
    let of_trace = trace.iter().flatten().max().copied().unwrap_or(0);
    let each = cells.iter().map(|cell| {
        let latest = if cell.pattern == Pattern::Trace { of_trace } else { cell.delay_ns };
        Duration::from_nanos(latest) * (cell.own.len() as u32 + 1)
    });
    each.sum()
}

/// How much of the time goes to bounds, at the most.
const FOR_BOUNDS: f64 = 0.2;

fn bounds(place: &Place, cells: &[Cell]) -> Vec<Bound> {
    let mut processes: Vec<Pid> = cells.iter().map(Cell::p).collect();
    processes.dedup();
    let at_once = |p: Pid| match place.backend {
        "threads" => cores().min(p),
        _ => p,
    };
    let bound = |p: Pid| {
        let here = cells.iter().filter(|cell| cell.p() == p);
        let moved = here.map(|cell| moved(place.backend, cell.shape));
        let bytes: Vec<usize> = moved.flat_map(|(one, all)| [one, all / at_once(p)]).collect();
        Bound::of_shares(p, at_once(p), &bytes)
    };
    processes.into_iter().map(bound).collect()
}

/// What has to be moved from the last arrival on, bytes: by the last process its own vector; by all that vector, and in
/// an all-reduce also the result to all but one. On threads each is copied into a cell and out of it.
fn moved(backend: &str, shape: Shape) -> (usize, usize) {
    let bytes = shape.bytes();
    let moves = match shape.collective() {
        _ if shape.p == 1 => 0,
        Collective::Reduce => 1,
        _ => shape.p,
    };
    let copies = if backend == "threads" { 2 } else { 1 };
    (bytes * moves.min(1), copies * moves * bytes)
}

/// Repetitions in one section: so many as there is time for, that sections begin and end.
const SECTION: Duration = Duration::from_secs(1);
const MOST_IN_SECTION: usize = 8;
/// What a call takes at the least, about.
const LEAST_NS: u64 = 1_000_000;

/// Some repetitions, in each of which every algorithm, and MPI's own, are called on the same arrivals. Before the first
/// one each is called by processes that come together, which opens connections and touches all memory.
fn repeat(
    place: &mut Place,
    rival: &mut Rival,
    cell: &mut Cell,
    trace: &[Vec<u64>],
    random: &mut Random,
) -> Result<()> {
    let (p, shape) = (cell.p(), cell.shape);
    let wanted = |algorithm: &str, backend, arrivals_ns: &[u64], predicted_ns: &[u64]| Wanted {
        shape,
        algorithm: algorithm.into(),
        arrivals_ns: arrivals_ns.to_vec(),
        predicted_ns: predicted_ns.to_vec(),
        window_ns: least_window(backend, p > cores()),
    };
    let mut turns: Vec<usize> = (0..cell.own.len()).collect();
    let together = vec![0; shape.p];
    let warm_up = |name: &str, backend| wanted(name, backend, &together, &together);
    let mut order: Vec<Wanted> =
        cell.own.iter().map(|(name, _)| warm_up(name, place.backend)).collect();
    let mut own = vec![warm_up(OWN, "mpi")];
    let mut places = Vec::new();
    let mut lasts = Duration::ZERO;
    for repetition in 0..MOST_IN_SECTION {
        if repetition > 0 && lasts >= SECTION {
            break;
        }
        let arrivals_ns =
            cell.pattern.arrivals(shape.p, cell.delay_ns, trace, (cell.repetitions, &mut *random));
        cell.repetitions += 1;
        // By what the arrivals are: a trace says itself how late somebody is.
        let latest = arrivals_ns.iter().max().copied().unwrap_or(0).max(LEAST_NS);
        lasts += Duration::from_nanos(latest) * turns.len() as u32;
        let predicted_ns = arrivals::predicted(&arrivals_ns, cell.percent, random);
        shuffle(&mut turns, random);
        let names = turns.iter().map(|&nth| cell.own[nth].0.as_str());
        order.extend(names.map(|name| wanted(name, place.backend, &arrivals_ns, &predicted_ns)));
        own.push(wanted(OWN, "mpi", &arrivals_ns, &predicted_ns));
        places.extend(turns.iter().copied());
    }
    let found = place.measure::<Arriving>(p, &order, unwatched())?;
    let timed = found.into_iter().skip(turns.len());
    places.into_iter().zip(timed).for_each(|(nth, seen)| cell.own[nth].1.push(seen));
    if interrupt::came() {
        return Ok(());
    }
    let found = if rival.is_here(p) {
        place.measure::<Arriving>(p, &own, unwatched())?
    } else {
        rival.measure::<Vec<Seen>>(place, p, &Asked::Arriving(own))?.unwrap_or_default()
    };
    cell.mpi.extend(found.into_iter().skip(1));
    Ok(())
}
