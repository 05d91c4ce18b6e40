//! Broadcast: what the root has in its output goes to everybody's.

use super::member::{Member, doublings, side};
use super::vector::{Vector, output};
use crate::schedule::Schedule;

/// The root sends everything to everybody: one superstep of (p-1) n.
pub(crate) fn broadcast_direct(s: &mut Schedule, m: Member, root: usize, v: Vector) {
    let whole = output(v.span());
    if m.me == root {
        m.others().for_each(|to| s.give(to, whole, 0));
    } else {
        s.take(root, whole, 0);
    }
    s.next_round();
}

/// Whoever has it sends it on: ⌈log2 p⌉ supersteps of n.
pub(crate) fn broadcast_binomial(s: &mut Schedule, m: Member, root: usize, v: Vector) {
    let whole = output(v.span());
    let own = (m.me + m.members - root) % m.members;
    let member = |virtual_number: usize| (virtual_number + root) % m.members;
    for distance in doublings(m.members) {
        if own < distance && own + distance < m.members {
            s.give(member(own + distance), whole, 0);
        } else if (distance..2 * distance).contains(&own) {
            s.take(member(own - distance), whole, 0);
        }
        s.next_round();
    }
}

/// The root to the first of each of √p groups, these to the rest of theirs: two supersteps of √p n.
pub(crate) fn broadcast_square(s: &mut Schedule, m: Member, root: usize, v: Vector) {
    let (whole, side) = (output(v.span()), side(m.members));
    let own = (m.me + m.members - root) % m.members;
    let member = |virtual_number: usize| (virtual_number + root) % m.members;
    if own == 0 {
        (side..m.members).step_by(side).for_each(|to| s.give(member(to), whole, 0));
    } else if own.is_multiple_of(side) {
        s.take(root, whole, 0);
    }
    s.next_round();
    let first = own / side * side;
    if own == first {
        (first + 1..m.members.min(first + side)).for_each(|to| s.give(member(to), whole, 0));
    } else {
        s.take(member(first), whole, 0);
    }
    s.next_round();
}

/// The root scatters blocks, which all then gather: two supersteps of n (p-1)/p.
pub(crate) fn broadcast_two_phase(s: &mut Schedule, m: Member, root: usize, v: Vector) {
    let blocks = v.blocks(m.members);
    if m.me == root {
        m.others().for_each(|to| s.give(to, output(blocks.of(to)), 0));
    } else {
        s.take(root, output(blocks.of(m.me)), 0);
    }
    s.next_round();
    m.others().filter(|&to| to != root).for_each(|to| {
        let own = blocks.of(m.me);
        s.give(to, output(own), own.start);
    });
    if m.me != root {
        for from in m.others() {
            let block = blocks.of(from);
            s.take(from, output(block), block.start);
        }
    }
    s.next_round();
}
