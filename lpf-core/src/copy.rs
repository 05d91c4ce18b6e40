//! The copy of bytes between processes that share memory.
//!
//! A superstep may by mistake read and write the same bytes. Its result is then unspecified, but
//! nothing else may happen. So copies between processes never go through Rust references. They are plain
//! moves up to 16 bytes, and the C library's `memmove` above. Built with `--cfg tsan` the copy is made of relaxed
//! atomic words, so that ThreadSanitizer reports races of the protocol and not those of a program's mistake.

/// Copies `bytes` bytes; the areas may overlap, and another thread may race with it.
///
/// # Safety
/// - `src` is valid for reads and `dst` for writes of `bytes` bytes, by any thread's rights.
#[inline]
pub unsafe fn copy(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise is what each of them needs.
    unsafe {
        #[cfg(any(tsan, loom))]
        return atomic_copy(src, dst, bytes);
        #[cfg(not(any(tsan, loom)))]
        if bytes <= 16 {
            small(src, dst, bytes)
        } else {
            libc::memmove(dst.cast(), src.cast(), bytes);
        }
    }
}

/// A word at any address.
#[cfg(not(any(tsan, loom)))]
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Anywhere<T>(T);

/// Two overlapping moves cover every length from 1 to 16.
#[cfg(not(any(tsan, loom)))]
#[inline]
unsafe fn small(src: *const u8, dst: *mut u8, bytes: usize) {
    macro_rules! both_ends {
        ($word:ty) => {{
            let back = bytes - size_of::<$word>();
            // SAFETY: the word fits into `bytes`, and a packed one may lie anywhere; volatile, so that
            // a racing write makes the value unspecified and nothing more.
            unsafe {
                let first = src.cast::<Anywhere<$word>>().read_volatile();
                let last = src.add(back).cast::<Anywhere<$word>>().read_volatile();
                dst.cast::<Anywhere<$word>>().write_volatile(first);
                dst.add(back).cast::<Anywhere<$word>>().write_volatile(last);
            }
        }};
    }
    match bytes {
        // One move: each of a packed word goes through memory.
        8 if (src as usize | dst as usize).is_multiple_of(align_of::<u64>()) => {
            // SAFETY: a word at aligned addresses; volatile, as above.
            unsafe { dst.cast::<u64>().write_volatile(src.cast::<u64>().read_volatile()) };
        }
        8..=16 => both_ends!(u64),
        4..=7 => both_ends!(u32),
        2..=3 => both_ends!(u16),
        1 => both_ends!(u8),
        _ => {}
    }
}

/// Byte by byte at the ends, word by word between them, all relaxed atomic.
#[cfg(any(tsan, loom))]
unsafe fn atomic_copy(src: *const u8, dst: *mut u8, bytes: usize) {
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
    let word = size_of::<u64>();
    let step = |at: usize| {
        let aligned = (src as usize + at) % word == 0 && (dst as usize + at) % word == 0;
        if aligned && bytes - at >= word { word } else { 1 }
    };
    // SAFETY: inside the caller's ranges, and atomic, so that a race is no undefined behaviour.
    let one = |at: usize, size: usize| unsafe {
        if size == word {
            let value = (*src.add(at).cast::<AtomicU64>()).load(Relaxed);
            (*dst.add(at).cast::<AtomicU64>()).store(value, Relaxed);
        } else {
            let value = (*src.add(at).cast::<AtomicU8>()).load(Relaxed);
            (*dst.add(at).cast::<AtomicU8>()).store(value, Relaxed);
        }
    };
    // Towards the overlap, as memmove does.
    if (dst as usize).wrapping_sub(src as usize) >= bytes {
        let mut at = 0;
        while at < bytes {
            let size = step(at);
            one(at, size);
            at += size;
        }
    } else {
        for at in (0..bytes).rev() {
            one(at, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_overlap_copies_as_memmove() {
        for bytes in (0..70).chain([4096, 100_000]) {
            for shift in [0usize, 1, 7, 8, 64] {
                for forwards in [true, false] {
                    let mut ours: Vec<u8> = (0..bytes + shift).map(|i| i as u8 ^ 0x5a).collect();
                    let mut reference = ours.clone();
                    let (from, to) = if forwards { (0, shift) } else { (shift, 0) };
                    reference.copy_within(from..from + bytes, to);
                    let base = ours.as_mut_ptr();
                    // SAFETY: both ranges lie in the vector.
                    unsafe { copy(base.add(from), base.add(to), bytes) };
                    assert_eq!(ours, reference, "{bytes} bytes shifted by {shift}");
                }
            }
        }
    }
}
