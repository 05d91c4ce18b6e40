//! Words that are worked on together, as registers hold them: a *chunk* of a column or a row.

use std::cmp::Ordering;

/// They are changed as a whole while a round is made: a word that was just stored alone cannot be loaded with the
/// others before it is in the cache, which takes longer than all the rest.
///
/// # Safety
/// It is [`BITS`](Self::BITS) / 64 words and nothing else, and any words are one of it.
pub(super) unsafe trait Words: Copy {
    /// Of these words.
    const BITS: usize;
    const ZERO: Self;
    /// One bit.
    fn unit(bit: usize) -> Self;
    /// This bit and all behind it.
    fn behind(bit: usize) -> Self;
    /// All bits or none, and no branch.
    fn all(yes: bool) -> Self;
    fn and(self, other: Self) -> Self;
    fn and_not(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Its first bit.
    fn first(self) -> Option<usize>;
    /// The first bit of this, or of the other where this is zero, and no branch. The other is not zero.
    fn first_or(self, other: Self) -> usize;
    /// A bit for each word that is not zero.
    fn filled(self) -> u64;

    /// All words of some chunks.
    #[inline(always)]
    fn words(chunks: &[Self]) -> &[u64] {
        // SAFETY: the trait's: so many words, initialised, as long borrowed.
        unsafe {
            std::slice::from_raw_parts(chunks.as_ptr().cast(), Self::BITS / 64 * chunks.len())
        }
    }

    #[inline(always)]
    fn words_mut(chunks: &mut [Self]) -> &mut [u64] {
        // SAFETY: as for `words`, and whatever is written there is right.
        unsafe {
            std::slice::from_raw_parts_mut(
                chunks.as_mut_ptr().cast(),
                Self::BITS / 64 * chunks.len(),
            )
        }
    }

    #[inline(always)]
    fn is_zero(self) -> bool {
        self.filled() == 0
    }

    #[inline(always)]
    fn has(chunks: &[Self], bit: usize) -> bool {
        Self::words(chunks)[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Changes a word alone.
    #[inline(always)]
    fn flip(chunks: &mut [Self], bit: usize) {
        Self::words_mut(chunks)[bit / 64] ^= 1 << (bit % 64);
    }

    /// The bits that are in use in a chunk when there are so many in all.
    #[inline(always)]
    fn whole(chunk: usize, count: usize) -> Self {
        let left = count.saturating_sub(chunk * Self::BITS);
        if left >= Self::BITS {
            Self::all(true)
        } else {
            Self::all(true).and_not(Self::behind(left))
        }
    }
}

// SAFETY: one word.
unsafe impl Words for u64 {
    const BITS: usize = 64;
    const ZERO: Self = 0;
    #[inline(always)]
    fn unit(bit: usize) -> Self {
        1 << bit
    }
    #[inline(always)]
    fn behind(bit: usize) -> Self {
        u64::MAX << bit
    }
    #[inline(always)]
    fn all(yes: bool) -> Self {
        u64::from(yes).wrapping_neg()
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        self & !other
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    fn first(self) -> Option<usize> {
        (self != 0).then(|| self.trailing_zeros() as usize)
    }
    #[inline(always)]
    fn first_or(self, other: Self) -> usize {
        (if self != 0 { self } else { other }).trailing_zeros() as usize
    }
    #[inline(always)]
    fn filled(self) -> u64 {
        u64::from(self != 0)
    }
}

/// Eight words, on any processor.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Wide([u64; 8]);

impl Wide {
    #[inline(always)]
    fn each(f: impl Fn(usize) -> u64) -> Self {
        Wide(std::array::from_fn(f))
    }
}

// SAFETY: an array of eight, and its alignment adds nothing.
unsafe impl Words for Wide {
    const BITS: usize = 512;
    const ZERO: Self = Wide([0; 8]);
    #[inline(always)]
    fn unit(bit: usize) -> Self {
        Self::each(|i| if i == bit / 64 { 1 << (bit % 64) } else { 0 })
    }
    #[inline(always)]
    fn behind(bit: usize) -> Self {
        Self::each(|i| match i.cmp(&(bit / 64)) {
            Ordering::Less => 0,
            Ordering::Equal => u64::MAX << (bit % 64),
            Ordering::Greater => u64::MAX,
        })
    }
    #[inline(always)]
    fn all(yes: bool) -> Self {
        Self::each(|_| u64::from(yes).wrapping_neg())
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self::each(|i| self.0[i] & other.0[i])
    }
    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        Self::each(|i| self.0[i] & !other.0[i])
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self::each(|i| self.0[i] | other.0[i])
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self::each(|i| self.0[i] ^ other.0[i])
    }
    #[inline(always)]
    fn first(self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(64 * word + self.0[word].trailing_zeros() as usize)
    }
    #[inline(always)]
    fn first_or(self, other: Self) -> usize {
        self.first().or(other.first()).unwrap_or(0)
    }
    #[inline(always)]
    fn filled(self) -> u64 {
        (0..8).map(|i| u64::from(self.0[i] != 0) << i).sum()
    }
}
