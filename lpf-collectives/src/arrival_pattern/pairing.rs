//! Trees that grow as members arrive: Tree-dyn and Non-Commut-Tree-dyn (Benoit, Canon and Marchal 2013).
//!
//! A member that waits for nothing is *idle*. Two idle members are made a pair: one sends its whole vector to
//! the other, which combines and is idle again. One thread makes the pairs, from the events so far, without
//! predictions. Unlike in the slides, the result has a root: the root never sends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use lpf_core::Pid;

/// The members that may be paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Growth {
    /// Any two members (Tree-dyn): at most one waits. For operators that commute.
    Any,
    /// Neighbours in the order of members: a member with the one before, or else the one behind (Non-Commut-Tree-dyn).
    Neighbours,
}

/// The record of a tree: senders and receivers, in the order in which its pairs were made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pairing {
    pub(crate) members: usize,
    pub(crate) root: usize,
    pub(crate) growth: Growth,
    pub(crate) pairs: Vec<[Pid; 2]>,
}

/// Why pairs are not a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTree(String);

impl fmt::Display for NoTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoTree {}

impl Pairing {
    /// The tree of these pairs, each a sender and a receiver, in the order in which they were made.
    ///
    /// # Errors
    /// The reason, if they are not a tree of all members to the root, or if a pair has to be neighbours and is not.
    pub fn new(
        growth: Growth,
        members: usize,
        root: usize,
        pairs: Vec<[Pid; 2]>,
    ) -> Result<Self, NoTree> {
        if pairs.len() + 1 != members || root >= members {
            let text = format!(
                "{} pairs are not a tree of {members} members to member {root}",
                pairs.len()
            );
            return Err(NoTree(text));
        }
        let mut state = Pairs::new(growth, members, root);
        for &[from, to] in &pairs {
            if !state.can_be(from, to) {
                let text = format!("member {from} cannot send to member {to} here");
                return Err(NoTree(text));
            }
            state.join(from, to);
        }
        Ok(Pairing { members, root, growth, pairs })
    }

    /// The tree of members that become idle at these times. The transfer of a pair takes `transfer` ns, and its receiver
    /// then combines for `combine` ns. Events at the same time happen in the order of members.
    pub fn of_times(
        growth: Growth,
        root: usize,
        arrivals: &[u64],
        mut transfer: impl FnMut(usize, usize) -> u64,
        mut combine: impl FnMut(usize) -> u64,
    ) -> (Self, u64) {
        let members = arrivals.len();
        let mut state = Pairs::new(growth, members, root);
        let idle = arrivals.iter().enumerate().map(|(member, &time)| Reverse((time, member)));
        let mut events: BinaryHeap<_> = idle.collect();
        let (mut pairs, mut end) = (Vec::with_capacity(members.saturating_sub(1)), 0);
        while let Some(Reverse((now, member))) = events.pop() {
            end = now;
            if let Some([from, to]) = state.idle(member) {
                pairs.push([from, to]);
                let takes = transfer(from, to).saturating_add(combine(to));
                events.push(Reverse((now.saturating_add(takes), to)));
            }
        }
        (Pairing { members, root, growth, pairs }, end)
    }

    /// Senders and receivers.
    pub fn pairs(&self) -> &[[Pid; 2]] {
        &self.pairs
    }
}

/// What the arbiter knows of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has not been idle yet.
    Away,
    /// It waits for a pair.
    Waits,
    /// It is in a pair, or will be: it is to be idle again.
    Busy,
    /// It has sent all it had.
    Gone,
}

/// Makes pairs.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    growth: Growth,
    root: usize,
    states: Vec<State>,
    left: usize,
}

impl Pairs {
    pub(crate) fn new(growth: Growth, members: usize, root: usize) -> Self {
        Pairs { growth, root, states: vec![State::Away; members], left: members }
    }

    /// Members that hold something.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// A member is idle: whom it is paired with, if there is somebody: sender and receiver.
    pub(crate) fn idle(&mut self, member: usize) -> Option<[usize; 2]> {
        self.states[member] = State::Waits;
        let waits = |&other: &usize| other != member && self.states[other] == State::Waits;
        let other = match self.growth {
            Growth::Any => (0..self.states.len()).find(waits),
            Growth::Neighbours => self.partners(member).into_iter().flatten().find(waits),
        }?;
        let [from, to] = if member == self.root { [other, member] } else { [member, other] };
        self.join(from, to);
        Some([from, to])
    }

