//! What algorithms need of the collectives' own memory, in vectors of a call.

use crate::ways::*;

/// How many times what is worked on: a part of a vector, or the parts of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scratch {
    /// Kept by the algorithm, at the front.
    pub(crate) kept: usize,
    /// Waiting at most, in a full superstep: behind what is kept, from where a step's `stage` counts.
    pub(crate) waiting: usize,
    /// On expected arrivals a message of it is one part, in a cell, because a round sends and writes the same memory.
    pub(crate) one_part: bool,
    /// Of a vector that is divided into blocks it takes a piece of each at a time: the order of operands depends on the
    /// block.
    pub(crate) of_blocks: bool,
    /// No member knows: there are no full supersteps of it.
    pub(crate) unknown: bool,
}

impl Scratch {
    fn new(kept: usize, waiting: usize) -> Self {
        Scratch { kept, waiting, ..Scratch::default() }
    }
}

impl Broadcast {
    pub(crate) fn scratch(self) -> Scratch {
        Scratch::new(0, 1)
    }
}

impl Reduce {
    /// Partial results lie in scratch but at the root.
    pub(crate) fn scratch(self, members: usize) -> Scratch {
        match self {
            Reduce::Direct => Scratch::new(0, members),
            Reduce::Square => Scratch::new(1, crate::algorithms::side(members)),
            Reduce::Binomial | Reduce::Rabenseifner => Scratch::new(1, 1),
            Reduce::Transpose | Reduce::Ring | Reduce::Radix => {
                Scratch { of_blocks: true, ..Scratch::new(members, members) }
            }
        }
    }
}

impl Allreduce {
    pub(crate) fn scratch(self, members: usize) -> Scratch {
        match self {
            Allreduce::Doubling => Scratch { one_part: true, ..Scratch::new(0, 1) },
            Allreduce::Rabenseifner => Scratch::new(0, 1),
            Allreduce::Transpose => Scratch { of_blocks: true, ..Scratch::new(0, members) },
            Allreduce::Ring => Scratch { of_blocks: true, ..Scratch::new(0, 1) },
        }
    }
}

impl ReduceScatter {
    /// In blocks.
    pub(crate) fn scratch(self, members: usize) -> Scratch {
        match self {
            ReduceScatter::Direct => Scratch::new(0, members),
            ReduceScatter::Ring => Scratch::new(members, 1),
        }
    }
}

impl Scan {
    pub(crate) fn scratch(self, members: usize) -> Scratch {
        match self {
            Scan::Direct => Scratch::new(0, members),
            Scan::Tree => Scratch { one_part: true, ..Scratch::new(0, 1) },
        }
    }
}

impl Allgather {
    /// In blocks.
    pub(crate) fn scratch(self, members: usize) -> Scratch {
        Scratch::new(0, members)
    }
}

impl Alltoall {
    /// In blocks.
    pub(crate) fn scratch(self, members: usize) -> Scratch {
        match self {
            Alltoall::Direct => Scratch::new(0, members),
            Alltoall::Bruck => Scratch::new(members + 2 * members.div_ceil(2), members.div_ceil(2)),
        }
    }
}

impl Gather {
    /// In blocks.
    pub(crate) fn scratch(self, members: usize) -> Scratch {
        match self {
            Gather::Direct => Scratch::new(0, members),
            Gather::Binomial => Scratch::new(members, members),
        }
    }
}
