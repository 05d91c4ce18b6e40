//! The cost of an algorithm: one definition, for the choice, for `lpf cost` and for the documentation.
//!
//! A cost is counted in supersteps: how many, and how many bytes the busiest process sends or receives in
//! them. On a machine it takes `Σ(h g(w) + l)`, w being the mean length of a message, and the operator's time.
//! Elements are not divided, so blocks are as uneven as in the schedules: with fewer elements than
//! members some have none. Tests compare with the schedules, to the byte.
//!
//! A root is the first member here; with another root a superstep moves one block more or less.
//! A superstep without transfers is not counted, because with expected arrivals it does not exist. In full
//! supersteps it still has its sync.

use std::ops::Add;

use lpf_core::Pid;
use lpf_core::attr::SyncAttr;
use lpf_core::machine::Machine;

pub use crate::algorithms::Vector;
use crate::algorithms::{doublings, factors, log2_up, side};
use crate::blocks::{Blocks, Span, granule};
use crate::ways::*;

/// The supersteps of an algorithm, on any machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Supersteps {
    /// How many supersteps.
    pub count: f64,
    /// h, the bytes that the busiest process sends or receives, summed over them.
    pub h_bytes: f64,
    /// Messages that the busiest process sends or receives, summed over them.
    pub messages: f64,
    /// Bytes that the busiest process combines, summed over them.
    pub combined_bytes: f64,
}

impl Supersteps {
    /// Seconds on a machine, for groups of `members` processes and an operator as fast as a sum of f64.
    pub fn seconds(&self, machine: &Machine, members: Pid) -> f64 {
        let word = if self.messages > 0.0 { (self.h_bytes / self.messages) as usize } else { 0 };
        let g = machine.g(members, word.max(1), &SyncAttr::Default);
        let l = machine.l(members, word.max(1), &SyncAttr::Default);
        self.h_bytes * g + self.count * l + self.combined_bytes * machine.combining()
    }

    /// Several alike.
    fn times(self, n: f64) -> Self {
        let Supersteps { count, h_bytes, messages, combined_bytes } = self;
        Supersteps {
            count: n * count,
            h_bytes: n * h_bytes,
            messages: n * messages,
            combined_bytes: n * combined_bytes,
        }
    }
}

impl Add for Supersteps {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Supersteps {
            count: self.count + other.count,
            h_bytes: self.h_bytes + other.h_bytes,
            messages: self.messages + other.messages,
            combined_bytes: self.combined_bytes + other.combined_bytes,
        }
    }
}

/// One superstep whose messages are kept as they are; none if nothing moves.
fn moving(h_bytes: f64, messages: f64) -> Supersteps {
    match h_bytes > 0.0 {
        true => Supersteps { count: 1.0, h_bytes, messages, combined_bytes: 0.0 },
        false => Supersteps::default(),
    }
}

/// One whose messages are combined.
fn combining(h_bytes: f64, messages: f64) -> Supersteps {
    Supersteps { combined_bytes: h_bytes, ..moving(h_bytes, messages) }
}

/// Members without a partner of their own when the largest power of two take part: 1 if there are any.
fn has_pairs(p: usize) -> f64 {
    f64::from(u8::from(!p.is_power_of_two()))
}

fn others(p: usize) -> f64 {
    p as f64 - 1.0
}

fn up(p: usize) -> f64 {
    f64::from(log2_up(p))
}

/// Messages of the busiest member of a square: to the other groups, and in its own.
fn square(p: usize) -> [f64; 2] {
    [p.div_ceil(side(p)), side(p).min(p)].map(|messages| messages as f64 - 1.0)
}

/// How a vector is divided evenly among p members.
#[derive(Clone, Copy)]
struct Division {
    p: usize,
    whole: f64,
    first: f64,
    longest: f64,
    /// Members that have a part, but for the first.
    others: f64,
}

impl Division {
    fn new(whole: Span, granule: usize, p: usize) -> Self {
        let blocks = Blocks::divided(whole, granule, p);
        let (first, last) = (blocks.of(0).bytes, blocks.of(p - 1).bytes);
        // The first ones have a granule more than the rest; the last one has what is left of a granule, also
        // where it has no whole one.
        let granules = whole.bytes / granule;
        let is_apart = granules < p && last > 0;
        let used = granules.min(p) + usize::from(is_apart);
        Division {
            p,
            whole: whole.bytes as f64,
            first: first as f64,
            longest: first.max(last) as f64,
            others: (used - usize::from(first > 0)) as f64,
        }
    }

