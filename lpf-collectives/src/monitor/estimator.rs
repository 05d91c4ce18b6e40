//! Estimating the next of a series of numbers.

use std::collections::VecDeque;

/// Estimates the next number of a series. A monitor uses it for the length of phases, and for the ratio of that
/// length to the time before the edge.
pub trait Estimator {
    /// Another number of the series.
    fn add(&mut self, value: f64);

    /// The next one; `None` if it cannot be estimated.
    fn estimate(&self) -> Option<f64>;
}

/// The last number.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastValue(Option<f64>);

impl Estimator for LastValue {
    fn add(&mut self, value: f64) {
        self.0 = Some(value);
    }

    fn estimate(&self) -> Option<f64> {
        self.0
    }
}

/// The mean of the last few: a simple moving average.
#[derive(Clone, Debug)]
pub struct MovingAverage {
    most: usize,
    last: VecDeque<f64>,
}

impl MovingAverage {
    /// Of the last `window` numbers, at least 1.
    pub fn new(window: usize) -> Self {
        MovingAverage { most: window.max(1), last: VecDeque::new() }
    }
}

impl Default for MovingAverage {
    /// Of 8.
    fn default() -> Self {
        Self::new(8)
    }
}

impl Estimator for MovingAverage {
    fn add(&mut self, value: f64) {
        if self.last.len() == self.most {
            self.last.pop_front();
        }
        self.last.push_back(value);
    }

    fn estimate(&self) -> Option<f64> {
        (!self.last.is_empty()).then(|| self.last.iter().sum::<f64>() / self.last.len() as f64)
    }
}

/// An exponential average: each number moves it by a part of the difference.
#[derive(Clone, Copy, Debug)]
pub struct Exponential {
    part: f64,
    value: Option<f64>,
}

impl Exponential {
    /// By this part, from 0 to 1: with 1 it is the last value.
    pub fn new(part: f64) -> Self {
        Exponential { part: part.clamp(0.0, 1.0), value: None }
    }
}

impl Estimator for Exponential {
    fn add(&mut self, value: f64) {
        let before = self.value.unwrap_or(value);
        self.value = Some(before + self.part * (value - before));
    }

    fn estimate(&self) -> Option<f64> {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(mut estimator: impl Estimator, values: &[f64]) -> Option<f64> {
        values.iter().for_each(|&value| estimator.add(value));
        estimator.estimate()
    }

    #[test]
    fn estimators_estimate_what_they_say() {
        for empty in [after(LastValue::default(), &[]), after(MovingAverage::new(3), &[])] {
            assert_eq!(empty, None);
        }
        assert_eq!(after(Exponential::new(0.5), &[]), None);
        let values = [9.0, 1.0, 2.0, 6.0];
        assert_eq!(after(LastValue::default(), &values), Some(6.0));
        assert_eq!(after(MovingAverage::new(3), &values), Some(3.0));
        assert_eq!(after(MovingAverage::new(0), &values), Some(6.0));
        assert_eq!(after(Exponential::new(0.5), &values), Some(4.75));
        assert_eq!(after(Exponential::new(7.0), &values), Some(6.0));
    }
}
