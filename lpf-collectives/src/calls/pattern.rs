//! What a reduction by arrival is made of, and which one is taken where nobody names one.

use lpf_core::machine::Machine;

use crate::algorithms::by_arrival::{
    Rounds, allreduce_chain, allreduce_clairvoyant, reduce_clairvoyant, reduce_pairs, reduce_tree,
};
use crate::algorithms::{Member, Vector, by_way};
use crate::arrival_pattern::chain::{Chain, Plan as ChainPlan};
use crate::arrival_pattern::clairvoyant::{Instance, Scheduler, to_all};
use crate::arrival_pattern::pairing::{Growth, Pairing};
use crate::arrival_pattern::trees::Tree;
use crate::arrival_pattern::{Estimates, predict};
use crate::cost::Supersteps;
use crate::schedule::Schedule;
use crate::ways::{Allreduce, AllreduceByArrival, Reduce, ReduceByArrival};

/// What a call's schedule is made of: the same at all members.
pub(super) struct Pattern<'a> {
    pub(super) machine: Machine,
    pub(super) arrivals: &'a Estimates,
    pub(super) segments: u32,
    /// What a round of a Clairvoyant schedule, a step of a chain and a pair of a tree are taken to last, ns.
    pub(super) round_ns: [u64; 3],
    pub(super) root: usize,
    pub(super) v: Vector,
    pub(super) commutes: bool,
}

/// Transfers of a schedule that is made only to be compared with others.
const MOST_COMPARED: usize = 1 << 16;
/// What one of them takes when ends are predicted, ns, about.
const COMPARED_NS: f64 = 100.0;

