//! Memory of a file that the processes of one host share.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

/// What the system allocates at a time.
pub(crate) const PAGE: usize = 4 << 10;

/// The beginning of a file, mapped into this process.
pub(crate) struct Mapping {
    pub(crate) base: *mut u8,
    bytes: usize,
}

// SAFETY: the base is an address. Each use of the memory behind it states which process and thread may touch it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of a file, which has at least that length.
    pub(crate) fn of(file: &File, bytes: usize) -> io::Result<Self> {
        // SAFETY: the system chooses an address range that is not in use.
        let base = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
            libc::mmap(ptr::null_mut(), bytes, access, flags, file.as_raw_fd(), 0)
        };
        match base == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Mapping { base: base.cast(), bytes }),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `Mapping::of` mapped this range. Rings and bells in it hold this mapping by an `Arc`, so they are gone.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}
