//! Medians and their intervals.
//!
//! The paper takes means over days. On a shared machine, a mean over minutes depends on the few samples in which another
//! program had the core. So the statistic here is the median. Its 95 % interval lies between two order statistics,
//! which needs no assumption about the distribution.

use serde::{Deserialize, Serialize};

/// Samples of one quantity.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Samples {
    sorted: Vec<f64>,
}

/// The fewest samples that bound a median with 95 %: all on one side has probability 2/2^6.
pub(super) const FEWEST: usize = 6;

/// The fewest samples whose interval leaves out the smallest and the largest one: one disturbance does not widen it.
pub(super) const ROBUST: usize = 11;

impl Samples {
    /// Adds one. O(n): kept in order.
    pub fn push(&mut self, value: f64) {
        let at = self.sorted.partition_point(|&other| other < value);
        self.sorted.insert(at, value);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The median; 0 if there are no samples.
    pub fn median(&self) -> f64 {
        let n = self.sorted.len();
        match n {
            0 => 0.0,
            _ if n % 2 == 1 => self.sorted[n / 2],
            _ => (self.sorted[n / 2 - 1] + self.sorted[n / 2]) / 2.0,
        }
    }

    /// The smallest; 0 if there are no samples.
    pub fn min(&self) -> f64 {
        self.sorted.first().copied().unwrap_or(0.0)
    }

    /// The largest; 0 if there are no samples.
    pub fn max(&self) -> f64 {
        self.sorted.last().copied().unwrap_or(0.0)
    }

    /// The 95 % interval of the median; `None` for fewer than six samples.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let n = self.sorted.len();
        if n < FEWEST {
            return None;
        }
        // The number of samples below the median is binomial(n, 1/2).
        let (middle, spread) = (n as f64 / 2.0, 1.96 * (n as f64).sqrt() / 2.0);
        let low = (middle - spread).floor().max(1.0) as usize - 1;
        let high = ((middle + spread).ceil() as usize).min(n - 1);
        Some((self.sorted[low], self.sorted[high]))
    }

    /// Half the interval's width; the median itself (100 %) if there is no interval.
    pub fn half_width(&self) -> f64 {
        self.interval().map_or(self.median(), |(low, high)| (high - low) / 2.0)
    }
}

impl Extend<f64> for Samples {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Samples { sorted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_stands_in_the_middle_whatever_the_outliers() {
        let samples: Samples = [3.0, 1.0, 2.0, 1e9].into_iter().collect();
        assert_eq!(samples.median(), 2.5);
        assert_eq!((samples.min(), samples.max()), (1.0, 1e9));
    }

    #[test]
    fn pushed_and_collected_samples_are_the_same() {
        let values = [5.0, 4.0, 9.0, 1.0, 7.0, 7.0, 2.0];
        let mut pushed = Samples::default();
        values.iter().for_each(|&v| pushed.push(v));
        assert_eq!(pushed.sorted, values.into_iter().collect::<Samples>().sorted);
    }

    #[test]
    fn few_samples_have_no_interval_and_say_so_by_its_width() {
        let samples: Samples = [2.0; 5].into_iter().collect();
        assert_eq!(samples.interval(), None);
        assert_eq!(samples.half_width(), 2.0);
    }

    #[test]
    fn one_disturbed_sample_of_eleven_does_not_widen_the_interval() {
        let disturbed = |n: usize| {
            let samples: Samples = (1..n).map(|_| 1.0).chain([1e3]).collect();
            samples.half_width() > 0.0
        };
        assert!(disturbed(ROBUST - 1) && !disturbed(ROBUST));
    }

    #[test]
    fn the_interval_covers_the_median_of_the_distribution_about_95_times_in_100() {
        // Uniform on 0..1 has median 1/2.
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for n in [6, 7, 20, 101] {
            let covered = (0..2000)
                .filter(|_| {
                    let samples: Samples = (0..n).map(|_| uniform()).collect();
                    let (low, high) = samples.interval().unwrap();
                    low <= 0.5 && 0.5 <= high
                })
                .count();
            assert!(covered >= 1880, "n = {n}: {covered} of 2000");
        }
    }
}
