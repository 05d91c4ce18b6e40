//! Frames between processes of one host: rings in shared memory.
//!
//! If a process has a second thread, Open MPI takes 230 ns for a short message in each direction (90 of them for locks)
//! and 57 ns for a look that finds no message, and it copies once more on either side. Through a ring the same frame is one
//! cache line that moves from core to core. Long messages travel through the ring in [parts](super::network).
//!
//! If one of the processes cannot have the shared memory, all frames travel by MPI.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;
use std::time::Duration;

use lpf_messages::network::{RingReceiver, RingSender};
use lpf_messages::{Piece, Rank, SharedMemory};

use super::arena::Arena;
use super::bells::{self, Bells};
use super::mapping::{Mapping, PAGE};
use super::pieces::gather;

/// Bytes of the ring from one process to another, if there are few processes: room for some [parts](super::network). The
/// rings of both directions fit the cache of a core.
const LONGEST_RING: usize = 256 << 10;
/// Bytes of a ring if there are many processes: room for one of Open MPI's frames at any position.
const SHORTEST_RING: usize = 12 << 10;
/// Bytes of all rings together, unless each has the shortest length.
const ALL_RINGS: usize = 32 << 20;
/// Bytes of address space in which the others write to a process: pages are allocated at their first use. A process that
/// needs more receives the rest through its rings and by MPI.
const ARENA: usize = 64 << 20;
/// The most bytes that rings may have: those of 147 processes on a host. More processes use MPI.
const MOST: usize = 256 << 20;

/// The device and the inode of the shared memory's file. No file has the default value.
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

/// Where the other processes of the host find the shared memory: the file descriptor of the process that has made the file.
/// The file has no name, so the system removes it when the last of them has ended, however it ends.
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

/// The memory that the processes of one host share.
pub(crate) struct Shared {
    memory: Arc<Mapping>,
    processes: usize,
    file: File,
    pub(crate) identity: Identity,
}

/// Bytes of the rings between `processes` processes.
fn rings_bytes(processes: usize) -> usize {
    processes * processes * ring_bytes(processes)
}

/// Bytes of the rings and of the bells behind them.
fn common_bytes(processes: usize) -> usize {
    rings_bytes(processes) + (processes * bells::LINE).next_multiple_of(PAGE)
}

fn ring_bytes(processes: usize) -> usize {
    let each = ALL_RINGS / (processes * processes).max(1) / PAGE * PAGE;
    each.clamp(SHORTEST_RING, LONGEST_RING)
}

impl Shared {
    /// Makes the memory of `processes` processes, to be offered to the others.
    ///
    /// # Errors
    /// If the system refuses the memory.
    pub(crate) fn make(processes: usize) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
        // Files of this folder are in memory.
        Self::map(options.open("/dev/shm")?, processes)
    }

    /// Opens the memory that another process has made and keeps open meanwhile.
    ///
    /// # Errors
    /// If this process does not find the file, or the system refuses the memory.
    pub(crate) fn open(offer: Offer, processes: usize) -> io::Result<Self> {
        let Offer { process, descriptor, identity } = offer;
        let path = format!("/proc/{process}/fd/{descriptor}");
        // In another container the same path may lead to another process's file.
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
        // All of it now: a page that cannot be allocated at its first use would end the process.
        // SAFETY: the descriptor is that of an open file.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, common as libc::off_t) } {
            0 => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
        let identity = Identity::of(&file.metadata()?);
        let memory = Arc::new(Mapping::of(&file, bytes)?);
        Ok(Shared { memory, processes, file, identity })
    }

    /// The memory of the bells, and where they begin in it.
    pub(crate) fn bells(&self) -> (Arc<Mapping>, usize) {
        (self.memory.clone(), rings_bytes(self.processes))
    }
}

/// The rings of one process.
pub(crate) struct Near {
    /// The process of each rank, if it is on this host.
    peers: Vec<Option<Peer>>,
    /// The ranks of the processes of this host, this one included.
    ranks: Vec<Rank>,
    longest: usize,
    /// The position in `ranks` of the process that was last looked for.
    turn: usize,
    /// Frames that wait for room.
    waiting: usize,
    bells: Bells,
    /// The arena of this process.
    arena: Arc<Arena>,
    memory: Arc<Mapping>,
}

struct Peer {
    sender: RingSender,
    receiver: RingReceiver,
    /// The offset of its arena.
    arena: usize,
    /// The number of its bell.
    bell: usize,
    /// Frames for which the ring had no room.
    waiting: VecDeque<Box<[u8]>>,
}

