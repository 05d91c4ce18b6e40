//! The messages of Bruck's algorithm: chunks in transit, and how much is due to each process.

use super::super::memory::Memory;
use super::super::wire::{Reader, Summary, write_pid};
use lpf_core::Pid;

/// The longest chunk.
pub(super) const CHUNK: usize = 480;
/// Its head: destination, intermediate process, origin and length; its offset in the units of its origin, and their
/// length.
pub(super) const CHUNK_HEAD: usize = 32;
/// Length of the whole message, and of its chunks.
pub(super) const MESSAGE_HEAD: usize = 16 + Summary::BYTES;

/// Chunks in transit through this process.
#[derive(Debug, Default)]
pub(super) struct Transit {
    pub(super) here: Vec<u8>,
    /// The message of the current step.
    pub(super) out: Vec<u8>,
    /// The second part of the message that arrives.
    pub(super) rest: Memory,
    /// The longest message.
    pub(super) limit: usize,
}

impl Transit {
    /// Room for `units` bytes of this process's units.
    ///
    /// # Errors
    /// The bytes that were refused.
    pub(super) fn new(nprocs: usize, units: usize) -> std::result::Result<Self, usize> {
        let heads = (units / CHUNK).saturating_add(2 * nprocs).saturating_mul(CHUNK_HEAD + 8);
        let limit = units.saturating_add(heads).saturating_add(nprocs * Due::BYTES + MESSAGE_HEAD);
        let room = limit.saturating_mul(2);
        let (mut here, mut out) = (Vec::new(), Vec::new());
        here.try_reserve_exact(room).map_err(|_| room)?;
        out.try_reserve_exact(limit).map_err(|_| room)?;
        Ok(Transit { here, out, rest: Memory::new(limit)?, limit })
    }
}

/// What is in transit to one process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    pub(super) bytes: u64,
    pub(super) requests: u32,
    /// The process that made the most of them, and how many it made.
    pub(super) origin: Pid,
    pub(super) most: u32,
}

impl Due {
    pub(super) const BYTES: usize = 20;

    pub(super) fn add(&mut self, other: Due) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.requests = self.requests.saturating_add(other.requests);
        if other.most > self.most {
            (self.most, self.origin) = (other.most, other.origin);
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.extend_from_slice(&self.requests.to_le_bytes());
        write_pid(out, self.origin);
        out.extend_from_slice(&self.most.to_le_bytes());
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let bytes = from.u64()?;
        let (requests, origin, most) = (from.u32()?, from.pid()?, from.u32()?);
        Some(Due { bytes, requests, origin, most })
    }
}

/// A chunk of a message.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    /// Head and bytes, padded.
    pub(super) whole: &'a [u8],
    pub(super) to: Pid,
    pub(super) via: Pid,
    pub(super) origin: Pid,
    pub(super) offset: u64,
    pub(super) total: u64,
    pub(super) bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// The first chunk of `from`, and the bytes after it.
    pub(super) fn split(from: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut reader = Reader(from);
        let (to, via, origin, length) =
            (reader.pid()?, reader.pid()?, reader.pid()?, reader.u32()?);
        let (offset, total) = (reader.u64()?, reader.u64()?);
        let length = length as usize;
        let end = CHUNK_HEAD + length.next_multiple_of(8);
        if length > CHUNK || from.len() < end {
            return None;
        }
        let (whole, rest) = from.split_at(end);
        let bytes = &whole[CHUNK_HEAD..CHUNK_HEAD + length];
        Some((Chunk { whole, to, via, origin, offset, total, bytes }, rest))
    }

    pub(super) fn write(out: &mut Vec<u8>, head: [Pid; 3], offset: u64, total: u64, bytes: &[u8]) {
        for pid in head {
            write_pid(out, pid);
        }
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&total.to_le_bytes());
        out.extend_from_slice(bytes);
        out.resize(out.len() + bytes.len().wrapping_neg() % 8, 0);
    }
}
