//! The rings as one zeroed block of memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use lpf_core::arrivals::InboxShape;

use super::{Cell, IN_HEADER, Loan, Offer, OwnerLine, SenderLine};
use crate::sync::Ordering;

/// From this size on, rings are pages of the system's own, which are there once they are touched: with many processes
/// most rings are never used. The allocator may give out memory that was used before, and fill all of it with zeros.
const LARGE: usize = 1 << 20;

const HEADER: usize = 64;
const ALIGN: usize = 128;

const _: () = assert!(size_of::<Cell>() == HEADER);

/// The rings of one process's inbox. Shared memory of the section: kept while anybody has a link
/// on it.
#[derive(Debug)]
pub(crate) struct InboxMemory {
    pub(crate) shape: InboxShape,
    base: NonNull<u8>,
    layout: Layout,
    ring_bytes: usize,
    cell_bytes: usize,
    /// Places for cells, less one. A power of two of them: a message is found without a division.
    mask: u64,
}

// SAFETY: everything in it is atomic, or a cell's payload, which belongs to the sender or the owner
// as the sequence numbers and credits say.
unsafe impl Send for InboxMemory {}
// SAFETY: as above.
unsafe impl Sync for InboxMemory {}

impl InboxMemory {
    /// Zeroed rings, or the bytes that were refused.
    pub(crate) fn new(shape: InboxShape) -> Result<Self, usize> {
        let refused = || usize::MAX;
        let (places, rings) = (shape.window.next_power_of_two() as usize, shape.rings);
        let data = if shape.cell_bytes <= IN_HEADER { 0 } else { shape.cell_bytes };
        let cell_bytes = data
            .checked_add(HEADER)
            .and_then(|bytes| bytes.checked_next_multiple_of(ALIGN))
            .ok_or_else(refused)?;
        let lines = size_of::<SenderLine>() + size_of::<OwnerLine>();
        let control = (lines + places * size_of::<Offer>()).next_multiple_of(ALIGN);
        let ring_bytes = cell_bytes
            .checked_mul(places)
            .and_then(|bytes| bytes.checked_add(control))
            .ok_or_else(refused)?;
        let bytes = ring_bytes.checked_mul(rings).ok_or_else(refused)?;
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).map_err(|_| bytes)?;
        let base = if bytes >= LARGE {
            map(bytes)
        } else {
            // SAFETY: the layout has a size of at least 1.
            NonNull::new(unsafe { alloc_zeroed(layout) })
        };
        let base = base.ok_or(bytes)?;
        let mask = places as u64 - 1;
        Ok(InboxMemory { shape, base, layout, ring_bytes, cell_bytes, mask })
    }

    #[inline]
    fn ring(&self, ring: usize) -> *mut u8 {
        assert!(ring < self.shape.rings, "ring {ring} of {}", self.shape.rings);
        self.base.as_ptr().wrapping_add(ring * self.ring_bytes)
    }

    #[inline]
    pub(crate) fn sender(&self, ring: usize) -> &SenderLine {
        // SAFETY: zeroed atomics at a place kept for them.
        unsafe { &*self.ring(ring).cast() }
    }

    #[inline]
    pub(crate) fn owner(&self, ring: usize) -> &OwnerLine {
        // SAFETY: as above.
        unsafe { &*self.ring(ring).wrapping_add(size_of::<SenderLine>()).cast() }
    }

    #[inline]
    pub(crate) fn offer(&self, ring: usize, number: u64) -> &Offer {
        let lines = size_of::<SenderLine>() + size_of::<OwnerLine>();
        let at = (number - 1) & self.mask;
        // SAFETY: as above.
        unsafe { &*self.ring(ring).wrapping_add(lines + at as usize * size_of::<Offer>()).cast() }
    }

    #[inline]
    fn cell_place(&self, ring: usize, nth: u64) -> *mut u8 {
        let from_end = (self.mask + 1 - ((nth - 1) & self.mask)) as usize;
        let end = self.ring(ring).wrapping_add(self.ring_bytes);
        end.wrapping_sub(from_end * self.cell_bytes)
    }

    /// The header of message `nth`, from 1.
    #[inline]
    pub(crate) fn cell(&self, ring: usize, nth: u64) -> &Cell {
        // SAFETY: zeroed atomics at a place kept for them; the payload bytes are reached by raw
        // pointers alone.
        unsafe { &*self.cell_place(ring, nth).cast() }
    }

    /// Where the bytes of message `nth` are: in the header's line if they fit.
    #[inline]
    pub(crate) fn data(&self, ring: usize, nth: u64, bytes: usize) -> *mut u8 {
        let place = self.cell_place(ring, nth);
        place.wrapping_add(if bytes <= IN_HEADER { HEADER - IN_HEADER } else { HEADER })
    }

    /// The loan of message `nth`, which is one.
    #[inline]
    pub(crate) fn loan(&self, ring: usize, nth: u64) -> &Loan {
        let place = self.cell_place(ring, nth).wrapping_add(HEADER - IN_HEADER);
        // SAFETY: the payload's place is aligned and long enough, and a message that is lent has no payload.
        unsafe { &*place.cast() }
    }

    /// Copies message `nth` into its cell.
    ///
    /// # Safety
    /// - `from` is valid for reads of `bytes` bytes, and the cell is that long;
    /// - the cell is the caller's: a credit says so.
    #[inline]
    pub(crate) unsafe fn fill(&self, ring: usize, nth: u64, from: *const u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { lpf_core::copy::copy(from, self.data(ring, nth, bytes), bytes) };
    }

    /// Whether message `nth` is there.
    #[inline]
    pub(crate) fn has_arrived(&self, ring: usize, nth: u64) -> bool {
        self.cell(ring, nth).sequence.load(Ordering::Acquire) == nth
    }
}

impl Drop for InboxMemory {
    fn drop(&mut self) {
        // SAFETY: mapped, or allocated, with this size; nobody has a reference.
        unsafe {
            match self.layout.size() >= LARGE {
                true => unmap(self.base, self.layout.size()),
                false => dealloc(self.base.as_ptr(), self.layout),
            }
        }
    }
}

/// Zeroed pages, which exist once they are touched; `None` if the system refuses them.
#[cfg(target_os = "linux")]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, which the kernel places where nothing is.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// # Safety
/// From [`map`] with so many bytes, and not used any more.
#[cfg(target_os = "linux")]
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
}

#[cfg(not(target_os = "linux"))]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(bytes, ALIGN).ok()?;
    // SAFETY: the size is not 0.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// # Safety
/// From [`map`] with so many bytes, and not used any more.
#[cfg(not(target_os = "linux"))]
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise, and the layout is that of `map`.
    unsafe { dealloc(base.as_ptr(), Layout::from_size_align_unchecked(bytes, ALIGN)) };
}

/// Copies a message into an offered area.
///
/// # Safety
/// - `from` is valid for reads and `to` for writes of `bytes` bytes;
/// - the offer is TAKEN, by the caller.
#[inline]
pub(crate) unsafe fn copy_to_landing(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { lpf_core::copy::copy(from, to, bytes) };
}
