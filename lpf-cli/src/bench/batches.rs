//! The batches of one side in one round: a few that warm up, then those that count.

use lpf::measure::batch::repetitions;

use crate::interrupt;

/// Batches before the first that counts: they settle pages and caches, and say how many steps make
/// a millisecond.
const WARM_UP: usize = 2;
/// Of a step as long as this one is enough: it leaves nothing to find out.
const LONG_NS: f64 = 1e7;
/// Steps of a batch that counts, if they are shorter. The clock is that of process 0. If it gets a core late, the others
/// may already wait in the first step of the batch, which then takes no time. A batch of that step alone would show how
/// long it takes to find all others there. Of eight steps it is a small part.
const LEAST_STEPS: u32 = 8;

/// How long a batch lasts.
const BATCH_NS: f64 = 1e6;
/// Steps of a batch at the most, however short they are, and how many times those of the batch
/// before. Where another program takes the cores in the middle, every further step may last as long
/// as the system lets that one run: milliseconds.
const MOST_STEPS: u32 = 256;
const MOST_GROWTH: u32 = 16;

/// Times as they come.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    wanted: usize,
    warm_up: usize,
    repetitions: u32,
    times: Vec<f64>,
}

impl Batches {
    pub(super) fn new(wanted: usize) -> Self {
        Batches { wanted, warm_up: WARM_UP, repetitions: 1, times: Vec::with_capacity(wanted) }
    }

    /// Steps of the next batch; `None` if all are done, or after an interrupt.
    pub(super) fn next(&self) -> Option<u32> {
        (self.times.len() < self.wanted && !interrupt::came()).then_some(self.repetitions)
    }

    /// A step of the last batch took `whole` nanoseconds, of which `ns` count.
    pub(super) fn note(&mut self, whole: f64, ns: f64) {
        let (is_long, steps) = (whole >= LONG_NS, self.repetitions);
        let most = MOST_STEPS.min(MOST_GROWTH * steps);
        let least = if is_long { 1 } else { LEAST_STEPS };
        self.repetitions = repetitions(whole, BATCH_NS).clamp(least, most);
        if is_long {
            self.warm_up = self.warm_up.min(1);
        }
        match self.warm_up {
            0 if is_long || steps >= LEAST_STEPS => self.times.push(ns),
            0 => {}
            _ => self.warm_up -= 1,
        }
    }

    pub(super) fn into_times(self) -> Vec<f64> {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(ns: f64, wanted: usize) -> (Vec<u32>, usize) {
        let (mut batches, mut steps) = (Batches::new(wanted), Vec::new());
        while let Some(n) = batches.next() {
            steps.push(n);
            batches.note(ns, ns);
        }
        (steps, batches.into_times().len())
    }

    #[test]
    fn short_steps_warm_up_twice_and_long_ones_once() {
        assert_eq!(steps(1e4, 2), (vec![1, 16, 100, 100], 2));
        assert_eq!(steps(50.0, 1), (vec![1, 16, 256], 1));
        assert_eq!(steps(1e9, 2), (vec![1, 1, 1], 2));
    }

    #[test]
    fn a_single_step_that_the_others_began_before_process_0_does_not_count() {
        let mut batches = Batches::new(2);
        let times = [2e7, 60.0, 5e6, 60.0];
        let steps = times.map(|ns| {
            let steps = batches.next();
            batches.note(ns, ns);
            steps
        });
        assert_eq!(steps, [1, 1, 16, 8].map(Some));
        assert_eq!(batches.into_times(), [5e6, 60.0]);
    }
}
