//! Frames between processes of one host: rings in memory that they share.
//!
//! Open MPI takes 230 ns for a short message each way where a second thread is in the process (90 of them
//! for locks), a look that finds nothing 57, and each process has one more copy; through a ring the same
//! frame is one cache line from core to core. Long messages come through it in [parts](super::network).
//!
//! Where the memory cannot be had, by any of them, MPI has the frames.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use lpf_messages::network::{RingReceiver, RingSender};
use lpf_messages::{Piece, Rank, SharedMemory};

use super::arena::Arena;
use super::bells::{self, Bells};
use super::pieces::gather;

/// Bytes of the ring from one process to another, where they are few: room for some [parts](super::network), and
/// for both ways less than the cache of a core holds.
const LONGEST_RING: usize = 256 << 10;
/// Of one of many: room for a frame of Open MPI's, wherever it begins.
const SHORTEST_RING: usize = 12 << 10;
/// The rings of all together, as far as they are not the shortest.
const ALL_RINGS: usize = 32 << 20;
pub(crate) const PAGE: usize = 4 << 10;
/// What each process has for what the others write: addresses, of which pages are taken as they are needed.
/// A process that needs more receives it by its rings and by MPI.
const ARENA: usize = 64 << 20;
/// More is left to MPI: 147 processes on a host.
const MOST: usize = 256 << 20;

/// Which file of which system the memory of all is; where it has none, nothing else is equal to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) const BYTES: usize = 16;

    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.device.to_le_bytes());
        bytes[8..].copy_from_slice(&self.inode.to_le_bytes());
        bytes
    }

    fn of(file: &Metadata) -> Self {
        Identity { device: file.dev(), inode: file.ino() }
    }
}

/// Where other processes of the host find the memory: a file without a name, which is gone with the last of
/// them, however they end. One of them has made it and has it open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offer {
    process: u32,
    descriptor: u32,
    identity: Identity,
}

impl Offer {
    pub(crate) const BYTES: usize = 8 + Identity::BYTES;

    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.process.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.descriptor.to_le_bytes());
        bytes[8..].copy_from_slice(&self.identity.bytes());
        bytes
    }

    /// # Panics
    /// If there are not [`BYTES`](Self::BYTES).
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let whole = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let identity = Identity { device: whole(8), inode: whole(16) };
        Offer { process: half(0), descriptor: half(4), identity }
    }
}

/// Memory that processes of one host share.
pub(crate) struct Shared {
    memory: Arc<Mapping>,
    processes: usize,
    file: File,
    pub(crate) identity: Identity,
}

pub(crate) struct Mapping {
    pub(crate) base: *mut u8,
    bytes: usize,
}

