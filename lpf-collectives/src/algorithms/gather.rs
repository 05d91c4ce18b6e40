//! Gather and scatter: blocks to the root's output, and from its input.

use super::allgather::around;
use super::member::{Member, doublings, log2_up};
use super::vector::{input, output};
use crate::blocks::{Blocks, Span};
use crate::schedule::{Buffer, Region, Schedule};

/// Everybody sends its block, which is all of its input, to the root: one superstep of n (p-1)/p.
pub(crate) fn gather_direct(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    let own = Span { start: 0, bytes: blocks.of(m.me).bytes };
    if m.me == root {
        s.copy(input(own), output(blocks.of(m.me)));
        for from in m.others() {
            s.take(from, output(blocks.of(from)), blocks.stage(from));
        }
    } else {
        s.give(root, input(own), blocks.stage(m.me));
    }
    s.next_round();
}

/// The root sends everybody its block, which becomes its output: one superstep of n (p-1)/p.
pub(crate) fn scatter_direct(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    let own = Span { start: 0, bytes: blocks.of(m.me).bytes };
    if m.me == root {
        s.copy(input(blocks.of(m.me)), output(own));
        m.others().for_each(|to| s.give(to, input(blocks.of(to)), 0));
    } else {
        s.take(root, output(own), 0);
    }
    s.next_round();
}

/// Subtrees' blocks go up a binomial tree: ⌈log2 p⌉ supersteps, n (p-1)/p in all. What passes through a
/// member lies in its scratch. For blocks of one length.
pub(crate) fn gather_binomial(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    let (buffer, places) = passing(m, root, blocks, Buffer::Output);
    let block = Span { start: 0, bytes: blocks.of(m.me).bytes };
    s.copy(input(block), Region::new(buffer, places.of(m.me)));
    let own = (m.me + m.members - root) % m.members;
    for distance in doublings(m.members) {
        let subtree = |first: usize| distance.min(m.members - first);
        let mut stage = 0;
        if own % (2 * distance) == distance {
            around(m, blocks, m.me, subtree(own), |first, end| {
                let span = places.between(first, end);
                s.give(m.before(distance), Region::new(buffer, span), stage);
                stage += span.bytes;
            });
        } else if own.is_multiple_of(2 * distance) && own + distance < m.members {
            let from = m.after(distance);
            around(m, blocks, from, subtree(own + distance), |first, end| {
                let span = places.between(first, end);
                s.take(from, Region::new(buffer, span), stage);
                stage += span.bytes;
            });
        }
        s.next_round();
    }
}

/// Subtrees' blocks go down a binomial tree: as [`gather_binomial`], the other way.
pub(crate) fn scatter_binomial(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    let (buffer, places) = passing(m, root, blocks, Buffer::Input);
    let own = (m.me + m.members - root) % m.members;
    for distance in (0..log2_up(m.members)).rev().map(|k| 1 << k) {
        let subtree = |first: usize| distance.min(m.members - first);
        let mut stage = 0;
        if own % (2 * distance) == distance {
            around(m, blocks, m.me, subtree(own), |first, end| {
                let span = places.between(first, end);
                s.take(m.before(distance), Region::new(buffer, span), stage);
                stage += span.bytes;
            });
        } else if own.is_multiple_of(2 * distance) && own + distance < m.members {
            let to = m.after(distance);
            around(m, blocks, to, subtree(own + distance), |first, end| {
                let span = places.between(first, end);
                s.give(to, Region::new(buffer, span), stage);
                stage += span.bytes;
            });
        }
        s.next_round();
    }
    let block = Span { start: 0, bytes: blocks.of(m.me).bytes };
    // In a round of its own, behind what comes and goes.
    s.copy(Region::new(buffer, places.of(m.me)), output(block));
}

/// Where blocks lie that pass through a member: at the root at their places, elsewhere packed.
fn passing<'a>(
    m: Member,
    root: usize,
    blocks: Blocks<'a>,
    at_root: Buffer,
) -> (Buffer, Blocks<'a>) {
    if m.me == root { (at_root, blocks) } else { (Buffer::Scratch, blocks.packed()) }
}
