//! Allgather: everybody's block in its output goes to everybody's.

use super::member::{Member, doublings};
use super::vector::{input, output};
use crate::blocks::{Blocks, Span};
use crate::schedule::Schedule;

/// Copies the own block from byte `start` of the input on to its position among all blocks, where the algorithms need it.
pub(crate) fn own_block(s: &mut Schedule, m: Member, start: usize, blocks: Blocks<'_>) {
    let own = blocks.of(m.me);
    s.copy(input(Span { start, ..own }), output(own));
}

/// Everybody to everybody: one superstep of n (p-1)/p, where n is what all have together.
pub(crate) fn allgather_direct(s: &mut Schedule, m: Member, blocks: Blocks<'_>) {
    let own = blocks.of(m.me);
    m.others().for_each(|to| s.give(to, output(own), blocks.stage(m.me)));
    for from in m.others() {
        s.take(from, output(blocks.of(from)), blocks.stage(from));
    }
    s.next_round();
}

/// Each block goes around: p-1 supersteps of a block.
pub(crate) fn allgather_ring(s: &mut Schedule, m: Member, blocks: Blocks<'_>) {
    for round in 0..m.members - 1 {
        s.give(m.after(1), output(blocks.of(m.before(round))), 0);
        s.take(m.before(1), output(blocks.of(m.before(round + 1))), 0);
        s.next_round();
    }
}

/// Twice as many blocks in every superstep (Bruck): ⌈log2 p⌉ of them, n (p-1)/p in all.
pub(crate) fn allgather_bruck(s: &mut Schedule, m: Member, blocks: Blocks<'_>) {
    for distance in doublings(m.members) {
        let count = distance.min(m.members - distance);
        let (to, from) = (m.before(distance), m.after(distance));
        let mut stage = 0;
        around(m, blocks, m.me, count, |first, end| {
            let span = blocks.between(first, end);
            s.give(to, output(span), stage);
            stage += span.bytes;
        });
        stage = 0;
        around(m, blocks, from, count, |first, end| {
            let span = blocks.between(first, end);
            s.take(from, output(span), stage);
            stage += span.bytes;
        });
        s.next_round();
    }
}

/// The runs of side-by-side blocks among `count` from `first` on, around.
pub(super) fn around(
    m: Member,
    blocks: Blocks<'_>,
    first: usize,
    count: usize,
    mut each: impl FnMut(usize, usize),
) {
    let end = first + count;
    blocks.runs(first, end.min(m.members), &mut each);
    if end > m.members {
        blocks.runs(0, end - m.members, &mut each);
    }
}
