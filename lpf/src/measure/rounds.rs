//! The exchanges of a measurement, and what their samples say so far.

use std::time::Duration;

use lpf_core::Pid;
use lpf_core::machine::Row;
use serde::{Deserialize, Serialize};

use super::batch::{Batch, Timed};
use super::conduct::Leader;
use super::exchange::TotalExchange;
use super::plan::{Plan, Word};
use super::schedule::{Schedule, cost};
use super::stats::{FEWEST, ROBUST, Samples};

/// One size of h, as measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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

/// Share of the time of the largest h, where each small one has 1: its supersteps are long.
const SHARE_OF_LARGEST: f64 = 8.0;
/// The larger exchanges of a word size, each of twice the h of the one before, begin at this h or a little above.
const FIRST_RUNG: usize = 64 << 10;
/// Samples of a rung before the next one may be opened, to tell what that will cost.
const TO_CLIMB: usize = 2;
/// How many times a superstep may grow from one rung to the next: the caches are left on the way.
const GROWTH: f64 = 2.5;
/// A rung is opened if so many batches of it fit the part of the time that a word size's largest exchange has.
const AFFORDABLE: f64 = 20.0;
const PART: f64 = 0.6;
/// Batches between two looks at what is narrow.
const LOOK_EVERY: u32 = 32;
/// Samples of a small h before its interval is believed.
const SMALL_ENOUGH: usize = 48;
/// Narrow: half of g's interval is at most this part of g.
const NARROW_G: f64 = 0.01;
/// Narrow: half of l's interval is at most this part of l.
const NARROW_L: f64 = 0.02;

/// h in units of p words, each twice the one before: where l is looked for. They stand first among
/// a word size's exchanges in the list, which begins with T(0), common to all.
const OCTAVES: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// So many of them on threads, and in exchanges by gets.
const FIRST_OCTAVES: usize = 4;
/// From this many times T(0) on, T(2kp) tells nothing about l. Between processes, where a message more may
/// cost many times T(0), it is believed up to the second, but only beyond its interval.
const LOST: f64 = 16.0;
const LOST_BY_MESSAGES: f64 = 64.0;
/// The place of 2p, for g.
const TWO_P: usize = 1;

/// An exchange that is timed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// The word's place in the plan.
    pub(super) word: usize,
    pub(super) bytes: usize,
    pub(super) by_get: bool,
}

/// Where l is looked for: octaves by puts, then by gets.
fn octaves(plan: &Plan) -> (usize, usize) {
    if plan.by_messages { (OCTAVES.len(), FIRST_OCTAVES) } else { (FIRST_OCTAVES, 0) }
}

/// All exchanges: T(0), and for each word size the octaves, then the rungs.
pub(super) fn sizes(plan: &Plan) -> Vec<Size> {
    let mut all = vec![Size { word: 0, bytes: 0, by_get: false }];
    let (puts, gets) = octaves(plan);
    for (place, word) in plan.words.iter().enumerate() {
        let round = word.bytes * plan.p;
        let size = |bytes: usize, by_get| {
            // What is larger than the largest is never used: see `latency`.
            Size { word: place, bytes: bytes.min(word.largest), by_get }
        };
        all.extend(OCTAVES[..puts].iter().map(|octave| size(octave * round, false)));
        all.extend(OCTAVES[..gets].iter().map(|octave| size(octave * round, true)));
        all.extend(rungs(plan.p, word).into_iter().map(|bytes| size(bytes, false)));
    }
    all
}

/// h of the larger exchanges of a word size, from the smallest to the largest: g is measured at the largest that the
/// time allows.
fn rungs(p: Pid, word: &Word) -> Vec<usize> {
    let first = FIRST_RUNG.max(4 * word.bytes * p);
    let mut all: Vec<usize> = std::iter::successors(Some(word.largest), |h| Some(h / 2))
        .take_while(|&h| h >= first)
        .collect();
    if all.is_empty() {
        all.push(word.largest);
    }
    all.reverse();
    all
}

