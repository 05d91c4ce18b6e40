//! What all groups of a context share: the inbox, its rings, scratch memory, and what a call works with.

use lpf_core::arrivals::{InboxSlot, Link};
use lpf_core::{AreaRegistration, Closings, Slot};

/// One for a context; reserved once.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) inbox: InboxSlot,
    /// Bytes of a cell.
    pub(crate) cell: usize,
    /// Cells of a ring.
    pub(crate) window: usize,
    pub(crate) scratch: Place,
    /// Gives the scratch back when the last group is gone.
    _registration: AreaRegistration,
    pub(crate) scratch_bytes: usize,
    /// Addresses of what was put on links and may not have left.
    pub(crate) unflushed: Vec<(usize, usize)>,
    /// Flushes so far.
    pub(crate) flushes: u64,
    /// Whether a ring is some group's.
    rings: Vec<bool>,
    /// Takes the links of groups that are gone.
    closings: Closings,
}

/// A cache line: what is apart begins on one of its own.
pub(crate) const LINE: usize = 64;

/// The longest single element that is worked on.
pub(crate) const VALUE: usize = 4096;

/// What lies at the end of scratch: two elements, and two stamps.
pub(crate) const TAIL: usize = 2 * VALUE + 2 * LINE;

/// The beginning of a buffer: an address in memory that a slot names, and its offset there.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Of memory of this process.
    pub slot: Slot,
    /// From the slot's beginning, in bytes.
    pub offset: usize,
    /// The address of that offset.
    pub data: *mut u8,
}

impl Place {
    /// So many bytes further on.
    pub(crate) fn from(self, bytes: usize) -> Self {
        let (offset, data) = (self.offset + bytes, self.data.wrapping_add(bytes));
        Place { offset, data, ..self }
    }
}

impl Shared {
    /// With rings that nobody has.
    pub(crate) fn new(
        inbox: InboxSlot,
        (rings, window, cell): (usize, usize, usize),
        (scratch, scratch_bytes, registration): (Place, usize, AreaRegistration),
        closings: Closings,
    ) -> Self {
        let rings = vec![false; rings];
        let unflushed = Vec::with_capacity(4 * rings.len() + 16);
        Shared {
            inbox,
            cell,
            window,
            scratch,
            scratch_bytes,
            _registration: registration,
            unflushed,
            flushes: 0,
            rings,
            closings,
        }
    }

    /// Where a single element is, and where the result of one is that needs a place of its own.
    pub(crate) fn values(&self) -> (Place, Place) {
        let value = self.scratch.from(self.scratch_bytes - TAIL);
        (value, value.from(VALUE))
    }

    /// Scratch for algorithms: all but where stamps and single elements are, and what blocks are longer for beginning on lines.
    pub(crate) fn room(&self, members: usize) -> usize {
        self.scratch_bytes - TAIL - (members + 2) * LINE
    }

    /// Where the word of the own call is in scratch, and where another's comes.
    pub(crate) fn stamp_places(&self) -> (usize, usize) {
        (self.scratch_bytes - 2 * LINE, self.scratch_bytes - LINE)
    }

    /// The lowest block of `count` rings that nobody has; `None` where there is none.
    pub(crate) fn take_rings(&mut self, count: usize) -> Option<usize> {
        let first = self.rings.windows(count.max(1)).position(|block| !block.contains(&true))?;
        self.rings[first..first + count].fill(true);
        Some(first)
    }

    pub(crate) fn give_rings(&mut self, first: usize, count: usize) {
        self.rings[first..first + count].fill(false);
    }

    /// A group is gone: its links are closed before anything else is called, its rings can be another's.
    pub(crate) fn forget(&mut self, (links, first, count): (Vec<Link>, usize, usize)) {
        links.into_iter().for_each(|link| self.closings.close(link));
        self.give_rings(first, count);
    }
}
