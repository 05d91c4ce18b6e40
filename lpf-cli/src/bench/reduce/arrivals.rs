//! When processes arrive, and the predictions of it (Proficz 2018, Fig. 9).

use std::path::Path;

use lpf::measure::Random;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::given::{text, whole};
use crate::output::named;

/// How arrivals are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// All together.
    None,
    /// Process 1 alone is late, by the whole delay.
    OneLate,
    /// Anybody by any part of the delay, anew in every repetition.
    Random,
    /// In the order of processes, the last by the whole delay.
    Ascending,
    /// Every other process is late by the whole delay.
    Bimodal,
    /// As a file says.
    Trace,
}

impl Pattern {
    pub(crate) const ALL: [Self; 6] = [
        Pattern::None,
        Pattern::OneLate,
        Pattern::Random,
        Pattern::Ascending,
        Pattern::Bimodal,
        Pattern::Trace,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Pattern::None => "none",
            Pattern::OneLate => "one-late",
            Pattern::Random => "random",
            Pattern::Ascending => "ascending",
            Pattern::Bimodal => "bimodal",
            Pattern::Trace => "trace",
        }
    }

    /// Whether there is a delay to it.
    pub(super) fn has_delay(self) -> bool {
        !matches!(self, Pattern::None | Pattern::Trace)
    }

    /// When each of p processes arrives in a repetition, ns after the start.
    pub(super) fn arrivals(
        self,
        p: usize,
        delay_ns: u64,
        trace: &[Vec<u64>],
        (repetition, random): (usize, &mut Random),
    ) -> Vec<u64> {
        let mut of = |process: usize| match self {
            Pattern::None => 0,
            Pattern::OneLate => delay_ns * u64::from(process == 1.min(p - 1)),
            Pattern::Random => (random.fraction() * delay_ns as f64) as u64,
            Pattern::Ascending => delay_ns * process as u64 / (p as u64 - 1).max(1),
            Pattern::Bimodal => delay_ns * (process as u64 % 2),
            Pattern::Trace => trace[repetition % trace.len()][process],
        };
        (0..p).map(&mut of).collect()
    }
}

/// Predictions of arrivals, each wrong by up to this percentage of itself.
pub(super) fn predicted(arrivals: &[u64], percent: u32, random: &mut Random) -> Vec<u64> {
    let wrong = |&arrival: &u64| {
        let by = (2.0 * random.fraction() - 1.0) * f64::from(percent) / 100.0;
        (arrival as f64 * (1.0 + by)) as u64
    };
    arrivals.iter().map(wrong).collect()
}

/// The most a process may be late, ns: an hour.
const MOST: u64 = 3_600_000_000_000;

/// A recorded trace: a list of repetitions, each a list of when each of p processes arrives, ns.
pub(super) fn trace(path: &Path, p: usize) -> Result<Vec<Vec<u64>>> {
    let shown = named(path.display());
    let text = text("--trace", path, "a list of lists, [[0, 1500, ...], ...]")?;
    let rows: Vec<Vec<Value>> = serde_json::from_str(&text).map_err(|error| {
        Failure::Usage(format!(
            "--trace {shown} is not a list of lists of whole numbers, [[0, 1500, ...], ...]: {error}"
        ))
    })?;
    let wrong = |what: String| Failure::Usage(format!("--trace {shown} cannot be used: {what}"));
    if rows.is_empty() {
        return Err(wrong("it has no repetition".into()));
    }
    if let Some(nth) = rows.iter().position(|row| row.len() != p) {
        let text = format!("row {nth} has {} times for {p} processes", rows[nth].len());
        return Err(wrong(text));
    }
    let numbers = |(nth, row): (usize, &Vec<Value>)| {
        let of = |(process, value)| whole(&format!("[{nth}][{process}]"), value).map_err(wrong);
        row.iter().enumerate().map(of).collect::<Result<Vec<u64>>>()
    };
    let rows = rows.iter().enumerate().map(numbers).collect::<Result<Vec<_>>>()?;
    if let Some(late) = rows.iter().flatten().find(|&&late| late > MOST) {
        return Err(wrong(format!("a process is {late} ns late; the most is an hour")));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_what_they_are_called() {
        let mut random = Random::new(1);
        let trace = [vec![5, 6, 7], vec![1, 2, 3]];
        let mut of = |pattern: Pattern, p| pattern.arrivals(p, 30, &trace, (3, &mut random));
        assert_eq!(of(Pattern::None, 3), [0; 3]);
        assert_eq!(of(Pattern::OneLate, 3), [0, 30, 0]);
        assert_eq!(of(Pattern::OneLate, 1), [30]);
        assert_eq!(of(Pattern::Ascending, 4), [0, 10, 20, 30]);
        assert_eq!(of(Pattern::Ascending, 1), [0]);
        assert_eq!(of(Pattern::Bimodal, 3), [0, 30, 0]);
        assert_eq!(of(Pattern::Trace, 3), [1, 2, 3]);
        let (one, other) = (of(Pattern::Random, 9), of(Pattern::Random, 9));
        assert!(one != other && one.iter().all(|&late| late <= 30));
    }

    #[test]
    fn predictions_are_wrong_by_no_more_than_is_allowed() {
        let (arrivals, mut random) = (vec![0, 1000, 2000], Random::new(2));
        assert_eq!(predicted(&arrivals, 0, &mut random), arrivals);
        for _ in 0..100 {
            let predicted = predicted(&arrivals, 10, &mut random);
            assert!(predicted[0] == 0 && predicted[1].abs_diff(1000) <= 100, "{predicted:?}");
        }
    }
}