    /// Everybody gets his part of everybody's vector, and combines.
    fn reduce_scatter(self) -> Supersteps {
        combining(others(self.p) * self.longest, others(self.p))
    }

    /// Everybody sends his part to everybody.
    fn allgather(self) -> Supersteps {
        moving(others(self.p) * self.longest, others(self.p))
    }

    /// The first member gets all parts but its own; the same where it gives them.
    fn gather(self) -> Supersteps {
        moving(self.whole - self.first, self.others)
    }

    /// Parts go around.
    fn ring(self) -> Supersteps {
        combining(self.longest, 1.0).times(others(self.p))
    }
}

fn even(p: usize, v: Vector) -> Division {
    Division::new(v.span(), granule(v.bytes, v.element, p), p)
}

/// What everybody gets when the root, which has all, gathers no more: the second half of a two-phase broadcast.
fn spread(p: usize, v: Vector) -> Supersteps {
    let (blocks, last) = (v.blocks(p), p - 1);
    let bytes = |member: usize| blocks.of(member).bytes;
    // The first blocks are longer than the rest, and what is left of a line is in the last one.
    let longest = bytes(1).max(bytes(last)) as f64;
    let shortest = bytes(last).min(bytes(1.max(last - 1))) as f64;
    let sent = (others(p) * bytes(0) as f64).max((others(p) - 1.0) * longest);
    moving(sent.max(v.bytes as f64 - shortest), others(p))
}

/// Vectors that halves of the largest power of two of p members divide again and again: what that takes, each combining
/// its part of what all have, and what it takes that the parts come back to the first member.
fn halvings(p: usize, v: Vector) -> (Supersteps, Supersteps) {
    let (mut down, mut back) = Default::default();
    // The first part of the first parts is the longest in whole granules; the last part of the last ones
    // has what is left of a granule.
    let (mut first, mut last) = (v.span(), v.span());
    for _ in 0..p.ilog2() {
        let granule = v.granule();
        let all = [first, last].map(|whole| Division::new(whole, granule, 2));
        let most = |of: fn(Division) -> f64| of(all[0]).max(of(all[1]));
        down = down + combining(most(|d| d.longest), 1.0);
        back = back + moving(most(|d| d.whole - d.first), most(|d| d.others));
        let parts = |whole| Blocks::divided(whole, granule, 2);
        (first, last) = (parts(first).of(0), parts(last).of(1));
    }
    (down, back)
}

/// The same of groups of k, whose sizes multiply to p: each keeps a share of the blocks that its group has.
fn exchanges(p: usize, v: Vector) -> (Supersteps, Supersteps) {
    let (mut down, mut back) = Default::default();
    let (blocks, mut width) = (v.blocks(p), p);
    let bytes = |first: usize, width: usize| blocks.between(first, first + width).bytes as f64;
    for k in factors(p) {
        let share = width / k;
        // As of halves, the first and the last are the longest.
        let longest = bytes(0, share).max(bytes(p - share, share));
        down = down + combining(others(k) * longest, others(k));
        let ends = [0, p - width].map(|first| {
            let shares = (1..k).map(|nth| bytes(first + nth * share, share));
            (shares.clone().sum::<f64>(), shares.filter(|&bytes| bytes > 0.0).count() as f64)
        });
        back = back + moving(ends[0].0.max(ends[1].0), ends[0].1.max(ends[1].1));
        width = share;
    }
    (down, back)
}

/// Bytes of the block of one of p members, where all have blocks of one length: of whole elements.
fn block(p: usize, v: Vector) -> f64 {
    let element = v.element.max(1);
    (v.bytes.div_ceil(element).div_ceil(p) as f64) * element as f64
}

