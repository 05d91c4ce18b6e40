//! A copy by non-temporal stores: the destination is not read before it is overwritten.

/// Copies `bytes` bytes, a multiple of 64.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `bytes` bytes; both are aligned to 64 and the
/// areas are apart.
#[cfg(target_arch = "x86_64")]
pub(in crate::bench) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_sfence, _mm_stream_si128};
    let (mut from, mut to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
    // SAFETY: the caller's promise: aligned, inside both areas. The fence makes the stores visible
    // before anything that follows.
    unsafe {
        for _ in 0..bytes / 64 {
            let line = [0, 1, 2, 3].map(|i| _mm_load_si128(from.add(i)));
            line.iter().enumerate().for_each(|(i, &part)| _mm_stream_si128(to.add(i), part));
            (from, to) = (from.add(4), to.add(4));
        }
        _mm_sfence();
    }
}

/// Other machines have no such stores in stable Rust.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `bytes` bytes, and the areas are apart.
#[cfg(not(target_arch = "x86_64"))]
pub(in crate::bench) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_copies_all_bytes() {
        #[repr(align(64))]
        struct Lines([u8; 640]);
        let from = Lines(std::array::from_fn(|i| i as u8));
        let mut to = Lines([0; 640]);
        // SAFETY: both arrays are aligned to 64 and have 640 bytes.
        unsafe { super::copy(from.0.as_ptr(), to.0.as_mut_ptr(), 640) };
        assert_eq!(from.0, to.0);
    }
}
