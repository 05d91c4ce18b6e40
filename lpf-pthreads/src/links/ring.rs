//! The memory in which a channel ends.
//!
//! ```text
//! ring   sender's line | owner's line | offers | cell 0 | cell 1 | … | cell W-1
//! cell   header of 64 bytes (sequence number, credit, stamp, length, 32 bytes of payload) | data
//! ```
//!
//! One writer per word. The sender writes cells and its line; the owner writes its line and the
//! offers. Counts are cumulative over the ring's life, whoever has its link: a link opened on a
//! used ring goes on where the last one ended, so no stale count can be mistaken for a new one.
//!
//! The sequence number in a cell is the cumulative counter: message n (from 1) fills cell
//! (n-1) mod W and stores n there last, with release. The owner looks with acquire for exactly n.
//! A sender writes cell n only when the owner has released n - W, which it learns from the credit
//! in the owner's messages or from the owner's line (acquire: the owner's reads of the cell came
//! before its release).

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use lpf_core::arrivals::InboxShape;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Payload that fits the header's own cache line.
pub(crate) const IN_HEADER: usize = 32;
const HEADER: usize = 64;
const ALIGN: usize = 128;

/// Set in a cell's length: the message went to a landing.
pub(crate) const LANDED: u64 = 1 << 63;

/// Written by the sender.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct SenderLine {
    /// Puts made on the channel, queued ones included.
    pub(crate) made: AtomicU64,
    /// Messages sent.
    pub(crate) sent: AtomicU64,
    /// Of these, landings.
    pub(crate) landed: AtomicU64,
}

/// Written by the owner.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct OwnerLine {
    /// Messages released.
    pub(crate) released: AtomicU64,
    /// Messages awaited.
    pub(crate) awaited: AtomicU64,
    /// Landings offered.
    pub(crate) offered: AtomicU64,
}

/// Where the owner wants a landing.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Offer {
    /// Number of the offer, from 1; stored last, with release.
    pub(crate) number: AtomicU64,
    pub(crate) address: AtomicPtr<u8>,
    pub(crate) bytes: AtomicUsize,
    /// Who has the memory: see [`offer`].
    pub(crate) state: AtomicU32,
}

/// States of an offer. The sender moves OPEN to TAKEN to DONE, the owner OPEN to REVOKED; each
/// first step is a compare-exchange, so that a sender that copies is awaited and one that comes
/// too late does not begin.
pub(crate) mod offer {
    pub(crate) const OPEN: u32 = 1;
    pub(crate) const TAKEN: u32 = 2;
    pub(crate) const DONE: u32 = 3;
    pub(crate) const REVOKED: u32 = 4;
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct Cell {
    pub(crate) sequence: AtomicU64,
    pub(crate) credit: AtomicU64,
    pub(crate) stamp: AtomicU64,
    pub(crate) length: AtomicU64,
    payload: [u8; IN_HEADER],
}

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
        let (window, rings) = (shape.window as usize, shape.rings as usize);
        let data = if shape.cell_bytes <= IN_HEADER { 0 } else { shape.cell_bytes };
        let cell_bytes = data
            .checked_add(HEADER)
            .and_then(|bytes| bytes.checked_next_multiple_of(ALIGN))
            .ok_or_else(refused)?;
        let lines = size_of::<SenderLine>() + size_of::<OwnerLine>();
        let control = (lines + window * size_of::<Offer>()).next_multiple_of(ALIGN);
        let ring_bytes = cell_bytes
            .checked_mul(window)
            .and_then(|bytes| bytes.checked_add(control))
            .ok_or_else(refused)?;
        let bytes = ring_bytes.checked_mul(rings).ok_or_else(refused)?;
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).map_err(|_| bytes)?;
        // SAFETY: the layout has a size of at least 1.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(bytes)?;
        Ok(InboxMemory { shape, base, layout, ring_bytes, cell_bytes })
    }

    fn ring(&self, ring: u32) -> *mut u8 {
        assert!(ring < self.shape.rings, "ring {ring} of {}", self.shape.rings);
        self.base.as_ptr().wrapping_add(ring as usize * self.ring_bytes)
    }

    #[inline]
    pub(crate) fn sender(&self, ring: u32) -> &SenderLine {
        // SAFETY: zeroed atomics at a place kept for them.
        unsafe { &*self.ring(ring).cast() }
    }

    #[inline]
    pub(crate) fn owner(&self, ring: u32) -> &OwnerLine {
        // SAFETY: as above.
        unsafe { &*self.ring(ring).wrapping_add(size_of::<SenderLine>()).cast() }
    }

    #[inline]
    pub(crate) fn offer(&self, ring: u32, number: u64) -> &Offer {
        let lines = size_of::<SenderLine>() + size_of::<OwnerLine>();
        let at = (number - 1) % u64::from(self.shape.window);
        // SAFETY: as above.
        unsafe { &*self.ring(ring).wrapping_add(lines + at as usize * size_of::<Offer>()).cast() }
    }

    fn cell_place(&self, ring: u32, nth: u64) -> *mut u8 {
        let window = u64::from(self.shape.window);
        let from_end = (window - (nth - 1) % window) as usize;
        let end = self.ring(ring).wrapping_add(self.ring_bytes);
        end.wrapping_sub(from_end * self.cell_bytes)
    }

    /// The header of message `nth`, from 1.
    #[inline]
    pub(crate) fn cell(&self, ring: u32, nth: u64) -> &Cell {
        // SAFETY: zeroed atomics at a place kept for them; the payload bytes are reached by raw
        // pointers alone.
        unsafe { &*self.cell_place(ring, nth).cast() }
    }

    /// Where the bytes of message `nth` are: in the header's line if they fit.
    #[inline]
    pub(crate) fn data(&self, ring: u32, nth: u64, bytes: usize) -> *mut u8 {
        let place = self.cell_place(ring, nth);
        place.wrapping_add(if bytes <= IN_HEADER { HEADER - IN_HEADER } else { HEADER })
    }

    /// Whether message `nth` is there.
    #[inline]
    pub(crate) fn has_arrived(&self, ring: u32, nth: u64) -> bool {
        self.cell(ring, nth).sequence.load(Ordering::Acquire) == nth
    }
}

impl Drop for InboxMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; nobody has a reference.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
