//! How many batches a round of a case has, so that the whole ends in time.

use std::time::Duration;

use super::patterns::Kind;

/// What is known of a case's rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Batches of a round where there is time.
    most: usize,
    /// Of the last round, all that belongs to it shared out.
    per_batch: Option<Duration>,
}

impl Pace {
    pub(super) fn new(kind: Kind) -> Self {
        Pace { most: if matches!(kind, Kind::Bulk(_)) { 5 } else { 20 }, per_batch: None }
    }

    /// Batches of the next round if it may take this long. The first always has one: without it
    /// there is no row.
    pub(super) fn next(&self, time: Duration) -> usize {
        let Some(per_batch) = self.per_batch else { return 1 };
        ((time.as_secs_f64() / per_batch.as_secs_f64()) as usize).min(self.most)
    }

    /// A round of so many batches took so long.
    pub(super) fn note(&mut self, batches: usize, took: Duration) {
        self.per_batch = Some(took.div_f64(batches as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_round_that_would_not_end_in_time_does_not_begin_but_for_the_first() {
        let mut pace = Pace::new(Kind::Sync);
        assert_eq!(pace.next(Duration::ZERO), 1);
        pace.note(1, 30 * MS);
        assert_eq!(pace.next(29 * MS), 0);
        assert_eq!(pace.next(95 * MS), 3);
        assert_eq!(pace.next(1000 * MS), 20);
        pace.note(20, 40 * MS);
        assert_eq!(pace.next(29 * MS), 14);
    }
}
