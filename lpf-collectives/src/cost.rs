//! What an algorithm costs: one definition, for the choice, for `lpf cost` and for the documentation.
//!
//! A cost is counted in supersteps: how many, and how many bytes the busiest process sends or receives in
//! them. On a machine it takes `Σ(h g(w) + l)`, w being the mean length of a message, and the operator's time.
//! Tests compare it with what the schedules do.

use lpf_core::Pid;
use lpf_core::attr::SyncAttr;
use lpf_core::machine::Machine;

use crate::algorithms::{factors, log2_up, side};
use crate::ways::*;

/// What an algorithm does, whatever the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Supersteps {
    /// How many supersteps.
    pub count: f64,
    /// h, the bytes that the busiest process sends or receives, summed over them.
    pub h_bytes: f64,
    /// Messages that the busiest process sends or receives, summed over them.
    pub messages: f64,
    /// Bytes that the busiest process combines.
    pub combined_bytes: f64,
}

/// What combining takes where nothing is measured: nanoseconds per byte.
pub const COMBINE_NS_PER_BYTE: f64 = 0.1;

impl Supersteps {
    fn new(count: f64, h_bytes: f64, messages: f64, combined_bytes: f64) -> Self {
        Supersteps { count, h_bytes, messages, combined_bytes }
    }

    /// Seconds on a machine, for groups of `members` processes and an operator that takes so many nanoseconds
    /// per byte.
    pub fn seconds(&self, machine: &Machine, members: Pid, combine_ns_per_byte: f64) -> f64 {
        let word = if self.messages > 0.0 { (self.h_bytes / self.messages) as usize } else { 0 };
        let g = machine.g(members, word.max(1), &SyncAttr::Default);
        let l = machine.l(members, word.max(1), &SyncAttr::Default);
        self.h_bytes * g + self.count * l + self.combined_bytes * 1e-9 * combine_ns_per_byte
    }
}

/// n (p-1)/p.
fn most(p: usize, n: f64) -> f64 {
    n * (p as f64 - 1.0) / p as f64
}

/// Members without a partner of their own when the largest power of two take part: 1 if there are any.
fn has_pairs(p: usize) -> f64 {
    f64::from(u8::from(!p.is_power_of_two()))
}

fn others(p: usize) -> f64 {
    p as f64 - 1.0
}

/// Halvings among the largest power of two of p, and what they move: n (P-1)/P.
fn halvings(p: usize, n: f64) -> (f64, f64) {
    let count = f64::from(p.ilog2());
    (count, n * (1.0 - 0.5f64.powf(count)))
}

impl Broadcast {
    /// Of n bytes to p members.
    pub fn supersteps(self, p: usize, n: usize) -> Supersteps {
        let (n, up, others) = (n as f64, f64::from(log2_up(p)), others(p));
        // The root's groups and those of the first of a group.
        let (groups, group) = (p.div_ceil(side(p)) as f64 - 1.0, side(p).min(p) as f64 - 1.0);
        match self {
            Broadcast::Direct => Supersteps::new(1.0, others * n, others, 0.0),
            Broadcast::Binomial => Supersteps::new(up, up * n, up, 0.0),
            Broadcast::Square => Supersteps::new(2.0, (groups + group) * n, groups + group, 0.0),
            Broadcast::TwoPhase => Supersteps::new(2.0, 2.0 * most(p, n), 2.0 * others, 0.0),
        }
    }
}

impl Reduce {
    /// Of vectors of n bytes of p members, to the first.
    pub fn supersteps(self, p: usize, n: usize) -> Supersteps {
        let (n, up, others, pairs) = (n as f64, f64::from(log2_up(p)), others(p), has_pairs(p));
        let most = most(p, n);
        let (groups, group) = (p.div_ceil(side(p)) as f64 - 1.0, side(p).min(p) as f64 - 1.0);
        match self {
            Reduce::Direct => Supersteps::new(1.0, others * n, others, others * n),
            Reduce::Transpose => Supersteps::new(2.0, 2.0 * most, 2.0 * others, most),
            Reduce::Square => {
                let messages = groups + group;
                Supersteps::new(2.0, messages * n, messages, messages * n)
            }
            Reduce::Binomial => Supersteps::new(up, up * n, up, up * n),
            Reduce::Rabenseifner => {
                let (count, moved) = halvings(p, n);
                let count = 2.0 * count + pairs;
                Supersteps::new(count, 2.0 * moved + pairs * n, count, moved + pairs * n)
            }
            Reduce::Radix => {
                let mut all = Supersteps::default();
                let mut left = n;
                for k in factors(p).map(|k| k as f64) {
                    all.count += 2.0;
                    all.h_bytes += 2.0 * left * (k - 1.0) / k;
                    all.messages += 2.0 * (k - 1.0);
                    left /= k;
                }
                Supersteps { combined_bytes: all.h_bytes / 2.0, ..all }
            }
            Reduce::Ring => Supersteps::new(p as f64, 2.0 * most, 2.0 * others, most),
        }
    }
}

