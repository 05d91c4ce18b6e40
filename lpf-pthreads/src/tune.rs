//! Which barrier a section gets.
//!
//! - `LPF_TOPOLOGY` says it;
//! - more processes than cores: pinned, those of a core gather in a counter, which stays in the
//!   core's cache, and the last to come meets the other cores (measured at 4 and 8 processes on two
//!   cores: the best); not pinned, one counter for all;
//! - two or three processes: each reads the others' lines;
//! - else the candidates that the machine's topology suggests are timed, once for each number of
//!   processes, and the fastest is kept.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lpf_core::process::PerProcess;
use lpf_core::settings::Pin;
use lpf_core::wait::Patience;
use parking_lot::Mutex;

use crate::barrier::{Barrier, Gather, Level, Shape, Watch};
use crate::environment::Environment;
use crate::pin;
use crate::pool;

/// Yields of a member whose core has others to run, before it sleeps.
const MEMBER_YIELDS: u32 = 20;
/// Yields of a waiter that may run anywhere, before it sleeps.
const CENTRAL_YIELDS: u32 = 50;

/// A barrier's shape, and how members and representatives of groups wait.
pub(crate) fn barrier(
    environment: &Environment,
    processes: usize,
    pin: &Pin,
) -> (Shape, [Patience; 2]) {
    let cores = environment.cores;
    if let Some(levels) = &environment.topology {
        let patience = Patience::for_processes(processes, cores);
        return (Shape::of_levels(levels, processes), [patience; 2]);
    }
    if processes > cores {
        return oversubscribed(processes, cores, pin);
    }
    let shape = if processes <= 3 { Shape::flat() } else { fastest(processes) };
    (shape, [Patience::CORES_TO_SPARE; 2])
}

fn oversubscribed(processes: usize, cores: usize, pin: &Pin) -> (Shape, [Patience; 2]) {
    if matches!(pin, Pin::None | Pin::Auto) {
        let patience = Patience { spins: 0, yields: CENTRAL_YIELDS };
        return (Shape::central(processes), [patience; 2]);
    }
    let members = Patience { spins: 0, yields: MEMBER_YIELDS };
    // All others of its core wait for it.
    let representatives = Patience { spins: 4_000, yields: 50 };
    (Shape::per_core(processes, cores), [members, representatives])
}

/// The fastest candidate, timed the first time a number of processes is asked for.
fn fastest(processes: usize) -> Shape {
    static KNOWN: PerProcess<Mutex<HashMap<usize, Shape>>> = PerProcess::new(Mutex::default);
    let known = || KNOWN.get().lock();
    if let Some(shape) = known().get(&processes) {
        return shape.clone();
    }
    let shape = measure(&candidates(&pin::machine().levels(), processes), processes);
    known().insert(processes, shape.clone());
    shape
}

/// Flat, the machine's own levels, and groups of four and eight.
fn candidates(levels: &[usize], processes: usize) -> Vec<Shape> {
    let groups = |fan| Shape(vec![Level { fan, gather: Gather::Lines }]);
    let mut shapes = vec![Shape::flat(), Shape::of_levels(levels, processes)];
    shapes.extend([4, 8].into_iter().filter(|&fan| fan < processes).map(groups));
    shapes.dedup();
    shapes
}

const ROUNDS: usize = 5;
const MEETINGS: u32 = 200;

/// Times each candidate in turns; the least median wins, the first of equals.
fn measure(shapes: &[Shape], processes: usize) -> Shape {
    let patience = [Patience::CORES_TO_SPARE; 2];
    let barriers: Vec<Barrier> =
        shapes.iter().map(|shape| Barrier::new(processes, shape, patience)).collect();
    let own = Mutex::new(vec![Vec::new(); barriers.len()]);
    let member = |who: usize| {
        for round in 0..ROUNDS as u32 {
            for (number, barrier) in barriers.iter().enumerate() {
                let time = meet_often(barrier, who, round * MEETINGS);
                if who == 0 {
                    own.lock()[number].push(time);
                }
            }
        }
    };
    if pool::run(processes - 1, &|worker| member(worker + 1), || member(0)).is_err() {
        // No threads: the section itself will say so.
        return Shape::flat();
    }
    let mut times = own.into_inner();
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times.get(ROUNDS / 2).copied().unwrap_or(Duration::MAX)
    };
    let medians: Vec<Duration> = times.iter_mut().map(median).collect();
    let best = (0..shapes.len()).min_by_key(|&number| medians[number]).unwrap_or(0);
    shapes[best].clone()
}

fn meet_often(barrier: &Barrier, who: usize, before: u32) -> Duration {
    let start = Instant::now();
    for epoch in before + 1..=before + MEETINGS {
        let met = barrier.meet(who, epoch, 1, Watch::Bound, &mut || {});
        debug_assert!(matches!(met, Ok(1)));
    }
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_timed_and_one_is_kept() {
        let shapes = candidates(&[2, 2], 4);
        assert!(shapes.contains(&measure(&shapes, 4)));
        assert_eq!(fastest(5), fastest(5));
    }
}
