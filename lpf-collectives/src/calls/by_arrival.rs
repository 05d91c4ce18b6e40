//! Reductions of members that know when each of them arrives.

use std::time::{Duration, Instant};

use bytemuck::Pod;
use lpf_core::machine::Machine;
use lpf_core::{Context, Lpf, Pid, Result};

use super::{OperatorName, Plan, RawOperator, What, combining};
use crate::algorithms::by_arrival::{
    Rounds, allreduce_chain, allreduce_clairvoyant, reduce_clairvoyant, reduce_pairs, reduce_tree,
};
use crate::algorithms::{Member, Vector, by_way};
use crate::arrival_pattern::chain::{Chain, Plan as ChainPlan};
use crate::arrival_pattern::clairvoyant::{Instance, MOST, Scheduler, to_all};
use crate::arrival_pattern::pairing::{Growth, Pairing};
use crate::arrival_pattern::trees::Tree;
use crate::arrival_pattern::{Estimates, predict};
use crate::collectives::{Collectives, Mode, Preferences, misuse, mixed};
use crate::cost::Supersteps;
use crate::kinds::Collective;
use crate::memory::{Source, Target};
use crate::operators::Operator;
use crate::run::Buffers;
use crate::schedule::Schedule;
use crate::scratch::Scratch;
use crate::shared::Place;
use crate::ways::{AllreduceByArrival, ReduceByArrival};