impl Allreduce {
    /// Of vectors of n bytes of p members.
    pub fn supersteps(self, p: usize, n: usize) -> Supersteps {
        let (n, others, pairs) = (n as f64, others(p), has_pairs(p));
        let most = most(p, n);
        match self {
            Allreduce::Doubling => {
                let (count, _) = halvings(p, n);
                let (count, combined) = (count + 2.0 * pairs, count + pairs);
                Supersteps::new(count, count * n, count, combined * n)
            }
            Allreduce::Ring => Supersteps::new(2.0 * others, 2.0 * most, 2.0 * others, most),
            Allreduce::Rabenseifner => {
                let (count, moved) = halvings(p, n);
                let count = 2.0 * (count + pairs);
                Supersteps::new(count, 2.0 * (moved + pairs * n), count, moved + pairs * n)
            }
            Allreduce::Transpose => Supersteps::new(2.0, 2.0 * most, 2.0 * others, most),
        }
    }
}

impl ReduceScatter {
    /// Of vectors of n bytes of p members.
    pub fn supersteps(self, p: usize, n: usize) -> Supersteps {
        let most = most(p, n as f64);
        let count = if self == ReduceScatter::Direct { 1.0 } else { others(p) };
        Supersteps::new(count, most, others(p), most)
    }
}

impl Scan {
    /// Of vectors of n bytes of p members; exclusive ones leave out the own vector.
    pub fn supersteps(self, p: usize, n: usize, exclusive: bool) -> Supersteps {
        let (n, others) = (n as f64, others(p));
        match self {
            Scan::Direct => Supersteps::new(1.0, others * n, others, others * n),
            Scan::Tree if exclusive && p > 1 => {
                let count = f64::from(log2_up(p - 1));
                Supersteps::new(count + 1.0, (count + 1.0) * n, count + 1.0, count * n)
            }
            Scan::Tree => {
                let count = f64::from(log2_up(p));
                Supersteps::new(count, count * n, count, count * n)
            }
        }
    }
}

impl Gather {
    /// Of n bytes in all at p members; the same for scatter.
    pub fn supersteps(self, p: usize, n: usize) -> Supersteps {
        let (most, up) = (most(p, n as f64), f64::from(log2_up(p)));
        match self {
            Gather::Direct => Supersteps::new(1.0, most, others(p), 0.0),
            Gather::Binomial => Supersteps::new(up, most, up, 0.0),
        }
    }
}

impl Allgather {
    /// Of n bytes in all at p members.
    pub fn supersteps(self, p: usize, n: usize) -> Supersteps {
        let (most, up) = (most(p, n as f64), f64::from(log2_up(p)));
        match self {
            Allgather::Direct => Supersteps::new(1.0, most, others(p), 0.0),
            Allgather::Bruck => Supersteps::new(up, most, up, 0.0),
            Allgather::Ring => Supersteps::new(others(p), most, others(p), 0.0),
        }
    }
}

impl Alltoall {
    /// Of n bytes in all at each of p members.
    pub fn supersteps(self, p: usize, n: usize) -> Supersteps {
        match self {
            Alltoall::Direct => Supersteps::new(1.0, most(p, n as f64), others(p), 0.0),
            Alltoall::Bruck => {
                let blocks: usize =
                    (0..log2_up(p)).map(|k| (0..p).filter(|d| d >> k & 1 == 1).count()).sum();
                let (up, h) = (f64::from(log2_up(p)), n as f64 * blocks as f64 / p as f64);
                Supersteps::new(up, h, up, 0.0)
            }
        }
    }
}

