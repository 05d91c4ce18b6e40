//! Which exchange is timed next, and what the samples say so far.

use std::time::{Duration, Instant};

use lpf_core::machine::Row;

use super::conduct::{Batch, Timed, repetitions};
use super::exchange::TotalExchange;
use super::plan::{Plan, Word};
use super::random::Random;
use super::stats::Samples;

/// One size of h, as measured.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Bytes that each process sends and receives.
    pub h_bytes: usize,
    /// The median, nanoseconds.
    pub ns: f64,
    /// Half of its 95 % interval, nanoseconds.
    pub ci95: f64,
    /// Batches behind it.
    pub samples: usize,
}

/// How far a measurement is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time since its beginning.
    pub elapsed: Duration,
    /// The time it was given.
    pub time: Duration,
    /// Estimates by word size, as far as there are samples.
    pub rows: Vec<Row>,
}

/// Batches of each small h per round: a round gives small and large h about the same time.
const SMALL_PER_ROUND: usize = 16;
/// Samples of a small h before its interval is believed.
const SMALL_ENOUGH: usize = 48;
/// Samples of the largest h before its interval is believed.
const LARGE_ENOUGH: usize = 8;
/// Narrow: half of g's interval is at most this part of g.
const NARROW_G: f64 = 0.01;
/// Narrow: half of l's interval is at most this part of l.
const NARROW_L: f64 = 0.02;

/// h in units of p words, each twice the one before: where l is looked for. They stand first among
/// a word size's exchanges in the list, which begins with T(0), common to all.
const OCTAVES: [usize; 4] = [1, 2, 4, 8];
/// The place of 2p, for g.
const TWO_P: usize = 1;
/// The largest h stands behind them, and behind it the points of a plot.
const LARGEST: usize = OCTAVES.len();

/// All sizes of h: (word's place in the plan, bytes).
pub(super) fn sizes(plan: &Plan) -> Vec<(usize, usize)> {
    let mut all = vec![(0, 0)];
    for (place, word) in plan.words.iter().enumerate() {
        let round = word.bytes * plan.p as usize;
        // What is larger than the largest is never used: see `latency`.
        all.extend(OCTAVES.iter().map(|octave| (place, (octave * round).min(word.largest))));
        all.push((place, word.largest));
        let smallest = (OCTAVES[LARGEST - 1] * round).min(word.largest / 2);
        all.extend(between(word, smallest, plan.points).map(|bytes| (place, bytes)));
    }
    all
}

/// `n` sizes between the smallest and the largest h, evenly spaced in the logarithm.
fn between(word: &Word, smallest: usize, n: usize) -> impl Iterator<Item = usize> {
    let (low, high) = ((smallest as f64).ln(), (word.largest as f64).ln());
    let part = move |i: usize| (i + 1) as f64 / (n + 1) as f64;
    (0..n).map(move |i| (low + part(i) * (high - low)).exp() as usize)
}

