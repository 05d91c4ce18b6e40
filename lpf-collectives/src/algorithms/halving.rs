//! Recursive halving and doubling (Rabenseifner), for any number of members.
//!
//! The largest power of two of them take part. Of the first members as many pairs are made as are too many;
//! one of a pair is its *speaker*: it combines the other's vector with its own before, and gives it the
//! result after, where the other needs it. So the order of operands is kept.

use super::member::Member;
use super::vector::{Vector, input};
use crate::blocks::{Span, halves};
use crate::schedule::{Buffer, Region, Schedule};

/// Who takes part.
#[derive(Clone, Copy, Debug)]
struct Speakers {
    /// Pairs among the first members.
    pairs: usize,
    /// Speakers: a power of two.
    count: usize,
    /// The root speaks for its pair.
    root: Option<usize>,
}

impl Speakers {
    fn of(members: usize, root: Option<usize>) -> Self {
        let count = 1 << members.ilog2();
        Speakers { pairs: members - count, count, root }
    }

    /// The number of a member among the speakers: its own, or its pair's.
    fn number(self, member: usize) -> usize {
        if member < 2 * self.pairs { member / 2 } else { member - self.pairs }
    }

    fn speaker(self, number: usize) -> usize {
        if number >= self.pairs {
            return number + self.pairs;
        }
        match self.root {
            Some(root) if root / 2 == number && root < 2 * self.pairs => root,
            _ => 2 * number,
        }
    }

    /// The other member of a pair.
    fn partner(self, member: usize) -> Option<usize> {
        (member < 2 * self.pairs).then_some(member ^ 1)
    }

    fn steps(self) -> u32 {
        self.count.ilog2()
    }
}

/// The first superstep, where there are pairs: speakers have both vectors after it. Whether this member
/// speaks, and where its operand is.
fn pair_up(
    s: &mut Schedule,
    m: Member,
    v: Vector,
    speakers: Speakers,
    acc: Buffer,
) -> (bool, Buffer) {
    let speaks = speakers.speaker(speakers.number(m.me)) == m.me;
    let mut at = Buffer::Input;
    if speakers.pairs == 0 {
        return (speaks, at);
    }
    if let Some(partner) = speakers.partner(m.me) {
        if speaks {
            s.fold(partner, input(v.span()), Region::new(acc, v.span()), partner < m.me, 0);
            at = acc;
        } else {
            s.send(partner, input(v.span()), false, 0);
        }
    }
    s.next_round();
    (speaks, at)
}

/// The last superstep, where there are pairs: speakers give the result in `acc`.
fn tell_partner(s: &mut Schedule, m: Member, v: Vector, speakers: Speakers, speaks: bool) {
    if speakers.pairs == 0 {
        return;
    }
    let whole = Region::new(Buffer::Output, v.span());
    if let Some(partner) = speakers.partner(m.me) {
        if speaks { s.give(partner, whole, 0) } else { s.take(partner, whole, 0) }
    }
    s.next_round();
}

/// What a speaker has of the vector after so many halvings.
fn share(v: Vector, number: usize, steps: u32) -> Span {
    (0..steps).fold(v.span(), |span, step| {
        let (lower, upper) = halves(span, v.granule());
        if number >> step & 1 == 0 { lower } else { upper }
    })
}

/// Halving: each speaker's share of the combined vectors, in `acc`.
fn halve(s: &mut Schedule, me: usize, speakers: Speakers, v: Vector, mut at: Buffer, acc: Buffer) {
    for step in 0..speakers.steps() {
        let partner = me ^ 1 << step;
        let to = speakers.speaker(partner);
        let (mine, theirs) = (share(v, me, step + 1), share(v, partner, step + 1));
        s.send(to, Region::new(at, theirs), false, 0);
        s.fold(to, Region::new(at, mine), Region::new(acc, mine), partner < me, 0);
        at = acc;
        s.next_round();
    }
}

/// Allreduce by halving and doubling: 2 ⌊log2 p⌋ supersteps, 2 n (p-1)/p in all where p is a power of two;
/// else two supersteps of n more.
pub(crate) fn allreduce_rabenseifner(s: &mut Schedule, m: Member, v: Vector) {
    let speakers = Speakers::of(m.members, None);
    let (speaks, at) = pair_up(s, m, v, speakers, Buffer::Output);
    let me = speakers.number(m.me);
    if speaks {
        halve(s, me, speakers, v, at, Buffer::Output);
        for step in (0..speakers.steps()).rev() {
            let partner = me ^ 1 << step;
            let to = speakers.speaker(partner);
            s.give(to, Region::new(Buffer::Output, share(v, me, step + 1)), 0);
            s.take(to, Region::new(Buffer::Output, share(v, partner, step + 1)), 0);
            s.next_round();
        }
    } else {
        (0..2 * speakers.steps()).for_each(|_| s.next_round());
    }
    tell_partner(s, m, v, speakers, speaks);
    if m.members == 1 {
        s.copy(input(v.span()), Region::new(Buffer::Output, v.span()));
    }
}

/// Allreduce by exchanging whole vectors (recursive doubling): ⌊log2 p⌋ supersteps of n; else two more.
/// Source and target of a round may be the same memory, so a vector is no longer than a cell.
pub(crate) fn allreduce_doubling(s: &mut Schedule, m: Member, v: Vector) {
    let speakers = Speakers::of(m.members, None);
    let (speaks, mut at) = pair_up(s, m, v, speakers, Buffer::Output);
    let me = speakers.number(m.me);
    let result = Region::new(Buffer::Output, v.span());
    for step in 0..speakers.steps() {
        if speaks {
            let partner = me ^ 1 << step;
            let (to, own) = (speakers.speaker(partner), Region::new(at, v.span()));
            s.send(to, own, false, 0);
            s.fold(to, own, result, partner < me, 0);
            at = Buffer::Output;
        }
        s.next_round();
    }
    tell_partner(s, m, v, speakers, speaks);
    if m.members == 1 {
        s.copy(input(v.span()), result);
    }
}

/// Reduce by halving, then shares go up to the root (Rabenseifner): 2 ⌊log2 p⌋ supersteps, 2 n (p-1)/p in
/// all where p is a power of two; else one superstep of n more.
pub(crate) fn reduce_rabenseifner(s: &mut Schedule, m: Member, root: usize, v: Vector) {
    let speakers = Speakers::of(m.members, Some(root));
    let acc = if m.me == root { Buffer::Output } else { Buffer::Scratch };
    let (speaks, at) = pair_up(s, m, v, speakers, acc);
    let (me, top) = (speakers.number(m.me), speakers.number(root));
    if speaks {
        halve(s, me, speakers, v, at, acc);
    } else {
        (0..speakers.steps()).for_each(|_| s.next_round());
    }
    for step in (0..speakers.steps()).rev() {
        // Those are left who are where the root is in all later halvings.
        let is_left = me >> (step + 1) == top >> (step + 1);
        if speaks && is_left {
            let partner = me ^ 1 << step;
            let to = speakers.speaker(partner);
            if me >> step & 1 == top >> step & 1 {
                s.take(to, Region::new(acc, share(v, partner, step + 1)), 0);
            } else {
                s.give(to, Region::new(acc, share(v, me, step + 1)), 0);
            }
        }
        s.next_round();
    }
    if m.members == 1 {
        s.copy(input(v.span()), Region::new(Buffer::Output, v.span()));
    }
}
