//! Scan: member i gets what members 0 to i have, combined; exscan: members 0 to i-1.
//!
//! In an exscan the first member's output is left as it is: its caller writes the identity.

use super::member::{Member, doublings};
use super::vector::{Vector, input, output};
use crate::schedule::Schedule;

/// Everybody sends its vector to all behind it, who combine: one superstep of (p-1) n.
pub(crate) fn scan_direct(s: &mut Schedule, m: Member, v: Vector, exclusive: bool) {
    for to in m.me + 1..m.members {
        s.send(to, input(v.span()), exclusive && to == m.me + 1, m.me * v.bytes);
    }
    let (mut with, mut nearest) = (input(v.span()), m.me);
    if exclusive && m.me > 0 {
        s.take(m.me - 1, output(v.span()), (m.me - 1) * v.bytes);
        (with, nearest) = (output(v.span()), m.me - 1);
    }
    for from in (0..nearest).rev() {
        s.fold(from, with, output(v.span()), true, from * v.bytes);
        with = output(v.span());
    }
    if m.me == 0 && !exclusive {
        s.copy(with, output(v.span()));
    }
    s.next_round();
}

/// What is combined doubles in every superstep (a tree): ⌈log2 p⌉ of them, of n; an exscan needs one more.
/// Source and target of a round may be the same memory, so a vector is no longer than a cell.
pub(crate) fn scan_tree(s: &mut Schedule, m: Member, v: Vector, exclusive: bool) {
    let result = output(v.span());
    let (mut with, mut me, mut members) = (input(v.span()), m.me, m.members);
    if exclusive && members > 1 {
        // Everybody's vector moves to the next member; the first one has none then.
        if m.me + 1 < m.members {
            s.give(m.me + 1, with, 0);
        }
        if m.me > 0 {
            s.take(m.me - 1, result, 0);
        }
        s.next_round();
        members -= 1;
        with = result;
        me = m.me.wrapping_sub(1);
    }
    let first = m.members - members;
    for distance in doublings(members) {
        // (The first member of an exscan is beyond the others' numbers.)
        if me < members {
            if me + distance < members {
                s.send(first + me + distance, with, false, 0);
            }
            if me >= distance {
                s.fold(first + me - distance, with, result, true, 0);
                with = result;
            }
        }
        s.next_round();
    }
    if m.me == 0 && !exclusive {
        s.copy(input(v.span()), result);
    }
}
