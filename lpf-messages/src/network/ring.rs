//! A ring in memory that two processes share: short messages from one to the other, in order.
//!
//! ```text
//! 128 bytes   how much the receiver has taken, u64
//! the rest    messages, each from a line of 64 bytes on: a word, u64, and its bytes
//! ```
//!
//! The word says how many bytes follow, and is written last: a message of up to 56 bytes is one line that
//! goes from core to core. Nought is a message that is not there yet; the sender has written it behind each
//! message before it lets that go, so the receiver never takes old bytes for a word. It does so for many lines
//! at a time: the receiver has each of them from the round before, and to get them back one by one takes as
//! long as the messages. What the receiver has taken it says a tenth of a ring at a time, and when it finds
//! nothing more.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Piece;

const LINE: usize = 64;
const WORD: usize = size_of::<u64>();
/// Processors fetch lines in pairs.
const TAKEN: usize = 2 * LINE;

/// Lines whose words are made nought at a time.
const CLEARED: u64 = 32;

/// Not there yet.
const NOTHING: u64 = 0;
/// The next message begins where the ring does.
const ROUND: u64 = u64::MAX;

/// What the ends know of the ring: where it is, and how long.
#[derive(Clone, Copy, Debug)]
struct Place {
    base: *mut u8,
    /// Bytes of messages: lines of them.
    bytes: u64,
}

impl Place {
    fn new(base: *mut u8, bytes: usize) -> Self {
        assert!(base.cast::<AtomicU64>().is_aligned() && bytes > TAKEN + 2 * LINE);
        Place { base, bytes: ((bytes - TAKEN) / LINE * LINE) as u64 }
    }

    fn taken(&self) -> &AtomicU64 {
        // SAFETY: the promise of who made the ends: an aligned word that only they use.
        unsafe { AtomicU64::from_ptr(self.base.cast()) }
    }

    /// The first byte of the line that the ring has at `position`.
    #[inline]
    fn line(&self, position: u64) -> *mut u8 {
        self.base.wrapping_add(TAKEN + (position % self.bytes) as usize)
    }

    #[inline]
    fn word(&self, position: u64) -> &AtomicU64 {
        // SAFETY: as above; lines are aligned as the base is.
        unsafe { AtomicU64::from_ptr(self.line(position).cast()) }
    }

    /// Bytes from there to where the ring ends.
    #[inline]
    fn left(&self, position: u64) -> u64 {
        self.bytes - position % self.bytes
    }
}

/// Bytes that a message takes.
#[inline]
fn lines(bytes: usize) -> u64 {
    (WORD + bytes).next_multiple_of(LINE) as u64
}

/// The end that messages go into.
#[derive(Debug)]
pub struct RingSender {
    place: Place,
    /// Where the next message begins, counted from the first one's beginning.
    next: u64,
    /// What the receiver had taken when it was last looked.
    taken: u64,
    /// The words of all lines from `next` to here are nought.
    cleared: u64,
}

/// The end that messages come out of.
#[derive(Debug)]
pub struct RingReceiver {
    place: Place,
    next: u64,
    told: u64,
}

// SAFETY: an end is used by one thread at a time, and what it shares with the other are atomic words, and
// bytes that belong to one of them.
unsafe impl Send for RingSender {}
// SAFETY: as above.
unsafe impl Send for RingReceiver {}

impl RingSender {
    /// # Safety
    /// - `bytes` bytes from `base` on, which is aligned to 64, are valid for reads and writes while this lives;
    /// - they were zero when the first of the two ends was made, and are used by one sender and one
    ///   receiver, made with the same `bytes`.
    ///
    /// # Panics
    /// If `base` is not aligned, or if there are less than 320 bytes.
    pub unsafe fn new(base: *mut u8, bytes: usize) -> Self {
        let place = Place::new(base, bytes);
        RingSender { place, next: 0, taken: 0, cleared: place.bytes }
    }

    /// The longest message: any ring that is empty has room for it.
    pub fn longest(&self) -> usize {
        // Twice, because it may begin where there is no room up to the end.
        (self.place.bytes as usize / 2).saturating_sub(LINE + WORD)
    }

    /// Puts a message of these bytes and those of the pieces, `bytes` in all, into the ring. False if there
    /// is no room yet.
    ///
    /// # Safety
    /// The pieces are valid for reads; with `head` they have `bytes` bytes.
    ///
    /// # Panics
    /// If the message is longer than [`longest`](Self::longest).
    #[inline]
    pub unsafe fn send(&mut self, head: &[u8], pieces: &[Piece], bytes: usize) -> bool {
        assert!(bytes <= self.longest(), "a message of {bytes} bytes in a ring");
        let place = self.place;
        let (need, left) = (lines(bytes), place.left(self.next));
        let skipped = if need > left { left } else { 0 };
        // The word behind it is written as well.
        let end = self.next + skipped + need + LINE as u64;
        if end > self.taken + place.bytes {
            self.taken = place.taken().load(Ordering::Acquire);
            if end > self.taken + place.bytes {
                return false;
            }
        }
        let begin = self.next + skipped;
        if begin + need >= self.cleared {
            self.clear(begin + need);
        }
        let mut to = place.line(begin).wrapping_add(WORD);
        for piece in [Piece::of(head)].iter().chain(pieces) {
            // SAFETY: the pieces are valid by the caller's promise; the receiver has taken what was here
            // before, and there is room up to the end of the ring.
            unsafe { lpf_core::copy::copy(piece.base, to, piece.bytes) };
            to = to.wrapping_add(piece.bytes);
        }
        if skipped > 0 {
            place.word(begin).store(bytes as u64 + 1, Ordering::Relaxed);
            place.word(self.next).store(ROUND, Ordering::Release);
        } else {
            place.word(begin).store(bytes as u64 + 1, Ordering::Release);
        }
        self.next = begin + need;
        true
    }

