//! Memory that the network reads and writes while nobody holds a reference to it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::ptr::NonNull;

use super::transport::{Piece, SharedMemory};

const ALIGN: usize = 64;

/// A block of bytes, zeroed unless it is shared, reached by pieces and, where the network is done with them, as slices.
#[derive(Debug)]
pub(super) struct Memory {
    base: NonNull<u8>,
    bytes: usize,
    shared: Option<SharedMemory>,
}

// SAFETY: it owns its bytes.
unsafe impl Send for Memory {}

impl Memory {
    /// A block, or the bytes that were refused.
    pub(super) fn new(bytes: usize) -> Result<Self, usize> {
        if bytes == 0 {
            return Ok(Memory::default());
        }
        let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| bytes)?;
        // SAFETY: the layout has a size.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(bytes)?;
        Ok(Memory { base, bytes, shared: None })
    }

    /// A block that others reach.
    pub(super) fn shared(shared: SharedMemory) -> Option<Self> {
        Some(Memory { base: NonNull::new(shared.base)?, bytes: shared.bytes, shared: Some(shared) })
    }

    /// What the others know it by, where they reach it.
    pub(super) fn place(&self) -> Option<u64> {
        self.shared.as_ref().map(|shared| shared.place)
    }

    /// How long it is.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Part of it, for the network.
    ///
    /// # Panics
    /// Outside the block.
    pub(super) fn piece(&self, range: Range<usize>) -> Piece {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} of {}", self.bytes);
        Piece { base: self.base.as_ptr().wrapping_add(range.start), bytes: range.len() }
    }

    /// Part of it.
    ///
    /// # Safety
    /// Nobody writes to it while the slice lives: no receive into it is posted.
    ///
    /// # Panics
    /// Outside the block.
    pub(super) unsafe fn bytes(&self, range: Range<usize>) -> &[u8] {
        let piece = self.piece(range);
        // SAFETY: inside the block, which is initialised; nobody writes.
        unsafe { std::slice::from_raw_parts(piece.base, piece.bytes) }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory { base: NonNull::dangling(), bytes: 0, shared: None }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.bytes > 0 && self.shared.is_none() {
            // SAFETY: allocated with this layout.
            unsafe {
                dealloc(self.base.as_ptr(), Layout::from_size_align_unchecked(self.bytes, ALIGN))
            };
        }
    }
}
