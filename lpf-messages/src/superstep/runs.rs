//! Copies the bytes of a run: between addresses at a constant stride, and consecutive ones.

/// Where the pieces of a run lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) first: *mut u8,
    /// From one to the next.
    pub(super) stride: isize,
}

impl Places {
    /// Consecutive.
    pub(super) fn dense(first: *mut u8, bytes: usize) -> Self {
        Places { first, stride: bytes as isize }
    }

    #[inline(always)]
    fn of(self, nth: usize) -> *mut u8 {
        self.first.wrapping_offset(self.stride.wrapping_mul(nth as isize))
    }
}

/// Copies `count` pieces of `bytes` bytes. Words are copied without the C library, whose call would take longer than the
/// rest of the work for a word.
///
/// # Safety
/// Each piece of `from` is valid for reads and each of `to` for writes, and nobody else touches them
/// meanwhile. A piece may overlap the one that it becomes.
#[inline]
pub(super) unsafe fn copy(from: Places, to: Places, bytes: usize, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if from.stride == to.stride && from.stride == bytes as isize {
            return std::ptr::copy(from.first, to.first, bytes * count);
        }
        match bytes {
            1 => words::<u8>(from, to, count),
            2 => words::<u16>(from, to, count),
            4 => words::<u32>(from, to, count),
            8 => words::<u64>(from, to, count),
            16 => words::<u128>(from, to, count),
            _ => (0..count).for_each(|nth| std::ptr::copy(from.of(nth), to.of(nth), bytes)),
        }
    }
}

/// # Safety
/// As [`copy`], for pieces of a word's size.
#[inline(always)]
unsafe fn words<W>(from: Places, to: Places, count: usize) {
    for nth in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            to.of(nth).cast::<W>().write_unaligned(from.of(nth).cast::<W>().read_unaligned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_goes_to_its_place() {
        for bytes in [1, 2, 3, 4, 7, 8, 9, 16, 24, 64] {
            for (from_stride, to_stride) in [(1, 1), (1, 2), (3, 1), (-1, 2), (0, 1), (2, -3)] {
                let (count, reach) = (5, 5 * 3 * bytes);
                let source: Vec<u8> = (0..2 * reach).map(|i| (i * 7 + 3) as u8).collect();
                let (mut ours, mut reference) = (vec![0; 2 * reach], vec![0; 2 * reach]);
                let (from, to) = (from_stride * bytes as isize, to_stride * bytes as isize);
                for nth in 0..count as isize {
                    let (from, to) = (reach as isize + nth * from, reach as isize + nth * to);
                    let piece = &source[from as usize..][..bytes];
                    reference[to as usize..][..bytes].copy_from_slice(piece);
                }
                let source = source.as_ptr().wrapping_add(reach).cast_mut();
                let from = Places { first: source, stride: from };
                let to = Places { first: ours.as_mut_ptr().wrapping_add(reach), stride: to };
                // SAFETY: every piece lies in its vector.
                unsafe { copy(from, to, bytes, count) };
                assert_eq!(ours, reference, "{bytes} bytes, {from_stride} to {to_stride}");
            }
        }
    }
}
