//! The batches of one side in one round: a few that warm up, then those that count.

use lpf::measure::conduct::repetitions;

use crate::interrupt;

/// Batches before the first that counts: they settle pages and caches, and say how many steps make
/// a millisecond.
const WARM_UP: usize = 2;
/// Of a step as long as this one is enough: it leaves nothing to find out.
const LONG_NS: f64 = 1e7;

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
        let most = MOST_STEPS.min(MOST_GROWTH * self.repetitions);
        self.repetitions = repetitions(whole, BATCH_NS).min(most);
        if whole >= LONG_NS {
            self.warm_up = self.warm_up.min(1);
        }
        match self.warm_up {
            0 => self.times.push(ns),
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
}
