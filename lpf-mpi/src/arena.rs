//! The memory of a process that other processes of its host write to: a part of the memory that they share.
//!
//! Blocks are taken first fit. Pages come from the system when a block reaches them for the first time, and stay: to
//! have the pages of an inbox again and to fault them in takes a millisecond, and a library that calls collectives in
//! an inner section makes an inbox in each call.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use lpf_core::process::Maker;
use lpf_messages::SharedMemory;

use super::mapping::{Mapping, PAGE};

/// The part of a process in the file that all of them share.
pub(crate) struct Arena {
    file: File,
    memory: Arc<Mapping>,
    part: Range<usize>,
    blocks: Mutex<Blocks>,
}

/// The state of an arena.
#[derive(Default)]
struct Blocks {
    /// Those in use, by address.
    taken: Vec<Range<usize>>,
    /// The end of the pages that the system has given, or 0: first fit leaves no gap before it.
    backed: usize,
}

/// A block in use. Its bytes can be another block's when it is dropped.
struct Loan {
    arena: Arc<Arena>,
    range: Range<usize>,
    maker: Maker,
}

impl Arena {
    /// The arena of the only process that takes anything of this part.
    pub(crate) fn new(file: File, memory: Arc<Mapping>, part: Range<usize>) -> Arc<Self> {
        Arc::new(Arena { file, memory, part, blocks: Mutex::default() })
    }

    /// A block of this length, which holds zeros or what an earlier block left. `None` if there is no room, or the
    /// system has no pages.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<SharedMemory> {
        let length = bytes.checked_next_multiple_of(PAGE)?;
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let range = gap(&blocks.taken, &self.part, length)?;
        let backed = blocks.backed.max(self.part.start);
        if range.end > backed {
            self.back(backed..range.end)?;
            blocks.backed = range.end;
        }
        blocks.taken.push(range.clone());
        blocks.taken.sort_by_key(|range| range.start);
        let base = self.memory.base.wrapping_add(range.start);
        let place = (range.start - self.part.start) as u64;
        let owner = Box::new(Loan { arena: self.clone(), range, maker: Maker::this() });
        Some(SharedMemory { base, bytes, place, owner })
    }

    /// Has the system give pages: a missing page would end the process that touches it.
    fn back(&self, range: Range<usize>) -> Option<()> {
        let (file, from) = (self.file.as_raw_fd(), range.start as libc::off_t);
        let length = range.len() as libc::off_t;
        // SAFETY: an open file.
        if unsafe { libc::posix_fallocate(file, from, length) } == 0 {
            return Some(());
        }
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: an open file. If this fails, the pages that it has given stay.
        unsafe { libc::fallocate(file, mode, from, length) };
        None
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        // The block is the parent's if this process was forked.
        if !self.maker.is_here() {
            return;
        }
        let mut blocks = self.arena.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.taken.retain(|range| *range != self.range);
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
    use std::os::fd::FromRawFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// An arena of some pages behind a page of others.
    fn arena(pages: usize) -> (Arc<Arena>, File) {
        let file = tempfile();
        let part = PAGE..(1 + pages) * PAGE;
        file.set_len(part.end as u64).expect("a file in memory");
        let memory = Arc::new(Mapping::of(&file, part.end).expect("a mapping"));
        (Arena::new(file.try_clone().expect("a descriptor"), memory, part), file)
    }

    /// A file in memory, without a name.
    fn tempfile() -> File {
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"arena".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: an open descriptor that nothing else owns.
        unsafe { File::from_raw_fd(fd) }
    }

    #[test]
    fn a_block_that_is_taken_again_has_its_pages() {
        let (arena, file) = arena(8);
        let allocated = || file.metadata().expect("it is open").blocks();
        let first = arena.take(3 * PAGE).expect("room");
        let (place, pages) = (first.place, allocated());
        // SAFETY: the block is this test's.
        unsafe { first.base.write(7) };
        drop(first);
        for bytes in [3 * PAGE, PAGE + 1, 3 * PAGE] {
            let again = arena.take(bytes).expect("room");
            assert_eq!((again.place, allocated()), (place, pages), "{bytes} bytes");
            // SAFETY: as above.
            assert_eq!(unsafe { again.base.read() }, 7, "the page was given back");
        }
        let both = [arena.take(3 * PAGE), arena.take(2 * PAGE)].map(|block| block.expect("room"));
        assert_eq!(both[1].place, place + 3 * PAGE as u64, "blocks in use do not overlap");
        assert!(allocated() > pages, "pages were missing");
        assert!(arena.take(4 * PAGE).is_none(), "there is no room");
        assert!(arena.take(3 * PAGE).is_some());
    }

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
