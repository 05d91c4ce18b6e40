//! The algorithms: what each member does, as schedules.
//!
//! Every function writes the schedule of one member of a group. Algorithms that combine keep the order of
//! the members' numbers unless they say that they need a commutative operator; where they may, they put
//! the operands together in an order that saves a round or a copy, always the same one.

mod allgather;
mod alltoall;
mod broadcast;
pub(crate) mod by_arrival;
pub(crate) mod by_way;
mod gather;
mod halving;
mod radix;
mod reduce;
mod reduce_scatter;
mod scan;

pub(crate) use allgather::*;
pub(crate) use alltoall::*;
pub(crate) use broadcast::*;
pub(crate) use gather::*;
pub(crate) use halving::*;
pub(crate) use radix::*;
use reduce::Order;
pub(crate) use reduce::*;
pub(crate) use reduce_scatter::*;
pub(crate) use scan::*;

use crate::blocks::{Blocks, Span, granule};
use crate::schedule::{Buffer, Region};

/// Whose schedule it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its place in the group.
    pub(crate) me: usize,
    /// How many there are.
    pub(crate) members: usize,
}

impl Member {
    /// The member `distance` further on, around.
    fn after(self, distance: usize) -> usize {
        (self.me + distance) % self.members
    }

    fn before(self, distance: usize) -> usize {
        (self.me + self.members - distance % self.members) % self.members
    }

    /// All others, from the next one on.
    fn others(self) -> impl Iterator<Item = usize> {
        (1..self.members).map(move |distance| self.after(distance))
    }

    /// All others from the one before it backwards to the first, then from the one behind it on: the order
    /// in which operands are added to its own on either side.
    fn outwards(self) -> impl Iterator<Item = usize> {
        (0..self.me).rev().chain(self.me + 1..self.members)
    }
}

/// A vector that every member contributes, and what the operator needs to know of it; bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Of all elements.
    pub bytes: usize,
    /// Of one element.
    pub element: usize,
}

/// Bytes that may be divided anywhere.
impl From<usize> for Vector {
    fn from(bytes: usize) -> Self {
        Vector { bytes, element: 1 }
    }
}

/// What is worked on at a time. Algorithms in which every element goes the same way take a part of a vector for a
/// vector. In the others its way, and so the order of its operands, depends on the block it is in: they take a piece of
/// each block, so that the order depends on the vector's length and not on the pieces'.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// What is divided into blocks.
    pub(crate) v: Vector,
    /// Of each block the bytes from here on.
    pub(crate) first: usize,
    /// At most so many.
    pub(crate) most: usize,
}

impl From<Vector> for Piece {
    fn from(v: Vector) -> Self {
        Piece { v, first: 0, most: usize::MAX }
    }
}

impl Piece {
    pub(crate) fn blocks(self, members: usize) -> Blocks<'static> {
        let whole = self.v.blocks(members);
        whole.piece(self.first, self.most.min(whole.longest()))
    }
}

impl Vector {
    pub(crate) fn span(self) -> Span {
        Span { start: 0, bytes: self.bytes }
    }

    pub(crate) fn blocks(self, members: usize) -> Blocks<'static> {
        Blocks::even(self.bytes, self.element, members)
    }

    pub(crate) fn granule(self) -> usize {
        granule(self.bytes, self.element, 1)
    }
}

fn input(span: Span) -> Region {
    Region::new(Buffer::Input, span)
}

fn output(span: Span) -> Region {
    Region::new(Buffer::Output, span)
}

fn scratch(span: Span) -> Region {
    Region::new(Buffer::Scratch, span)
}

/// The blocks of members `first` to `end - 1`, where they lie side by side, in a buffer.
fn held(buffer: Buffer, blocks: Blocks<'_>, first: usize, end: usize) -> Region {
    match buffer {
        Buffer::Scratch => Region::new(buffer, blocks.kept(first, end)),
        _ => Region::new(buffer, blocks.between(first, end)),
    }
}

/// ⌈log2 n⌉.
pub(crate) fn log2_up(n: usize) -> u32 {
    n.next_power_of_two().trailing_zeros()
}

/// Distances 1, 2, 4, … below `members`.
pub(crate) fn doublings(members: usize) -> impl Iterator<Item = usize> {
    (0..log2_up(members)).map(|k| 1 << k)
}

/// The members of a side of the square that a group is laid out in.
pub(crate) fn side(members: usize) -> usize {
    let root = members.isqrt();
    if root * root < members { root + 1 } else { root.max(1) }
}

#[cfg(test)]
mod tests;
