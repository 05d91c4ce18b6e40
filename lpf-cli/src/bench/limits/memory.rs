//! Memory of one thread that others copy from and to, outside Rust's references.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::hint::black_box;

/// Sources and destinations of every thread of a team.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes: usize,
    step: usize,
    /// Of thread i: sources at 2i, destinations at 2i + 1.
    areas: Vec<*mut u8>,
}

// SAFETY: the pointers are to memory that lives as long as the value; who touches what when is the
// business of the programs, which put a barrier between the owner's part and the others'.
unsafe impl Sync for Memory {}

impl Memory {
    /// `bytes` of sources and of destinations for each thread; owners touch every `step` bytes.
    pub(crate) fn new(threads: usize, bytes: usize, step: usize) -> Self {
        let layout = Self::layout(bytes);
        let area = |_| {
            // SAFETY: the layout's size is not zero.
            let area = unsafe { alloc(layout) };
            if area.is_null() { handle_alloc_error(layout) } else { area }
        };
        Memory { bytes, step, areas: (0..2 * threads).map(area).collect() }
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes.max(1), 128).expect("the sizes are those of the patterns")
    }

    #[inline]
    pub(crate) fn sources(&self, thread: usize) -> *mut u8 {
        self.areas[2 * thread]
    }

    #[inline]
    pub(crate) fn destinations(&self, thread: usize) -> *mut u8 {
        self.areas[2 * thread + 1]
    }

    /// What the first touch of an owner does: all pages are its own, and initialised.
    pub(crate) fn settle(&self, owner: usize) {
        for area in [self.sources(owner), self.destinations(owner)] {
            // SAFETY: the area has this many bytes, and only its owner touches it before the
            // first barrier.
            unsafe { area.write_bytes(1, self.bytes) };
        }
    }

    /// The owner rewrites its sources and reads its destinations, as the measured side's does.
    #[inline]
    pub(crate) fn touch(&self, owner: usize, value: u8) {
        let (sources, destinations) = (self.sources(owner), self.destinations(owner));
        let mut read = 0u64;
        // SAFETY: inside the owner's areas, which nobody else touches until the next barrier.
        unsafe {
            for at in (0..self.bytes).step_by(self.step) {
                *sources.add(at) = value;
            }
            for at in (0..self.bytes).step_by(self.step) {
                read += u64::from(*destinations.add(at));
            }
        }
        black_box(read);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for &area in &self.areas {
            // SAFETY: allocated in `new` with this layout.
            unsafe { dealloc(area, Self::layout(self.bytes)) };
        }
    }
}
