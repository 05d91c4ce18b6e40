//! The memory that one call reads or writes: pieces of it, in order.

use lpf_messages::Piece;

/// The most pieces that one call takes: `UIO_MAXIOV` of Linux, `IOV_MAX` elsewhere.
const MOST: usize = 1024;

/// The most bytes that one call is offered: more than a socket's buffers hold, and little enough
/// that other connections have their turn.
const MOST_BYTES: usize = 8 << 20;

/// Sent in place of a message that its sender has cancelled, and in an empty record.
pub(super) static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The pieces of one call.
pub(super) struct Vectors {
    list: Vec<libc::iovec>,
    bytes: usize,
}

// SAFETY: addresses are only numbers; who may touch the memory is said where they are used.
unsafe impl Send for Vectors {}

impl Vectors {
    pub(super) fn new() -> Self {
        Vectors { list: Vec::with_capacity(MOST), bytes: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.bytes = 0;
    }

    pub(super) fn list(&self) -> &[libc::iovec] {
        &self.list
    }

    /// Bytes of all pieces.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a piece, or as much of it as one call may take; false where that is not all.
    pub(super) fn push(&mut self, piece: Piece) -> bool {
        let bytes = piece.bytes.min(MOST_BYTES - self.bytes);
        if bytes > 0 && self.list.len() < MOST {
            self.list.push(libc::iovec { iov_base: piece.base.cast(), iov_len: bytes });
            self.bytes += bytes;
            return bytes == piece.bytes;
        }
        piece.bytes == 0
    }

    /// Adds the first `bytes` bytes of pieces; false where that was not all.
    pub(super) fn extend(&mut self, pieces: impl Iterator<Item = Piece>, bytes: usize) -> bool {
        let mut left = bytes;
        for piece in pieces {
            let piece = Piece { bytes: piece.bytes.min(left), ..piece };
            left -= piece.bytes;
            if !self.push(piece) {
                return false;
            }
            if left == 0 {
                break;
            }
        }
        true
    }
}

/// A walk over the pieces of a call.
pub(super) struct Walk<'a> {
    list: &'a [libc::iovec],
    /// Bytes of the first piece that are behind the walk, and bytes that are ahead.
    offset: usize,
    left: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(vectors: &'a Vectors) -> Self {
        Walk { list: &vectors.list, offset: 0, left: vectors.bytes }
    }

    /// Bytes that are ahead.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Whether it is in the last piece.
    pub(super) fn is_last(&self) -> bool {
        self.list.len() == 1
    }

    /// The bytes that are next and contiguous; of length 0 at the end.
    pub(super) fn next(&self) -> Piece {
        let Some(piece) = self.list.first() else {
            return Piece { base: std::ptr::null_mut(), bytes: 0 };
        };
        let base = piece.iov_base.cast::<u8>().wrapping_add(self.offset);
        Piece { base, bytes: piece.iov_len - self.offset }
    }

    /// Goes on by `bytes` bytes, at most to the end of the [`next`](Self::next) ones.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.offset += bytes;
        self.left -= bytes;
        if let Some(piece) = self.list.first()
            && self.offset == piece.iov_len
        {
            (self.list, self.offset) = (&self.list[1..], 0);
        }
    }

    /// Goes on by `bytes` bytes, or to the end: calls `each` with every contiguous part, and the number of bytes before
    /// it. Returns the number of all.
    fn go_on(&mut self, bytes: usize, mut each: impl FnMut(Piece, usize)) -> usize {
        let mut done = 0;
        while let next = self.next()
            && let part = next.bytes.min(bytes - done)
            && part > 0
        {
            each(Piece { bytes: part, ..next }, done);
            self.advance(part);
            done += part;
        }
        done
    }

    /// Copies the next bytes into `to`, as many as there is room for; how many.
    ///
    /// # Safety
    /// The pieces are valid for reads, and do not overlap with `to`.
    pub(super) unsafe fn read(&mut self, to: &mut [u8]) -> usize {
        self.go_on(to.len(), |from, done| {
            // SAFETY: `to` has room for the part, and is behind no piece; the part is valid by the caller's promise.
            unsafe { lpf_core::copy::copy(from.base, to[done..].as_mut_ptr(), from.bytes) }
        })
    }

    /// Copies bytes of `from` into what is next, as many as there is room for; how many.
    ///
    /// # Safety
    /// The pieces are valid for writes, and do not overlap with `from`.
    pub(super) unsafe fn write(&mut self, from: &[u8]) -> usize {
        self.go_on(from.len(), |to, done| {
            // SAFETY: `from` has the bytes of the part, and is behind no piece; the part is valid by the caller's promise.
            unsafe { lpf_core::copy::copy(from[done..].as_ptr(), to.base, to.bytes) }
        })
    }
}
