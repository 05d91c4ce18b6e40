//! The positions of heads and bytes of messages in a ring.

use lpf_core::arrivals::InboxShape;

/// The words before a message: its length, and its stamp.
pub(super) const HEAD: usize = 16;
/// Cells begin on a line, and their bytes on the next.
const LINE: usize = 64;

/// The positions of the cells of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) window: u32,
    /// From one cell to the next, and from one ring to the next.
    stride: usize,
    pub(super) ring: usize,
}

impl Layout {
    /// From a cell's line to its bytes.
    pub(super) const DATA: usize = LINE;
    /// The owner's line, and one that processors fetch with it.
    const OWNER: usize = 2 * LINE;

    /// `None` if a ring is longer than memory.
    pub(super) fn of(shape: InboxShape) -> Option<Self> {
        let stride = shape.cell_bytes.checked_next_multiple_of(LINE)?.checked_add(Self::DATA)?;
        let ring = stride.checked_mul(shape.window as usize)?.checked_add(Self::OWNER)?;
        Some(Layout { window: shape.window, stride, ring })
    }

    /// The offset of a message's cell in its ring.
    #[inline]
    pub(super) fn cell(&self, message: u64) -> usize {
        Self::OWNER + (message % u64::from(self.window)) as usize * self.stride
    }
}
