//! Gather and scatter: blocks to the root's output, and from its input.

use super::allgather::around;
use super::{Member, doublings, input, log2_up, output};
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
/// member lies in its scratch, where it would lie in the root's output.
pub(crate) fn gather_binomial(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    let buffer = if m.me == root { Buffer::Output } else { Buffer::Scratch };
    let own = Span { start: 0, bytes: blocks.of(m.me).bytes };
    s.copy(input(own), Region::new(buffer, blocks.of(m.me)));
    gather_up(s, m, root, blocks, buffer);
}

/// The way up of blocks that lie at their places in `buffer`.
pub(super) fn gather_up(
    s: &mut Schedule,
    m: Member,
    root: usize,
    blocks: Blocks<'_>,
    buffer: Buffer,
) {
    let own = (m.me + m.members - root) % m.members;
    for distance in doublings(m.members) {
        let subtree = |first: usize| distance.min(m.members - first);
        if own % (2 * distance) == distance {
            let (to, mut stage) = (m.before(distance), 0);
            around(m, blocks, m.me, subtree(own), |span| {
                s.give(to, Region::new(buffer, span), stage);
                stage += span.bytes;
            });
        } else if own.is_multiple_of(2 * distance) && own + distance < m.members {
            let (from, mut stage) = (m.after(distance), 0);
            around(m, blocks, from, subtree(own + distance), |span| {
                s.take(from, Region::new(buffer, span), stage);
                stage += span.bytes;
            });
        }
        s.next_round();
    }
}

/// Subtrees' blocks go down a binomial tree: as [`gather_binomial`], the other way.
pub(crate) fn scatter_binomial(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    let buffer = if m.me == root { Buffer::Input } else { Buffer::Scratch };
    let own = (m.me + m.members - root) % m.members;
    for distance in (0..log2_up(m.members)).rev().map(|k| 1 << k) {
        let subtree = |first: usize| distance.min(m.members - first);
        if own % (2 * distance) == distance {
            let (from, mut stage) = (m.before(distance), 0);
            around(m, blocks, m.me, subtree(own), |span| {
                s.take(from, Region::new(buffer, span), stage);
                stage += span.bytes;
            });
        } else if own.is_multiple_of(2 * distance) && own + distance < m.members {
            let (to, mut stage) = (m.after(distance), 0);
            around(m, blocks, to, subtree(own + distance), |span| {
                s.give(to, Region::new(buffer, span), stage);
                stage += span.bytes;
            });
        }
        s.next_round();
    }
    let own = Span { start: 0, bytes: blocks.of(m.me).bytes };
    // In a round of its own, behind what comes and goes.
    s.copy(Region::new(buffer, blocks.of(m.me)), output(own));
}
