//! Eight words in one register of AVX-512.

use std::arch::x86_64::*;

use super::shape::{Fixed, Many};
use super::words::Words;
use super::{Instance, Transfer, by, chunks};

/// Nobody has one but [`schedule`], which runs only where [`is_here`] says so.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Lanes(__m512i);

/// Whether the processor has all that `schedule` is compiled for.
pub(super) fn is_here() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("bmi1")
        && std::is_x86_feature_detected!("bmi2")
        && std::is_x86_feature_detected!("lzcnt")
        && std::is_x86_feature_detected!("popcnt")
}

/// # Safety
/// [`is_here`] has said yes.
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn schedule(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
    match chunks::<Lanes>(instance.processes(), instance.segments() as usize) {
        (1, 1) => by::<Lanes, Fixed<1>>(instance, each),
        (2, 2) => by::<Lanes, Fixed<2>>(instance, each),
        (3, 3) => by::<Lanes, Fixed<3>>(instance, each),
        (4, 4) => by::<Lanes, Fixed<4>>(instance, each),
        _ => by::<Lanes, Many>(instance, each),
    }
}

// SAFETY: a register of 512 bits, of which any are right.
unsafe impl Words for Lanes {
    const BITS: usize = 512;
    // SAFETY: all zeros are a value of it.
    const ZERO: Self = Lanes(unsafe { std::mem::zeroed() });
    #[inline(always)]
    fn unit(bit: usize) -> Self {
        // SAFETY: of this and all below: the processor has the instruction, for `schedule` alone has this type.
        Lanes(unsafe { _mm512_maskz_set1_epi64(1 << (bit / 64), 1 << (bit % 64)) })
    }
    #[inline(always)]
    fn behind(bit: usize) -> Self {
        // SAFETY: as for `unit`.
        unsafe {
            let here = _mm512_maskz_set1_epi64(1 << (bit / 64), -1 << (bit % 64));
            Lanes(_mm512_mask_set1_epi64(here, (0xfe << (bit / 64)) as u8, -1))
        }
    }
    #[inline(always)]
    fn all(yes: bool) -> Self {
        // SAFETY: as for `unit`.
        Lanes(unsafe { _mm512_set1_epi64(-i64::from(yes)) })
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: as for `unit`.
        Lanes(unsafe { _mm512_and_si512(self.0, other.0) })
    }
    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        // SAFETY: as for `unit`.
        Lanes(unsafe { _mm512_andnot_si512(other.0, self.0) })
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: as for `unit`.
        Lanes(unsafe { _mm512_or_si512(self.0, other.0) })
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: as for `unit`.
        Lanes(unsafe { _mm512_xor_si512(self.0, other.0) })
    }
    #[inline(always)]
    fn first(self) -> Option<usize> {
        let filled = self.filled();
        (filled != 0).then(|| self.first_of(filled))
    }
    #[inline(always)]
    fn first_or(self, other: Self) -> usize {
        // Both are looked for at once: which one it will be cannot be foretold.
        let (filled, others) = (self.filled(), other.filled());
        let (this, that) = (self.first_of(filled), other.first_of(others));
        std::hint::select_unpredictable(filled != 0, this, that)
    }
    #[inline(always)]
    fn filled(self) -> u64 {
        // SAFETY: as for `unit`.
        u64::from(unsafe { _mm512_test_epi64_mask(self.0, self.0) })
    }
}

impl Lanes {
    /// The first bit where these words are not zero.
    #[inline(always)]
    fn first_of(self, filled: u64) -> usize {
        // SAFETY: as for `unit`.
        let word = unsafe {
            let lowest = _mm512_maskz_compress_epi64(filled as u8, self.0);
            _mm_cvtsi128_si64(_mm512_castsi512_si128(lowest)) as u64
        };
        64 * filled.trailing_zeros() as usize + word.trailing_zeros() as usize
    }
}