/// What a call's schedule is made of: the same at all members.
struct Pattern<'a> {
    machine: Machine,
    arrivals: &'a Estimates,
    segments: u32,
    /// What a round of a Clairvoyant schedule, a step of a chain and a pair of a tree are taken to last, ns.
    round_ns: [u64; 3],
    root: usize,
    v: Vector,
    commutes: bool,
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
        let instance = Instance::new(self.segments, self.root as u32, self.round_ns[0], times);
        instance.expect("a root that is a member, and times of less than 2^62 ns")
    }

    /// The tree that would grow, and when its root would be done, ns.
    fn grown(&self) -> (Pairing, u64) {
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
        1e9 * usual.seconds(&self.machine, self.members() as Pid)
    }

    /// Whether the tree that is foreseen is taken, where that needs no comparison with all others: it is if who comes
    /// last finds all else in one place, for whatever is done, nobody has the result before that one has sent all it
    /// has, or has taken all else. And where a comparison is not worth its time it is, if it ends before the usual
    /// algorithm would that begins with the last one.
    fn grows(&self, usual: Supersteps) -> Option<bool> {
        let (p, usual_ns) = (self.members(), self.usual_ns(usual));
        let (of_core, is_worth_it) =
            (predict::of_core(&self.machine, p), self.is_worth_it(usual, false));
        let foreseen = (p + p * p / 64) as f64;
        if p * p > MOST_COMPARED || usual_ns < 2.0 * COMPARED_NS * foreseen / of_core {
            return (!is_worth_it).then_some(false);
        }
        let ((_, end), last) = (self.grown(), self.arrivals.spread_ns());
        match end <= last.saturating_add(self.round_ns[2]) {
            true => Some(true),
            false => (!is_worth_it).then_some((end as f64) < last as f64 + usual_ns),
        }
    }

    /// What is worth the time of its schedule, and fits the operator. Static trees do no better than the one that is
    /// foreseen.
    fn reduces(&self) -> impl Iterator<Item = ReduceByArrival> + Clone {
        let (p, n) = (self.members(), self.segments as usize);
        let (all, commutes) = (ReduceByArrival::ALL.iter().copied(), self.commutes);
        all.filter(move |&way| match way {
            ReduceByArrival::Clairvoyant => commutes && p * n <= MOST_COMPARED,
            ReduceByArrival::Grown => p * p <= MOST_COMPARED,
            ReduceByArrival::Binomial | ReduceByArrival::Fibonacci => p * p > MOST_COMPARED,
        })
    }

    /// The same. The linear tree and the ring do no better than those whose order is that of arrival, and SLT no better
    /// than PRR and Clairvoyant.
    fn allreduces(&self) -> impl Iterator<Item = AllreduceByArrival> + Clone {
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
    fn reduce(&self, way: ReduceByArrival, s: &mut Schedule, m: Member, rounds: Rounds) {
        let (root, v) = (self.root, self.v);
        let tree = match way {
            ReduceByArrival::Clairvoyant => {
                return reduce_clairvoyant(s, m, &self.instance(), v, rounds);
            }
            ReduceByArrival::Binomial => Tree::Binomial,
            ReduceByArrival::Fibonacci => Tree::Fibonacci,
            ReduceByArrival::Grown => {
                return reduce_pairs(s, m, self.grown().0.of_members(), v, rounds);
            }
        };
        reduce_tree(s, m, (tree, self.commutes), root, v, rounds);
    }

    /// A member's schedule of an all-reduction.
    fn allreduce(&self, way: AllreduceByArrival, s: &mut Schedule, m: Member, rounds: Rounds) {
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
            ReduceByArrival::Grown => {
                let (tree, _) = self.grown();
                self.ends_ns(|s, m| reduce_pairs(s, m, tree.of_members(), self.v, Rounds::Own))
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
}

/// Which takes least time, if that is not the usual algorithm: of those that take as long the first.
fn least(usual: f64, ahead: impl Iterator<Item = f64>) -> Option<usize> {
    let least = ahead.enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    (least.1 < usual).then_some(least.0)
}

impl<'s> Collectives<'s> {
    /// Everybody's `x`, combined, becomes the root's `y`. Which member sends what to whom depends on when each is
    /// expected ([`Estimates`], the same at every member): who is there begins, and who comes last has to send no
    /// more than his own. Wrong estimates cost time and nothing else.
    ///
    /// `y` is as long as `x` at every member. At the others it is room for what is under way, and of no use after.
    /// Where members come together, it is [`reduce`](Self::reduce).
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce), and *misuse* where there are not as many estimates as members.
    #[track_caller]
    pub fn reduce_by_arrival<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arrivals: &Estimates,
        root: usize,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (root, x) = (self.root(ctx, root)?, self.inside(ctx, x.view())?);
        let y = self.as_long(ctx, y.view(), x.len)?;
        let combine = &mut combining::<T, _>(operator);
        let operator = RawOperator::of(operator, combine);
        let commutes = operator.commutes;
        let pattern = self.pattern(ctx, arrivals, root, &operator, x.len)?;
        let usable = |&way: &_| commutes || way != ReduceByArrival::Clairvoyant;
        let way = self.preferences.reduce_by_arrival.or_else(|| {
            let chosen = self.ahead(Collective::Reduce, &pattern, || {
                let usual = self.usual_reduce(ctx, pattern.v, commutes);
                if let Some(grows) = pattern.grows(usual.supersteps(self.len(), pattern.v)) {
                    return if grows { 1 + ReduceByArrival::Grown as usize } else { 0 };
                }
                let write = |s: &mut Schedule, m| {
                    by_way::reduce((usual, commutes), s, m, root, pattern.v);
                };
                let usual_ns = pattern.ends_ns(write)[root] as f64;
                let ways = || pattern.reduces();
                let chosen = least(usual_ns, ways().map(|way| pattern.reduce_ns(way)));
                chosen.and_then(|nth| ways().nth(nth)).map_or(0, |way| 1 + way as usize)
            });
            ReduceByArrival::ALL.get(chosen?).copied()
        });
        let places = (x.place, y.place, x.len);
        let Some(way) = way.filter(usable) else {
            // SAFETY: views' memory is their section's, borrowed during the call.
            return unsafe {
                self.reduce_places(ctx, (root, Self::ordinary(&pattern)), operator, places)
            };
        };
        let what = What::new(Collective::Reduce, way as usize, pattern.v.bytes, pattern.v.element);
        let what = What { root, ..what };
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe {
            self.carry_out_by_arrival(ctx, what, &pattern, operator, places, |s, m, rounds| {
                pattern.reduce(way, s, m, rounds);
            })
        }
    }

    /// Everybody's `x`, combined, becomes everybody's `y`: as [`reduce_by_arrival`](Self::reduce_by_arrival).
    ///
    /// # Errors
    /// As [`reduce_by_arrival`](Self::reduce_by_arrival).
    #[track_caller]
    pub fn allreduce_by_arrival<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arrivals: &Estimates,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, y.view(), x.len)?;
        self.allreduce_places_by_arrival(ctx, arrivals, operator, (x.place, y.place, x.len))
    }

    /// Everybody's `x`, combined, becomes everybody's `x`: as [`allreduce_by_arrival`](Self::allreduce_by_arrival).
    ///
    /// # Errors
    /// As [`reduce_by_arrival`](Self::reduce_by_arrival).
    #[track_caller]
    pub fn allreduce_in_place_by_arrival<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arrivals: &Estimates,
        operator: &impl Operator<T>,
        x: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        self.allreduce_places_by_arrival(ctx, arrivals, operator, (x.place, x.place, x.len))
    }

    #[track_caller]
    fn allreduce_places_by_arrival<L: Lpf, T: Pod, O: Operator<T>>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arrivals: &Estimates,
        operator: &O,
        places: (Place, Place, usize),
    ) -> Result<()> {
        let combine = &mut combining::<T, _>(operator);
        let operator = RawOperator::of(operator, combine);
        let commutes = operator.commutes;
        let pattern = self.pattern(ctx, arrivals, 0, &operator, places.2)?;
        let usable = |&way: &_| commutes || way == AllreduceByArrival::Linear;
        let way = self.preferences.allreduce_by_arrival.or_else(|| {
            let chosen = self.ahead(Collective::Allreduce, &pattern, || {
                let usual = self.usual_allreduce(ctx, pattern.v, commutes);
                if !pattern.is_worth_it(usual.supersteps(self.len(), pattern.v), true) {
                    return 0;
                }
                let write = |s: &mut Schedule, m| by_way::allreduce(usual, s, m, pattern.v);
                let usual_ns = predict::mean(&pattern.ends_ns(write));
                let ways = || pattern.allreduces();
                let chosen = least(usual_ns, ways().map(|way| pattern.allreduce_ns(way)));
                chosen.and_then(|nth| ways().nth(nth)).map_or(0, |way| 1 + way as usize)
            });
            AllreduceByArrival::ALL.get(chosen?).copied()
        });
        let Some(way) = way.filter(usable) else {
            // SAFETY: views' memory is their section's, borrowed during the call.
            return unsafe {
                self.allreduce_places(ctx, Self::ordinary(&pattern), operator, places)
            };
        };
        let (bytes, element) = (pattern.v.bytes, pattern.v.element);
        let what = What::new(Collective::Allreduce, way as usize, bytes, element);
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe {
            self.carry_out_by_arrival(ctx, what, &pattern, operator, places, |s, m, rounds| {
                pattern.allreduce(way, s, m, rounds);
            })
        }
    }

    #[track_caller]
    fn pattern<'a, L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        arrivals: &'a Estimates,
        root: usize,
        operator: &RawOperator<'_>,
        len: usize,
    ) -> Result<Pattern<'a>> {
        self.planning.set(Duration::ZERO);
        let has = arrivals.times_ns().len();
        if has != self.len() {
            let text = format!("{has} estimates for a group of {} members", self.len());
            return Err(misuse(ctx, text));
        }
        self.fits(ctx, operator.element)?;
        let v = Vector { bytes: len * operator.element, element: operator.element };
        let machine = ctx.probe();
        let (p, commutes, Preferences { segments, round_ns, .. }) =
            (self.len(), operator.commutes, self.preferences);
        let segments = segments.unwrap_or_else(|| predict::segments(&machine, p, v));
        let segments = segments.clamp(1, predict::most_segments(v));
        let segment_ns = |of| predict::segment_ns(&machine, p, v, of);
        let round_ns = round_ns.map_or_else(
            || [segment_ns(segments), segment_ns(p as u32), predict::pair_ns(&machine, p, v)],
            |round_ns| [round_ns; 3],
        );
        let round_ns = round_ns.map(|round_ns| round_ns.clamp(1, MOST - 1));
        Ok(Pattern { machine, arrivals, segments, round_ns, root, v, commutes })
    }

    /// Carries out a schedule on whole vectors, whose target is room at every member.
    ///
    /// # Safety
    /// As [`reduce_places`](Self::reduce_places), of the target at every member.
    #[track_caller]
    unsafe fn carry_out_by_arrival<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        what: What,
        pattern: &Pattern<'_>,
        RawOperator { commutes, name, combine, .. }: RawOperator<'_>,
        (x, y, len): (Place, Place, usize),
        mut write: impl FnMut(&mut Schedule, Member, Rounds),
    ) -> Result<()> {
        let rounds = self.rounds(ctx)?;
        let (site, pattern) = (pattern.arrivals.site(), Self::times(pattern));
        // A schedule that is kept is one of these rounds.
        let pattern = rounds.mixed_into(pattern).max(1);
        let what = What { commutes, operator: OperatorName(name), pattern, site, ..what };
        let plan = Plan { what, len, scratch: Scratch::default() };
        let buffers = Buffers { input: x, output: y };
        let (chosen_in, mut written_in) = (self.planning.get(), Duration::ZERO);
        let timed = |s: &mut Schedule, m: Member, _, _| {
            let start = Instant::now();
            write(s, m, rounds);
            written_in = start.elapsed();
        };
        // SAFETY: the caller's promise; the schedule lies in the vectors.
        let done = unsafe { self.carry_out(ctx, plan, combine, |_, _| buffers, timed) };
        self.planning.set(chosen_in + written_in);
        done
    }

    /// Where rounds end for all together they are as long as scratch is.
    #[track_caller]
    pub(super) fn rounds<L: Lpf>(&self, ctx: &Context<'s, L>) -> Result<Rounds> {
        let is_common = self.mode(ctx)? == Mode::Full || self.group.has_barriers();
        let longest = self.shared.borrow().room(self.len());
        Ok(if is_common { Rounds::Common { longest } } else { Rounds::Own })
    }

    /// What tells calls apart that are made of other times, or cut into other segments: not 0.
    fn times(pattern: &Pattern<'_>) -> u64 {
        let Pattern { arrivals, segments, round_ns: [round, tau, pair], .. } = *pattern;
        let numbers = [u64::from(segments), round, tau, pair, arrivals.grain_ns()];
        let all = arrivals.times_ns().iter().chain(&numbers);
        all.fold(0, |hash, &number| mixed(hash, number)).max(1)
    }

    /// What tells an ordinary algorithm's calls apart where estimates have led to it: the site, and a hash that no
    /// schedule by arrival has. Members with other estimates are found whatever those lead to. Where all come together
    /// it is the ordinary call.
    fn ordinary(pattern: &Pattern<'_>) -> [u64; 2] {
        let apart =
            if pattern.arrivals.spread_ns() > 0 { mixed(Self::times(pattern), 1) | 1 } else { 0 };
        [pattern.arrivals.site(), apart]
    }

    /// What was chosen for a pattern, or is now; nothing where it is the ordinary algorithm, as it is where all come
    /// together and there is nothing to gain.
    fn ahead(
        &self,
        kind: Collective,
        pattern: &Pattern<'_>,
        choose: impl FnOnce() -> usize,
    ) -> Option<usize> {
        if pattern.arrivals.spread_ns() == 0 {
            return None;
        }
        let Vector { bytes, element } = pattern.v;
        let small = (pattern.root as u64) << 9 | u64::from(pattern.commutes) << 8 | kind as u64;
        let vector = mixed(bytes as u64, element as u64);
        let key = mixed(mixed(Self::times(pattern), small), vector).max(1);
        let timed = || {
            let start = Instant::now();
            let chosen = choose();
            self.planning.set(start.elapsed());
            chosen
        };
        self.choices.of(key, timed).checked_sub(1)
    }
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
    fn in_the_tree_that_is_foreseen_who_is_late_sends_to_who_has_all_else() {
        let parameters = Arc::new(Parameters::guess(OfG::MessagePassing));
        let machine = Machine::new(8, 8, 8, parameters);
        let v = Vector { bytes: 1 << 20, element: 8 };
        let pair_ns = predict::pair_ns(&machine, 8, v);
        let by_ns = 10 * pair_ns;
        for late in 0..8 {
            let ends =
                [ReduceByArrival::Grown, ReduceByArrival::Binomial, ReduceByArrival::Fibonacci]
                    .map(|way| end_ns(&machine, way, late, by_ns));
            assert!(ends[0] <= 1.01 * (by_ns + pair_ns) as f64, "{late}: {ends:?}, {pair_ns}");
            assert!(ends[0] <= ends[1] && ends[0] <= ends[2], "{late}: {ends:?}");
        }
    }
}