    /// Who holds what is before and behind that of a member.
    fn partners(&self, member: usize) -> [Option<usize>; 2] {
        let holds = |&other: &usize| self.states[other] != State::Gone;
        [(0..member).rev().find(holds), (member + 1..self.states.len()).find(holds)]
    }

    fn can_be(&self, from: usize, to: usize) -> bool {
        let holds = |member| self.states.get(member).is_some_and(|&state| state != State::Gone);
        let is_near = self.growth == Growth::Any || {
            let is_it = |partner: &Option<usize>| *partner == Some(to);
            holds(from) && self.partners(from).iter().any(is_it)
        };
        from != to && from != self.root && holds(from) && holds(to) && is_near
    }

    fn join(&mut self, from: usize, to: usize) {
        self.states[from] = State::Gone;
        self.states[to] = State::Busy;
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Random, gamma, makespans, uniform};

    const BOTH: [Growth; 2] = [Growth::Any, Growth::Neighbours];

    #[test]
    fn trees_hold_everybody_once_and_end_at_the_root() {
        let mut random = Random(5);
        for _ in 0..20_000 {
            let members = 1 + random.below(12) as usize;
            let root = random.below(members as u64) as usize;
            let arrivals: Vec<u64> = (0..members).map(|_| random.below(20)).collect();
            for growth in BOTH {
                let [d, c] = [random.below(5), random.below(5)];
                let (tree, _) = Pairing::of_times(growth, root, &arrivals, |_, _| d, |_| c);
                let again = Pairing::new(growth, members, root, tree.pairs.clone());
                assert_eq!(again, Ok(tree), "{arrivals:?}");
            }
        }
    }

    #[test]
    fn members_that_are_idle_in_any_order_become_a_tree() {
        let mut random = Random(6);
        for _ in 0..20_000 {
            let members = 2 + random.below(9) as usize;
            let root = random.below(members as u64) as usize;
            let growth = BOTH[random.below(2) as usize];
            let mut state = Pairs::new(growth, members, root);
            let mut pairs: Vec<[Pid; 2]> = Vec::new();
            // Each member does what its pairs say, in their order, and is idle before each.
            let mut idle = vec![0; members];
            let mut steps = 0;
            while pairs.len() + 1 < members {
                steps += 1;
                assert!(steps < 10_000, "{growth:?} to {root}: stuck with {pairs:?}");
                let member = random.below(members as u64) as usize;
                let own = pairs.iter().filter(|pair| pair.contains(&member));
                let is_gone = own.clone().any(|pair| pair[0] == member);
                if is_gone || idle[member] > own.count() {
                    continue;
                }
                idle[member] += 1;
                pairs.extend(state.idle(member));
            }
            assert_eq!(state.left(), 1);
            let tree = Pairing::new(growth, members, root, pairs);
            assert!(tree.is_ok(), "{tree:?}");
        }
    }

    #[test]
    fn pairs_that_are_no_tree_are_refused() {
        let of = |growth, root, pairs: &[[Pid; 2]]| {
            Pairing::new(growth, 3, root, pairs.to_vec()).map(|_| ()).map_err(|why| why.to_string())
        };
        assert_eq!(of(Growth::Any, 0, &[[2, 1], [1, 0]]), Ok(()));
        assert_eq!(
            of(Growth::Any, 0, &[[1, 0], [1, 0]]),
            Err("member 1 cannot send to member 0 here".into())
        );
        assert_eq!(
            of(Growth::Any, 0, &[[0, 1], [1, 2]]),
            Err("member 0 cannot send to member 1 here".into())
        );
        assert_eq!(
            of(Growth::Any, 0, &[[1, 1], [2, 0]]),
            Err("member 1 cannot send to member 1 here".into())
        );
        assert_eq!(
            of(Growth::Any, 0, &[[9, 1], [2, 0]]),
            Err("member 9 cannot send to member 1 here".into())
        );
        assert_eq!(
            of(Growth::Neighbours, 0, &[[2, 0], [1, 0]]),
            Err("member 2 cannot send to member 0 here".into())
        );
        assert_eq!(
            of(Growth::Any, 0, &[[2, 1]]),
            Err("1 pairs are not a tree of 3 members to member 0".into())
        );
        assert_eq!(
            of(Growth::Any, 3, &[[2, 1], [1, 0]]),
            Err("2 pairs are not a tree of 3 members to member 3".into())
        );
    }

