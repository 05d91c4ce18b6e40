//! Memory that one process has for what the others of its host write: a part of what they share, of which it
//! takes pages as it needs them.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use lpf_core::messages::SharedMemory;
use lpf_core::process::Maker;

use super::near::{Mapping, PAGE};

/// The part of a process in the file that all of them share.
pub(crate) struct Arena {
    file: File,
    memory: Arc<Mapping>,
    part: Range<usize>,
    /// What is taken of it, in order.
    taken: Mutex<Vec<Range<usize>>>,
}

/// What was taken of an arena; its pages are the system's again when it is dropped.
struct Loan {
    arena: Arc<Arena>,
    range: Range<usize>,
    maker: Maker,
}

impl Arena {
    /// The arena of the only process that takes anything of this part.
    pub(crate) fn new(file: File, memory: Arc<Mapping>, part: Range<usize>) -> Arc<Self> {
        Arc::new(Arena { file, memory, part, taken: Mutex::default() })
    }

    /// So many bytes, noughts; `None` if there is no room, or the system has no pages.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<SharedMemory> {
        let length = bytes.checked_next_multiple_of(PAGE)?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let range = gap(&taken, &self.part, length)?;
        // All of it now: what is not there when it is touched ends the process.
        // SAFETY: an open file.
        let got = unsafe {
            let (from, length) = (range.start as libc::off_t, length as libc::off_t);
            libc::posix_fallocate(self.file.as_raw_fd(), from, length)
        };
        if got != 0 {
            self.give_back(&range);
            return None;
        }
        taken.push(range.clone());
        taken.sort_by_key(|range| range.start);
        let base = self.memory.base.wrapping_add(range.start);
        let place = (range.start - self.part.start) as u64;
        let owner = Box::new(Loan { arena: self.clone(), range, maker: Maker::this() });
        Some(SharedMemory { base, bytes, place, owner })
    }

    /// Makes noughts of a range again, and the system may have its pages.
    fn give_back(&self, range: &Range<usize>) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (from, length) = (range.start as libc::off_t, range.len() as libc::off_t);
        // SAFETY: an open file. A file in memory can do this; the pages would only stay.
        unsafe { libc::fallocate(self.file.as_raw_fd(), mode, from, length) };
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        // Its pages are the parent's if this process was forked.
        if !self.maker.is_here() {
            return;
        }
        self.arena.give_back(&self.range);
        let mut taken = self.arena.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|range| *range != self.range);
    }
}

/// The first so many bytes of a part that are not taken.
fn gap(taken: &[Range<usize>], part: &Range<usize>, length: usize) -> Option<Range<usize>> {
    let mut start = part.start;
    for range in taken {
        if range.start - start >= length {
            break;
        }
        start = range.end;
    }
    let end = start.checked_add(length)?;
    (length > 0 && end <= part.end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_the_first_that_is_long_enough() {
        let (part, taken) = (10..100, [10..20, 25..40, 60..90]);
        assert_eq!(gap(&[], &part, 90), Some(10..100));
        assert_eq!(gap(&[], &part, 91), None);
        assert_eq!(gap(&[], &part, 0), None);
        assert_eq!(gap(&taken, &part, 5), Some(20..25));
        assert_eq!(gap(&taken, &part, 20), Some(40..60));
        assert_eq!(gap(&taken, &part, 10), Some(40..50));
        assert_eq!(gap(&taken, &part, 21), None);
        assert_eq!(gap(&taken[..2], &part, 60), Some(40..100));
    }
}
