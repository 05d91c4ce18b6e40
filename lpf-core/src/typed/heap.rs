//! The memory of one process's areas.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Areas begin on their own pair of cache lines: neighbours in memory belong to one process, but
/// copies into them come from many.
const ALIGN: usize = 128;

/// From this size on the allocator takes pages from the system, which are zero and exist once they are touched. The
/// standard library leaves them so only at the allocator's own alignment, and fills any other block with zeros.
const LARGE: usize = 128 << 10;
const OWN_ALIGN: usize = 16;

#[derive(Debug)]
struct Block {
    base: NonNull<u8>,
    bytes: usize,
    /// What the allocator gave; a large block begins behind it.
    memory: NonNull<u8>,
    /// Occupies room of `alloc`.
    roomed: bool,
}

impl Block {
    fn layout(bytes: usize) -> Option<Layout> {
        let layout = match bytes < LARGE {
            true => Layout::from_size_align(bytes.max(1), ALIGN),
            false => Layout::from_size_align(bytes.checked_add(ALIGN)?, OWN_ALIGN),
        };
        layout.ok()
    }

    fn allocate(bytes: usize) -> Option<Self> {
        let layout = Self::layout(bytes)?;
        // SAFETY: the layout has a size of at least 1.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skipped = memory.align_offset(ALIGN);
        // SAFETY: a small block is aligned, so that 0 bytes are skipped. Of a large one it is fewer than `ALIGN`, and
        // the layout has that many on top.
        let base = unsafe { memory.add(skipped) };
        Some(Block { base, bytes, memory, roomed: false })
    }

    fn free(self) {
        if let Some(layout) = Self::layout(self.bytes) {
            // SAFETY: allocated by `allocate` with this layout, and freed once: `self` is consumed.
            unsafe { dealloc(self.memory.as_ptr(), layout) };
        }
    }
}

/// The blocks of one context, by number.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    blocks: Vec<Option<Block>>,
    free: Vec<usize>,
    /// Deregistered, and freed at the end of the next full sync.
    retired: Vec<usize>,
    /// Blocks that occupy room of `alloc`.
    roomed: usize,
    leak: bool,
}

impl Heap {
    /// A zeroed block for `len` elements, or the number of bytes that were refused.
    pub(crate) fn allocate<T>(&mut self, len: usize) -> Result<usize, usize> {
        const { assert!(align_of::<T>() <= ALIGN) };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(usize::MAX)?;
        self.blocks.try_reserve(1).map_err(|_| bytes)?;
        self.free.try_reserve(1).map_err(|_| bytes)?;
        // Room to retire every block, so that deregistering cannot fail.
        self.retired.try_reserve(self.blocks.len() + 1 - self.retired.len()).map_err(|_| bytes)?;
        let block = Block::allocate(bytes).ok_or(bytes)?;
        Ok(match self.free.pop() {
            Some(number) => {
                self.blocks[number] = Some(block);
                number
            }
            None => {
                self.blocks.push(Some(block));
                self.blocks.len() - 1
            }
        })
    }

    /// Where a block is and how long.
    pub(crate) fn place(&self, number: usize) -> (*mut u8, usize) {
        let block = self.blocks[number].as_ref().expect("a handle's block is allocated");
        (block.base.as_ptr(), block.bytes)
    }

    /// Notes that an area of `alloc` has this block. It occupies room until its slot is free.
    pub(crate) fn occupy_room(&mut self, number: usize) {
        if let Some(block) = &mut self.blocks[number] {
            self.roomed += usize::from(!block.roomed);
            block.roomed = true;
        }
    }

    fn give_room_back(&mut self, number: usize) {
        if let Some(block) = &mut self.blocks[number] {
            self.roomed -= usize::from(block.roomed);
            block.roomed = false;
        }
    }

    /// Areas that occupy room of `alloc`. Equal at all processes that made the same collective calls, because the slots
    /// of global areas become free together.
    pub(crate) fn occupied_room(&self) -> usize {
        self.roomed
    }

    /// Frees a block that was never registered.
    pub(crate) fn free(&mut self, number: usize) {
        self.give_room_back(number);
        if let Some(block) = self.blocks[number].take() {
            block.free();
            self.free.push(number);
        }
    }

    /// Keeps a block until the end of the next full sync.
    pub(crate) fn retire(&mut self, number: usize) {
        self.give_room_back(number);
        self.retired.push(number);
    }

    pub(crate) fn has_retired(&self) -> bool {
        !self.retired.is_empty()
    }

    /// Frees what was retired, unless another process may still write to it.
    pub(crate) fn free_retired(&mut self, quiet: bool) {
        while let Some(number) = self.retired.pop() {
            self.free_deregistered(number, quiet);
        }
    }

    /// Frees a block whose slot is gone, unless another process may still write to it.
    pub(crate) fn free_deregistered(&mut self, number: usize, quiet: bool) {
        self.leak |= !quiet;
        if quiet {
            self.free(number);
        } else {
            self.give_room_back(number);
            // A block has no Drop: this leaks it.
            self.blocks[number] = None;
        }
    }

    /// Bytes of all blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.iter().flatten().map(|block| block.bytes).sum()
    }

    /// Keeps everything for ever: somebody may still write to it.
    pub(crate) fn leak(&mut self) {
        self.leak = true;
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        if self.leak {
            crate::leaked::leak(blocks);
        } else {
            blocks.into_iter().flatten().for_each(Block::free);
        }
    }
}
