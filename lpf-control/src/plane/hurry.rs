//! Beats in quick succession, while TCP takes a path for longer than it is.
//!
//! What a process sends while its system looks up its neighbours arrives up to 2 s late, when a job begins and after an
//! outage of its link, and TCP takes that for the length of the path. What is lost then would be sent again only after
//! as much, and four beats a second need five seconds to correct it. Each beat that is acknowledged in time makes the
//! error smaller by about a quarter.

use std::time::{Duration, Instant};

/// From one hurried beat to the next.
const STEP: Duration = Duration::from_millis(20);

/// Hurried beats in a row. If a path really is as long as TCP estimates, more of them would not change the estimate.
const BEATS: u32 = 80;

/// Beats are hurried when TCP sends again after more than this. On short paths it does so after 0.2 s.
const LONG: Duration = Duration::from_millis(400);

/// The hurried beats that are left for each peer.
#[derive(Debug)]
pub(crate) struct Hurry {
    left: Vec<u32>,
    /// Whether the path to it was too long, as TCP said last.
    is_long: Vec<bool>,
    /// When the next ones are due; `None` if no peer needs any.
    due: Option<Instant>,
}

impl Hurry {
    pub(crate) fn new(peers: usize) -> Self {
        Hurry { left: vec![0; peers], is_long: vec![false; peers], due: None }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// TCP would send again to a peer after `time_out`.
    pub(crate) fn note(&mut self, peer: usize, time_out: Duration, now: Instant) {
        let is_long = time_out > LONG;
        let was_long = std::mem::replace(&mut self.is_long[peer], is_long);
        if !is_long {
            self.left[peer] = 0;
        } else if !was_long {
            self.left[peer] = BEATS;
            self.due.get_or_insert(now);
        }
    }

    /// The peers to which a beat is due now.
    pub(crate) fn beats(&mut self, now: Instant) -> Vec<usize> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        let peers: Vec<usize> = (0..self.left.len()).filter(|&peer| self.left[peer] > 0).collect();
        peers.iter().for_each(|&peer| self.left[peer] -= 1);
        self.due = (!peers.is_empty()).then(|| now + STEP);
        peers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_on_a_long_path_gets_its_beats_and_then_none_are_due() {
        let mut hurry = Hurry::new(3);
        let begin = Instant::now();
        hurry.note(0, LONG, begin);
        assert_eq!(hurry.due(), None);
        hurry.note(1, 2 * LONG, begin);
        let mut counts = [0; 3];
        let mut last = begin;
        while let Some(due) = hurry.due() {
            assert_eq!(hurry.beats(due - STEP / 2), []);
            for peer in hurry.beats(due) {
                counts[peer] += 1;
                last = due;
            }
            assert!(counts[1] <= BEATS, "no end of beats");
            hurry.note(1, 2 * LONG, due);
            if counts[1] >= 10 {
                hurry.note(2, 2 * LONG, due);
            }
        }
        assert_eq!(counts, [0, BEATS, BEATS]);
        assert_eq!(last - begin, (BEATS + 9) * STEP);
    }

    #[test]
    fn beats_end_when_the_path_is_short_and_begin_when_it_is_long_again() {
        let mut hurry = Hurry::new(1);
        let now = Instant::now();
        for _ in 0..2 {
            hurry.note(0, 2 * LONG, now);
            assert_eq!(hurry.due(), Some(now));
            assert_eq!(hurry.beats(now), [0]);
            hurry.note(0, LONG / 2, now);
            assert_eq!(hurry.beats(now + STEP), []);
            assert_eq!(hurry.due(), None);
        }
    }
}
