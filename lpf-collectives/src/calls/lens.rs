//! How many elements each member has in a call.

use crate::blocks::Blocks;
use crate::hash::mixed;
use crate::kinds::Collective;

/// The elements of the members, in vectors or in consecutive blocks.
#[derive(Clone, Copy)]
pub(super) enum Lens<'a> {
    /// The same number of every member.
    Equal(usize),
    /// `counts[i]` of member i.
    Counts(&'a [usize]),
    /// Of this member alone: `sends[j]` to member j, and `receives[j]` from it.
    Exchange { sends: &'a [usize], receives: &'a [usize] },
}

/// The sum of some counts. More than there are addresses is refused as memory is.
pub(super) fn total(counts: &[usize]) -> usize {
    counts.iter().copied().fold(0, usize::saturating_add)
}

impl Lens<'_> {
    /// What members agree on: the bytes of a member; of counts a hash.
    #[inline]
    pub(super) fn size(self, element: usize) -> usize {
        match self {
            Lens::Equal(len) => len * element,
            Lens::Counts(counts) => {
                counts.iter().fold(1, |hash, &count| mixed(hash, count as u64)) as usize
            }
            Lens::Exchange { .. } => 0,
        }
    }

    /// The elements of the longest block.
    pub(super) fn longest(self) -> usize {
        let most = |counts: &[usize]| counts.iter().copied().max().unwrap_or(0);
        match self {
            Lens::Equal(len) => len,
            Lens::Counts(counts) => most(counts),
            Lens::Exchange { sends, receives } => most(sends).max(most(receives)),
        }
    }

    /// The elements of all blocks.
    pub(super) fn total(self, members: usize) -> usize {
        match self {
            Lens::Equal(len) => len.saturating_mul(members),
            Lens::Counts(counts) | Lens::Exchange { sends: counts, .. } => total(counts),
        }
    }

    /// The elements that a member needs in `x` and in `y`, if the call uses them there.
    #[inline(always)]
    pub(super) fn needs(
        self,
        (kind, root): (Collective, usize),
        (me, members): (usize, usize),
    ) -> [Option<usize>; 2] {
        let at_root = |len| (me == root).then_some(len);
        let own = match self {
            Lens::Equal(len) => len,
            Lens::Counts(counts) => counts[me],
            Lens::Exchange { sends, receives } => {
                return [Some(total(sends)), Some(total(receives))];
            }
        };
        let all = || self.total(members);
        match kind {
            Collective::Broadcast
            | Collective::Allreduce
            | Collective::Scan
            | Collective::Exscan => [Some(own); 2],
            Collective::Reduce => [Some(own), at_root(own)],
            Collective::ReduceScatter => [Some(all()), Some(own)],
            Collective::Gather => [Some(own), at_root(all())],
            Collective::Scatter => [at_root(all()), Some(own)],
            Collective::Allgather => [Some(own), Some(all())],
            Collective::Alltoall => [Some(all()); 2],
        }
    }

    /// The elements of a member's block before element `first` of the longest one.
    pub(super) fn skipped(self, member: usize, first: usize) -> usize {
        match self {
            Lens::Counts(counts) => first.min(counts[member]),
            _ => first,
        }
    }

    /// Writes where blocks end: those that are sent, and of an exchange those that are received.
    pub(super) fn write_ends(self, [sent, received]: &mut [Vec<usize>; 2]) {
        let write = |ends: &mut Vec<usize>, counts: &[usize]| {
            ends.clear();
            ends.extend(counts.iter().scan(0, |sum, &count| {
                *sum = usize::saturating_add(*sum, count);
                Some(*sum)
            }));
        };
        match self {
            Lens::Equal(_) => {}
            Lens::Counts(counts) => write(sent, counts),
            Lens::Exchange { sends, receives } => {
                write(sent, sends);
                write(received, receives);
            }
        }
    }

    /// Of every block the elements from `first` on, at most `len`. Blocks of different lengths end at `ends`.
    pub(super) fn blocks<'b>(
        self,
        ends: &'b [usize],
        element: usize,
        (first, len): (usize, usize),
    ) -> Blocks<'b> {
        match self {
            Lens::Equal(all) => {
                let (first, bytes) = (first * element, len * element);
                Blocks::Equal { first, stride: all * element, bytes }
            }
            _ => Blocks::Any { ends, element, first, most: len },
        }
    }
}