    /// Makes words nought from a position on, as far as lines are known to be taken, but not many.
    fn clear(&mut self, from: u64) {
        let line = LINE as u64;
        let end = (from + CLEARED * line).min(self.taken + self.place.bytes);
        let mut position = from;
        while position < end {
            self.place.word(position).store(NOTHING, Ordering::Relaxed);
            position += line;
        }
        self.cleared = end;
    }
}

impl RingReceiver {
    /// # Safety
    /// As [`RingSender::new`].
    ///
    /// # Panics
    /// As [`RingSender::new`].
    pub unsafe fn new(base: *mut u8, bytes: usize) -> Self {
        RingReceiver { place: Place::new(base, bytes), next: 0, told: 0 }
    }

    /// The next message, if there is one. To be followed by [`taken`](Self::taken).
    #[inline]
    pub fn message(&mut self) -> Option<&[u8]> {
        let mut word = self.place.word(self.next).load(Ordering::Acquire);
        if word == NOTHING {
            if self.told != self.next {
                self.tell();
            }
            return None;
        }
        if word == ROUND {
            self.next += self.place.left(self.next);
            word = self.place.word(self.next).load(Ordering::Relaxed);
        }
        // A length that is none cannot lead out of the ring.
        let bytes = word.wrapping_sub(1).min(self.place.left(self.next) - WORD as u64) as usize;
        let base = self.place.line(self.next).wrapping_add(WORD).cast_const();
        // SAFETY: the sender has written so many bytes there, and writes no more before they are taken.
        Some(unsafe { std::slice::from_raw_parts(base, bytes) })
    }

    /// The message that [`message`](Self::message) gave is done with; its length was this.
    #[inline]
    pub fn taken(&mut self, bytes: usize) {
        self.next += lines(bytes);
        if self.next - self.told >= self.place.bytes / 10 {
            self.tell();
        }
    }

    #[inline]
    fn tell(&mut self) {
        self.told = self.next;
        self.place.taken().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory as long as both ends.
    #[repr(align(64))]
    struct Memory([u8; 8192]);

    fn ends(memory: &mut Memory, bytes: usize) -> (RingSender, RingReceiver) {
        let base = memory.0.as_mut_ptr();
        // SAFETY: the memory is nought, and outlives both in every test.
        unsafe { (RingSender::new(base, bytes), RingReceiver::new(base, bytes)) }
    }

    fn send(ring: &mut RingSender, head: &[u8], rest: &[u8]) -> bool {
        // SAFETY: a slice is valid for reads.
        unsafe { ring.send(head, &[Piece::of(rest)], head.len() + rest.len()) }
    }

    fn take(ring: &mut RingReceiver) -> Option<Vec<u8>> {
        let bytes = ring.message()?.to_vec();
        ring.taken(bytes.len());
        Some(bytes)
    }

    /// So many bytes that tell which message they are of.
    fn message(number: usize, most: usize) -> Vec<u8> {
        (0..number * 37 % (most + 1)).map(|at| (number + at) as u8).collect()
    }

    #[test]
    fn messages_come_out_as_they_went_in() {
        let mut memory = Box::new(Memory([0; 8192]));
        let (mut sender, mut receiver) = ends(&mut memory, 8192);
        assert_eq!(take(&mut receiver), None);
        for number in 0..1000 {
            // A short one is reported only because the ring is empty; then the longest has room, wherever it begins.
            let mut bytes = message(number, 700);
            if number % 2 == 1 {
                bytes.resize(sender.longest(), number as u8);
            }
            let (head, rest) = bytes.split_at(bytes.len().min(8));
            assert!(send(&mut sender, head, rest), "an empty ring has room");
            assert_eq!(take(&mut receiver), Some(bytes));
            assert_eq!(take(&mut receiver), None);
        }
    }

    #[test]
    fn what_has_no_room_goes_when_there_is_some() {
        let mut memory = Box::new(Memory([0; 8192]));
        for bytes in [TAKEN + 4 * LINE, 777, 2048] {
            memory.0.fill(0);
            let (mut sender, mut receiver) = ends(&mut memory, bytes);
            let (mut sent, mut received, longest) = (0, 0, sender.longest());
            for _ in 0..300 {
                while send(&mut sender, &[], &message(sent, longest)) {
                    sent += 1;
                }
                assert!(sent > received);
                while let Some(bytes) = take(&mut receiver) {
                    assert_eq!(bytes, message(received, longest));
                    received += 1;
                }
                assert_eq!(received, sent, "all that went in comes out");
            }
        }
    }

    #[test]
    fn old_bytes_are_never_a_message() {
        let mut memory = Box::new(Memory([0; 8192]));
        let (mut sender, mut receiver) = ends(&mut memory, 1024);
        // Every word of them would be one.
        let bytes = [1; 300];
        for number in 0..500 {
            assert!(send(&mut sender, &[], &bytes[..number * 7 % 300]));
            assert_eq!(take(&mut receiver).map(|bytes| bytes.len()), Some(number * 7 % 300));
            assert_eq!(take(&mut receiver), None);
        }
    }

    #[test]
    fn two_threads_agree() {
        const MESSAGES: usize = 20_000;
        let mut memory = Box::new(Memory([0; 8192]));
        let (mut sender, mut receiver) = ends(&mut memory, 1600);
        let longest = sender.longest();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    while !send(&mut sender, &[], &message(number, longest)) {
                        std::thread::yield_now();
                    }
                }
            });
            for number in 0..MESSAGES {
                let bytes = loop {
                    match take(&mut receiver) {
                        Some(bytes) => break bytes,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(bytes, message(number, longest));
            }
        });
    }
}
