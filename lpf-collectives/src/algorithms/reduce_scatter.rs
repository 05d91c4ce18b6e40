//! Reduce-scatter: block i of the combined vectors becomes member i's.

use super::member::Member;
use super::vector::{held, input};
use crate::blocks::{Blocks, Span};
use crate::schedule::{Buffer, Region, Schedule};

/// Where results go: each at its place in a buffer, that of the vector or scratch; or the own block alone, to the front
/// of the output, while partial results wait in scratch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Results {
    Place(Buffer),
    Front,
}

impl Results {
    /// The result of the own block.
    fn result(self, blocks: Blocks<'_>, me: usize) -> Region {
        match self {
            Results::Place(buffer) => held(buffer, blocks, me, me + 1),
            Results::Front => {
                Region::new(Buffer::Output, Span { start: 0, bytes: blocks.of(me).bytes })
            }
        }
    }

    /// What another block comes to on its way.
    fn partial(self, blocks: Blocks<'_>, member: usize) -> Region {
        match self {
            Results::Place(buffer) => held(buffer, blocks, member, member + 1),
            Results::Front => held(Buffer::Scratch, blocks, member, member + 1),
        }
    }
}

/// Everybody sends each block to its owner, who combines (a transpose): one superstep of n (p-1)/p.
pub(crate) fn reduce_scatter_direct(
    s: &mut Schedule,
    m: Member,
    blocks: Blocks<'_>,
    into: Results,
) {
    m.others().for_each(|to| {
        let block = blocks.of(to);
        s.send(to, input(block), false, m.me * block.bytes);
    });
    let own = blocks.of(m.me);
    let result = into.result(blocks, m.me);
    let mut with = input(own);
    for from in m.outwards() {
        s.fold(from, with, result, from < m.me, from * own.bytes);
        with = result;
    }
    if m.members == 1 {
        s.copy(with, result);
    }
    s.next_round();
}

/// Each block goes around once, to its owner (a ring): p-1 supersteps of n/p. For commutative operators:
/// block i begins at member i+1.
pub(crate) fn reduce_scatter_ring(s: &mut Schedule, m: Member, blocks: Blocks<'_>, into: Results) {
    for round in 0..m.members - 1 {
        let (leaves, comes) = (m.before(round + 1), m.before(round + 2));
        let from = match round {
            0 => input(blocks.of(leaves)),
            _ => into.partial(blocks, leaves),
        };
        s.send(m.after(1), from, false, 0);
        let to = match comes == m.me {
            true => into.result(blocks, m.me),
            false => into.partial(blocks, comes),
        };
        s.fold(m.before(1), input(blocks.of(comes)), to, true, 0);
        s.next_round();
    }
    if m.members == 1 {
        s.copy(input(blocks.of(0)), into.result(blocks, 0));
    }
}