impl Broadcast {
    /// Of a vector to p members.
    pub fn supersteps(self, p: usize, v: impl Into<Vector>) -> Supersteps {
        let v = v.into();
        let n = v.bytes as f64;
        match self {
            Broadcast::Direct => moving(others(p) * n, others(p)),
            Broadcast::Binomial => moving(n, 1.0).times(up(p)),
            Broadcast::Square => {
                let [between, inside] = square(p).map(|messages| moving(messages * n, messages));
                between + inside
            }
            Broadcast::TwoPhase if p == 1 => Supersteps::default(),
            Broadcast::TwoPhase => even(p, v).gather() + spread(p, v),
        }
    }
}

impl Reduce {
    /// Of vectors of p members, to the first.
    pub fn supersteps(self, p: usize, v: impl Into<Vector>) -> Supersteps {
        let v = v.into();
        let (n, even) = (v.bytes as f64, even(p, v));
        match self {
            Reduce::Direct => combining(others(p) * n, others(p)),
            Reduce::Transpose => even.reduce_scatter() + even.gather(),
            Reduce::Square => {
                let [between, inside] = square(p).map(|messages| combining(messages * n, messages));
                between + inside
            }
            Reduce::Binomial => combining(n, 1.0).times(up(p)),
            Reduce::Rabenseifner => {
                let (down, back) = halvings(p, v);
                combining(n, 1.0).times(has_pairs(p)) + down + back
            }
            Reduce::Radix => {
                let (down, back) = exchanges(p, v);
                down + back
            }
            Reduce::Ring => even.ring() + even.gather(),
        }
    }
}

impl Allreduce {
    /// Of vectors of p members.
    pub fn supersteps(self, p: usize, v: impl Into<Vector>) -> Supersteps {
        let v = v.into();
        let (n, even) = (v.bytes as f64, even(p, v));
        let pairs = (combining(n, 1.0) + moving(n, 1.0)).times(has_pairs(p));
        match self {
            Allreduce::Doubling => combining(n, 1.0).times(f64::from(p.ilog2())) + pairs,
            Allreduce::Ring => even.ring() + kept(even.ring()),
            Allreduce::Rabenseifner => {
                let (down, _) = halvings(p, v);
                down + kept(down) + pairs
            }
            Allreduce::Transpose => even.reduce_scatter() + even.allgather(),
        }
    }
}

/// The same messages, none of them combined.
fn kept(supersteps: Supersteps) -> Supersteps {
    Supersteps { combined_bytes: 0.0, ..supersteps }
}

impl ReduceScatter {
    /// Of vectors of p members, in blocks of one length.
    pub fn supersteps(self, p: usize, v: impl Into<Vector>) -> Supersteps {
        let block = block(p, v.into());
        match self {
            ReduceScatter::Direct => combining(others(p) * block, others(p)),
            ReduceScatter::Ring => combining(block, 1.0).times(others(p)),
        }
    }
}

impl Scan {
    /// Of vectors of p members; exclusive ones leave out the own vector.
    pub fn supersteps(self, p: usize, v: impl Into<Vector>, exclusive: bool) -> Supersteps {
        let n = v.into().bytes as f64;
        match (self, exclusive) {
            (Scan::Direct, false) => combining(others(p) * n, others(p)),
            // The nearest operand has nothing to be combined with.
            (Scan::Direct, true) => {
                let all = moving(others(p) * n, others(p));
                Supersteps { combined_bytes: (all.h_bytes - n).max(0.0), ..all }
            }
            (Scan::Tree, true) if p > 1 => moving(n, 1.0) + combining(n, 1.0).times(up(p - 1)),
            (Scan::Tree, _) => combining(n, 1.0).times(up(p)),
        }
    }
}

impl Gather {
    /// Of `v` bytes in all at p members, in blocks of one length; the same for scatter.
    pub fn supersteps(self, p: usize, v: impl Into<Vector>) -> Supersteps {
        let block = block(p, v.into());
        match self {
            Gather::Direct => moving(others(p) * block, others(p)),
            Gather::Binomial => doubled(p, |count| moving(count * block, 1.0)),
        }
    }
}

/// Supersteps of twice as many blocks each, as far as there are any.
fn doubled(p: usize, of: impl Fn(f64) -> Supersteps) -> Supersteps {
    let count = |distance: usize| distance.min(p - distance) as f64;
    doublings(p).map(|distance| of(count(distance))).fold(Supersteps::default(), Add::add)
}

