//! Starting and joining parked threads by a bare hand-over in the kernel: what an `exec` of an
//! empty function is held against.

use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use super::barrier::{sleep_while, wake_all};
use super::team::{Team, Timed};

#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU32);

/// The caller wakes the others, who answer and park again; it sleeps until the last has answered.
pub(crate) fn handover(team: &Team, batches: usize) -> Vec<f64> {
    let workers = team.threads() as u32 - 1;
    let (start, answers, end) = (Line::default(), Line::default(), AtomicBool::new(false));
    let caller = Team::new(1);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(&start.0, &answers.0, workers, &end));
        }
        let times = caller.time(batches, Timed::Step, |_| {
            let (start, answers) = (&start.0, &answers.0);
            move || {
                answers.store(0, Relaxed);
                start.fetch_add(1, Release);
                wake_all(start);
                loop {
                    match answers.load(Acquire) {
                        n if n == workers => break,
                        n => sleep_while(answers, n),
                    }
                }
                0.0
            }
        });
        end.store(true, Release);
        start.0.fetch_add(1, Release);
        wake_all(&start.0);
        times
    })
}

fn work(start: &AtomicU32, answers: &AtomicU32, workers: u32, end: &AtomicBool) {
    let mut seen = 0;
    loop {
        while start.load(Acquire) == seen {
            sleep_while(start, seen);
        }
        seen = seen.wrapping_add(1);
        if end.load(Acquire) {
            return;
        }
        if answers.fetch_add(1, Release) + 1 == workers {
            wake_all(answers);
        }
    }
}
