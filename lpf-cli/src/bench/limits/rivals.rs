//! Two barriers that programs use where they do not think about it: a central counter, and the
//! standard library's. Only for comparison, on machines with many cores.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use super::team::{Team, Timed};

#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU32);

/// One counter that all add to, and one flag that all spin on.
pub(crate) fn central_counter(team: &Team, batches: usize) -> Vec<f64> {
    let (arrived, open) = (Line::default(), Line::default());
    let threads = team.threads() as u32;
    team.time(batches, Timed::Step, |_| {
        let (arrived, open, mut sequence) = (&arrived.0, &open.0, 0u32);
        move || {
            sequence = sequence.wrapping_add(1);
            if arrived.fetch_add(1, AcqRel) + 1 == threads {
                arrived.store(0, Relaxed);
                open.store(sequence, Release);
            } else {
                while open.load(Acquire) != sequence {
                    std::hint::spin_loop();
                }
            }
            0.0
        }
    })
}

/// `std::sync::Barrier`.
pub(crate) fn standard(team: &Team, batches: usize) -> Vec<f64> {
    let barrier = std::sync::Barrier::new(team.threads());
    team.time(batches, Timed::Step, |_| {
        let barrier = &barrier;
        move || {
            barrier.wait();
            0.0
        }
    })
}
