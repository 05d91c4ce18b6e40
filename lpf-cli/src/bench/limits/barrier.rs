//! The best pinned barriers: a flag line per thread where every thread has a core, groups per core
//! where they share.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
};

use super::team::Team;

/// A line of its own: two of 64 bytes, because adjacent lines are fetched together.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Line(AtomicU32);

/// The shared part of a barrier for a team.
#[derive(Debug)]
pub(crate) struct Barrier {
    flags: Flags,
    /// Empty where every thread has a core.
    groups: Vec<Group>,
    group_of: Vec<usize>,
}

/// One thread's part.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    shared: &'a Barrier,
    me: usize,
    sequence: u32,
}

impl Barrier {
    pub(crate) fn new(team: &Team) -> Self {
        let group_of: Vec<usize> = (0..team.threads()).map(|t| team.core_of(t)).collect();
        if team.cores() == team.threads() {
            return Barrier { flags: Flags::new(team.threads()), groups: Vec::new(), group_of };
        }
        let members = |core| group_of.iter().filter(|&&of| of == core).count() as u32;
        let groups = (0..team.cores()).map(|core| Group::new(members(core))).collect();
        Barrier { flags: Flags::new(team.cores()), groups, group_of }
    }

    /// What it is, for the column `limit`.
    pub(crate) fn name(&self) -> &'static str {
        if self.groups.is_empty() {
            "barrier, a flag line per thread"
        } else {
            "barrier, groups per core"
        }
    }

    pub(crate) fn member(&self, me: usize) -> Member<'_> {
        Member { shared: self, me, sequence: 0 }
    }
}

impl Member<'_> {
    /// Returns when all threads have called it as often as this one.
    #[inline]
    pub(crate) fn wait(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
        let (shared, sequence) = (self.shared, self.sequence);
        match shared.groups.get(shared.group_of[self.me]) {
            None => shared.flags.cross(self.me, sequence),
            Some(group) => {
                group.wait(sequence, || shared.flags.cross(shared.group_of[self.me], sequence));
            }
        }
    }
}

/// Dissemination: in round k thread i tells thread i + 2^k and hears from i - 2^k. Between two
/// threads that is one flag line each. A flag has one writer; it counts up, so that nobody resets
/// it, and a writer is never two ahead of a reader that has not seen it.
#[derive(Debug)]
struct Flags {
    rounds: usize,
    threads: usize,
    /// Of thread i in round k at i·rounds + k, written by the one that tells it.
    lines: Vec<Line>,
}

impl Flags {
    fn new(threads: usize) -> Self {
        let rounds = threads.next_power_of_two().trailing_zeros() as usize;
        let lines = (0..threads * rounds).map(|_| Line::default()).collect();
        Flags { rounds, threads, lines }
    }

    #[inline]
    fn cross(&self, me: usize, sequence: u32) {
        for round in 0..self.rounds {
            let told = (me + (1 << round)) % self.threads;
            self.lines[told * self.rounds + round].0.store(sequence, Release);
            let own = &self.lines[me * self.rounds + round].0;
            // No pause: it costs more than the wait, and the core has nothing else to do.
            while (own.load(Acquire).wrapping_sub(sequence) as i32) < 0 {}
        }
    }
}

/// The threads of one core: the last to arrive crosses to the other cores by spinning, since
/// nobody else on its core has anything to do; the others yield to it and then sleep.
#[derive(Debug)]
struct Group {
    members: u32,
    arrived: Line,
    /// The sequence number that has been let go.
    open: Line,
    sleepers: Line,
}

/// Yields before a thread sleeps.
const YIELDS: u32 = 20;

impl Group {
    fn new(members: u32) -> Self {
        let line = Line::default;
        Group { members, arrived: line(), open: line(), sleepers: line() }
    }

    #[inline]
    fn wait(&self, sequence: u32, cross: impl FnOnce()) {
        if self.arrived.0.fetch_add(1, AcqRel) + 1 == self.members {
            self.arrived.0.store(0, Relaxed);
            cross();
            self.open.0.store(sequence, SeqCst);
            if self.sleepers.0.load(SeqCst) > 0 {
                wake_all(&self.open.0);
            }
            return;
        }
        for _ in 0..YIELDS {
            if self.open.0.load(Acquire) == sequence {
                return;
            }
            std::thread::yield_now();
        }
        // Counted before the last look, which the kernel takes: a waker that does not see the
        // count stored `open` before that look.
        self.sleepers.0.fetch_add(1, SeqCst);
        while self.open.0.load(SeqCst) != sequence {
            sleep_while(&self.open.0, sequence.wrapping_sub(1));
        }
        self.sleepers.0.fetch_sub(1, Relaxed);
    }
}

/// Sleeps in the kernel while `word` is `value`; may return early.
pub(super) fn sleep_while(word: &AtomicU32, value: u32) {
    #[cfg(target_os = "linux")]
    // SAFETY: the word lives through the call, and the other arguments are plain values.
    unsafe {
        let none = std::ptr::null::<libc::timespec>();
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        libc::syscall(libc::SYS_futex, word.as_ptr(), wait, value, none);
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (word, value);
        std::thread::yield_now();
    }
}

/// Wakes all who sleep on `word`.
pub(super) fn wake_all(word: &AtomicU32) {
    #[cfg(target_os = "linux")]
    // SAFETY: the word lives through the call, and the other arguments are plain values.
    unsafe {
        let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        libc::syscall(libc::SYS_futex, word.as_ptr(), wake, i32::MAX);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = word;
}

/// An empty superstep: one barrier.
pub(crate) fn barrier(team: &Team, batches: usize) -> Vec<f64> {
    let barrier = Barrier::new(team);
    team.time(batches, super::team::Timed::Step, |me| {
        let mut member = barrier.member(me);
        move || {
            member.wait();
            0.0
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nobody_passes_before_all_have_come() {
        for threads in [1, 2, 3, 4, 5, 8] {
            let team = Team::new(threads);
            let barrier = Barrier::new(&team);
            let came = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for me in 0..threads {
                    let (barrier, came) = (&barrier, &came);
                    scope.spawn(move || {
                        let mut member = barrier.member(me);
                        for round in 1..=200 {
                            came.fetch_add(1, Relaxed);
                            member.wait();
                            assert!(came.load(Relaxed) >= round * threads as u64);
                            member.wait();
                        }
                    });
                }
            });
        }
    }
}
