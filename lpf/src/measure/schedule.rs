//! Which of many patterns is timed next: in random order, each for its share of the time.

use std::time::{Duration, Instant};

use super::batch::{Batch, Timed};
use super::random::Random;
use super::stats::Samples;

/// Patterns, their samples, and the time that is left.
///
/// A superstep of one pattern may take a million times as long as that of another. So a pattern is
/// drawn with a probability of its share of the time over what a batch of it costs.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: Instant,
    time: Duration,
    samples: Vec<Samples>,
    /// Nanoseconds of the last superstep of each.
    last: Vec<Option<f64>>,
    random: Random,
}

/// A first batch below this is no sample: it settles caches and pages and says how many supersteps
/// make a batch. Above it, the superstep that every batch makes untimed has settled them.
const SETTLING_NS: f64 = 1e6;

/// Nanoseconds that a batch of supersteps of `ns` takes: with the superstep that is not timed, and rewriting the memory
/// before it, which costs about as much as one.
pub fn cost(ns: f64) -> f64 {
    let Batch { repetitions, warm, .. } = Batch::of(0, ns);
    ns * f64::from(repetitions + 1 + u32::from(warm))
}

impl Schedule {
    /// `patterns` patterns in `time`, which begins now.
    pub fn new(patterns: usize, time: Duration) -> Self {
        Schedule {
            start: Instant::now(),
            time,
            samples: vec![Samples::default(); patterns],
            last: vec![None; patterns],
            random: Random::new(patterns as u64),
        }
    }

    /// Notes what was timed.
    pub fn note(&mut self, timed: Option<Timed>) {
        let Some(Timed { batch, ns }) = timed else { return };
        let before = self.last[batch.pattern].replace(ns);
        if before.is_some() || ns >= SETTLING_NS {
            self.samples[batch.pattern].push(ns);
        }
    }

    /// The next batch, given each pattern's share of the time (0: it needs no more samples). `None` if all shares are 0
    /// or the time is up. Every pattern with a share gets one sample, however short the time is.
    pub fn choose(&mut self, shares: &[f64]) -> Option<Batch> {
        let fresh: Vec<usize> =
            (0..shares.len()).filter(|&i| shares[i] > 0.0 && self.samples[i].is_empty()).collect();
        if !fresh.is_empty() {
            let drawn = fresh[self.random.below(fresh.len())];
            return Some(self.batch(drawn));
        }
        let left = self.left().as_nanos() as f64;
        let weight = |i: usize| {
            let cost = self.cost(i);
            if shares[i] > 0.0 && cost <= left { shares[i] / cost } else { 0.0 }
        };
        let weights: Vec<f64> = (0..shares.len()).map(weight).collect();
        let all: f64 = weights.iter().sum();
        if all <= 0.0 {
            return None;
        }
        let mut at = self.random.fraction() * all;
        let drawn = weights.iter().position(|weight| {
            at -= weight;
            at < 0.0
        });
        // Rounding may leave a little over: it belongs to the last that has a weight.
        let drawn = drawn.or_else(|| weights.iter().rposition(|&weight| weight > 0.0))?;
        Some(self.batch(drawn))
    }

    fn batch(&self, pattern: usize) -> Batch {
        Batch::of(pattern, self.expected(pattern).unwrap_or(f64::INFINITY))
    }

    /// Nanoseconds that a batch takes.
    fn cost(&self, pattern: usize) -> f64 {
        cost(self.expected(pattern).unwrap_or(0.0))
    }

    /// Nanoseconds of the next superstep of a pattern. The last one alone may have been disturbed: its pattern would seem
    /// too costly for the time that is left.
    fn expected(&self, pattern: usize) -> Option<f64> {
        let samples = &self.samples[pattern];
        if samples.is_empty() { self.last[pattern] } else { Some(samples.median()) }
    }

    /// The samples of a pattern.
    pub fn samples(&self, pattern: usize) -> &Samples {
        &self.samples[pattern]
    }

    /// The samples of all, by pattern.
    pub fn into_samples(self) -> Vec<Samples> {
        self.samples
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.time.saturating_sub(self.start.elapsed())
    }

    /// Time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costly_patterns_are_drawn_less_often_and_done_ones_never() {
        let mut schedule = Schedule::new(4, Duration::from_secs(3600));
        let mut drawn = [0; 4];
        let mut before = None;
        for _ in 0..20_000 {
            schedule.note(before);
            let fresh = (0..3).any(|i| schedule.samples(i).is_empty());
            let third = f64::from(u8::from(schedule.samples(2).is_empty()));
            let batch = schedule.choose(&[1.0, 1.0, third, 0.0]).unwrap();
            drawn[batch.pattern] += usize::from(!fresh);
            let ns = [1e6, 1e8, 1e3, 1e3][batch.pattern];
            before = Some(Timed { batch, ns });
        }
        assert_eq!(drawn[2..], [0, 0]);
        assert!(schedule.samples(3).is_empty(), "it never had a share");
        let ratio = drawn[0] as f64 / drawn[1] as f64;
        assert!((50.0..90.0).contains(&ratio), "{drawn:?}");
    }

    #[test]
    fn when_the_time_is_up_every_pattern_has_one_sample() {
        let mut schedule = Schedule::new(5, Duration::ZERO);
        let (mut before, mut batches) = (None, 0);
        loop {
            schedule.note(before);
            let Some(batch) = schedule.choose(&[1.0; 5]) else { break };
            before = Some(Timed { batch, ns: 500.0 });
            batches += 1;
        }
        assert_eq!(batches, 10, "one to settle and one to keep");
        assert!((0..5).all(|i| schedule.samples(i).len() == 1));
    }
}