impl Allgather {
    /// Of `v` bytes in all at p members, in blocks of one length.
    pub fn supersteps(self, p: usize, v: impl Into<Vector>) -> Supersteps {
        let block = block(p, v.into());
        match self {
            Allgather::Direct => moving(others(p) * block, others(p)),
            // Somebody's blocks go around the end of the vector, and are two messages.
            Allgather::Bruck => doubled(p, |count| moving(count * block, count.min(2.0))),
            Allgather::Ring => moving(block, 1.0).times(others(p)),
        }
    }
}

impl Alltoall {
    /// Of `v` bytes in all at each of p members, in blocks of one length.
    pub fn supersteps(self, p: usize, v: impl Into<Vector>) -> Supersteps {
        let block = block(p, v.into());
        match self {
            Alltoall::Direct => moving(others(p) * block, others(p)),
            Alltoall::Bruck => doublings(p)
                .map(|step| (0..p).filter(|distance| distance & step != 0).count() as f64)
                .map(|count| moving(count * block, 1.0))
                .fold(Supersteps::default(), Add::add),
        }
    }
}

/// Predictions that differ by less say nothing of which is faster: what g and l are measured as differs by more.
const EQUAL: f64 = 1.05;

/// Which one to take: of those predicted within 5 % of the least the one of fewest supersteps, of several such
/// the cheapest, of equal ones the first. What has no cost cannot be used.
pub(crate) fn choose<W: Copy>(
    ways: &[W],
    cost: impl Fn(W) -> Option<Supersteps>,
    seconds: impl Fn(&Supersteps) -> f64,
) -> usize {
    let predicted = || {
        let costs = ways.iter().map(|&way| cost(way)).enumerate();
        costs.filter_map(|(nth, cost)| cost.map(|cost| (nth, cost.count, seconds(&cost))))
    };
    let least = predicted().map(|(.., seconds)| seconds).fold(f64::INFINITY, f64::min);
    predicted()
        .filter(|(.., seconds)| *seconds <= EQUAL * least)
        .min_by(|(_, a, of_a), (_, b, of_b)| a.total_cmp(b).then(of_a.total_cmp(of_b)))
        .map_or(0, |(nth, ..)| nth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::by_way::*;
    use crate::algorithms::{Member, Results};
    use crate::schedule::{Buffer, Schedule};
    use crate::simulate::{Superstep, schedules, supersteps};

    /// What is chosen of ways with these supersteps and seconds; none for those that cannot be used.
    fn chosen(ways: &[Option<(f64, f64)>]) -> usize {
        // The seconds stand in the place of the bytes.
        let cost = |way: Option<(f64, f64)>| {
            way.map(|(count, h_bytes)| Supersteps { count, h_bytes, ..Supersteps::default() })
        };
        choose(ways, cost, |one| one.h_bytes)
    }

    #[test]
    fn the_least_prediction_is_chosen_and_of_those_near_it_the_fewest_supersteps() {
        assert_eq!(chosen(&[Some((1.0, 3.0)), Some((4.0, 2.0)), Some((2.0, 2.2))]), 1);
        assert_eq!(chosen(&[Some((4.0, 2.0)), Some((3.0, 2.09)), Some((1.0, 2.11))]), 1);
        assert_eq!(chosen(&[Some((4.0, 1.9)), Some((3.0, 1.95)), Some((3.0, 1.93))]), 2);
        assert_eq!(chosen(&[Some((2.0, 1.0)), Some((1.0, 1.0)), Some((1.0, 1.0))]), 1);
        assert_eq!(chosen(&[None, Some((9.0, 5.0)), None]), 1);
        assert_eq!(chosen(&[Some((1.0, 0.0)), Some((0.0, 0.0))]), 1);
    }

    /// Compares a formula with what the schedules of all members do, superstep for superstep that moves
    /// anything.
    fn same(
        what: &str,
        p: usize,
        v: Vector,
        cost: Supersteps,
        write: impl Fn(&mut Schedule, Member),
    ) {
        let all = supersteps(&schedules(p, write));
        let sum = |of: fn(&Superstep) -> usize| all.iter().map(of).sum::<usize>() as f64;
        let done = Supersteps {
            count: sum(|s| usize::from(s.h > 0)),
            h_bytes: sum(|s| s.h),
            messages: sum(|s| s.messages),
            combined_bytes: sum(|s| s.combined),
        };
        assert_eq!(cost, done, "{what} of {p}: {v:?}");
    }

    /// Numbers of elements that divide evenly, and that do not.
    fn lengths(p: usize) -> impl Iterator<Item = usize> {
        let even = 64 * p * (1 << p.ilog2()) * 12;
        [0, 1, 2, p - 1, p, p + 1, 2 * p + 1, 61, 8 * p - 1, 8 * p + 3, 127 * p + 5, 9973, even]
            .into_iter()
    }

    /// Vectors of such lengths: with elements of a byte, of a part of a line, of none, and long ones.
    fn vectors(p: usize) -> impl Iterator<Item = Vector> {
        let of = move |element| lengths(p).map(move |n| Vector { bytes: n * element, element });
        [1, 8, 12, 4096].into_iter().flat_map(of)
    }

    /// Blocks of one length, for all members together.
    fn blocks(p: usize) -> impl Iterator<Item = (Vector, Blocks<'static>)> {
        [0, 1, 5, 64].into_iter().map(move |len| {
            let bytes = 8 * len;
            let blocks = Blocks::Equal { first: 0, stride: bytes, bytes };
            (Vector { bytes: p * bytes, element: 8 }, blocks)
        })
    }

    const MEMBERS: std::ops::RangeInclusive<usize> = 1..=33;

    #[test]
    fn formulas_say_what_schedules_do_to_whole_vectors() {
        for (p, v) in MEMBERS.flat_map(|p| vectors(p).map(move |v| (p, v))) {
            for &way in Broadcast::ALL {
                let write = |s: &mut _, m| broadcast(way, s, m, 0, v);
                same(way.name(), p, v, way.supersteps(p, v), write);
            }
            for &way in Reduce::ALL {
                let write = |s: &mut _, m| reduce((way, true), s, m, 0, v);
                same(way.name(), p, v, way.supersteps(p, v), write);
            }
            for &way in Allreduce::ALL {
                let write = |s: &mut _, m| allreduce(way, s, m, v);
                same(way.name(), p, v, way.supersteps(p, v), write);
            }
            for (&way, exclusive) in Scan::ALL.iter().flat_map(|way| [(way, false), (way, true)]) {
                let write = |s: &mut _, m| scan(way, s, m, v, exclusive);
                same(way.name(), p, v, way.supersteps(p, v, exclusive), write);
            }
        }
    }

    #[test]
    fn formulas_say_what_schedules_do_to_blocks() {
        for (p, (v, blocks)) in MEMBERS.flat_map(|p| blocks(p).map(move |all| (p, all))) {
            for &way in ReduceScatter::ALL {
                let place = Results::Place(Buffer::Output);
                let write = |s: &mut _, m| reduce_scatter(way, s, m, blocks, place);
                same(way.name(), p, v, way.supersteps(p, v), write);
            }
            for &way in Gather::ALL {
                let cost = way.supersteps(p, v);
                same(way.name(), p, v, cost, |s, m| gather(way, s, m, 0, blocks));
                same(way.name(), p, v, cost, |s, m| scatter(way, s, m, 0, blocks));
            }
            for &way in Allgather::ALL {
                let write = |s: &mut _, m| allgather(way, s, m, blocks);
                same(way.name(), p, v, way.supersteps(p, v), write);
            }
            for &way in Alltoall::ALL {
                let write = |s: &mut _, m| alltoall(way, s, m, blocks);
                same(way.name(), p, v, way.supersteps(p, v), write);
            }
        }
    }

    #[test]
    fn blocks_hold_whole_elements() {
        let one = Vector { bytes: 4096, element: 4096 };
        assert_eq!(Allreduce::Transpose.supersteps(64, one).h_bytes, 2.0 * 63.0 * 4096.0);
        // Of blocks that do not come out even, the longest.
        let five = Vector { bytes: 40, element: 8 };
        assert_eq!(Alltoall::Direct.supersteps(4, five).h_bytes, 3.0 * 16.0);
    }
}
