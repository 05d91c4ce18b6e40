//! Radix-K: rounds of exchanges in groups of k, whose sizes multiply to p (Peterka and others).

use super::{Member, Vector, input};
use crate::blocks::{Blocks, Span};
use crate::schedule::{Buffer, Region, Schedule};

/// The sizes of the groups: prime factors, small ones put together up to this.
const LARGEST: usize = 4;

/// The sizes of the groups of a number of members, from the nearest members on. Their product is the
/// number.
pub(crate) fn factors(members: usize) -> impl Iterator<Item = usize> {
    let mut left = members;
    std::iter::from_fn(move || {
        if left <= 1 {
            return None;
        }
        let two = left.is_multiple_of(LARGEST).then_some(LARGEST);
        let odd = || (2..).take_while(|f| f * f <= left).find(|f| left.is_multiple_of(*f));
        let factor = two.or_else(odd).unwrap_or(left);
        left /= factor;
        Some(factor)
    })
}

fn part(span: Span, v: Vector, count: usize, nth: usize) -> Span {
    Blocks::Even { whole: span, granule: v.granule(), members: count }.of(nth)
}

/// Reduce in groups of k, then what each has goes up to the root: Σ(k-1)/k n/(k's before) both ways, in two
/// supersteps for each size.
pub(crate) fn reduce_radix(s: &mut Schedule, m: Member, root: usize, v: Vector) {
    let acc = if m.me == root { Buffer::Output } else { Buffer::Scratch };
    let (mut span, mut stride, mut at) = (v.span(), 1, Buffer::Input);
    for k in factors(m.members) {
        let digit = m.me / stride % k;
        let member = |nth: usize| m.me + nth * stride - digit * stride;
        let own = part(span, v, k, digit);
        for nth in (1..k).map(|step| (digit + step) % k) {
            let theirs = part(span, v, k, nth);
            s.send(member(nth), Region::new(at, theirs), false, digit * theirs.bytes);
        }
        let (mut with, result) = (Region::new(at, own), Region::new(acc, own));
        for nth in (0..digit).rev().chain(digit + 1..k) {
            s.fold(member(nth), with, result, nth < digit, nth * own.bytes);
            with = result;
        }
        (span, stride, at) = (own, stride * k, acc);
        s.next_round();
    }
    // The same groups, last ones first.
    let count = factors(m.members).count();
    for round in (0..count).rev() {
        let k = factors(m.members).nth(round).unwrap_or(1);
        stride /= k;
        let whole = span_of(m, v, round);
        let (digit, top) = (m.me / stride % k, root / stride % k);
        // Those are left who are where the root is in all groups that came later.
        if m.me / (stride * k) == root / (stride * k) {
            let member = |nth: usize| m.me + nth * stride - digit * stride;
            if digit == top {
                let mut stage = 0;
                for nth in (1..k).map(|step| (digit + step) % k) {
                    let theirs = part(whole, v, k, nth);
                    s.take(member(nth), Region::new(acc, theirs), part_before(whole, theirs));
                    stage += theirs.bytes;
                }
                debug_assert!(stage <= whole.bytes);
            } else {
                let own = part(whole, v, k, digit);
                s.give(member(top), Region::new(acc, own), part_before(whole, own));
            }
        }
        s.next_round();
    }
    if m.members == 1 {
        s.copy(input(v.span()), Region::new(Buffer::Output, v.span()));
    }
}

fn part_before(whole: Span, part: Span) -> usize {
    part.start - whole.start
}

/// What a member has of the vector after so many exchanges.
fn span_of(m: Member, v: Vector, rounds: usize) -> Span {
    let mut stride = 1;
    factors(m.members).take(rounds).fold(v.span(), |span, k| {
        let digit = m.me / stride % k;
        stride *= k;
        part(span, v, k, digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_sizes_multiply_to_the_number_of_members() {
        for members in 1..200 {
            let all: Vec<usize> = factors(members).collect();
            assert_eq!(all.iter().product::<usize>(), members, "{all:?}");
        }
        assert_eq!(factors(12).collect::<Vec<_>>(), [4, 3]);
        assert_eq!(factors(8).collect::<Vec<_>>(), [4, 2]);
    }
}
