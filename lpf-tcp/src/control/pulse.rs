//! Heartbeats: who has given no sign of life for how many of this process's own ticks.
//!
//! Time is counted in ticks of this process, not in time since a beat: a process that was stopped, or
//! did not get a core, ticks late, and its late tick clears all counts. So a machine that sleeps or is
//! overloaded accuses nobody, and beats that came meanwhile are looked at before anything is counted.

use std::time::{Duration, Instant};

/// From one tick to the next.
pub const BEAT: Duration = Duration::from_millis(250);

/// The number of beats without a sign of life after which a process is taken for dead.
///
/// An outage of 1.5 s must not be taken for a death. The first beat after it arrives up to 2.1 s after the
/// last one before it: 0.25 s from beat to beat, and up to 0.35 s until TCP sends again (see
/// `Wire::lives_through_outages`). A host whose own link was down looks up its neighbours once a second, so
/// that its first beat after an outage of one second may arrive after 2.3 s.
pub const MISSED: u32 = 10;

/// A tick that comes this much late clears all counts.
pub(crate) const LATE: Duration = Duration::from_millis(250);

/// Whether processes beat. Process 0 decides for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beats {
    /// A process that says nothing for [`MISSED`] times [`BEAT`] is dead.
    #[default]
    On,
    /// Only a closed connection is a death, so that a debugger may stop a process
    /// (`LPF_HEARTBEAT=off`). A pulled cable is then not seen.
    Off,
}

/// The ticks of one process, and what it heard of others.
#[derive(Debug)]
pub(crate) struct Pulse {
    beats: Beats,
    due: Instant,
    /// Of each peer, ticks without a sign of life; `None` where nobody has to give one.
    silence: Vec<Option<u32>>,
}

impl Pulse {
    /// Listens to peers 0 to `peers - 1`.
    pub(crate) fn new(beats: Beats, peers: usize, now: Instant) -> Self {
        Pulse { beats, due: now + BEAT, silence: vec![Some(0); peers] }
    }

    /// When the next tick is due.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Something came from a peer.
    pub(crate) fn heard(&mut self, peer: usize) {
        if let Some(ticks) = &mut self.silence[peer] {
            *ticks = 0;
        }
    }

    /// Listens to this peer no more.
    pub(crate) fn forget(&mut self, peer: usize) {
        self.silence[peer] = None;
    }

    /// Whether this process has to beat.
    pub(crate) fn beats(&self) -> bool {
        self.beats == Beats::On
    }

    /// Once `due` has come, and all that has come was heard: the peers that are silent for too long.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<usize> {
        let late = now.saturating_duration_since(self.due) > LATE;
        // A tick that is a little late does not delay those that follow.
        self.due = if late { now } else { self.due } + BEAT;
        if self.beats == Beats::Off {
            return Vec::new();
        }
        for ticks in self.silence.iter_mut().flatten() {
            *ticks = if late { 0 } else { *ticks + 1 };
        }
        // The first of these ticks may come right after the last sign of life.
        let silent = |ticks: &Option<u32>| ticks.is_some_and(|ticks| ticks > MISSED);
        (0..self.silence.len()).filter(|&peer| silent(&self.silence[peer])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_time(pulse: &mut Pulse) -> Vec<usize> {
        let due = pulse.due();
        pulse.tick(due + Duration::from_millis(3))
    }

    #[test]
    fn silence_is_declared_after_the_time_that_is_reported_and_not_earlier() {
        let mut pulse = Pulse::new(Beats::On, 3, Instant::now());
        pulse.forget(2);
        // Peer 0 was heard right before this tick.
        let heard = pulse.due();
        for _ in 0..MISSED {
            assert!(on_time(&mut pulse).is_empty());
            pulse.heard(1);
        }
        let declared = pulse.due();
        assert_eq!(on_time(&mut pulse), [0]);
        let silence = declared - heard;
        assert!(silence >= MISSED * BEAT && silence < Duration::from_secs(3), "{silence:?}");
    }

    #[test]
    fn a_late_tick_clears_all_counts() {
        let mut pulse = Pulse::new(Beats::On, 1, Instant::now());
        for _ in 0..20 {
            for _ in 0..MISSED {
                assert!(on_time(&mut pulse).is_empty());
            }
            let due = pulse.due();
            assert!(pulse.tick(due + LATE + Duration::from_millis(1)).is_empty());
        }
    }

    #[test]
    fn without_beats_nobody_is_missed() {
        let mut pulse = Pulse::new(Beats::Off, 1, Instant::now());
        assert!((0..100).all(|_| on_time(&mut pulse).is_empty()));
    }
}