// SAFETY: an address; who may touch the memory is said where it is used.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first bytes of a file, which is at least as long.
    pub(crate) fn of(file: &File, bytes: usize) -> io::Result<Self> {
        // SAFETY: the system chooses a place that nothing is at.
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
        // SAFETY: mapped by `Mapping::of`; the rings in it go with it.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Bytes of the rings between so many processes.
fn rings_bytes(processes: usize) -> usize {
    processes * processes * ring_bytes(processes)
}

/// Of these and, behind them, of the bells.
fn common_bytes(processes: usize) -> usize {
    rings_bytes(processes) + (processes * bells::LINE).next_multiple_of(PAGE)
}

fn ring_bytes(processes: usize) -> usize {
    let each = ALL_RINGS / (processes * processes).max(1) / PAGE * PAGE;
    each.clamp(SHORTEST_RING, LONGEST_RING)
}

impl Shared {
    /// The memory of so many processes, which is to be offered to the others.
    ///
    /// # Errors
    /// If the system does not have it.
    pub(crate) fn make(processes: usize) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
        // Files there are in memory.
        Self::map(options.open("/dev/shm")?, processes)
    }

    /// The memory that another process has made, which has it open meanwhile.
    ///
    /// # Errors
    /// If this process does not find it, or the system does not have it.
    pub(crate) fn open(offer: Offer, processes: usize) -> io::Result<Self> {
        let Offer { process, descriptor, identity } = offer;
        let path = format!("/proc/{process}/fd/{descriptor}");
        // In another container this may be a file of another process.
        if Identity::of(&std::fs::metadata(&path)?) != identity {
            return Err(io::ErrorKind::NotFound.into());
        }
        Self::map(File::options().read(true).write(true).open(path)?, processes)
    }

    pub(crate) fn offer(&self) -> Offer {
        let (process, descriptor) = (std::process::id(), self.file.as_raw_fd() as u32);
        Offer { process, descriptor, identity: self.identity }
    }

    fn map(file: File, processes: usize) -> io::Result<Self> {
        let common = common_bytes(processes);
        if common > MOST {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let bytes = common + processes * ARENA;
        file.set_len(bytes as u64)?;
        // All of it now: what is not there when it is touched ends the process.
        // SAFETY: an open file.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, common as libc::off_t) } {
            0 => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
        let identity = Identity::of(&file.metadata()?);
        let memory = Arc::new(Mapping::of(&file, bytes)?);
        Ok(Shared { memory, processes, file, identity })
    }

    /// Where the bells of all processes are.
    pub(crate) fn bells(&self) -> (Arc<Mapping>, usize) {
        (self.memory.clone(), rings_bytes(self.processes))
    }
}

/// The rings of one process.
pub(crate) struct Near {
    /// By rank.
    peers: Vec<Option<Peer>>,
    /// Who has rings: the processes of this host, this one among them.
    ranks: Vec<Rank>,
    longest: usize,
    /// Where the next look begins.
    turn: usize,
    /// Frames that wait for room.
    waiting: usize,
    bells: Bells,
    /// Of this process.
    arena: Arc<Arena>,
    memory: Arc<Mapping>,
}

struct Peer {
    sender: RingSender,
    receiver: RingReceiver,
    /// Where its arena begins.
    arena: usize,
    /// Which bell is its.
    bell: usize,
    /// What had no room.
    waiting: VecDeque<Box<[u8]>>,
}

impl Near {
    /// The rings between process `rank` of `size` and all of `ranks`, itself among them.
    pub(crate) fn new(shared: Shared, rank: Rank, size: Rank, ranks: Vec<Rank>) -> Self {
        let (_, start_of_bells) = shared.bells();
        let Shared { memory, file, processes: count, .. } = shared;
        let bytes = ring_bytes(count);
        let own = ranks.iter().position(|&other| other == rank).unwrap_or(0);
        let ring = |from: usize, to: usize| memory.base.wrapping_add((from * count + to) * bytes);
        let arena = |at: usize| common_bytes(count) + at * ARENA;
        let mut peers: Vec<_> = (0..size).map(|_| None).collect();
        for (at, &other) in ranks.iter().enumerate() {
            // SAFETY: the file was made of noughts, and has room for the rings of all pairs; all of them
            // have agreed on who is which, so each ring has these two ends, and the memory goes with them.
            peers[other] = Some(unsafe {
                Peer {
                    sender: RingSender::new(ring(own, at), bytes),
                    receiver: RingReceiver::new(ring(at, own), bytes),
                    arena: arena(at),
                    bell: at,
                    waiting: VecDeque::new(),
                }
            });
        }
        let longest = peers.iter().flatten().map(|peer| peer.sender.longest()).min().unwrap_or(0);
        let arena = Arena::new(file, memory.clone(), arena(own)..arena(own + 1));
        // SAFETY: behind the rings there is a line for each of them, of noughts; a ring is a whole number of pages.
        let bells = unsafe { Bells::new(memory.clone(), start_of_bells, own) };
        Near { peers, ranks, longest, turn: 0, waiting: 0, bells, arena, memory }
    }

    #[inline]
    pub(crate) fn has(&self, rank: Rank) -> bool {
        matches!(self.peers.get(rank), Some(Some(_)))
    }

    /// Memory of this process's that all of them reach.
    pub(crate) fn share(&self, bytes: usize) -> Option<SharedMemory> {
        self.arena.take(bytes)
    }

    /// Where so many bytes are that a process shares.
    pub(crate) fn reach(&self, owner: Rank, place: u64, bytes: usize) -> Option<*mut u8> {
        let Some(Some(peer)) = self.peers.get(owner) else { return None };
        let place = usize::try_from(place).ok()?;
        let is_inside = place.checked_add(bytes).is_some_and(|end| end <= ARENA);
        is_inside.then(|| self.memory.base.wrapping_add(peer.arena + place))
    }

    /// The longest frame.
    #[inline]
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether nobody is elsewhere.
    pub(crate) fn is_all(&self) -> bool {
        self.ranks.len() == self.peers.len()
    }

    /// Sends a frame to a process that [has](Self::has) rings.
    ///
    /// # Safety
    /// The pieces are valid for reads, of so many bytes with `head`.
    #[inline]
    pub(crate) unsafe fn send(&mut self, to: Rank, head: &[u8], pieces: &[Piece], bytes: usize) {
        // SAFETY: the caller's promise.
        if unsafe { self.send_now(to, head, pieces, bytes) } {
            return;
        }
        let Some(Some(peer)) = self.peers.get_mut(to) else { return };
        let mut frame = vec![0; bytes].into_boxed_slice();
        frame[..head.len()].copy_from_slice(head);
        // SAFETY: the caller's promise; there is room for them.
        unsafe { gather(pieces, frame.as_mut_ptr().add(head.len())) };
        peer.waiting.push_back(frame);
        self.waiting += 1;
    }

    /// Sends a frame if there is room for it, and says so.
    ///
    /// # Safety
    /// As [`send`](Self::send).
    #[inline]
    pub(crate) unsafe fn send_now(
        &mut self,
        to: Rank,
        head: &[u8],
        pieces: &[Piece],
        bytes: usize,
    ) -> bool {
        let Some(Some(peer)) = self.peers.get_mut(to) else { return false };
        // SAFETY: the caller's promise.
        let has_gone = peer.waiting.is_empty() && unsafe { peer.sender.send(head, pieces, bytes) };
        if has_gone {
            self.bells.ring(peer.bell);
        }
        has_gone
    }

    /// Something was written if a process reaches it, and may wait for it.
    #[inline]
    pub(crate) fn wake(&self, rank: Rank) {
        if let Some(Some(peer)) = self.peers.get(rank) {
            self.bells.ring(peer.bell);
        }
    }

    /// Sleeps until another process of this host has written something, for `time` at most. The first time it returns
    /// at once, for another look.
    pub(crate) fn sleep(&self, time: Duration) {
        self.bells.sleep(time);
    }

    /// Lets frames go for which there is room now. Whether all have gone.
    #[inline]
    pub(crate) fn let_go(&mut self) -> bool {
        self.waiting == 0 || self.let_some_go()
    }

    #[cold]
    fn let_some_go(&mut self) -> bool {
        for peer in self.peers.iter_mut().flatten() {
            while let Some(frame) = peer.waiting.front() {
                // SAFETY: no pieces.
                if !unsafe { peer.sender.send(frame, &[], frame.len()) } {
                    break;
                }
                self.bells.ring(peer.bell);
                peer.waiting.pop_front();
                self.waiting -= 1;
            }
        }
        self.waiting == 0
    }

    /// A frame that has come, of `first` if there is one. To be followed by [`taken`](Self::taken).
    #[inline]
    pub(crate) fn next(&mut self, first: Option<Rank>) -> Option<(Rank, &[u8])> {
        let mut from = first.filter(|&rank| self.has_come(rank));
        for _ in 0..self.ranks.len() {
            if from.is_some() {
                break;
            }
            self.turn = if self.turn + 1 < self.ranks.len() { self.turn + 1 } else { 0 };
            from = Some(self.ranks[self.turn]).filter(|&rank| self.has_come(rank));
        }
        let peer = self.peers[from?].as_mut()?;
        Some((from?, peer.receiver.message()?))
    }

    #[inline]
    fn has_come(&mut self, from: Rank) -> bool {
        let Some(Some(peer)) = self.peers.get_mut(from) else { return false };
        peer.receiver.message().is_some()
    }

    /// The frame that [`next`](Self::next) gave is done with; its length was this.
    #[inline]
    pub(crate) fn taken(&mut self, from: Rank, bytes: usize) {
        if let Some(Some(peer)) = self.peers.get_mut(from) {
            peer.receiver.taken(bytes);
            // It may wait for room.
            self.bells.ring(peer.bell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_no_name_and_is_found_by_an_offer_alone() {
        let made = Shared::make(2).unwrap();
        let path = std::fs::read_link(format!("/proc/self/fd/{}", made.file.as_raw_fd())).unwrap();
        assert!(path.to_string_lossy().ends_with(" (deleted)"), "{}", path.display());
        let offer = made.offer();
        assert_eq!(Offer::read(&offer.bytes()).identity, made.identity);
        let found = Shared::open(Offer::read(&offer.bytes()), 2).unwrap();
        // SAFETY: both map the same file, which is long enough, and no other thread knows of it.
        unsafe {
            made.memory.base.write_volatile(7);
            assert_eq!(found.memory.base.read_volatile(), 7);
        }
        let other = Offer { identity: Identity { inode: 0, ..offer.identity }, ..offer };
        assert!(Shared::open(other, 2).is_err(), "another file");
        assert!(Shared::open(Offer::default(), 2).is_err(), "none was made");
        drop(made);
        assert!(Shared::open(offer, 2).is_err(), "it is closed");
    }
}
