//! Elements of every size, with operators that show where operands were lost, doubled or swapped.

use std::fmt::Debug;

use bytemuck::Pod;
use lpf_collectives::{Operator, Sum};

/// What the cases reduce and move.
pub(super) trait Element: Pod + PartialEq + Debug {
    /// What it is reduced with: associative to the bit.
    type Op: Operator<Self> + Default;

    /// An element made of a word's bits.
    fn of(word: u64) -> Self;
}

macro_rules! sums {
    ($($type:ty),*) => {$(
        impl Element for $type {
            type Op = Sum;

            fn of(word: u64) -> Self {
                word as $type
            }
        }
    )*};
}

sums!(u8, u16, u32, u64);

impl Element for u128 {
    type Op = Sum;

    fn of(word: u64) -> Self {
        u128::from(word) << 60 ^ u128::from(word)
    }
}

/// The maps x -> a x + b, one after the other: they do not commute.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compose;

impl Operator<[u64; 2]> for Compose {
    fn identity(&self) -> [u64; 2] {
        [1, 0]
    }

    fn combine(&self, [a, b]: [u64; 2], [c, d]: [u64; 2]) -> [u64; 2] {
        [a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b)]
    }
}

impl Element for [u64; 2] {
    type Op = Compose;

    fn of(word: u64) -> Self {
        [word | 1, word >> 7]
    }
}

/// The same on half as many bits, with a count of maps behind it: twelve bytes.
impl Operator<[u32; 3]> for Compose {
    fn identity(&self) -> [u32; 3] {
        [1, 0, 0]
    }

    fn combine(&self, [a, b, m]: [u32; 3], [c, d, n]: [u32; 3]) -> [u32; 3] {
        [a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b), m + n]
    }
}

impl Element for [u32; 3] {
    type Op = Compose;

    fn of(word: u64) -> Self {
        [word as u32 | 1, (word >> 9) as u32, 1]
    }
}

/// Sum, least and greatest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Range;

impl Operator<[f64; 3]> for Range {
    fn commutes(&self) -> bool {
        true
    }

    fn identity(&self) -> [f64; 3] {
        [0.0, f64::INFINITY, f64::NEG_INFINITY]
    }

    fn combine(&self, a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
        [a[0] + b[0], a[1].min(b[1]), a[2].max(b[2])]
    }
}

impl Element for [f64; 3] {
    type Op = Range;

    /// Sums of small whole numbers are exact.
    fn of(word: u64) -> Self {
        [f64::from(word as u16), f64::from((word >> 8) as u16), f64::from((word >> 16) as u16)]
    }
}

/// Of nothing comes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nothing;

impl Operator<[u64; 0]> for Nothing {
    fn commutes(&self) -> bool {
        true
    }

    fn identity(&self) -> [u64; 0] {
        []
    }

    fn combine(&self, _left: [u64; 0], _right: [u64; 0]) -> [u64; 0] {
        []
    }
}

impl Element for [u64; 0] {
    type Op = Nothing;

    fn of(_word: u64) -> Self {
        []
    }
}

/// Bits that differ for every two of these.
pub(super) fn word(process: usize, salt: usize, nth: usize) -> u64 {
    let word = (process as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (salt as u64 + 1).wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
        ^ (nth as u64 + 1).wrapping_mul(0x1656_67b1_9e37_79f9);
    (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
