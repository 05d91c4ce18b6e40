//! A ring of cells that both ends of a link reach: the sender writes each message where it is read.
//!
//! ```text
//! ring   owner's line | cell 0 | cell 1 | … | cell W-1
//! cell   line of 64 bytes (length, stamp, number, -, 32 bytes of payload) | data
//! ```
//!
//! Each word has one writer: the sender writes the cells, the owner its line. Before the ring is granted no other process
//! touches it, and the owner sets its words to zero. Message n, from 0, goes to cell n mod W. The sender writes the
//! message's number, n + 1, last, with release; the owner waits for exactly this number with acquire. The owner's line has
//! the number of messages it has released. It is stored with release, and loaded with acquire by a sender without credit:
//! so the owner's reads of a cell happen before the sender's next writes to it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::super::transport::Piece;
use super::layout::{HEAD, Layout};
use lpf_core::copy::copy;

/// Looks at a cell before the network is asked: a look takes a nanosecond, the network a hundred.
const LOOKS: u32 = 16;

/// Words of a cell's line.
const LENGTH: usize = 0;
const STAMP: usize = 8;
const NUMBER: usize = 16;
const PAYLOAD: usize = 32;
/// The longest message that needs no other line.
const SHORT: usize = 32;

const _: () = assert!(HEAD <= NUMBER, "what a network writes of a head ends before the number");

/// The ring of one link, at its sender or its owner.
#[derive(Debug)]
pub(super) struct NearRing {
    base: *mut u8,
    layout: Layout,
}

// SAFETY: the addresses are valid in the whole process, and are used as `new` requires by the thread that has the ring.
unsafe impl Send for NearRing {}

impl NearRing {
    /// # Safety
    /// From `base` on, aligned to lines, there is the memory of a ring of this layout, valid while this lives.
    /// It is used through a `NearRing` at its owner and one at its sender alone, and by the latter only after
    /// it was told of a ring that was [cleared](Self::clear).
    pub(super) unsafe fn new(base: *mut u8, layout: Layout) -> Self {
        NearRing { base, layout }
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned word inside the ring, as the caller of `new` has promised.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    /// Makes the ring empty.
    pub(super) fn clear(&self) {
        self.word(0).store(0, Ordering::Relaxed);
        for message in 0..u64::from(self.layout.window) {
            self.word(self.layout.cell(message) + NUMBER).store(0, Ordering::Relaxed);
        }
    }

    /// Writes message `message`, for which there is credit: its length, which may be marked, its stamp, and the bytes of a
    /// piece.
    ///
    /// # Safety
    /// The piece is valid for reads, no longer than a cell, and in no ring.
    #[inline]
    pub(super) unsafe fn send(&self, message: u64, length: u64, stamp: u64, piece: Piece) {
        let cell = self.layout.cell(message);
        // SAFETY: the caller promises the piece. There is credit, so the owner has released the cell.
        unsafe { copy(piece.base, self.data(message, piece.bytes), piece.bytes) };
        self.word(cell + LENGTH).store(length, Ordering::Relaxed);
        self.word(cell + STAMP).store(stamp, Ordering::Relaxed);
        self.word(cell + NUMBER).store(message + 1, Ordering::Release);
    }

    /// The length and the stamp of message `message`, if it has arrived.
    #[inline]
    pub(super) fn come(&self, message: u64) -> Option<(u64, u64)> {
        let cell = self.layout.cell(message);
        let number = self.word(cell + NUMBER);
        for _ in 0..LOOKS {
            if number.load(Ordering::Acquire) == message + 1 {
                let word = |at| self.word(cell + at).load(Ordering::Relaxed);
                return Some((word(LENGTH), word(STAMP)));
            }
            std::hint::spin_loop();
        }
        None
    }

    /// The address of the bytes of a message with this length.
    #[inline]
    pub(super) fn data(&self, message: u64, bytes: usize) -> *mut u8 {
        let cell = self.layout.cell(message);
        let at = if bytes <= SHORT { cell + PAYLOAD } else { cell + Layout::DATA };
        self.base.wrapping_add(at)
    }

    /// Publishes how many messages are released.
    #[inline]
    pub(super) fn release(&self, released: u64) {
        self.word(0).store(released, Ordering::Release);
    }

    /// How many messages are released.
    #[inline]
    pub(super) fn released(&self) -> u64 {
        self.word(0).load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lpf_core::arrivals::InboxShape;
    use std::cell::UnsafeCell;

    const SHAPE: InboxShape = InboxShape { rings: 1, window: 3, cell_bytes: 100 };

    /// Memory of one ring, full of old bytes.
    #[repr(align(64))]
    struct Memory(UnsafeCell<[u8; 4096]>);

    // SAFETY: its two ends use it as the module says.
    unsafe impl Sync for Memory {}

    impl Memory {
        fn new() -> Self {
            Memory(UnsafeCell::new([1; 4096]))
        }

        fn ring(&self) -> NearRing {
            let layout = Layout::of(SHAPE).expect("it is short");
            assert!(layout.ring <= 4096);
            // SAFETY: the memory is as long, and outlives the rings of every test.
            unsafe { NearRing::new(self.0.get().cast(), layout) }
        }
    }

    fn bytes_of(message: u64) -> Vec<u8> {
        (0..message * 7 % 101).map(|at| (message + at) as u8).collect()
    }

    fn send(ring: &NearRing, message: u64) {
        let bytes = bytes_of(message);
        // SAFETY: no longer than a cell; a slice is valid for reads.
        unsafe { ring.send(message, bytes.len() as u64, message ^ 5, Piece::of(&bytes)) };
    }

    /// Takes a message that has come and looks at it.
    fn take(ring: &NearRing, message: u64) -> bool {
        let Some((length, stamp)) = ring.come(message) else { return false };
        let mut bytes = vec![0; length as usize];
        // SAFETY: so many bytes of a message that has come and is not released.
        unsafe { copy(ring.data(message, bytes.len()), bytes.as_mut_ptr(), bytes.len()) };
        assert_eq!((bytes, stamp), (bytes_of(message), message ^ 5), "message {message}");
        ring.release(message + 1);
        true
    }

    #[test]
    fn a_used_ring_is_a_new_one_once_it_is_cleared() {
        let memory = Memory::new();
        let (sender, owner) = (memory.ring(), memory.ring());
        for messages in [7, 2, 40] {
            owner.clear();
            assert_eq!(sender.released(), 0);
            for message in 0..messages {
                assert!(owner.come(message).is_none(), "message {message} was not sent");
                send(&sender, message);
                assert!(take(&owner, message));
                assert_eq!(sender.released(), message + 1);
            }
        }
    }

    #[test]
    fn what_has_come_is_whole_and_stays_until_it_is_released() {
        const MESSAGES: u64 = 20_000;
        let memory = Memory::new();
        let (sender, owner) = (memory.ring(), memory.ring());
        owner.clear();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for message in 0..MESSAGES {
                    while message >= sender.released() + u64::from(SHAPE.window) {
                        std::thread::yield_now();
                    }
                    send(&sender, message);
                }
            });
            for message in 0..MESSAGES {
                while !take(&owner, message) {
                    std::thread::yield_now();
                }
            }
        });
    }
}
