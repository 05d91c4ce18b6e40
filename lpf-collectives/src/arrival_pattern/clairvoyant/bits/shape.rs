//! How many chunks columns and rows have: a number that the compiler knows, or any.

use std::marker::PhantomData;
use std::ops::{IndexMut, Range};

use super::words::Words;

pub(super) trait Shape {
    /// Whether there is one only, which is kept in registers then.
    const ONE: bool;
    /// Something of each chunk.
    type Of<T: Copy>: IndexMut<usize, Output = T>;
    fn of<T: Copy>(value: T, chunks: usize) -> Self::Of<T>;
    /// How many there are, of which this is the number.
    fn count(chunks: usize) -> usize;
    /// The chunk of a bit, and its number there.
    fn at<W: Words>(bit: usize) -> (usize, usize);

    /// All of them.
    #[inline(always)]
    fn each(chunks: usize) -> Range<usize> {
        0..Self::count(chunks)
    }
}

/// So many, and loops over them unrolled.
pub(super) struct Fixed<const C: usize>;

impl<const C: usize> Shape for Fixed<C> {
    const ONE: bool = C == 1;
    type Of<T: Copy> = [T; C];
    #[inline(always)]
    fn of<T: Copy>(value: T, _: usize) -> [T; C] {
        [value; C]
    }
    #[inline(always)]
    fn count(_: usize) -> usize {
        C
    }
    #[inline(always)]
    fn at<W: Words>(bit: usize) -> (usize, usize) {
        if C == 1 { (0, bit) } else { (bit / W::BITS, bit % W::BITS) }
    }
}

pub(super) struct Many;

impl Shape for Many {
    const ONE: bool = false;
    type Of<T: Copy> = Vec<T>;
    #[inline(always)]
    fn of<T: Copy>(value: T, chunks: usize) -> Vec<T> {
        vec![value; chunks]
    }
    #[inline(always)]
    fn count(chunks: usize) -> usize {
        chunks
    }
    #[inline(always)]
    fn at<W: Words>(bit: usize) -> (usize, usize) {
        (bit / W::BITS, bit % W::BITS)
    }
}

/// Columns, or rows.
pub(super) struct Table<'a, W, S> {
    chunks: &'a mut [W],
    width: usize,
    shape: PhantomData<S>,
}

impl<'a, W: Words, S: Shape> Table<'a, W, S> {
    /// Lines of so many chunks, with so many bits set in each.
    #[inline(always)]
    pub(super) fn new(chunks: &'a mut [W], width: usize, bits: usize) -> Self {
        for (at, chunk) in chunks.iter_mut().enumerate() {
            *chunk = W::whole(at % width, bits);
        }
        Table { chunks, width, shape: PhantomData }
    }

    #[inline(always)]
    fn width(&self) -> usize {
        S::count(self.width)
    }

    /// All chunks of a line.
    #[inline(always)]
    pub(super) fn each(&self) -> Range<usize> {
        S::each(self.width)
    }

    #[inline(always)]
    pub(super) fn line(&self, at: usize) -> &[W] {
        &self.chunks[at * self.width()..][..self.width()]
    }

    #[inline(always)]
    pub(super) fn line_mut(&mut self, at: usize) -> &mut [W] {
        let width = self.width();
        &mut self.chunks[at * width..][..width]
    }
}
