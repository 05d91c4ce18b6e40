//! Numbers for contexts, which the tags of their messages carry.
//!
//! No number is given twice in a job, whatever failed on the way: what a section that failed has left in
//! the network is never taken for a later one's. So every process that begins a section takes the number
//! from a range of its own, and nobody has to agree on what was used. Process 0 begins most of them, and
//! has half of all numbers. Each range is used from its beginning, so that those that have ended are
//! runs of neighbours.

use super::transport::Rank;

/// The first number that is not process 0's.
const OTHERS: u32 = 1 << 31;

/// The numbers that one process has not given yet.
#[derive(Debug)]
pub(super) struct Contexts {
    next: u32,
    left: u32,
}

impl Contexts {
    /// The number of no section: of what is told before there is one.
    pub(super) const NONE: u32 = 0;

    /// Those of one process of so many.
    pub(super) fn of(rank: Rank, size: Rank) -> Self {
        if rank == 0 {
            return Contexts { next: Self::NONE + 1, left: OTHERS - 1 };
        }
        let (rank, others) = (rank as u32, size as u32 - 1);
        let each = OTHERS / others;
        Contexts { next: OTHERS + (rank - 1) * each, left: each }
    }

    /// A new number, if there is one left.
    pub(super) fn give(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let given = self.next;
        self.next = self.next.wrapping_add(1);
        Some(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(rank: Rank, size: Rank) -> std::ops::RangeInclusive<u32> {
        let mut all = Contexts::of(rank, size);
        let first = all.give().expect("one at least");
        let last = first + all.left;
        (all.next, all.left) = (last, 1);
        assert_eq!((all.give(), all.give()), (Some(last), None));
        first..=last
    }

    #[test]
    fn no_two_processes_have_a_number_in_common() {
        for size in [1_usize, 2, 3, 7, 65_536, 1 << 31] {
            let some = [0, 1, 2, size / 2, size.saturating_sub(2), size - 1];
            let mut ranks: Vec<Rank> = some.into_iter().filter(|&rank| rank < size).collect();
            ranks.sort_unstable();
            ranks.dedup();
            let ranges: Vec<_> = ranks.into_iter().map(|rank| range(rank, size)).collect();
            assert!(*ranges[0].start() > Contexts::NONE, "{ranges:?}");
            assert!(ranges.is_sorted_by(|one, next| one.end() < next.start()), "{ranges:?}");
        }
    }
}
