//! How long a process waits for the others.
//!
//! How long a rendezvous takes depends on the load of the machines. So the time limit is one for a rendezvous without
//! progress: it begins anew with each step. Process 0 counts the steps, and sends their number to the others, so that
//! all give up at about the same time.
//!
//! The number of steps is bounded, and only a number that was never reached before counts. So each wait has an end, even
//! if a process joins and leaves again and again.

use std::time::{Duration, Instant};

use lpf_messages::Rank;

/// The instant `within` later; a hundred years later if the clock cannot count that far.
pub fn deadline(from: Instant, within: Duration) -> Instant {
    const YEARS: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    from.checked_add(within).unwrap_or_else(|| from + YEARS)
}

#[derive(Debug)]
pub(super) struct Patience {
    time: Duration,
    deadline: Instant,
    /// The most steps that were done at any time so far,
    done: u64,
    /// and the number of all steps.
    all: u64,
}

/// The steps that a process which has arrived contributes: its arrival, its connections, and that it has all.
pub(super) fn steps(connected: Rank, is_ready: bool) -> u64 {
    1 + connected as u64 + u64::from(is_ready)
}

impl Patience {
    /// Of a process of `size` that began to wait then, and gives up after this time without a step.
    pub(super) fn new(began: Instant, time: Duration, size: Rank) -> Self {
        let others = size.saturating_sub(1);
        let all = others as u64 * steps(others, true);
        Patience { time, deadline: deadline(began, time), done: 0, all }
    }

    /// When to give up.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The most steps that were done at any time.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// This number of steps is done now. True if that is progress: the time begins anew.
    pub(super) fn advance(&mut self, done: u64, now: Instant) -> bool {
        let is_progress = done > self.done && done <= self.all;
        if is_progress {
            (self.done, self.deadline) = (done, deadline(now, self.time));
        }
        is_progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_begins_anew_with_each_step_and_no_more_often() {
        let (began, time) = (Instant::now(), Duration::from_secs(30));
        let mut patience = Patience::new(began, time, 3);
        let later = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(patience.deadline(), later(30));
        assert!(patience.advance(2, later(20)));
        assert_eq!(patience.deadline(), later(50));
        // One process left, and another arrived.
        for done in [1, 2] {
            assert!(!patience.advance(done, later(40)));
        }
        // Two processes with two connections each.
        let all = 2 * steps(2, true);
        assert!(!patience.advance(all + 1, later(40)));
        assert_eq!(patience.deadline(), later(50));
        assert!(patience.advance(all, later(40)));
        assert_eq!(patience.deadline(), later(70));
    }
}