/// Which is the cheapest; of equal ones the first.
pub(crate) fn choose<W: Copy>(ways: &[W], cost: impl Fn(W) -> f64) -> usize {
    let mut best = (0, cost(ways[0]));
    for (nth, &way) in ways.iter().enumerate().skip(1) {
        let cost = cost(way);
        if cost < best.1 {
            best = (nth, cost);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::*;
    use crate::blocks::Blocks;
    use crate::schedule::{Buffer, Schedule};
    use crate::simulate::{schedules, supersteps};

    /// Compares a formula with what the schedules of all members do, on vectors that divide evenly.
    fn same(what: &str, p: usize, cost: Supersteps, write: impl Fn(&mut Schedule, Member)) {
        let all = supersteps(&schedules(p, write));
        let h: usize = all.iter().map(|s| s.h).sum();
        let messages: usize = all.iter().map(|s| s.messages).sum();
        assert_eq!(cost.count, all.len() as f64, "{what} of {p}: supersteps");
        // Spans that go around the end of the vector are two messages.
        let is_near = cost.messages <= messages as f64 && messages as f64 <= 2.0 * cost.messages;
        assert!(is_near, "{what} of {p}: {messages} messages, not {}", cost.messages);
        let near = (cost.h_bytes - h as f64).abs() <= 1e-9 * h as f64;
        assert!(near, "{what} of {p}: h is {h}, not {}", cost.h_bytes);
    }

    #[test]
    fn formulas_say_what_schedules_do() {
        for p in 1..=33usize {
            // A line of every block, whatever it is divided by.
            let n = 64 * p * (1 << p.ilog2()) * 12;
            let v = Vector { bytes: n, element: 8 };
            let blocks = Blocks::Equal { first: 0, stride: n / p, bytes: n / p };
            let place = Results::Place(Buffer::Output);
            for &way in Broadcast::ALL {
                same(way.name(), p, way.supersteps(p, n), |s, m| match way {
                    Broadcast::Direct => broadcast_direct(s, m, 0, v),
                    Broadcast::Binomial => broadcast_binomial(s, m, 0, v),
                    Broadcast::Square => broadcast_square(s, m, 0, v),
                    Broadcast::TwoPhase => broadcast_two_phase(s, m, 0, v),
                });
            }
            for &way in Reduce::ALL {
                same(way.name(), p, way.supersteps(p, n), |s, m| match way {
                    Reduce::Direct => reduce_direct(s, m, 0, v),
                    Reduce::Transpose => reduce_transpose(s, m, 0, v),
                    Reduce::Square => reduce_square(s, m, 0, v, true),
                    Reduce::Binomial => reduce_binomial(s, m, 0, v, true),
                    Reduce::Rabenseifner => reduce_rabenseifner(s, m, 0, v),
                    Reduce::Radix => reduce_radix(s, m, 0, v),
                    Reduce::Ring => reduce_ring(s, m, 0, v),
                });
            }
            for &way in Allreduce::ALL {
                same(way.name(), p, way.supersteps(p, n), |s, m| match way {
                    Allreduce::Doubling => allreduce_doubling(s, m, v),
                    Allreduce::Ring => allreduce_ring(s, m, v),
                    Allreduce::Rabenseifner => allreduce_rabenseifner(s, m, v),
                    Allreduce::Transpose => allreduce_transpose(s, m, v),
                });
            }
            for &way in ReduceScatter::ALL {
                same(way.name(), p, way.supersteps(p, n), |s, m| match way {
                    ReduceScatter::Direct => reduce_scatter_direct(s, m, blocks, place),
                    ReduceScatter::Ring => reduce_scatter_ring(s, m, blocks, place),
                });
            }
            for (&way, exclusive) in Scan::ALL.iter().zip([false, true]) {
                for exclusive in [exclusive, !exclusive] {
                    same(way.name(), p, way.supersteps(p, n, exclusive), |s, m| match way {
                        Scan::Direct => scan_direct(s, m, v, exclusive),
                        Scan::Tree => scan_tree(s, m, v, exclusive),
                    });
                }
            }
            for &way in Gather::ALL {
                same(way.name(), p, way.supersteps(p, n), |s, m| match way {
                    Gather::Direct => gather_direct(s, m, 0, blocks),
                    Gather::Binomial => gather_binomial(s, m, 0, blocks),
                });
                same(way.name(), p, way.supersteps(p, n), |s, m| match way {
                    Gather::Direct => scatter_direct(s, m, 0, blocks),
                    Gather::Binomial => scatter_binomial(s, m, 0, blocks),
                });
            }
            for &way in Allgather::ALL {
                same(way.name(), p, way.supersteps(p, n), |s, m| match way {
                    Allgather::Direct => allgather_direct(s, m, blocks),
                    Allgather::Bruck => allgather_bruck(s, m, blocks),
                    Allgather::Ring => allgather_ring(s, m, blocks),
                });
            }
            for &way in Alltoall::ALL {
                same(way.name(), p, way.supersteps(p, n), |s, m| match way {
                    Alltoall::Direct => alltoall_direct(s, m, blocks, blocks),
                    Alltoall::Bruck => alltoall_bruck(s, m, blocks, blocks),
                });
            }
        }
    }
}
