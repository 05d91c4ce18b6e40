//! The barrier: nobody departs before all have arrived, what was written before is seen after,
//! bits are the OR of this meeting's and no other's, and a line may be rewritten two meetings on.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use lpf_core::wait::Patience;

use super::{LOOKING, SLEEPING, explore};
use crate::barrier::{Barrier, Gather, Level, Shape, Watch};
use crate::failure::Failure;
use crate::sync::Ordering;

/// What the processes share: the barrier, and memory that only the barrier protects.
struct Section {
    barrier: Barrier,
    failure: Failure,
    /// By parity and process: written before every second meeting, read after it by everybody.
    shown: [Vec<UnsafeCell<u64>>; 2],
}

// SAFETY: `shown` is what the models check; everything else is atomic or locked.
unsafe impl Send for Section {}
// SAFETY: as above.
unsafe impl Sync for Section {}

impl Section {
    fn new(processes: usize, shape: &Shape, patience: Patience) -> Arc<Self> {
        let cells = || (0..processes).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Section {
            barrier: Barrier::new(processes, shape, [patience; 2]),
            failure: Failure::new(),
            shown: [cells(), cells()],
        })
    }

    /// Process `me` of `processes` in meeting `epoch`.
    fn meet(&self, me: usize, processes: usize, epoch: u32) {
        let value = |who: usize| u64::from(epoch) << 8 | who as u64;
        // A bit of its own for each process and meeting, so that one left over shows.
        let bit = |who: usize| 1u32 << (processes * epoch as usize + who);
        let shown = &self.shown[epoch as usize & 1];
        // SAFETY: the value's own cell; whether anybody still reads it is what loom checks.
        shown[me].with_mut(|place| unsafe { *place = value(me) });
        let line = self.barrier.line(me, epoch);
        line.payload[0].store(value(me), Ordering::Relaxed);

        let watch = Watch::Meeting(&self.failure, u64::from(epoch));
        let met = self.barrier.meet(me, epoch, bit(me), watch, &mut || {});

        assert_eq!(met.ok(), Some((0..processes).map(bit).sum()), "bits of meeting {epoch}");
        for (who, place) in shown.iter().enumerate() {
            // SAFETY: as above.
            let seen = place.with(|place| unsafe { *place });
            assert_eq!(seen, value(who), "what {who} wrote before meeting {epoch}");
        }
        // Payload and own bits are read as a superstep does: relaxed.
        let next = (me + 1) % processes;
        let line = self.barrier.line(next, epoch);
        let word = line.payload[0].load(Ordering::Relaxed);
        assert_eq!(word, value(next), "payload of {next} in meeting {epoch}");
        assert_eq!(line.bits(), bit(next), "own bits of {next}");
    }
}

/// `processes` threads hold `meetings` meetings in a barrier of these levels.
fn meetings(processes: usize, meetings: u32, shape: Shape, patience: Patience, preemptions: usize) {
    explore(preemptions, move || {
        let section = Section::new(processes, &shape, patience);
        let run = move |me: usize, section: &Section| {
            (1..=meetings).for_each(|epoch| section.meet(me, processes, epoch));
        };
        let others: Vec<_> = (1..processes)
            .map(|me| {
                let section = section.clone();
                thread::spawn(move || run(me, &section))
            })
            .collect();
        run(0, &section);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// Three threads: all parities with one preemption, and a single meeting with two.
fn three(shape: Shape) {
    meetings(3, 3, shape.clone(), SLEEPING, 1);
    meetings(3, 1, shape, SLEEPING, 2);
}

fn level(fan: usize, gather: Gather) -> Level {
    Level { fan, gather }
}

#[test]
fn two_meet_line_by_line() {
    meetings(2, 3, Shape::flat(), LOOKING, 3);
}

#[test]
fn three_meet_line_by_line() {
    three(Shape::flat());
}

#[test]
fn two_meet_at_a_counter() {
    meetings(2, 3, Shape::central(2), LOOKING, 3);
}

#[test]
fn three_meet_at_a_counter() {
    three(Shape::central(3));
}

#[test]
fn two_meet_in_a_group_of_lines() {
    meetings(2, 3, Shape(vec![level(2, Gather::Lines)]), LOOKING, 3);
}

#[test]
fn three_meet_in_a_group_of_lines() {
    three(Shape(vec![level(3, Gather::Lines)]));
}

#[test]
fn a_pair_with_lines_meets_a_third_at_the_top() {
    three(Shape(vec![level(2, Gather::Lines)]));
}

#[test]
fn a_pair_with_a_counter_meets_a_third_at_the_top() {
    three(Shape(vec![level(2, Gather::Counter)]));
}

#[test]
fn a_counter_below_a_level_of_lines() {
    let shape = Shape(vec![level(2, Gather::Counter), level(2, Gather::Lines)]);
    three(shape);
}

#[test]
fn lines_below_a_counter() {
    let shape = Shape(vec![level(2, Gather::Lines), level(2, Gather::Counter)]);
    three(shape);
}

/// Every wait sleeps after one look: a publisher that misses a sleeper leaves it asleep.
#[test]
fn no_wake_up_is_lost_between_two() {
    meetings(2, 2, Shape::flat(), SLEEPING, 3);
}

#[test]
fn no_wake_up_is_lost_at_a_counter() {
    meetings(3, 1, Shape::central(3), SLEEPING, 2);
}
