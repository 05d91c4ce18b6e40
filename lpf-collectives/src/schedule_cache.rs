//! The cache of schedules: writing one takes as long as a short collective.

use crate::schedule::Schedule;
use crate::signature::Signature;

/// Entries, each for some kinds of collectives.
const ENTRIES: usize = 4;
/// Longer schedules are not cached: their messages take longer than writing them does.
const STEPS: usize = 16;
const ROUNDS: usize = 16;

/// The schedules of a member's latest calls, each with the call's digest. The last entry is for the latest call that
/// depends on arrivals: its schedule is cached however long it is, because making it takes longer than writing it.
#[derive(Debug)]
pub(crate) struct ScheduleCache([(Option<Signature>, u64, Schedule); ENTRIES + 1]);

impl ScheduleCache {
    /// Empty, with memory for short schedules. If that is refused, they are not cached.
    pub(crate) fn new() -> Self {
        let entry = || (None, 0, Schedule::with_capacity(STEPS, ROUNDS).unwrap_or_default());
        ScheduleCache(std::array::from_fn(|_| entry()))
    }

    fn entry(signature: &Signature) -> usize {
        if signature.pattern == 0 { signature.kind as usize % ENTRIES } else { ENTRIES }
    }

    /// The entry of this call's schedule, if it is cached, and the call's digest.
    #[inline]
    pub(crate) fn find(&self, signature: &Signature) -> (Option<usize>, u64) {
        let entry = Self::entry(signature);
        match &self.0[entry] {
            (Some(of), digest, _) if of == signature => (Some(entry), *digest),
            _ => (None, signature.digest()),
        }
    }

    /// The schedule of an entry.
    #[inline]
    pub(crate) fn schedule(&self, entry: usize) -> &Schedule {
        &self.0[entry].2
    }

    /// Caches a call's schedule if it is short; if it depends on arrivals, in exchange for the one of its entry.
    pub(crate) fn store(&mut self, signature: Signature, digest: u64, schedule: &mut Schedule) {
        let (of, own, cached) = &mut self.0[Self::entry(&signature)];
        if signature.pattern != 0 {
            std::mem::swap(cached, schedule);
            (*of, *own) = (Some(signature), digest);
        } else if !signature.has_counts && cached.copy_from(schedule) {
            (*of, *own) = (Some(signature), digest);
        }
    }
}
