//! The memory of a message: pieces, one behind the other.

use lpf_messages::Piece;

/// Bytes of all pieces, if a number can say it.
pub(crate) fn total(pieces: &[Piece]) -> Option<usize> {
    pieces.iter().try_fold(0_usize, |sum, piece| sum.checked_add(piece.bytes))
}

/// Copies all pieces, one behind the other.
///
/// # Safety
/// The pieces are valid for reads, and `to` for writes of all their bytes.
pub(crate) unsafe fn gather(pieces: &[Piece], mut to: *mut u8) {
    for piece in pieces {
        // SAFETY: the caller's promise.
        unsafe { lpf_core::copy::copy(piece.base, to, piece.bytes) };
        to = to.wrapping_add(piece.bytes);
    }
}

/// Copies `bytes` bytes into the pieces, as far as there is room.
///
/// # Safety
/// The pieces are valid for writes, and `from` for reads.
pub(crate) unsafe fn scatter(mut from: *const u8, mut bytes: usize, pieces: &[Piece]) {
    for piece in pieces {
        let here = bytes.min(piece.bytes);
        // SAFETY: the caller's promise.
        unsafe { lpf_core::copy::copy(from, piece.base, here) };
        from = from.wrapping_add(here);
        bytes -= here;
        if bytes == 0 {
            return;
        }
    }
}

/// The pieces of bytes `start` to `start + bytes` of a message; fewer where it ends before.
pub(crate) fn window(
    pieces: &[Piece],
    start: usize,
    bytes: usize,
) -> impl Iterator<Item = Piece> + '_ {
    let (mut before, mut left) = (start, bytes);
    pieces.iter().filter_map(move |piece| {
        let skipped = before.min(piece.bytes);
        before -= skipped;
        let here = left.min(piece.bytes - skipped);
        left -= here;
        (here > 0).then(|| Piece { base: piece.base.wrapping_add(skipped), bytes: here })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_a_message_are_all_of_it() {
        let message: Vec<u8> = (0..100).collect();
        for (cut, length) in [(100, 100), (1, 7), (7, 1), (30, 30), (31, 30), (9, 64)] {
            let pieces: Vec<Piece> = message.chunks(cut).map(Piece::of).collect();
            let mut seen = Vec::new();
            for start in (0..message.len()).step_by(length) {
                let window: Vec<Piece> = window(&pieces, start, length).collect();
                let bytes = total(&window).unwrap();
                assert_eq!(bytes, length.min(message.len() - start));
                let mut copy = vec![0; bytes];
                // SAFETY: the message and the copy live, and are apart.
                unsafe { gather(&window, copy.as_mut_ptr()) };
                seen.extend(copy);
            }
            assert_eq!(seen, message);
        }
    }

    #[test]
    fn bytes_go_into_the_pieces_in_order() {
        let (mut a, mut b, mut c) = ([0; 3], [0; 0], [0; 4]);
        let pieces = [Piece::of_mut(&mut a), Piece::of_mut(&mut b), Piece::of_mut(&mut c)];
        let from = [1, 2, 3, 4, 5];
        // SAFETY: the arrays live, and nothing else touches them.
        unsafe { scatter(from.as_ptr(), from.len(), &pieces) };
        assert_eq!((a, c), ([1, 2, 3], [4, 5, 0, 0]));
    }

    #[test]
    fn no_number_says_how_long_more_than_memory_is() {
        let half = Piece { base: std::ptr::dangling_mut(), bytes: usize::MAX / 2 + 1 };
        assert_eq!((total(&[half]), total(&[half, half])), (Some(half.bytes), None));
    }
}
