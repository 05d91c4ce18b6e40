//! Reduce: everybody's vectors, combined, at the root; and the allreduces made of two phases.
//!
//! At the root partial results lie in its output, elsewhere in scratch.

use super::allgather::{allgather_direct, allgather_ring};
use super::member::{Member, doublings, side};
use super::reduce_scatter::{Results, reduce_scatter_direct, reduce_scatter_ring};
use super::vector::{Vector, held, input, output};
use crate::blocks::Blocks;
use crate::schedule::{Buffer, Region, Schedule};

pub(super) fn partial_in(m: Member, root: usize) -> Buffer {
    if m.me == root { Buffer::Output } else { Buffer::Scratch }
}

fn partial(m: Member, root: usize, v: Vector) -> Region {
    Region::new(partial_in(m, root), v.span())
}

fn alone(s: &mut Schedule, m: Member, v: Vector) {
    if m.members == 1 {
        s.copy(input(v.span()), output(v.span()));
    }
}

/// Everybody sends its vector to the root, who combines: one superstep of (p-1) n.
pub(crate) fn reduce_direct(s: &mut Schedule, m: Member, root: usize, v: Vector) {
    if m.me == root {
        let mut with = input(v.span());
        for from in m.outwards() {
            s.fold(from, with, output(v.span()), from < m.me, from * v.bytes);
            with = output(v.span());
        }
    } else {
        s.send(root, input(v.span()), false, m.me * v.bytes);
    }
    alone(s, m, v);
    s.next_round();
}

/// The order of the members in a tree: the root's subtree first where the operator commutes, else as they
/// are, and the first one passes the result to the root.
#[derive(Clone, Copy)]
pub(super) struct Order {
    m: Member,
    /// The tree's root.
    first: usize,
}

impl Order {
    pub(super) fn new(m: Member, root: usize, commutes: bool) -> Self {
        Order { m, first: if commutes { root } else { 0 } }
    }

    fn own(self) -> usize {
        (self.m.me + self.m.members - self.first) % self.m.members
    }

    /// Who passes the result on to whom, where the tree's root is not the root.
    pub(super) fn passes_on(self, root: usize) -> Option<[usize; 2]> {
        (self.first != root).then_some([self.first, root])
    }

    pub(super) fn member(self, number: usize) -> usize {
        (number + self.first) % self.m.members
    }

    /// The last superstep, where the tree's root is not the root.
    fn pass_on(self, s: &mut Schedule, root: usize, v: Vector, at: Region) {
        if self.first == root {
            return;
        }
        if self.m.me == self.first {
            s.give(root, at, 0);
        } else if self.m.me == root {
            s.take(self.first, output(v.span()), 0);
        }
        s.next_round();
    }
}

/// Pairs, pairs of pairs, …: ⌈log2 p⌉ supersteps of n, and one more to another root than the first member
/// where the operator does not commute.
pub(crate) fn reduce_binomial(s: &mut Schedule, m: Member, root: usize, v: Vector, commutes: bool) {
    let order = Order::new(m, root, commutes);
    let (own, acc) = (order.own(), partial(m, root, v));
    let mut with = input(v.span());
    for distance in doublings(m.members) {
        if own % (2 * distance) == distance {
            s.send(order.member(own - distance), with, false, 0);
        } else if own.is_multiple_of(2 * distance) && own + distance < m.members {
            s.fold(order.member(own + distance), with, acc, false, 0);
            with = acc;
        }
        s.next_round();
    }
    order.pass_on(s, root, v, with);
    alone(s, m, v);
}

/// √p groups to their first members, these to the root: two supersteps of √p n, and one more as in
/// [`reduce_binomial`].
pub(crate) fn reduce_square(s: &mut Schedule, m: Member, root: usize, v: Vector, commutes: bool) {
    let order = Order::new(m, root, commutes);
    let (own, acc, side) = (order.own(), partial(m, root, v), side(m.members));
    let first = own / side * side;
    let mut with = input(v.span());
    if own == first {
        for from in first + 1..m.members.min(first + side) {
            s.fold(order.member(from), with, acc, false, (from - first - 1) * v.bytes);
            with = acc;
        }
    } else {
        s.send(order.member(first), with, false, (own - first - 1) * v.bytes);
    }
    s.next_round();
    if own == 0 {
        for from in (side..m.members).step_by(side) {
            s.fold(order.member(from), with, acc, false, (from / side - 1) * v.bytes);
            with = acc;
        }
    } else if own == first {
        s.send(order.member(0), with, false, (own / side - 1) * v.bytes);
    }
    s.next_round();
    order.pass_on(s, root, v, with);
    alone(s, m, v);
}

/// Reduce-scatter, then the root gathers (a transpose): two supersteps of n (p-1)/p.
pub(crate) fn reduce_transpose(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    let acc = partial_in(m, root);
    reduce_scatter_direct(s, m, blocks, Results::Place(acc));
    collect(s, m, root, blocks, acc);
}

/// Blocks around a ring, then the root gathers: p-1 supersteps of n/p and one of n (p-1)/p. For commutative
/// operators.
pub(crate) fn reduce_ring(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    let acc = partial_in(m, root);
    reduce_scatter_ring(s, m, blocks, Results::Place(acc));
    collect(s, m, root, blocks, acc);
}

/// The root gathers blocks that lie at their places.
fn collect(s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>, acc: Buffer) {
    if m.me == root {
        for from in m.others() {
            s.take(from, output(blocks.of(from)), blocks.stage(from));
        }
    } else {
        s.give(root, held(acc, blocks, m.me, m.me + 1), blocks.stage(m.me));
    }
    s.next_round();
}

/// Reduce-scatter by transpose, then everybody gathers: two supersteps of n (p-1)/p.
pub(crate) fn allreduce_transpose(s: &mut Schedule, m: Member, blocks: Blocks<'_>) {
    reduce_scatter_direct(s, m, blocks, Results::Place(Buffer::Output));
    allgather_direct(s, m, blocks);
}

/// Blocks go around a ring twice: 2 (p-1) supersteps of n/p. For commutative operators.
pub(crate) fn allreduce_ring(s: &mut Schedule, m: Member, blocks: Blocks<'_>) {
    reduce_scatter_ring(s, m, blocks, Results::Place(Buffer::Output));
    allgather_ring(s, m, blocks);
}
