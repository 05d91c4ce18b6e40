//! Heartbeats: who has given no sign of life for how many of this process's own ticks.
//!
//! Time is counted in ticks of this process, not in time since a beat: a process that was stopped, or
//! did not get a core, ticks late, and its late tick clears all counts. So a machine that sleeps or is
//! overloaded accuses nobody, and beats that came meanwhile are looked at before anything is counted.

use std::time::{Duration, Instant};

use super::hurry::Hurry;

/// From one beat to the next.
pub const BEAT: Duration = Duration::from_millis(250);

/// A process that gives no sign of life for so long is taken for dead.
///
/// All others must know of a death within 3 s, and an outage of 1.5 s must not be taken for one. A beat that
/// the outage has held back arrives:
///
/// | the link that was down | the first beat arrives, after the last one before the outage |
/// |---|---|
/// | of another host, or between switches | up to 2.15 s: 0.25 s from beat to beat, 1.5 s, up to 0.4 s until TCP sends again (`Wire::lives_through_outages`) |
/// | of this host itself | up to 2.25 s: the system forgets its neighbours, and looks them up (ARP) when the next beat is due and 1 s and 2 s after that |
///
/// The rest is for processes that get no core when they should.
pub const SILENCE: Duration = Duration::from_millis(2750);

/// From one tick to the next. Every second tick is a beat; silence is found at most one tick late.
pub(crate) const TICK: Duration = Duration::from_millis(125);

/// As many ticks as [`SILENCE`] takes.
pub(crate) const MISSED: u32 = (SILENCE.as_millis() / TICK.as_millis()) as u32;

/// A tick that comes this much late clears all counts.
pub(crate) const LATE: Duration = Duration::from_millis(250);

/// Whether processes beat. Process 0 decides for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beats {
    /// A process that says nothing for [`SILENCE`] is dead.
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
    /// Whether the latest tick on time was a beat, as every second one is.
    is_even: bool,
    /// Whether it is the one that has just come.
    is_beat: bool,
    hurry: Hurry,
    /// Of each peer, ticks without a sign of life; `None` where nobody has to give one.
    silence: Vec<Option<u32>>,
}

impl Pulse {
    /// Listens to peers 0 to `peers - 1`.
    pub(crate) fn new(beats: Beats, peers: usize, now: Instant) -> Self {
        Pulse {
            beats,
            due: now + TICK,
            is_even: false,
            is_beat: false,
            hurry: Hurry::new(peers),
            silence: vec![Some(0); peers],
        }
    }

    /// When the next tick or hurried beat is due.
    pub(crate) fn due(&self) -> Instant {
        self.hurry.due().map_or(self.due, |hurry| hurry.min(self.due))
    }

    /// Something came from a peer.
    pub(crate) fn heard(&mut self, peer: usize) {
        if let Some(ticks) = &mut self.silence[peer] {
            *ticks = 0;
        }
    }

    /// What is sent to a peer now and gets lost, TCP sends again after `time_out`.
    pub(crate) fn note_path(&mut self, peer: usize, time_out: Duration, now: Instant) {
        if self.beats == Beats::On && self.silence[peer].is_some() {
            self.hurry.note(peer, time_out, now);
        }
    }

    /// Listens to this peer no more.
    pub(crate) fn forget(&mut self, peer: usize) {
        self.silence[peer] = None;
        self.hurry.note(peer, Duration::ZERO, self.due);
    }

    /// The peers to which a hurried beat is due.
    pub(crate) fn hurried(&mut self, now: Instant) -> Vec<usize> {
        self.hurry.beats(now)
    }

    /// Whether this process has to beat at this tick.
    pub(crate) fn beats(&self) -> bool {
        self.beats == Beats::On && self.is_beat
    }

    /// Once `due` has come, and all that has come was heard: the peers that are silent for too long.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<usize> {
        self.is_beat = false;
        if now < self.due {
            return Vec::new();
        }
        let late = now.saturating_duration_since(self.due) > LATE;
        // A tick that is a little late does not delay those that follow.
        self.due = if late { now } else { self.due } + TICK;
        self.is_even = late || !self.is_even;
        self.is_beat = self.is_even;
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
        // If it was heard right after the tick before, one tick more has passed.
        let silence = declared - heard;
        assert!(silence >= SILENCE, "{silence:?}");
        assert!(silence + TICK < Duration::from_secs(3), "{silence:?}");
    }

    #[test]
    fn every_second_tick_is_a_beat_and_so_is_a_late_one() {
        let mut pulse = Pulse::new(Beats::On, 1, Instant::now());
        let mut beats = || {
            on_time(&mut pulse);
            pulse.beats()
        };
        assert_eq!([beats(), beats(), beats()], [true, false, true]);
        assert_eq!(2 * TICK, BEAT);
        for _ in 0..2 {
            pulse.tick(pulse.due() + LATE + Duration::from_millis(1));
            assert!(pulse.beats());
        }
    }

    #[test]
    fn hurried_beats_count_no_silence() {
        let mut pulse = Pulse::new(Beats::On, 2, Instant::now());
        let mut now = pulse.due();
        pulse.note_path(1, Duration::from_secs(2), now);
        let mut hurried = Vec::new();
        let end = pulse.due + 8 * TICK;
        while pulse.due < end {
            now = pulse.due();
            hurried.append(&mut pulse.hurried(now));
            assert!(pulse.tick(now).is_empty());
        }
        assert_eq!(pulse.silence, [Some(8); 2]);
        assert!(hurried.len() > 20 && hurried.iter().all(|&peer| peer == 1), "{hurried:?}");
        pulse.note_path(1, Duration::from_millis(200), now);
        pulse.note_path(1, Duration::from_secs(2), now);
        pulse.forget(1);
        assert_eq!(pulse.hurried(now + TICK), []);
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
