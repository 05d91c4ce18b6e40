//! Beats in quick succession, which follow an outage of a link.
//!
//! What a process sends while its system looks up its neighbours arrives up to 2 s late, and TCP takes that for the
//! length of the path. In the next outage TCP would send again only after as much: at four beats a second it needs
//! five seconds to forget. Each beat that arrives in time makes its error smaller by about a quarter.

use std::time::{Duration, Instant};

/// From one hurried beat to the next.
const STEP: Duration = Duration::from_millis(20);

/// For so long: the look-up takes up to 1 s after the outage, so at least 30 beats arrive in time.
const TIME: Duration = Duration::from_millis(1600);

/// The hurried beats that are left for each peer.
#[derive(Debug)]
pub(crate) struct Hurry {
    left: Vec<u32>,
    /// When the next ones are due; `None` if no peer needs any.
    due: Option<Instant>,
}

impl Hurry {
    pub(crate) fn new(peers: usize) -> Self {
        Hurry { left: vec![0; peers], due: None }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A peer was cut off, and its first hurried beat is due.
    pub(crate) fn begin(&mut self, peer: usize, due: Instant) {
        self.left[peer] = (TIME.as_millis() / STEP.as_millis()) as u32;
        self.due.get_or_insert(due);
    }

    /// A peer needs no beats any more.
    pub(crate) fn end(&mut self, peer: usize) {
        self.left[peer] = 0;
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
    fn each_peer_gets_its_beats_and_then_none_are_due() {
        let mut hurry = Hurry::new(3);
        assert_eq!(hurry.due(), None);
        let begin = Instant::now();
        hurry.begin(1, begin);
        let mut counts = [0; 3];
        let mut last = begin;
        while let Some(due) = hurry.due() {
            assert_eq!(hurry.beats(due - STEP / 2), []);
            for peer in hurry.beats(due) {
                counts[peer] += 1;
                last = due;
            }
            if counts == [0, 10, 0] {
                hurry.begin(2, due);
            }
        }
        assert_eq!(counts, [0, 80, 80]);
        assert_eq!(last - begin, 89 * STEP);
        hurry.begin(0, begin);
        hurry.end(0);
        assert_eq!(hurry.beats(begin), []);
        assert_eq!(hurry.due(), None);
    }
}