    /// Unit of the times above, ns.
    const UNIT: f64 = 1e9;

    /// Tree-dyn with exponential transfers of mean 1 that takes no time to combine. Of n members that are there
    /// together, n even, n/2 transfers begin at once; then there are n/2 - 1 under way until one ends, again and again:
    /// each number of transfers lasts for two ends, but the first of n/2 for one. Where n is odd the one that is over
    /// is paired at the first end, and all last for two.
    #[test]
    fn trees_of_anybody_take_as_long_as_known_in_the_mean_and_vary_as_much() {
        let runs = 10_000;
        for members in [2u32, 3, 4, 6, 7, 16, 63, 64, 128] {
            let mut random = Random(u64::from(members));
            let [mean, variance] = makespans(runs, || {
                let together = vec![0; members as usize];
                let mut transfer = || (-uniform(&mut random).ln() * UNIT) as u64;
                Pairing::of_times(Growth::Any, 0, &together, |_, _| transfer(), |_| 0).1 as f64
                    / UNIT
            });
            let (half, first) = ((members - 1) / 2, 2.0 / f64::from(members));
            let sum = |f: &dyn Fn(f64) -> f64| (1..=half).map(|i| f(f64::from(i))).sum::<f64>();
            let once = f64::from(1 - members % 2);
            let known = [
                2.0 * sum(&|i| 1.0 / i) + once * first,
                2.0 * sum(&|i| 1.0 / (i * i)) + once * first * first,
            ];
            for ((is, off), known) in [mean, variance].into_iter().zip(known) {
                let z = (is - known) / off;
                assert!(z.abs() < 4.0, "{members} members: {is} and not {known}, {z} deviations");
            }
        }
    }

    /// 64 members that are there together, transfers of mean 1 whose deviation is `cv`, and combinations that take no
    /// time, or as long as another transfer would. What simulations of the slides' rules give, in which no root is
    /// kept: it makes no difference as long as a member's combinations have nothing in common.
    #[test]
    fn makespans_are_those_of_the_model() {
        let runs = 4000;
        let table: [(Growth, f64, bool, f64); 14] = [
            (Growth::Any, 0.0, false, 6.0),
            (Growth::Any, 0.1, false, 6.32),
            (Growth::Any, 0.5, false, 6.88),
            (Growth::Any, 1.0, false, 8.08),
            (Growth::Any, 2.0, false, 12.6),
            (Growth::Any, 0.0, true, 12.0),
            (Growth::Any, 1.0, true, 14.53),
            (Growth::Neighbours, 0.0, false, 6.0),
            (Growth::Neighbours, 0.1, false, 7.20),
            (Growth::Neighbours, 0.5, false, 7.70),
            (Growth::Neighbours, 1.0, false, 9.13),
            (Growth::Neighbours, 2.0, false, 13.8),
            (Growth::Neighbours, 0.0, true, 12.0),
            (Growth::Neighbours, 1.0, true, 16.36),
        ];
        for (growth, cv, combines, known) in table {
            let mut random = Random(7);
            let [(mean, off), _] = makespans(runs, || {
                let mut time = || gamma(&mut random, cv);
                // Both at once, which is the same: they come one behind the other.
                let mut both = || time() + if combines { time() } else { 0.0 };
                let transfer = |_, _| (both() * UNIT) as u64;
                Pairing::of_times(growth, 0, &[0; 64], transfer, |_| 0).1 as f64 / UNIT
            });
            let is = format!("{growth:?}, {cv}, {combines}: {mean} ({off}) and not {known}");
            // Long tails are known to a tenth.
            let rounded = if cv > 1.0 { 0.06 } else { 0.01 };
            assert!((mean - known).abs() < 4.0 * off + rounded, "{is}");
        }
    }

    /// Whatever transfers take, from 1 to some `most`: with pairs of anybody never more than `most` times what any tree
    /// takes where each takes 1.
    #[test]
    fn trees_of_anybody_take_no_longer_than_their_bound() {
        let mut random = Random(8);
        for _ in 0..5000 {
            let (members, most) = (2 + random.below(127) as usize, 1 + random.below(10));
            let transfer = |_, _| 1 + random.below(most);
            let (_, end) = Pairing::of_times(Growth::Any, 0, &vec![0; members], transfer, |_| 0);
            let least = u64::from(members.next_power_of_two().ilog2());
            assert!(end <= most * least, "{members} members, up to {most}: {end}");
        }
    }
}
