//! The rings as loom sees them: the same words as loom's atomics, and the bytes of cells and
//! landings in loom's cells, so that a copy that is not ordered against its reader is found.

use std::ptr::copy_nonoverlapping;

use loom::cell::UnsafeCell;
use lpf_core::arrivals::InboxShape;

use super::{Cell, FREE, IN_HEADER, Loan, Offer, OwnerLine, SenderLine};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The bytes of a cell or of a landing: models send no more.
pub(crate) type Bytes = UnsafeCell<[u8; IN_HEADER]>;

pub(crate) fn bytes() -> Bytes {
    UnsafeCell::new([0; IN_HEADER])
}

#[derive(Debug)]
struct Ring {
    sender: SenderLine,
    owner: OwnerLine,
    offers: Vec<Offer>,
    cells: Vec<(Cell, Loan, Bytes)>,
}

impl Ring {
    fn new(window: u32) -> Self {
        let word = || AtomicU64::new(0);
        let offer = || Offer {
            number: word(),
            address: AtomicPtr::new(std::ptr::null_mut()),
            bytes: AtomicUsize::new(0),
            state: AtomicU32::new(0),
        };
        let loan =
            || Loan { address: AtomicPtr::new(std::ptr::null_mut()), state: AtomicU32::new(0) };
        let cell = || Cell {
            sequence: word(),
            stamp: word(),
            length: word(),
            credit: word(),
            payload: std::cell::UnsafeCell::new([0; IN_HEADER]),
        };
        Ring {
            sender: SenderLine {
                sent: word(),
                landed: word(),
                claim: AtomicU64::new(FREE),
                served: AtomicU64::new(FREE),
            },
            owner: OwnerLine { released: word(), offered: word(), granted: AtomicU64::new(FREE) },
            offers: (0..window).map(|_| offer()).collect(),
            cells: (0..window).map(|_| (cell(), loan(), bytes())).collect(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct InboxMemory {
    pub(crate) shape: InboxShape,
    rings: Vec<Ring>,
}

// SAFETY: as in `memory`; loom checks it for the bytes.
unsafe impl Send for InboxMemory {}
// SAFETY: as above.
unsafe impl Sync for InboxMemory {}

impl InboxMemory {
    pub(crate) fn new(shape: InboxShape) -> Result<Self, usize> {
        assert!(shape.cell_bytes <= IN_HEADER, "models send small messages");
        Ok(InboxMemory {
            shape,
            rings: (0..shape.rings).map(|_| Ring::new(shape.window)).collect(),
        })
    }

    fn place(&self, nth: u64) -> usize {
        ((nth - 1) % u64::from(self.shape.window)) as usize
    }

    pub(crate) fn sender(&self, ring: usize) -> &SenderLine {
        &self.rings[ring].sender
    }

    pub(crate) fn owner(&self, ring: usize) -> &OwnerLine {
        &self.rings[ring].owner
    }

    pub(crate) fn offer(&self, ring: usize, number: u64) -> &Offer {
        &self.rings[ring].offers[self.place(number)]
    }

    pub(crate) fn cell(&self, ring: usize, nth: u64) -> &Cell {
        &self.rings[ring].cells[self.place(nth)].0
    }

    pub(crate) fn loan(&self, ring: usize, nth: u64) -> &Loan {
        &self.rings[ring].cells[self.place(nth)].1
    }

    fn bytes(&self, ring: usize, nth: u64) -> &Bytes {
        &self.rings[ring].cells[self.place(nth)].2
    }

    /// For who reads: loom checks that the message's copy came before.
    pub(crate) fn data(&self, ring: usize, nth: u64, _bytes: usize) -> *mut u8 {
        self.bytes(ring, nth).with(|bytes| bytes.cast_mut().cast())
    }

    /// # Safety
    /// As in `memory`; loom checks that the former message was read before.
    pub(crate) unsafe fn fill(&self, ring: usize, nth: u64, from: *const u8, bytes: usize) {
        assert!(bytes <= IN_HEADER);
        // SAFETY: the caller's promise, and the cell is that long.
        self.bytes(ring, nth).with_mut(|to| unsafe { copy_nonoverlapping(from, to.cast(), bytes) });
    }

    pub(crate) fn has_arrived(&self, ring: usize, nth: u64) -> bool {
        self.cell(ring, nth).sequence.load(Ordering::Acquire) == nth
    }
}

/// # Safety
/// As in `memory`, and `to` is the address of [`Bytes`].
pub(crate) unsafe fn copy_to_landing(from: *const u8, to: *mut u8, bytes: usize) {
    assert!(bytes <= IN_HEADER);
    // SAFETY: the caller's promise.
    let area = unsafe { &*to.cast::<Bytes>() };
    // SAFETY: as above; the area is that long.
    area.with_mut(|to| unsafe { copy_nonoverlapping(from, to.cast(), bytes) });
}
