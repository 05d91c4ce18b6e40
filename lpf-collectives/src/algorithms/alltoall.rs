//! Alltoall: block j of member i's input becomes block i of member j's output.

use super::member::{Member, doublings};
use super::vector::{input, output, scratch};
use crate::blocks::{Blocks, Span};
use crate::schedule::Schedule;

/// Everybody to everybody: one superstep of n (p-1)/p. Blocks of any lengths: each sender's is its
/// receiver's.
pub(crate) fn alltoall_direct(
    s: &mut Schedule,
    m: Member,
    sends: Blocks<'_>,
    receives: Blocks<'_>,
) {
    s.copy(input(sends.of(m.me)), output(receives.of(m.me)));
    for to in m.others() {
        let block = sends.of(to);
        s.give(to, input(block), m.me * block.bytes);
    }
    for from in (1..m.members).map(|distance| m.before(distance)) {
        let block = receives.of(from);
        s.take(from, output(block), from * block.bytes);
    }
    s.next_round();
}

/// Blocks go by powers of two of the distance that they have to go (Bruck): ⌈log2 p⌉ supersteps of about
/// n/2. For blocks of one length. Scratch: twice the input.
pub(crate) fn alltoall_bruck(s: &mut Schedule, m: Member, sends: Blocks<'_>, receives: Blocks<'_>) {
    let bytes = sends.of(0).bytes;
    // Blocks on their way, by the distance that they have to go in all; behind them, what is packed.
    let place = |distance: usize| scratch(Span { start: distance * bytes, bytes });
    let packed = m.members * bytes;
    for distance in 0..m.members {
        s.copy(input(sends.of(m.after(distance))), place(distance));
    }
    for step in doublings(m.members) {
        let goes = |distance: &usize| distance & step != 0;
        let count = (0..m.members).filter(goes).count();
        let nth = |nth: usize| scratch(Span { start: packed + nth * bytes, bytes });
        for (at, distance) in (0..m.members).filter(goes).enumerate() {
            s.copy(place(distance), nth(at));
        }
        let leaves = Span { start: packed, bytes: count * bytes };
        let comes = Span { start: leaves.end(), ..leaves };
        s.give(m.after(step), scratch(leaves), 0);
        s.take(m.before(step), scratch(comes), 0);
        for (at, distance) in (0..m.members).filter(goes).enumerate() {
            s.copy(nth(count + at), place(distance));
        }
        s.next_round();
    }
    for distance in 0..m.members {
        s.copy(place(distance), output(receives.of(m.before(distance))));
    }
}