impl Pattern<'_> {
    fn members(&self) -> usize {
        self.arrivals.times_ns().len()
    }

    fn instance(&self) -> Instance {
        let times = self.arrivals.times_ns().to_vec();
        let instance = Instance::new(self.segments, self.root, self.round_ns[0], times);
        instance.expect("a root that is a member, and times of less than 2^62 ns")
    }

    /// The predicted dynamic tree, and when its root has the result, ns.
    fn predicted_tree(&self) -> (Pairing, u64) {
        let growth = if self.commutes { Growth::Any } else { Growth::Neighbours };
        let (times, pair_ns) = (self.arrivals.times_ns(), self.round_ns[2]);
        Pairing::of_times(growth, self.root, times, |_, _| pair_ns, |_| 0)
    }

    fn chain(&self, way: AllreduceByArrival) -> Option<ChainPlan> {
        let chain = match way {
            AllreduceByArrival::Linear => Chain::Linear,
            AllreduceByArrival::Ring => Chain::Ring,
            AllreduceByArrival::SortedLinearTree => Chain::SortedLinearTree,
            AllreduceByArrival::PreReducedRing => Chain::PreReducedRing,
            AllreduceByArrival::Clairvoyant => return None,
        };
        Some(ChainPlan::new(chain, self.round_ns[1], self.arrivals.times_ns()))
    }

    /// Whether what the usual algorithm takes is more than to compare it with others: else there is nothing to gain.
    ///
    /// Nor is there in an all-reduction of members that share the cores: most of it is the result's way to everybody,
    /// which begins when the last one is there and takes all cores, whatever the order.
    fn is_worth_it(&self, usual: Supersteps, to_all: bool) -> bool {
        // All of them compare.
        let of_core = predict::of_core(&self.machine, self.members());
        if to_all && of_core < 1.0 {
            return false;
        }
        let (others, n) = (self.members().saturating_sub(1), self.segments as usize);
        // The usual one, and a ring, have 2 (p - 1) rounds at most.
        let round = 2 * others * self.members();
        let compared = if to_all { 2 * (round + others * n) } else { round + others * (n + 2) };
        self.usual_ns(usual) >= 2.0 * COMPARED_NS * compared as f64 / of_core
    }

    fn usual_ns(&self, usual: Supersteps) -> f64 {
        1e9 * usual.seconds(&self.machine, self.members())
    }

    /// Whether the predicted dynamic tree is used, if that can be decided without comparing it with all others. It is
    /// used if, by the estimates, all other contributions have been combined before the last member arrives: no schedule
    /// ends earlier, because the last member has to send, or receive, one full vector. If a comparison would take too
    /// long, it is used if it ends before the arrival-unaware algorithm would that begins when the last member arrives.
    fn is_predicted_best(&self, usual: Supersteps) -> Option<bool> {
        let (p, usual_ns) = (self.members(), self.usual_ns(usual));
        let (of_core, is_worth_it) =
            (predict::of_core(&self.machine, p), self.is_worth_it(usual, false));
        let pairs = (p + p * p / 64) as f64;
        if p * p > MOST_COMPARED || usual_ns < 2.0 * COMPARED_NS * pairs / of_core {
            return (!is_worth_it).then_some(false);
        }
        let ((_, end), last) = (self.predicted_tree(), self.arrivals.spread_ns());
        match end <= last.saturating_add(self.round_ns[2]) {
            true => Some(true),
            false => (!is_worth_it).then_some((end as f64) < last as f64 + usual_ns),
        }
    }

    /// The algorithms that are worth the time of their schedule and fit the operator. Static trees are not faster than
    /// the predicted dynamic tree.
    fn reduces(&self) -> impl Iterator<Item = ReduceByArrival> {
        let (p, n) = (self.members(), self.segments as usize);
        let (all, commutes) = (ReduceByArrival::ALL.iter().copied(), self.commutes);
        all.filter(move |&way| match way {
            ReduceByArrival::Clairvoyant => commutes && p * n <= MOST_COMPARED,
            ReduceByArrival::PredictedTree => p * p <= MOST_COMPARED,
            ReduceByArrival::Binomial | ReduceByArrival::Fibonacci => p * p > MOST_COMPARED,
        })
    }

    /// The same. The linear tree and the ring do no better than those whose order is that of arrival, and SLT no better
    /// than PRR and Clairvoyant.
    fn allreduces(&self) -> impl Iterator<Item = AllreduceByArrival> {
        let (p, n) = (self.members(), self.segments as usize);
        let (all, commutes) = (AllreduceByArrival::ALL.iter().copied(), self.commutes);
        all.filter(move |&way| match way {
            AllreduceByArrival::Clairvoyant => commutes && 2 * p * n <= MOST_COMPARED,
            AllreduceByArrival::PreReducedRing => commutes && 2 * p * p <= MOST_COMPARED,
            AllreduceByArrival::Linear => !commutes && 2 * p * p <= MOST_COMPARED,
            AllreduceByArrival::Ring | AllreduceByArrival::SortedLinearTree => false,
        })
    }

    /// A member's schedule of a reduction.
    pub(super) fn reduce(&self, way: ReduceByArrival, s: &mut Schedule, m: Member, rounds: Rounds) {
        let (root, v) = (self.root, self.v);
        let tree = match way {
            ReduceByArrival::Clairvoyant => {
                return reduce_clairvoyant(s, m, &self.instance(), v, rounds);
            }
            ReduceByArrival::Binomial => Tree::Binomial,
            ReduceByArrival::Fibonacci => Tree::Fibonacci,
            ReduceByArrival::PredictedTree => {
                return reduce_pairs(s, m, self.predicted_tree().0.pairs.into_iter(), v, rounds);
            }
        };
        reduce_tree(s, m, (tree, self.commutes), root, v, rounds);
    }

    /// A member's schedule of an all-reduction.
    pub(super) fn allreduce(
        &self,
        way: AllreduceByArrival,
        s: &mut Schedule,
        m: Member,
        rounds: Rounds,
    ) {
        match self.chain(way) {
            Some(plan) => allreduce_chain(s, m, &plan, self.v, rounds),
            None => allreduce_clairvoyant(s, m, &self.instance(), self.v, rounds),
        }
    }

    fn ends_ns(&self, write: impl FnMut(&mut Schedule, Member)) -> Vec<u64> {
        predict::ends_ns(&self.machine, self.arrivals.times_ns(), write)
    }

    /// When the root has the result, ns.
    fn reduce_ns(&self, way: ReduceByArrival) -> f64 {
        let ends = match way {
            ReduceByArrival::Clairvoyant => {
                let (times, what) = (self.arrivals.times_ns(), (self.v, self.segments));
                predict::clairvoyant_ends_ns(&self.machine, times, what, |each| {
                    Scheduler::Bits.schedule(&self.instance(), each);
                })
            }
            ReduceByArrival::PredictedTree => {
                let (tree, _) = self.predicted_tree();
                self.ends_ns(|s, m| {
                    reduce_pairs(s, m, tree.pairs.iter().copied(), self.v, Rounds::Own)
                })
            }
            _ => self.ends_ns(|s, m| self.reduce(way, s, m, Rounds::Own)),
        };
        ends[self.root] as f64
    }

    /// When members have the result in the mean, ns.
    fn allreduce_ns(&self, way: AllreduceByArrival) -> f64 {
        let ends = match way {
            AllreduceByArrival::Clairvoyant => {
                let (times, what) = (self.arrivals.times_ns(), (self.v, self.segments));
                predict::clairvoyant_ends_ns(&self.machine, times, what, |each| {
                    to_all(&self.instance(), each);
                })
            }
            _ => self.ends_ns(|s, m| self.allreduce(way, s, m, Rounds::Own)),
        };
        predict::mean(&ends)
    }

    /// What is taken in the place of the usual reduction, if anything is.
    pub(super) fn best_reduce(&self, usual: Reduce) -> Option<ReduceByArrival> {
        let (root, v, commutes) = (self.root, self.v, self.commutes);
        if let Some(is_best) = self.is_predicted_best(usual.supersteps(self.members(), v)) {
            return is_best.then_some(ReduceByArrival::PredictedTree);
        }
        let write = |s: &mut Schedule, m| by_way::reduce((usual, commutes), s, m, root, v);
        let usual_ns = self.ends_ns(write)[root] as f64;
        least(usual_ns, self.reduces(), |way| self.reduce_ns(way))
    }

    /// The same of an all-reduction.
    pub(super) fn best_allreduce(&self, usual: Allreduce) -> Option<AllreduceByArrival> {
        if !self.is_worth_it(usual.supersteps(self.members(), self.v), true) {
            return None;
        }
        let write = |s: &mut Schedule, m| by_way::allreduce(usual, s, m, self.v);
        let usual_ns = predict::mean(&self.ends_ns(write));
        least(usual_ns, self.allreduces(), |way| self.allreduce_ns(way))
    }
}

