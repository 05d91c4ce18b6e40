//! Raw memory for cases: what a slot names when the typed layer is not what is tested.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;

use lpf_core::{Context, GlobalSlot, LocalSlot, Lpf, Result};

thread_local! {
    /// Blocks whose buffers went while the section that may still name them goes on.
    static KEPT: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
enum Block {
    Heap(*mut u8, Layout),
    Map(*mut u8, usize),
}

impl Drop for Block {
    fn drop(&mut self) {
        match *self {
            // SAFETY: allocated by `Buffer::zeroed` with this layout; a block is dropped once.
            Block::Heap(base, layout) => unsafe { dealloc(base, layout) },
            // SAFETY: mapped by `Buffer::sparse` with this length.
            Block::Map(base, bytes) => unsafe {
                libc::munmap(base.cast(), bytes);
            },
        }
    }
}

/// Frees what buffers of earlier sections of this thread left. A case's program calls it first.
pub(crate) fn bury() {
    KEPT.with_borrow_mut(Vec::clear);
}

/// Bytes that other processes may write: reached by raw pointers only, and freed not when the
/// handle goes (the section may still name them) but when this thread begins its next case.
#[derive(Debug)]
pub(crate) struct Buffer {
    base: *mut u8,
    len: usize,
    block: Option<Block>,
}

impl Buffer {
    /// Null, without any bytes.
    pub(crate) fn null() -> Self {
        Buffer { base: std::ptr::null_mut(), len: 0, block: None }
    }

    /// `len` zeros; not null even for 0.
    pub(crate) fn zeroed(len: usize) -> Self {
        let layout = Layout::from_size_align(len.max(1), 64).expect("a case asks for little");
        // SAFETY: the layout has a size of at least 1.
        let base = unsafe { alloc_zeroed(layout) };
        if base.is_null() {
            handle_alloc_error(layout);
        }
        Buffer { base, len, block: Some(Block::Heap(base, layout)) }
    }

    /// `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.write(0, bytes);
        buffer
    }

    /// `len` times `byte`.
    pub(crate) fn filled(len: usize, byte: u8) -> Self {
        let mut buffer = Self::zeroed(len);
        buffer.fill(byte);
        buffer
    }

    /// `len` zeros of address space; only pages that are touched take memory. `None` where the
    /// system refuses.
    pub(crate) fn sparse(len: usize) -> Option<Self> {
        // SAFETY: an anonymous mapping at an address of the system's choice touches nothing.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        (base != libc::MAP_FAILED).then(|| {
            let base = base.cast();
            Buffer { base, len, block: Some(Block::Map(base, len)) }
        })
    }

    fn check(&self, offset: usize, bytes: usize) {
        let end = offset.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.len),
            "a case reads or writes outside its buffer"
        );
    }

    /// Copies `bytes` to `offset`. No pending request names the place: the cases see to that.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.check(offset, bytes.len());
        // SAFETY: inside the block, as just checked; `bytes` is a Rust slice and so none of it.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.base.wrapping_add(offset),
                bytes.len(),
            );
        }
    }

    pub(crate) fn fill(&mut self, byte: u8) {
        if self.len > 0 {
            // SAFETY: the block has `len` bytes.
            unsafe { self.base.write_bytes(byte, self.len) };
        }
    }

    /// Copies `bytes` bytes at `offset` out.
    pub(crate) fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        self.check(offset, bytes);
        let mut copy = vec![0; bytes];
        // SAFETY: inside the block, as just checked; the copy is fresh.
        unsafe {
            std::ptr::copy_nonoverlapping(self.base.wrapping_add(offset), copy.as_mut_ptr(), bytes);
        }
        copy
    }

    pub(crate) fn to_vec(&self) -> Vec<u8> {
        self.read(0, self.len)
    }

    /// Registers it as a local slot.
    pub(crate) fn local<L: Lpf>(&self, ctx: &mut Context<'_, L>) -> Result<LocalSlot> {
        // SAFETY: the block lives until the thread's next case, so past the section; the cases
        // touch it only while no pending request names it.
        unsafe { ctx.raw().register_local(self.base, self.len) }
    }

    /// Registers it as a global slot.
    pub(crate) fn global<L: Lpf>(&self, ctx: &mut Context<'_, L>) -> Result<GlobalSlot> {
        // SAFETY: as in `local`, for the requests of all processes.
        unsafe { ctx.raw().register_global(self.base, self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            // A thread that is ending has left its sections: then the block may go at once.
            let _ = KEPT.try_with(|kept| kept.borrow_mut().push(block));
        }
    }
}