impl Near {
    /// The rings between process `rank` of `size` and all of `ranks`, itself included.
    pub(crate) fn new(shared: Shared, rank: Rank, size: Rank, ranks: Vec<Rank>) -> Self {
        let (_, start_of_bells) = shared.bells();
        let Shared { memory, file, processes: count, .. } = shared;
        let bytes = ring_bytes(count);
        let own = ranks.iter().position(|&other| other == rank).unwrap_or(0);
        let ring = |from: usize, to: usize| memory.base.wrapping_add((from * count + to) * bytes);
        let arena = |at: usize| common_bytes(count) + at * ARENA;
        let mut peers: Vec<_> = (0..size).map(|_| None).collect();
        for (at, &other) in ranks.iter().enumerate() {
            // SAFETY: the file was made of zeros and has room for the rings of all pairs. All processes have agreed on the
            // order of `ranks`, so each ring has one sender and one receiver. `Near` keeps the mapping.
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
        // SAFETY: behind the rings there is a line of zeros for each process, which has no other use. A ring is a whole
        // number of pages, and so of lines. Bells are rung by the positions in `ranks`.
        let bells = unsafe { Bells::new(memory.clone(), start_of_bells, own) };
        Near { peers, ranks, longest, turn: 0, waiting: 0, bells, arena, memory }
    }

    #[inline]
    pub(crate) fn has(&self, rank: Rank) -> bool {
        matches!(self.peers.get(rank), Some(Some(_)))
    }

    /// Memory of this process that the others of this host can reach.
    pub(crate) fn share(&self, bytes: usize) -> Option<SharedMemory> {
        self.arena.take(bytes)
    }

    /// The address here of `bytes` bytes at offset `place` of the arena of process `owner`.
    pub(crate) fn reach(&self, owner: Rank, place: u64, bytes: usize) -> Option<*mut u8> {
        let Some(Some(peer)) = self.peers.get(owner) else { return None };
        let place = usize::try_from(place).ok()?;
        let is_inside = place.checked_add(bytes).is_some_and(|end| end <= ARENA);
        is_inside.then(|| self.memory.base.wrapping_add(peer.arena + place))
    }

    /// The length of the longest frame.
    #[inline]
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether all processes are on this host.
    pub(crate) fn is_all(&self) -> bool {
        self.ranks.len() == self.peers.len()
    }

    /// Sends a frame to a process that [has](Self::has) rings, or keeps a copy of it until there is room.
    ///
    /// # Safety
    /// The pieces are valid for reads. They and `head` have `bytes` bytes together.
    #[inline]
    pub(crate) unsafe fn send(&mut self, to: Rank, head: &[u8], pieces: &[Piece], bytes: usize) {
        // SAFETY: the caller promises the same of the pieces.
        if unsafe { self.send_now(to, head, pieces, bytes) } {
            return;
        }
        let Some(Some(peer)) = self.peers.get_mut(to) else { return };
        let mut frame = vec![0; bytes].into_boxed_slice();
        frame[..head.len()].copy_from_slice(head);
        // SAFETY: the caller promises that the pieces are valid for reads; the frame has room for them behind the head.
        unsafe { gather(pieces, frame.as_mut_ptr().add(head.len())) };
        peer.waiting.push_back(frame);
        self.waiting += 1;
    }

    /// Sends a frame if there is room for it. Whether there was.
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
        // SAFETY: the caller promises that the pieces are valid for reads and, with the head, of this length.
        let has_gone = peer.waiting.is_empty() && unsafe { peer.sender.send(head, pieces, bytes) };
        if has_gone {
            self.bells.ring(peer.bell);
        }
        has_gone
    }

    /// Wakes a process of this host for which something was written in shared memory.
    #[inline]
    pub(crate) fn wake(&self, rank: Rank) {
        if let Some(Some(peer)) = self.peers.get(rank) {
            self.bells.ring(peer.bell);
        }
    }

    /// Sleeps until another process of this host has written something, for `time` at most. The first call returns at
    /// once, so that the caller looks again.
    pub(crate) fn sleep(&self, time: Duration) {
        self.bells.sleep(time);
    }

    /// Sends waiting frames for which there is room now. Whether all are sent.
    #[inline]
    pub(crate) fn let_go(&mut self) -> bool {
        self.waiting == 0 || self.let_some_go()
    }

    #[cold]
    fn let_some_go(&mut self) -> bool {
        for peer in self.peers.iter_mut().flatten() {
            while let Some(frame) = peer.waiting.front() {
                // SAFETY: the list of pieces is empty, so the head, a slice, is all that is read; it has this length.
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

    /// A frame that has arrived: one of `first` if there is one. [`taken`](Self::taken) has to follow.
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

    /// Frees the frame that [`next`](Self::next) returned, which had `bytes` bytes.
    #[inline]
    pub(crate) fn taken(&mut self, from: Rank, bytes: usize) {
        if let Some(Some(peer)) = self.peers.get_mut(from) {
            peer.receiver.taken(bytes);
            // The sender may wait for room.
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
        // SAFETY: both map the same file, which has more than a byte, and no other thread uses it.
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