/// The leader of a measurement.
pub(super) struct Rounds<'a> {
    plan: &'a Plan,
    h: &'a [Size],
    memcpy: &'a [f64],
    watch: &'a dyn Fn(&Progress),
    stop: &'a dyn Fn() -> bool,
    schedule: Schedule,
    /// What each exchange still shall have of the time.
    shares: Vec<f64>,
    /// Of each word size: where its exchanges begin in the list, and its rungs that may be timed.
    parts: Vec<Part>,
    until_look: u32,
}

/// A word size's part of the exchanges.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: usize,
    rungs: usize,
    /// Rungs that may be timed, at least one.
    open: usize,
}

impl Leader for Rounds<'_> {
    fn next(&mut self, before: Option<Timed>) -> Option<Batch> {
        self.schedule.note(before);
        if (self.stop)() {
            return None;
        }
        if self.until_look == 0 {
            self.until_look = LOOK_EVERY;
            self.share_out();
            self.report();
        }
        self.until_look -= 1;
        self.schedule.choose(&self.shares)
    }
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        h: &'a [Size],
        memcpy: &'a [f64],
        watch: &'a dyn Fn(&Progress),
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        let (puts, gets) = octaves(plan);
        let mut first = 1;
        let part = |word| {
            let part = Part { first, rungs: rungs(plan.p, word).len(), open: 1 };
            first += puts + gets + part.rungs;
            part
        };
        let parts = plan.words.iter().map(part).collect();
        let schedule = Schedule::new(h.len(), plan.time);
        let shares = vec![0.0; h.len()];
        Rounds { plan, h, memcpy, watch, stop, schedule, shares, parts, until_look: 0 }
    }

    /// Nothing for what is narrow; 2p is needed for g as well as for l.
    fn share_out(&mut self) {
        self.shares.fill(0.0);
        for word in 0..self.plan.words.len() {
            self.climb(word);
            let Part { first, open, .. } = self.parts[word];
            let (g_narrow, l_narrow) = self.narrow(word);
            if !l_narrow {
                self.shares[0] = 1.0;
                for place in 0..self.octaves() {
                    if self.is_used(word, place) {
                        self.shares[first + place] = self.share_of_small(first + place);
                    }
                }
            }
            if !g_narrow {
                self.shares[first + TWO_P] = self.share_of_small(first + TWO_P);
                let rungs = first + self.octaves();
                for rung in rungs..rungs + open {
                    let is_enough = self.schedule.samples(rung).len() >= ROBUST;
                    self.shares[rung] = f64::from(u8::from(!is_enough));
                }
                self.shares[rungs + open - 1] = SHARE_OF_LARGEST;
            }
        }
    }

    /// The first superstep of a small exchange may find memory that no other has used, and take a hundred times as long as
    /// the next. An exchange that seems so costly would hardly be drawn again, and its median would stay that of the first
    /// sample. The median of three is an ordinary one.
    fn share_of_small(&self, exchange: usize) -> f64 {
        if self.schedule.samples(exchange).len() < 3 { 32.0 } else { 1.0 }
    }

    /// Opens a word size's next rung, if there is time for it.
    fn climb(&mut self, word: usize) {
        let Part { rungs, open, .. } = self.parts[word];
        let top = self.rung(word, open - 1);
        if open == rungs || top.len() < TO_CLIMB {
            return;
        }
        // On a busy machine a superstep may last longer, but not less long.
        let batches = AFFORDABLE * cost(GROWTH * top.min());
        let words = self.plan.words.len() as f64;
        let most = (self.plan.time.mul_f64(PART / words)).min(self.schedule.left().mul_f64(PART));
        if batches <= most.as_nanos() as f64 {
            self.parts[word].open += 1;
        }
    }

    fn octaves(&self) -> usize {
        let (puts, gets) = octaves(self.plan);
        puts + gets
    }

    fn rung(&self, word: usize, rung: usize) -> &Samples {
        self.samples_of(word, self.octaves() + rung)
    }

    /// The rung at which g is measured: the largest whose interval one disturbance does not widen; else the largest that
    /// has an interval, or the smallest.
    fn top(&self, word: usize) -> usize {
        let with = |n| (0..self.parts[word].open).rfind(|&rung| self.rung(word, rung).len() >= n);
        with(ROBUST).or_else(|| with(FEWEST)).unwrap_or(0)
    }

    /// h at which g of each word size was measured, bytes.
    pub(super) fn largest(&self) -> Vec<usize> {
        (0..self.plan.words.len()).map(|word| self.h_of(word, self.top(word))).collect()
    }

    fn h_of(&self, word: usize, rung: usize) -> usize {
        let Size { bytes, .. } = self.h[self.parts[word].first + self.octaves() + rung];
        TotalExchange::new(self.plan.p, self.plan.words[word].bytes, bytes).h_bytes()
    }

    /// Whether l is looked for there: not in what is larger than the largest h, nor in one without the other
    /// of its line.
    fn is_used(&self, word: usize, place: usize) -> bool {
        let (puts, _) = octaves(self.plan);
        let octave = if place < puts { place } else { place - puts };
        let Word { bytes, largest, .. } = self.plan.words[word];
        OCTAVES[octave.max(TWO_P)] * bytes * self.plan.p <= largest
    }

    fn samples_of(&self, word: usize, which: usize) -> &Samples {
        self.schedule.samples(self.parts[word].first + which)
    }

    /// Whether g's and l's intervals of a word size are narrow.
    fn narrow(&self, word: usize) -> (bool, bool) {
        let row = self.row(word);
        let Part { open, .. } = self.parts[word];
        let large = self.rung(word, open - 1).len() >= ROBUST;
        let mut small = (0..self.octaves()).filter(|&place| self.is_used(word, place));
        let small = small.all(|h| self.samples_of(word, h).len() >= SMALL_ENOUGH);
        let g_narrow = large && row.g_ci95 <= NARROW_G * row.g_ns_per_byte;
        (g_narrow, small && row.l_ci95 <= NARROW_L * row.l_ns)
    }

    pub(super) fn all_narrow(&self) -> bool {
        (0..self.plan.words.len()).all(|word| self.narrow(word) == (true, true))
    }

    /// g and l of a word size from the samples so far.
    fn row(&self, word: usize) -> Row {
        let Word { bytes, .. } = self.plan.words[word];
        let zero = self.schedule.samples(0);
        let two = self.samples_of(word, TWO_P);
        let top = self.top(word);
        let (large, largest) = (self.rung(word, top), self.h_of(word, top));
        let between = (largest - 2 * bytes * self.plan.p) as f64;
        let slope = (large.median() - two.median()) / between;
        // On a busy machine in a short time the small exchange may seem to take longer than the
        // largest. Then all that is known is that g is at most what the largest took per byte.
        let at_most = large.median() / largest as f64;
        let (g_ns_per_byte, g_ci95) = if slope > 0.0 || large.is_empty() {
            (slope, large.half_width().hypot(two.half_width()) / between)
        } else {
            (at_most, at_most)
        };
        let (l_ns, l_ci95) = self.latency(word);
        let small = (0..self.octaves()).map(|h| self.samples_of(word, h).len()).sum::<usize>();
        Row {
            word_bytes: bytes,
            r_ns_per_byte: self.memcpy[word],
            g_ns_per_byte,
            g_ci95,
            l_ns,
            l_ci95,
            samples: (zero.len() + small + large.len()) as u64,
        }
    }

    /// l and half of its interval: the largest of T(0) and of where the lines through T(kp) and
    /// T(2kp) meet h = 0, of puts and, between processes, of gets.
    ///
    /// The paper takes k = 1 alone. A backend may send a word or two along with the barrier, so
    /// that T(p) is far below what any larger superstep costs and the line through T(p) and T(2p)
    /// meets h = 0 below T(0): h g + l would hold for no other superstep. And of words so large
    /// that l is lost in the noise of T(2kp) the line tells nothing.
    fn latency(&self, word: usize) -> (f64, f64) {
        let zero = self.schedule.samples(0);
        let (lost, doubt) =
            if self.plan.by_messages { (LOST_BY_MESSAGES, 1.0) } else { (LOST, 0.0) };
        let (puts, gets) = octaves(self.plan);
        let lines = (0..puts - 1).chain(puts..puts + gets - 1);
        let lines = lines.filter(|&place| self.is_used(word, place + 1)).filter_map(|place| {
            let (one, two) = (self.samples_of(word, place), self.samples_of(word, place + 1));
            let ci95 = (2.0 * one.half_width()).hypot(two.half_width());
            let tells = two.median() <= lost * zero.median();
            tells.then_some((2.0 * one.median() - two.median(), ci95))
        });
        let largest = |a: (f64, f64), b: (f64, f64)| if b.0 - doubt * b.1 > a.0 { b } else { a };
        lines.fold((zero.median(), zero.half_width()), largest)
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        (0..self.plan.words.len()).map(|word| self.row(word)).collect()
    }

    /// All T(h) by word size; T(0) belongs to each.
    pub(super) fn points(&self) -> Vec<Vec<Point>> {
        let of_word = |word| {
            let mine = |(place, size): &(usize, &Size)| {
                let is_timed = !self.schedule.samples(*place).is_empty();
                is_timed && !size.by_get && (size.word == word || size.bytes == 0)
            };
            self.h.iter().enumerate().filter(mine).map(|(i, _)| self.point(i)).collect()
        };
        (0..self.plan.words.len()).map(of_word).collect()
    }

    fn point(&self, exchange: usize) -> Point {
        let Size { word, bytes, .. } = self.h[exchange];
        let (word, samples) = (self.plan.words[word].bytes, self.schedule.samples(exchange));
        Point {
            h_bytes: TotalExchange::new(self.plan.p, word, bytes).h_bytes(),
            ns: samples.median(),
            ci95: samples.half_width(),
            samples: samples.len(),
        }
    }

    fn report(&self) {
        let rows = (0..self.plan.words.len())
            .filter(|&word| !self.rung(word, 0).is_empty())
            .map(|word| self.row(word))
            .collect();
        (self.watch)(&Progress { elapsed: self.schedule.elapsed(), time: self.plan.time, rows });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use lpf_core::machine::Growth;

    fn host() -> Host {
        let (name, cpu) = ("a".into(), "b".into());
        Host { name, cpu, memory_bytes: 1 << 30, last_cache_bytes: 1 << 20 }
    }

    fn plan(time: Duration) -> Plan {
        Plan::for_host(&host(), 4, Growth::SharedMemory, time, false)
    }

    /// Feeds a leader with the times of a machine that keeps the model exactly.
    fn exact_machine(g: f64, l: f64, noise: f64, time: Duration) -> (Vec<Row>, bool, usize) {
        let plan = plan(time);
        let h = sizes(&plan);
        let memcpy = [0.1; 4];
        let mut rounds = Rounds::new(&plan, &h, &memcpy, &|_| {}, &|| false);
        let (mut random, mut batches, mut before) = (super::super::Random::new(7), 0, None);
        while let Some(batch) = rounds.next(before) {
            let error = 1.0 + noise * (random.below(2001) as f64 / 1000.0 - 1.0);
            let ns = (g * h[batch.pattern].bytes as f64 + l) * error;
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
        let mut rounds = Rounds::new(&plan, &h, &[0.1; 4], &|_| {}, &|| false);
        let mut before = None;
        while let Some(batch) = rounds.next(before) {
            let bytes = h[batch.pattern].bytes;
            // One word of 8 bytes for each process costs one barrier, anything more costs two.
            let ns = if bytes <= 32 { 200.0 } else { 400.0 + 0.25 * bytes as f64 };
            before = Some(Timed { batch, ns });
        }
        let l: Vec<f64> = rounds.rows().iter().map(|row| row.l_ns).collect();
        assert!(l[..3].iter().all(|l| (l - 400.0).abs() < 8.0), "{l:?}");
        assert_eq!(l[3], 200.0, "lost in the milliseconds of words of 1 MiB");
    }

    #[test]
    fn between_processes_gets_and_data_that_travels_apart_make_the_latency() {
        let messages = Growth::MessagePassing;
        let plan = Plan::for_host(&host(), 4, messages, Duration::from_secs(60), false);
        let h = sizes(&plan);
        let measured = |get: f64, apart: f64| {
            let mut rounds = Rounds::new(&plan, &h, &[0.1; 4], &|_| {}, &|| false);
            let mut before = None;
            while let Some(batch) = rounds.next(before) {
                let Size { bytes, by_get, .. } = h[batch.pattern];
                let get = if by_get { get } else { 0.0 };
                let apart = if bytes > 16 << 10 { apart } else { 0.0 };
                before = Some(Timed { batch, ns: 8e3 + get + apart + 0.25 * bytes as f64 });
            }
            rounds.rows().iter().map(|row| row.l_ns).collect::<Vec<_>>()
        };
        let is = |l: f64, expected: f64| (l - expected).abs() < 0.02 * expected;
        assert!(measured(0.0, 0.0)[..3].iter().all(|&l| is(l, 8e3)));
        assert!(measured(6e3, 0.0)[..3].iter().all(|&l| is(l, 14e3)));
        // Words of 1 KiB reach so far while l is seen.
        assert!(is(measured(0.0, 9e3)[2], 17e3));
        assert!(is(measured(6e3, 9e3)[2], 17e3));
    }

    #[test]
    fn a_small_exchange_that_took_longer_than_the_largest_leaves_g_above_0_and_unknown() {
        let plan = plan(Duration::ZERO);
        let h = sizes(&plan);
        let mut rounds = Rounds::new(&plan, &h, &[0.1; 4], &|_| {}, &|| false);
        let mut before = None;
        while let Some(batch) = rounds.next(before) {
            let Size { word, bytes, .. } = h[batch.pattern];
            let ns = if bytes == rungs(plan.p, &plan.words[word])[0] { 1e6 } else { 5e6 };
            before = Some(Timed { batch, ns });
        }
        for row in rounds.rows() {
            assert!(row.g_ns_per_byte > 0.0 && row.g_ci95 == row.g_ns_per_byte, "{row:?}");
        }
    }

    #[test]
    fn a_small_exchange_whose_first_superstep_takes_long_has_enough_samples_after_a_short_time() {
        // A minute, of which five seconds pass by the clock of the machine below.
        let minute = Duration::from_secs(60);
        let plan = Plan::for_host(&host(), 2, Growth::SharedMemory, minute, true);
        let h = sizes(&plan);
        let mut fewest = Vec::new();
        for seed in 0..20 {
            let mut rounds = Rounds::new(&plan, &h, &[0.1; 4], &|_| {}, &|| false);
            let mut random = super::super::Random::new(seed);
            let (mut is_new, mut clock, mut before) = (vec![true; h.len()], 0.0, None);
            while let Some(batch) = rounds.next(before).filter(|_| clock < 5e9) {
                let Size { word, bytes, .. } = h[batch.pattern];
                let is_first = std::mem::take(&mut is_new[batch.pattern]) && bytes > 64 << 10;
                let noise = 0.7 + 0.6 * random.fraction();
                let g = [2.7, 0.54, 0.11, 0.06][word];
                let ns = if is_first { 5e7 } else { noise * (200.0 + g * bytes as f64) };
                before = Some(Timed { batch, ns });
                clock += cost(ns);
            }
            let small =
                (0..4).flat_map(|word| (0..rounds.octaves()).map(move |place| (word, place)));
            let small = small.filter(|&(word, place)| rounds.is_used(word, place));
            let small = small.map(|(word, place)| rounds.samples_of(word, place).len());
            fewest.push(small.min().unwrap());
        }
        assert!(fewest.iter().all(|&samples| samples >= ROBUST), "{fewest:?}");
    }

    #[test]
    fn when_the_time_is_up_everything_has_one_sample() {
        let (rows, narrow, batches) = exact_machine(0.25, 400.0, 0.1, Duration::ZERO);
        assert!(!narrow);
        assert!(rows.iter().all(|row| row.samples >= 4 && row.g_ns_per_byte > 0.0));
        assert!(batches < 100, "{batches}");
    }
}