/// Which takes least time, if that is not the usual algorithm: of those that take as long the first.
fn least<W>(usual_ns: f64, ways: impl Iterator<Item = W>, ns: impl Fn(W) -> f64) -> Option<W>
where
    W: Copy,
{
    let all = ways.map(|way| (way, ns(way)));
    let (way, least_ns) = all.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (least_ns < usual_ns).then_some(way)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lpf_core::machine::{Growth as OfG, Parameters};

    use super::*;

    /// When the root has the result, by a way, where one member is late by so much.
    fn end_ns(machine: &Machine, way: ReduceByArrival, late: usize, by_ns: u64) -> f64 {
        let mut times = [0; 8];
        times[late] = by_ns;
        let (v, arrivals) = (Vector { bytes: 1 << 20, element: 8 }, Estimates::new(&times, 1));
        let round_ns = [1, 1, predict::pair_ns(machine, 8, v)];
        let (machine, arrivals) = (machine.clone(), &arrivals);
        let pattern =
            Pattern { machine, arrivals, segments: 1, round_ns, root: 2, v, commutes: true };
        pattern.reduce_ns(way)
    }

    #[test]
    fn the_last_member_of_the_predicted_tree_sends_to_one_that_has_everything_else() {
        let parameters = Arc::new(Parameters::guess(OfG::MessagePassing));
        let machine = Machine::new(8, 8, 8, parameters);
        let v = Vector { bytes: 1 << 20, element: 8 };
        let pair_ns = predict::pair_ns(&machine, 8, v);
        let by_ns = 10 * pair_ns;
        for late in 0..8 {
            let ends = [
                ReduceByArrival::PredictedTree,
                ReduceByArrival::Binomial,
                ReduceByArrival::Fibonacci,
            ]
            .map(|way| end_ns(&machine, way, late, by_ns));
            assert!(ends[0] <= 1.01 * (by_ns + pair_ns) as f64, "{late}: {ends:?}, {pair_ns}");
            assert!(ends[0] <= ends[1] && ends[0] <= ends[2], "{late}: {ends:?}");
        }
    }
}
