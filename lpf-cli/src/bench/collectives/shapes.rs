//! What each collective moves, by what one process contributes in all.

use lpf::collectives::Collective;
use lpf::collectives::cost::Vector;
use serde::{Deserialize, Serialize};

use crate::cost;

/// The elements that are measured.
pub(in crate::bench) const ELEMENT: usize = size_of::<f64>();

/// A collective on vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(in crate::bench) struct Shape {
    /// Its place among all collectives.
    nth: usize,
    /// What one process contributes in all; where there is a root that sends, that one.
    pub(in crate::bench) elements: usize,
    pub(in crate::bench) p: usize,
}

impl Shape {
    /// With at least so many bytes: in whole blocks, where each process has one.
    pub(in crate::bench) fn new(collective: Collective, p: usize, bytes: usize) -> Self {
        let nth = Collective::ALL.iter().position(|&one| one == collective).unwrap_or(0);
        let elements = cost::whole_blocks(collective, p, bytes.div_ceil(ELEMENT));
        Shape { nth, elements, p }
    }

    pub(in crate::bench) fn collective(self) -> Collective {
        Collective::ALL[self.nth]
    }

    /// Bytes that one process contributes in all.
    pub(in crate::bench) fn bytes(self) -> usize {
        self.elements * ELEMENT
    }

    /// What one process contributes in all.
    pub(in crate::bench) fn vector(self) -> Vector {
        Vector { bytes: self.bytes(), element: ELEMENT }
    }

    /// Elements that a process contributes, and elements that it gets; process 0 is the root.
    pub(in crate::bench) fn lengths(self, process: usize) -> (usize, usize) {
        let (n, p, is_root) = (self.elements, self.p, process == 0);
        let at_root = |n: usize| if is_root { n } else { 0 };
        match self.collective() {
            Collective::Broadcast => (at_root(n), n - at_root(n)),
            Collective::Reduce => (n, at_root(n)),
            Collective::Allreduce | Collective::Scan | Collective::Exscan => (n, n),
            Collective::ReduceScatter => (n, n / p),
            Collective::Gather => (n, at_root(n * p)),
            Collective::Scatter => (at_root(n), n / p),
            Collective::Allgather => (n, n * p),
            Collective::Alltoall => (n, n),
        }
    }

    /// Bytes of memory at all processes together.
    pub(in crate::bench) fn memory(self) -> usize {
        (0..self.p).map(|process| self.lengths(process)).map(|(x, y)| (x + y) * ELEMENT).sum()
    }

    /// Bytes that have to come to a process from another one, summed over all processes, however it is
    /// done: partial results count once, wherever they are combined.
    pub(in crate::bench) fn carried(self) -> usize {
        let (n, others) = (self.bytes(), self.p - 1);
        match self.collective() {
            // Everybody but the root gets, or gives, a whole vector. In a scan, everybody but the first
            // gets what those before it come to.
            Collective::Broadcast | Collective::Reduce | Collective::Scan | Collective::Exscan => {
                others * n
            }
            // Each of p blocks takes p - 1 of them.
            Collective::ReduceScatter => others * n,
            // And back again.
            Collective::Allreduce => 2 * others * n,
            Collective::Gather => others * n,
            Collective::Scatter => others * (n / self.p),
            Collective::Allgather => self.p * others * n,
            Collective::Alltoall => others * n,
        }
    }
}

impl Shape {
    /// Bytes that the busiest process has to copy, however it is done: each message is copied by one of its ends,
    /// and where several can share the work, it is shared. Partial results count once.
    pub(in crate::bench) fn busiest(self) -> usize {
        let (n, others) = (self.bytes(), self.p - 1);
        match self.collective() {
            Collective::Broadcast | Collective::Reduce | Collective::Scan | Collective::Exscan => {
                n * others.min(1)
            }
            Collective::ReduceScatter | Collective::Alltoall => n / self.p * others,
            Collective::Allreduce => 2 * n * others / self.p,
            // The others' blocks are the others' work.
            Collective::Gather => n * others.min(1),
            Collective::Scatter => n / self.p * others.min(1),
            Collective::Allgather => n * others,
        }
    }

    /// Bytes that every process moves from its own source to its own destination. (Where the root alone does,
    /// the others are at work meanwhile.)
    pub(in crate::bench) fn kept(self) -> usize {
        let n = self.bytes();
        match self.collective() {
            Collective::Allgather => n,
            Collective::Alltoall => n / self.p,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_is_combined_what_is_got_and_not_ones_own_is_carried() {
        for collective in [
            Collective::Broadcast,
            Collective::Gather,
            Collective::Scatter,
            Collective::Allgather,
            Collective::Alltoall,
        ] {
            for p in [2, 3, 8] {
                let shape = Shape::new(collective, p, 1000);
                let got: usize = (0..p).map(|process| shape.lengths(process).1 * ELEMENT).sum();
                let n = shape.bytes();
                let own = match collective {
                    Collective::Broadcast => 0,
                    Collective::Scatter => n / p,
                    Collective::Gather => n,
                    Collective::Allgather => p * n,
                    _ => n,
                };
                assert_eq!(shape.carried(), got - own, "{} of {p}", collective.name());
            }
        }
        for collective in Collective::ALL {
            for p in [2, 3, 8] {
                let shape = Shape::new(collective, p, 24_000);
                let (busiest, carried) = (shape.busiest(), shape.carried());
                assert!(
                    busiest * p >= carried && busiest <= carried,
                    "{} of {p}",
                    collective.name()
                );
            }
        }
        assert_eq!(Shape::new(Collective::Alltoall, 4, 8).elements, 4);
        assert_eq!(Shape::new(Collective::Allreduce, 4, 8).elements, 1);
    }
}
