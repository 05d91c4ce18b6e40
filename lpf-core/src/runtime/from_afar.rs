//! The requests of other nodes for one process of a node.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::Pid;

/// Counts of a superstep, by the process that made the requests. One thread counts; another one takes the counts after a
/// barrier, and begins the next superstep.
#[derive(Debug)]
pub(super) struct Counting {
    /// Counts of other supersteps are void, so nothing is set to zero.
    superstep: AtomicU32,
    all: AtomicU32,
    most: AtomicU32,
    heaviest: AtomicU32,
    /// By process, a superstep and the count in it.
    counts: Box<[AtomicU64]>,
}

/// What was counted in a superstep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FromAfar {
    /// All requests.
    pub all: usize,
    /// Those of the process that made the most.
    pub most: u32,
    /// This process.
    pub heaviest: Pid,
}

impl Counting {
    pub(super) fn new(processes: Pid) -> Self {
        Counting {
            superstep: AtomicU32::new(0),
            all: AtomicU32::new(0),
            most: AtomicU32::new(0),
            heaviest: AtomicU32::new(0),
            counts: (0..processes).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Counts requests of process `origin`.
    #[inline]
    pub(super) fn count(&self, origin: Pid, requests: u32) {
        let Some(count) = self.counts.get(origin) else { return };
        let now = u64::from(self.superstep.load(Relaxed)) << 32;
        let before = count.load(Relaxed);
        let before = if before >> 32 == now >> 32 { before as u32 } else { 0 };
        let sum = before.saturating_add(requests);
        count.store(now | u64::from(sum), Relaxed);
        self.all.store(self.all.load(Relaxed).saturating_add(requests), Relaxed);
        if sum > self.most.load(Relaxed) {
            self.most.store(sum, Relaxed);
            self.heaviest.store(origin as u32, Relaxed);
        }
    }

    /// The counts of the superstep, which ends for this process.
    pub(super) fn take(&self) -> FromAfar {
        let all = self.all.swap(0, Relaxed) as usize;
        if all == 0 {
            return FromAfar::default();
        }
        self.superstep.store(self.superstep.load(Relaxed).wrapping_add(1), Relaxed);
        let most = self.most.swap(0, Relaxed);
        FromAfar { all, most, heaviest: self.heaviest.load(Relaxed) as Pid }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_origin_is_found_whatever_the_order() {
        let aimed = Counting::new(4);
        for (origin, requests) in [(3, 2), (1, 3), (3, 2), (2, 1)] {
            aimed.count(origin, requests);
        }
        assert_eq!(aimed.take(), FromAfar { all: 8, most: 4, heaviest: 3 });
        aimed.count(1, 1);
        assert_eq!(aimed.take(), FromAfar { all: 1, most: 1, heaviest: 1 });
        assert_eq!(aimed.take(), FromAfar::default());
    }
}
