//! Radix-K: rounds of exchanges in groups of k, whose sizes multiply to p (Peterka and others).

use super::member::Member;
use super::reduce::partial_in;
use super::vector::{held, input, output};
use crate::blocks::Blocks;
use crate::schedule::{Buffer, Schedule};

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

/// A member's groups, from the nearest members on: in each exchange it keeps one of k shares of the blocks it has.
struct Exchange {
    k: usize,
    /// From one member of the group to the next.
    stride: usize,
    /// Which of the group this member is.
    digit: usize,
    /// The first block of what the group has, and the blocks of a share.
    first: usize,
    width: usize,
}

impl Exchange {
    fn all(m: Member) -> impl Iterator<Item = Self> {
        let (mut stride, mut first, mut width) = (1, 0, m.members);
        factors(m.members).map(move |k| {
            width /= k;
            let exchange = Exchange { k, stride, digit: m.me / stride % k, first, width };
            first += exchange.digit * width;
            stride *= k;
            exchange
        })
    }

    fn member(&self, m: Member, nth: usize) -> usize {
        m.me + nth * self.stride - self.digit * self.stride
    }

    /// The others of the group, from the next one on.
    fn others(&self) -> impl Iterator<Item = usize> {
        (1..self.k).map(|step| (self.digit + step) % self.k)
    }

    /// The blocks of a share, in runs that lie side by side, and how many blocks of the share are before each.
    fn share(&self, blocks: Blocks<'_>, nth: usize, mut each: impl FnMut([usize; 2], usize)) {
        let first = self.first + nth * self.width;
        blocks.runs(first, first + self.width, |begin, end| each([begin, end], begin - first));
    }
}

/// Reduce in groups of k, then what each has goes up to the root: Σ(k-1)/k n/(k's before) both ways, in two
/// supersteps for each size.
pub(crate) fn reduce_radix(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    let (acc, most) = (partial_in(m, root), blocks.longest());
    let mut at = Buffer::Input;
    for exchange in Exchange::all(m) {
        let Exchange { digit, width, .. } = exchange;
        for nth in exchange.others() {
            exchange.share(blocks, nth, |[begin, end], before| {
                let from = held(at, blocks, begin, end);
                s.send(exchange.member(m, nth), from, false, (digit * width + before) * most);
            });
        }
        let mut with = at;
        for nth in (0..digit).rev().chain(digit + 1..exchange.k) {
            exchange.share(blocks, digit, |[begin, end], before| {
                let [own, result] = [with, acc].map(|buffer| held(buffer, blocks, begin, end));
                let stage = (nth * width + before) * most;
                s.fold(exchange.member(m, nth), own, result, nth < digit, stage);
            });
            with = acc;
        }
        at = acc;
        s.next_round();
    }
    // The same groups, last ones first.
    let all: Vec<Exchange> = Exchange::all(m).collect();
    for exchange in all.iter().rev() {
        let Exchange { k, stride, digit, width, .. } = *exchange;
        // Those are left who are where the root is in all groups that came later.
        if m.me / (stride * k) == root / (stride * k) {
            let top = root / stride % k;
            if digit == top {
                for nth in exchange.others() {
                    exchange.share(blocks, nth, |[begin, end], before| {
                        let to = held(acc, blocks, begin, end);
                        s.take(exchange.member(m, nth), to, (nth * width + before) * most);
                    });
                }
            } else {
                exchange.share(blocks, digit, |[begin, end], before| {
                    let from = held(acc, blocks, begin, end);
                    s.give(exchange.member(m, top), from, (digit * width + before) * most);
                });
            }
        }
        s.next_round();
    }
    if m.members == 1 {
        s.copy(input(blocks.of(0)), output(blocks.of(0)));
    }
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
