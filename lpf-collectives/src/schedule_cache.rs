//! The cache of schedules: writing one takes as long as a short collective.

use crate::calls::What;
use crate::schedule::Schedule;

/// Entries, each for some kinds of collectives.
const ENTRIES: usize = 4;
/// Longer schedules are not cached: their messages take longer than writing them does.
const STEPS: usize = 16;
const ROUNDS: usize = 16;

/// The schedules of a member's latest calls, each with the call's digest. The last entry is for the latest call that
/// depends on arrivals: its schedule is cached however long it is, because making it takes longer than writing it.
#[derive(Debug)]
pub(crate) struct ScheduleCache([(Option<What>, u64, Schedule); ENTRIES + 1]);

impl ScheduleCache {
    /// Empty, with memory for short schedules. If that is refused, they are not cached.
    pub(crate) fn new() -> Self {
        let entry = || (None, 0, Schedule::with_capacity(STEPS, ROUNDS).unwrap_or_default());
        ScheduleCache(std::array::from_fn(|_| entry()))
    }

    fn entry(what: &What) -> usize {
        if what.pattern == 0 { what.kind as usize % ENTRIES } else { ENTRIES }
    }

    /// The entry of this call's schedule, if it is cached, and the call's digest.
    #[inline]
    pub(crate) fn find(&self, what: &What) -> (Option<usize>, u64) {
        let entry = Self::entry(what);
        match &self.0[entry] {
            (Some(of), digest, _) if of == what => (Some(entry), *digest),
            _ => (None, what.digest()),
        }
    }

    /// The schedule of an entry.
    #[inline]
    pub(crate) fn schedule(&self, entry: usize) -> &Schedule {
        &self.0[entry].2
    }

    /// Caches a call's schedule if it is short; if it depends on arrivals, in exchange for the one of its entry.
    pub(crate) fn store(&mut self, what: What, digest: u64, schedule: &mut Schedule) {
        let (of, own, cached) = &mut self.0[Self::entry(&what)];
        if what.pattern != 0 {
            std::mem::swap(cached, schedule);
            (*of, *own) = (Some(what), digest);
        } else if !what.has_counts && cached.copy_from(schedule) {
            (*of, *own) = (Some(what), digest);
        }
    }
}
