//! The memory of a message: pieces, one behind the other, and how far they are done.

use lpf_messages::Piece;

use super::frame::LONGEST;

/// Longer lists are not kept for the next message.
const KEPT: usize = 1 << 14;

/// A message's memory. What is done is not part of it any more.
#[derive(Default)]
pub(super) struct Pieces {
    list: Vec<Piece>,
    /// The first piece that is not done, and how much of it is.
    at: usize,
    offset: usize,
    /// Bytes not done.
    left: usize,
}

impl Pieces {
    /// Takes over the memory of a new message; false where it is longer than one can be.
    pub(super) fn set(&mut self, pieces: &[Piece]) -> bool {
        (self.at, self.offset) = (0, 0);
        self.list.clear();
        self.list.extend(pieces.iter().filter(|piece| piece.bytes > 0));
        let sum = self.list.iter().try_fold(0_usize, |sum, piece| sum.checked_add(piece.bytes));
        self.left = sum.unwrap_or(usize::MAX);
        self.left <= LONGEST
    }

    /// Lets the memory go.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.list.shrink_to(KEPT);
        (self.at, self.offset, self.left) = (0, 0, 0);
    }

    /// Bytes not done.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// What is not done.
    pub(super) fn rest(&self) -> impl Iterator<Item = Piece> {
        let mut offset = self.offset;
        self.list[self.at..].iter().map(move |piece| {
            let done = std::mem::take(&mut offset);
            Piece { base: piece.base.wrapping_add(done), bytes: piece.bytes - done }
        })
    }

    /// The next contiguous bytes, at most `bytes`; of length 0 if nothing is left.
    fn next(&self, bytes: usize) -> Piece {
        let Some(piece) = self.list.get(self.at) else {
            return Piece { base: std::ptr::null_mut(), bytes: 0 };
        };
        let base = piece.base.wrapping_add(self.offset);
        Piece { base, bytes: bytes.min(piece.bytes - self.offset) }
    }

    /// So many more bytes are done.
    pub(super) fn advance(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.left);
        self.left -= bytes;
        self.offset += bytes;
        while let Some(piece) = self.list.get(self.at)
            && self.offset >= piece.bytes
        {
            self.offset -= piece.bytes;
            self.at += 1;
        }
    }

    /// Writes bytes into what is not done, as many as there is room for.
    ///
    /// # Safety
    /// The memory is valid for writes.
    pub(super) unsafe fn write(&mut self, mut bytes: &[u8]) {
        while let to = self.next(bytes.len())
            && to.bytes > 0
        {
            // SAFETY: `to` is no longer than `bytes`, and valid by the caller's promise.
            unsafe { lpf_core::copy::copy(bytes.as_ptr(), to.base, to.bytes) };
            self.advance(to.bytes);
            bytes = &bytes[to.bytes..];
        }
    }

    /// Copies all that is not done into `to`, as far as there is room. Both may overlap: what the
    /// bytes are is then not said.
    ///
    /// # Safety
    /// The memory is valid for reads, and that of `to` for writes.
    pub(super) unsafe fn copy_to(&mut self, to: &mut Pieces) {
        while let from = self.next(to.next(self.left).bytes)
            && from.bytes > 0
        {
            // SAFETY: `from` is no longer than the next piece of `to`; the caller's promise.
            unsafe { lpf_core::copy::copy(from.base, to.next(from.bytes).base, from.bytes) };
            self.advance(from.bytes);
            to.advance(from.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_into_the_pieces_in_order() {
        let (mut a, mut b, mut c) = ([0; 3], [0; 0], [0; 4]);
        let mut pieces = Pieces::default();
        assert!(pieces.set(&[Piece::of_mut(&mut a), Piece::of_mut(&mut b), Piece::of_mut(&mut c)]));
        assert_eq!(pieces.left(), 7);
        // SAFETY: the arrays live, and nothing else touches them.
        unsafe {
            pieces.write(&[1, 2]);
            assert_eq!(pieces.rest().map(|piece| piece.bytes).collect::<Vec<_>>(), [1, 4]);
            pieces.write(&[3, 4, 5, 6, 7, 8]);
        }
        assert_eq!((pieces.left(), pieces.rest().count()), (0, 0));
        assert_eq!((a, c), ([1, 2, 3], [4, 5, 6, 7]));
    }

    #[test]
    fn pieces_cut_in_other_places_are_copied_whole() {
        let from: Vec<u8> = (0..100).collect();
        for (cut_from, cut_to) in [(100, 100), (7, 3), (3, 7), (1, 100), (100, 1)] {
            let mut to = vec![0; 100];
            let (mut source, mut target) = (Pieces::default(), Pieces::default());
            assert!(source.set(&from.chunks(cut_from).map(Piece::of).collect::<Vec<_>>()));
            assert!(target.set(&to.chunks_mut(cut_to).map(Piece::of_mut).collect::<Vec<_>>()));
            // SAFETY: the vectors live, and nothing else touches them.
            unsafe { source.copy_to(&mut target) };
            assert_eq!((source.left(), target.left()), (0, 0));
            assert_eq!(to, from);
        }
    }

    #[test]
    fn a_message_longer_than_memory_is_refused() {
        let half = Piece { base: std::ptr::dangling_mut(), bytes: usize::MAX / 2 + 1 };
        let mut pieces = Pieces::default();
        assert!(!pieces.set(&[half, half]));
        assert!(!pieces.set(&[Piece { base: half.base, bytes: LONGEST }; 2]));
        assert!(pieces.set(&[Piece { base: half.base, bytes: LONGEST }]));
    }
}
