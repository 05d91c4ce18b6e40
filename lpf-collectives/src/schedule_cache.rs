//! The cache of schedules: writing one takes as long as a short collective.

use crate::preferences::Mode;
use crate::schedule::Schedule;
use crate::signature::Signature;

/// Entries, each for some calls, by a hash of what they are: a power of two.
const ENTRIES: usize = 8;
/// Longer schedules are not cached: their messages take longer than writing them does.
const STEPS: usize = 16;
const ROUNDS: usize = 16;

/// How a schedule is carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) mode: Mode,
    /// The number of the algorithm that has written it.
    pub(crate) algorithm: usize,
    /// What its messages carry.
    pub(crate) stamp: u32,
    /// The length of the parts that a message to be combined arrives in: whole elements.
    pub(crate) part: usize,
    /// Whether a message to be combined may be read where it lies: a round does not write what it sends.
    pub(crate) lends: bool,
    /// Bytes that it keeps in scratch.
    pub(crate) at_front: usize,
}

/// The schedules of a member's latest calls. The last entry is for the latest call that depends on arrivals: its schedule
/// is cached however long it is, because making it takes longer than writing it.
#[derive(Debug)]
pub(crate) struct ScheduleCache([(Option<(Signature, Terms)>, Schedule); ENTRIES + 1]);

impl ScheduleCache {
    /// Empty, with memory for short schedules. If that is refused, they are not cached.
    pub(crate) fn new() -> Self {
        let entry = || (None, Schedule::with_capacity(STEPS, ROUNDS).unwrap_or_default());
        ScheduleCache(std::array::from_fn(|_| entry()))
    }

    #[inline]
    fn entry(signature: &Signature) -> usize {
        let &Signature { kind, root, size, pattern, .. } = signature;
        let hash = (kind as u64 ^ (root as u64) << 4 ^ (size as u64) << 8)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if pattern == 0 { (hash >> (64 - ENTRIES.ilog2())) as usize } else { ENTRIES }
    }

    /// The schedule of this call, if it is cached.
    #[inline]
    pub(crate) fn find(&self, signature: &Signature) -> Option<(Terms, &Schedule)> {
        match &self.0[Self::entry(signature)] {
            (Some((of, terms)), schedule) if of == signature => Some((*terms, schedule)),
            _ => None,
        }
    }

    /// Caches a call's schedule if it is short; if it depends on arrivals, in exchange for the one of its entry.
    pub(crate) fn store(&mut self, signature: Signature, terms: Terms, schedule: &mut Schedule) {
        let (of, cached) = &mut self.0[Self::entry(&signature)];
        let depends_on_arrivals = signature.pattern != 0;
        if depends_on_arrivals {
            std::mem::swap(cached, schedule);
        }
        if depends_on_arrivals || !signature.has_counts && cached.copy_from(schedule) {
            *of = Some((signature, terms));
        }
    }

    /// Forgets all schedules: calls may choose other algorithms now.
    pub(crate) fn forget(&mut self) {
        self.0.iter_mut().for_each(|(of, _)| *of = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Collective;
    use crate::signature::OperatorName;

    #[test]
    fn a_schedule_is_found_for_the_same_call_only() {
        let of = Signature::new(Collective::Reduce, 8, 8);
        let others = [
            Signature { algorithm: 0, ..of },
            Signature { root: 1, ..of },
            Signature { size: 16, ..of },
            Signature { element: 4, ..of },
            Signature { commutes: false, ..of },
            Signature { operator: OperatorName("max"), ..of },
            Signature { pattern: 1, ..of },
            Signature { site: 1, ..of },
            Signature { kind: Collective::Allreduce, ..of },
        ];
        for other in others {
            let mut cache = ScheduleCache::new();
            // In its entry, wherever its hash leads.
            cache.0[ScheduleCache::entry(&other)].0 = Some((of, TERMS));
            assert!(cache.find(&other).is_none(), "{other:?}");
        }
        let mut cache = ScheduleCache::new();
        cache.store(of, TERMS, &mut Schedule::default());
        assert!(cache.find(&of).is_some());
    }

    const TERMS: Terms =
        Terms { mode: Mode::Expected, stamp: 0, algorithm: 0, part: 8, lends: false, at_front: 0 };
}
