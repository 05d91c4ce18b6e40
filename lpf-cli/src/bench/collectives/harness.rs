//! How a collective is timed, the same for ours, for MPI's own and for bare messages.
//!
//! Before each repetition every process rewrites what it contributes and reads what it got, untimed: no
//! side finds bytes in its own cache that a program would have to fetch. Then all meet, process 0 names a
//! moment soon after, and all wait for that moment: the common start. The time of the repetition is from
//! there to the last exit from the collective, on the clock that all processes of a host share.
//!
//! Where a process comes late to the start (something else had its core), the others have a head start. Such
//! a repetition is counted from when the first of them went, and only if there is no other: it says how
//! late somebody was, rather than how long the collective takes.
//!
//! After an interrupt process 0 names no further start, so the measurement ends after the repetition under way.

use serde::{Deserialize, Serialize};

use crate::interrupt;

/// One process of one side.
pub(in crate::bench) trait Side {
    /// The owner's part of a repetition: it rewrites its sources and reads its destinations.
    fn touch(&mut self, value: f64);

    /// Returns when all processes have called it.
    fn meet(&mut self) -> lpf::Result<()>;

    /// What process 0 says, at all.
    fn tell(&mut self, word: u64) -> lpf::Result<u64>;

    /// What is timed.
    fn act(&mut self) -> lpf::Result<()>;

    /// The words of all, by process, at process 0; anything elsewhere. As many at every process.
    fn gather(&mut self, own: &[u64]) -> lpf::Result<Vec<u64>>;
}

/// How often, and how.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Pacing {
    pub(in crate::bench) repetitions: u32,
    /// Before those that are timed.
    pub(in crate::bench) warm_up: u32,
    /// From when process 0 knows that all are there to the common start, at the least: it is longer where
    /// telling the others took longer the time before.
    pub(in crate::bench) window_ns: u64,
    /// Whether processes share cores: who waits lets others have it.
    pub(in crate::bench) oversubscribed: bool,
}

/// Most repetitions, warm-up included, that fit a process's notes.
pub(in crate::bench) const MOST: usize = 64;
/// Words that a process notes of each: the start, when it was ready, when it had done.
const NOTES: usize = 3;
/// How many times longer than it has to be a window may become.
const LONGEST: u64 = 4;
/// Words of all notes.
pub(in crate::bench) const NOTED: usize = MOST * NOTES;

/// Repetitions of one thing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::bench) struct Timed {
    /// Nanoseconds of each.
    pub(in crate::bench) ns: Vec<f64>,
    /// Of those to which somebody came late.
    pub(in crate::bench) late: Vec<f64>,
    /// Nanoseconds that one took with all that belongs to it and is not timed.
    pub(in crate::bench) each_ns: f64,
}

/// The common start that process 0 names, at least this long from now; none after an interrupt. Collective.
pub(in crate::bench) fn start(side: &mut impl Side, window_ns: u64) -> lpf::Result<Option<u64>> {
    let start = if interrupt::came() { 0 } else { now_ns() + window_ns };
    Ok(Some(side.tell(start)?).filter(|&start| start > 0))
}

/// Times a side. Collective; what it returns has a meaning at process 0. After an interrupt there may be fewer
/// repetitions than were asked for, or none.
pub(in crate::bench) fn time(side: &mut impl Side, pacing: &Pacing) -> lpf::Result<Timed> {
    let Pacing { repetitions, warm_up, window_ns, oversubscribed } = *pacing;
    let mut notes = Vec::with_capacity(NOTED);
    let all = warm_up.saturating_add(repetitions).min(MOST as u32);
    let (mut begin, mut telling) = (now_ns(), 0);
    for nth in 0..all {
        if nth == warm_up {
            begin = now_ns();
        }
        side.touch(f64::from(nth + 1));
        side.meet()?;
        let met = now_ns();
        let window_ns = window_ns.max(2 * telling).min(LONGEST * window_ns);
        let Some(start) = start(side, window_ns)? else { break };
        let ready = now_ns();
        telling = ready - met;
        while now_ns() < start {
            if oversubscribed {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        side.act()?;
        if nth >= warm_up {
            notes.extend([start, ready, now_ns()]);
        }
    }
    let counted = notes.len() / NOTES;
    let each_ns = (now_ns() - begin) as f64 / counted.max(1) as f64;
    notes.resize(NOTED, 0);
    let notes = side.gather(&notes)?;
    let (ns, late) = counts(&notes, counted);
    Ok(Timed { ns, late, each_ns })
}

/// The times of so many repetitions, from the notes of all, and those to which somebody came late.
fn counts(notes: &[u64], repetitions: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut in_time, mut late) = (Vec::new(), Vec::new());
    for nth in 0..repetitions {
        let of = |word: usize| notes.chunks(NOTED).map(move |own| own[nth * NOTES + word]);
        let start = of(0).next().unwrap_or(0);
        let (first, last) = (of(1).min().unwrap_or(0), of(1).max().unwrap_or(0));
        let end = of(2).max().unwrap_or(0);
        let ns = end.saturating_sub(start.max(first)) as f64;
        if last <= start { in_time.push(ns) } else { late.push(ns) }
    }
    (in_time, late)
}

/// The host's clock, nanoseconds: the same one in all its processes.
pub(in crate::bench) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the time to a place that lives as long as it.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A number that tells hosts, which have a clock each, apart.
pub(in crate::bench) fn host() -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().hash(&mut hasher);
    hasher.finish()
}

/// An owner's part: a word of each cache line.
pub(in crate::bench) fn touch(sources: &mut [f64], destinations: &[f64], value: f64) {
    const LINE: usize = 8;
    sources.chunks_mut(LINE).for_each(|line| line[0] = value);
    let read: f64 = destinations.chunks(LINE).map(|line| line[0]).sum();
    std::hint::black_box((sources, read));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_lasts_from_the_common_start_to_the_last_exit() {
        let notes = |all: &[[u64; 3]]| {
            let mut notes = vec![0; NOTED];
            all.iter().enumerate().for_each(|(nth, n)| notes[3 * nth..][..3].copy_from_slice(n));
            notes
        };
        // In the second repetition process 1 comes 50 late.
        let own = notes(&[[100, 90, 130], [200, 190, 290], [300, 280, 310]]);
        let other = notes(&[[100, 100, 140], [200, 250, 280], [300, 290, 320]]);
        let all = [own, other].concat();
        assert_eq!(counts(&all, 3), (vec![40.0, 20.0], vec![90.0]));
        assert_eq!(counts(&all, 1), (vec![40.0], vec![]));
        let late = [notes(&[[200, 220, 290]]), notes(&[[200, 250, 280]])].concat();
        assert_eq!(counts(&late, 1), (vec![], vec![70.0]));
    }
}