/// The leader of a measurement.
pub(super) struct Rounds<'a> {
    plan: &'a Plan,
    h: &'a [(usize, usize)],
    memcpy: &'a [f64],
    watch: &'a dyn Fn(&Progress),
    start: Instant,
    samples: Vec<Samples>,
    /// Nanoseconds of the last superstep of each kind; the first is not a sample.
    last: Vec<Option<f64>>,
    /// The rest of this round.
    round: Vec<usize>,
    random: Random,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        h: &'a [(usize, usize)],
        memcpy: &'a [f64],
        watch: &'a dyn Fn(&Progress),
    ) -> Self {
        Rounds {
            plan,
            h,
            memcpy,
            watch,
            start: Instant::now(),
            samples: vec![Samples::default(); h.len()],
            last: vec![None; h.len()],
            round: Vec::new(),
            random: Random::new(0x1f5),
        }
    }

    /// Notes what was timed. The first batch of each kind warms caches and pages and says how many
    /// supersteps make a millisecond; it is no sample.
    pub(super) fn note(&mut self, timed: Option<Timed>) {
        let Some(Timed { batch, ns }) = timed else { return };
        if self.last[batch.pattern].replace(ns).is_some() {
            self.samples[batch.pattern].push(ns);
        }
    }

    /// The next batch; `None` when all is narrow or the time is up.
    pub(super) fn choose(&mut self) -> Option<Batch> {
        if self.round.is_empty() {
            self.report();
            self.round = self.next_round();
        }
        let late = self.start.elapsed() >= self.plan.time;
        while let Some(pattern) = self.round.pop() {
            // When the time is up, what has no sample still gets one.
            if !late || self.samples[pattern].is_empty() {
                let ns = self.last[pattern].unwrap_or(f64::INFINITY);
                return Some(Batch { pattern, repetitions: repetitions(ns) });
            }
        }
        // A round that ends late may leave something without a sample.
        self.samples.iter().any(Samples::is_empty).then(|| self.choose()).flatten()
    }

    fn next_round(&mut self) -> Vec<usize> {
        let mut round = vec![0; if self.all_narrow() { 0 } else { SMALL_PER_ROUND }];
        let per_word = LARGEST + 1 + self.plan.points;
        for word in 0..self.plan.words.len() {
            let first = 1 + word * per_word;
            let (g_narrow, l_narrow) = self.narrow(word);
            if !l_narrow {
                round
                    .extend(std::iter::repeat_n(first..first + LARGEST, SMALL_PER_ROUND).flatten());
            }
            if !g_narrow {
                round.push(first + LARGEST);
                round.extend([first + TWO_P; SMALL_PER_ROUND]);
            }
            let points = first + LARGEST + 1..first + per_word;
            round.extend(points.filter(|&i| self.samples[i].len() < LARGE_ENOUGH));
        }
        self.random.shuffle(&mut round);
        round
    }

    fn samples_of(&self, word: usize, which: usize) -> &Samples {
        &self.samples[1 + word * (LARGEST + 1 + self.plan.points) + which]
    }

    /// Whether g's and l's intervals of a word size are narrow.
    fn narrow(&self, word: usize) -> (bool, bool) {
        let row = self.row(word);
        let large = self.samples_of(word, LARGEST).len() >= LARGE_ENOUGH;
        let small = (0..LARGEST).all(|h| self.samples_of(word, h).len() >= SMALL_ENOUGH);
        let g_narrow = large && row.g_ci95 <= NARROW_G * row.g_ns_per_byte;
        (g_narrow, small && row.l_ci95 <= NARROW_L * row.l_ns)
    }

    pub(super) fn all_narrow(&self) -> bool {
        (0..self.plan.words.len()).all(|word| self.narrow(word) == (true, true))
    }

    /// g and l of a word size from the samples so far.
    fn row(&self, word: usize) -> Row {
        let Word { bytes, largest, .. } = self.plan.words[word];
        let zero = &self.samples[0];
        let (two, large) = (self.samples_of(word, TWO_P), self.samples_of(word, LARGEST));
        let between = (largest - 2 * bytes * self.plan.p as usize) as f64;
        let (l_ns, l_ci95) = self.latency(word);
        let small = (0..LARGEST).map(|h| self.samples_of(word, h).len()).sum::<usize>();
        Row {
            word_bytes: bytes,
            r_ns_per_byte: self.memcpy[word],
            g_ns_per_byte: (large.median() - two.median()) / between,
            g_ci95: large.half_width().hypot(two.half_width()) / between,
            l_ns,
            l_ci95,
            samples: (zero.len() + small + large.len()) as u64,
        }
    }

    /// l and half of its interval: T(0), or where the line through T(kp) and T(2kp) meets h = 0,
    /// if that is higher by more than its own uncertainty, which has to be below T(0): of words so
    /// large that l is lost in the noise of T(p) the line tells nothing.
    ///
    /// The paper takes k = 1 alone. A backend may send a word or two along with the barrier, so
    /// that T(p) is far below what any larger superstep costs and the line through T(p) and T(2p)
    /// meets h = 0 below T(0): h g + l would hold for no other superstep.
    fn latency(&self, word: usize) -> (f64, f64) {
        let zero = &self.samples[0];
        let Word { bytes, largest, .. } = self.plan.words[word];
        let fits = |octave: &usize| OCTAVES[octave + 1] * bytes * self.plan.p as usize <= largest;
        let intercepts = (0..LARGEST - 1).filter(fits).map(|octave| {
            let (one, two) = (self.samples_of(word, octave), self.samples_of(word, octave + 1));
            let ci95 = (2.0 * one.half_width()).hypot(two.half_width());
            (2.0 * one.median() - two.median(), ci95)
        });
        intercepts
            .filter(|(ns, ci95)| *ci95 <= zero.median() && ns - ci95 > zero.median())
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((zero.median(), zero.half_width()))
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        (0..self.plan.words.len()).map(|word| self.row(word)).collect()
    }

    /// All T(h) by word size; T(0) belongs to each.
    pub(super) fn points(&self) -> Vec<Vec<Point>> {
        let of_word = |word| {
            let measured = self.h.iter().zip(&self.samples);
            measured
                .filter(move |((place, bytes), _)| *place == word || *bytes == 0)
                .map(|(&(place, bytes), samples)| Point {
                    h_bytes: match bytes {
                        0 => 0,
                        _ => TotalExchange::new(self.plan.p, self.plan.words[place].bytes, bytes)
                            .h_bytes(),
                    },
                    ns: samples.median(),
                    ci95: samples.half_width(),
                    samples: samples.len(),
                })
                .collect()
        };
        (0..self.plan.words.len()).map(of_word).collect()
    }

    fn report(&self) {
        let rows = (0..self.plan.words.len())
            .filter(|&word| !self.samples_of(word, LARGEST).is_empty())
            .map(|word| self.row(word))
            .collect();
        (self.watch)(&Progress { elapsed: self.start.elapsed(), time: self.plan.time, rows });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    fn plan(time: Duration) -> Plan {
        let host = Host {
            name: "a".into(),
            cpu: "b".into(),
            memory_bytes: 1 << 30,
            last_cache_bytes: 1 << 20,
        };
        Plan { points: 3, ..Plan::for_host(&host, 4, time, false) }
    }

    /// Feeds a leader with the times of a machine that keeps the model exactly.
    fn exact_machine(g: f64, l: f64, noise: f64, time: Duration) -> (Vec<Row>, bool, usize) {
        let plan = plan(time);
        let h = sizes(&plan);
        let memcpy = [0.1; 4];
        let mut rounds = Rounds::new(&plan, &h, &memcpy, &|_| {});
        let (mut random, mut batches, mut before) = (Random::new(7), 0, None);
        loop {
            rounds.note(before);
            let Some(batch) = rounds.choose() else { break };
            let error = 1.0 + noise * (random.below(2001) as f64 / 1000.0 - 1.0);
            let ns = (g * h[batch.pattern].1 as f64 + l) * error;
            before = Some(Timed { batch, ns });
            batches += 1;
        }
        (rounds.rows(), rounds.all_narrow(), batches)
    }

    #[test]
    fn a_machine_that_keeps_the_model_is_measured_exactly() {
        let (rows, narrow, _) = exact_machine(0.25, 400.0, 0.0, Duration::from_secs(60));
        assert!(narrow);
        for row in rows {
            assert!((row.g_ns_per_byte - 0.25).abs() < 1e-3, "{row:?}");
            assert!((row.l_ns - 400.0).abs() < 8.0, "{row:?}");
        }
    }

    #[test]
    fn noise_takes_more_batches_and_the_interval_tells() {
        let (_, _, quiet) = exact_machine(0.25, 400.0, 0.0, Duration::from_secs(60));
        let (rows, narrow, noisy) = exact_machine(0.25, 400.0, 0.03, Duration::from_secs(60));
        assert!(narrow && noisy > quiet);
        for row in rows {
            assert!((row.g_ns_per_byte - 0.25).abs() < 3.0 * NARROW_G * 0.25, "{row:?}");
        }
    }

    #[test]
    fn words_that_travel_with_the_barrier_do_not_hide_the_latency() {
        let plan = plan(Duration::from_secs(60));
        let h = sizes(&plan);
        let mut rounds = Rounds::new(&plan, &h, &[0.1; 4], &|_| {});
        let mut before = None;
        loop {
            rounds.note(before);
            let Some(batch) = rounds.choose() else { break };
            let bytes = h[batch.pattern].1;
            // One word of 8 bytes for each process costs one barrier, anything more costs two.
            let ns = if bytes <= 32 { 200.0 } else { 400.0 + 0.25 * bytes as f64 };
            before = Some(Timed { batch, ns });
        }
        assert!(rounds.rows().iter().all(|row| (row.l_ns - 400.0).abs() < 8.0));
    }

    #[test]
    fn when_the_time_is_up_everything_has_one_sample() {
        let (rows, narrow, batches) = exact_machine(0.25, 400.0, 0.1, Duration::ZERO);
        assert!(!narrow);
        assert!(rows.iter().all(|row| row.samples >= 4 && row.g_ns_per_byte > 0.0));
        assert!(batches < 100);
    }
}
