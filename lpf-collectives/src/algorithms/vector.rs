//! What algorithms work on: vectors, pieces of them, and regions of a call's buffers.

use crate::blocks::{Blocks, Span, granule};
use crate::schedule::{Buffer, Region};

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

pub(super) fn input(span: Span) -> Region {
    Region::new(Buffer::Input, span)
}

pub(super) fn output(span: Span) -> Region {
    Region::new(Buffer::Output, span)
}

pub(super) fn scratch(span: Span) -> Region {
    Region::new(Buffer::Scratch, span)
}

/// The blocks of members `first` to `end - 1`, where they lie side by side, in a buffer.
pub(super) fn held(buffer: Buffer, blocks: Blocks<'_>, first: usize, end: usize) -> Region {
    match buffer {
        Buffer::Scratch => Region::new(buffer, blocks.kept(first, end)),
        _ => Region::new(buffer, blocks.between(first, end)),
    }
}
