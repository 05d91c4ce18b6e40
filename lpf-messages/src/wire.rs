//! The bytes of the first exchange of a full sync.
//!
//! Each process receives the [`Summary`] of all processes, and from each other process a [`Head`] and *units*, which
//! concern only their sender and their receiver. A message that goes directly to its receiver begins with an
//! [`Opening`]: the head, and what is new in the sender's summary. A unit is a run of requests:
//!
//! ```text
//! word 0   flags (8 bits) | slot (24) | bytes of a request (32)
//! word 1   offset of the first in the slot
//! word 2   with RUN: how many requests          with LONG: the bytes of a request, whole
//! word 3   with RUN: from offset to offset
//! …        with INLINE: the requests' bytes, consecutive, padded to a word
//! ```
//!
//! Numbers are little-endian. Bytes that arrive are checked where they are used: an invalid message is an error, never a
//! wrong access.

use super::contexts::Contexts;
use lpf_core::Pid;
use lpf_core::error::{Cause, Error};
use lpf_core::request::Run;
use lpf_core::runtime::{Announced, LocalState, Purpose, Registrations};

/// A request of at most this length travels in its unit: the room for it was reserved with the request.
pub(super) const SHORT: usize = 64;

/// The longest unit of one request: its words and a short request's bytes.
pub(super) const LARGEST_UNIT: usize = 3 * 8 + SHORT;

/// Bits of a unit's first byte.
pub(super) mod unit {
    /// A get; else a put.
    pub(crate) const GET: u8 = 1;
    /// More than one request.
    pub(crate) const RUN: u8 = 2;
    /// 2^32 bytes or more.
    pub(crate) const LONG: u8 = 4;
    /// A put's bytes follow; a get's come back with the answer.
    pub(crate) const INLINE: u8 = 8;
}

/// Bits of the kinds of announcements that are this engine's own.
pub(super) mod flags {
    use lpf_core::runtime::Announced;

    /// A process has requests.
    pub(crate) const REQUESTS: u32 = Announced::ENGINE;
    /// The requests of a process take more than the first exchange.
    pub(crate) const MORE: u32 = Announced::ENGINE << 1;
    /// A process did not promise that writes are free of conflicts.
    pub(crate) const CONFLICTS: u32 = Announced::ENGINE << 2;
}

/// Process `from` has sent a message that the protocol never sends.
#[cold]
pub(super) fn nonsense(from: Pid, superstep: u64) -> Error {
    let text = format!("process {from} sent an invalid message");
    Error::fatal(from, superstep, Cause::Protocol(text))
}

/// Writes the number of a process.
#[inline]
pub(super) fn write_pid(out: &mut Vec<u8>, pid: Pid) {
    let word = u32::try_from(pid).expect("a job has fewer than 2^32 processes");
    out.extend_from_slice(&word.to_le_bytes());
}

/// What all processes have to know of each other. Merged, it is the same at all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// What core compares.
    pub(super) common: lpf_core::runtime::Summary,
    /// The number of the section that begins here: process 0's word, nothing from the others.
    pub(super) context: u32,
}

impl Summary {
    pub(super) const BYTES: usize = 16 + 4 + 8 + 4 + 2 * 28 + 2 * 8;

    /// Of one process.
    pub(super) fn of(local: &LocalState, purpose: Purpose) -> Self {
        let common = lpf_core::runtime::Summary::of(local, purpose);
        Summary { common, context: Contexts::NONE }
    }

    #[inline]
    pub(super) fn merge(&mut self, other: &Summary) {
        self.common.merge(&other.common);
        self.context = self.context.max(other.context);
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Summary { common: all, context } = self;
        for pid in all.arrived {
            write_pid(out, pid);
        }
        out.extend_from_slice(&all.kinds.0.to_le_bytes());
        out.extend_from_slice(&all.requests.to_le_bytes());
        out.extend_from_slice(&context.to_le_bytes());
        for r in [all.lowest, all.highest] {
            out.extend_from_slice(&r.hash.to_le_bytes());
            out.extend_from_slice(&r.calls.to_le_bytes());
            write_pid(out, r.pid);
            out.extend_from_slice(&r.area.to_le_bytes());
        }
        for word in all.abandoned {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let mut arrived = [0; 4];
        for pid in &mut arrived {
            *pid = from.pid()?;
        }
        let (kinds, requests, context) = (Announced(from.u32()?), from.u64()?, from.u32()?);
        let mut registrations = || {
            let (hash, calls, pid, area) = (from.u64()?, from.u64()?, from.pid()?, from.u64()?);
            Some(Registrations { hash, calls, pid, area })
        };
        let (lowest, highest) = (registrations()?, registrations()?);
        let abandoned = [from.u64()?, from.u64()?];
        let common =
            lpf_core::runtime::Summary { arrived, kinds, requests, lowest, highest, abandoned };
        Some(Summary { common, context })
    }
}

/// What one process has for one other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Requests, empty ones included; in [`Purpose::Count`] the messages sent, see [`Links::count`].
    ///
    /// [`Links::count`]: super::links::Links::count
    pub(super) requests: u32,
    /// Bytes of the units that follow.
    pub(super) units: u64,
}

/// The part of one process's summary that seldom changes: told again only where it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    requests: u64,
    context: u32,
    lowest: Registrations,
    /// The same, unless the processes of a node differ.
    highest: Registrations,
    abandoned: u64,
}

impl News {
    /// Of a summary that is not combined yet.
    pub(super) fn of(summary: &Summary) -> Self {
        let Summary { common: all, context } = summary;
        let (requests, lowest, highest) = (all.requests, all.lowest, all.highest);
        News { requests, context: *context, lowest, highest, abandoned: all.abandoned[0] }
    }
}

/// What a message that goes straight to its receiver begins with: the summary of one process, which its
/// receiver knows, and a head.
///
/// ```text
/// kind (8 bits) | flags (16) | DIFFERS, NEWS, LONG   requests of the head u32
/// with NEWS: requests u64, hash u64, calls u64, context u32, pid u32, abandoned u64, area u64
/// with DIFFERS: hash u64, calls u64, pid u64, area u64
/// with LONG: bytes of the units u64; else they are all that follows
/// ```
///
/// A process that has nothing new to say and puts 8 bytes says so in 32: one cache line, headers of the
/// network included.
pub(super) struct Opening {
    bytes: [u8; Opening::LONGEST],
    len: usize,
}

impl Opening {
    pub(super) const LONGEST: usize = 8 + 48 + 32 + 8;

    const DIFFERS: u32 = 1 << 29;
    const NEWS: u32 = 1 << 30;
    const LONG: u32 = 1 << 31;

    /// Of a summary that is not combined yet.
    #[inline]
    pub(super) fn of(kind: Purpose, flags: u32, news: Option<&News>) -> Self {
        debug_assert!(flags < 1 << 16);
        let is_news = if news.is_some() { Self::NEWS } else { 0 };
        let mark = kind as u32 | flags << 8 | is_news;
        let mut opening = Opening { bytes: [0; Self::LONGEST], len: 8 };
        opening.bytes[..4].copy_from_slice(&mark.to_le_bytes());
        let Some(news) = news else { return opening };
        let News { requests, context, lowest, highest, abandoned } = news;
        let context = u64::from(*context) | (lowest.pid as u64) << 32;
        let words = [*requests, lowest.hash, lowest.calls, context, *abandoned, lowest.area];
        words.into_iter().for_each(|word| opening.push(word));
        if highest != lowest {
            opening.bytes[..4].copy_from_slice(&(mark | Self::DIFFERS).to_le_bytes());
            let Registrations { hash, calls, pid, area } = *highest;
            [hash, calls, pid as u64, area].into_iter().for_each(|word| opening.push(word));
        }
        opening
    }

    fn push(&mut self, word: u64) {
        self.bytes[self.len..self.len + 8].copy_from_slice(&word.to_le_bytes());
        self.len += 8;
    }

    /// Its length before so many bytes of units, which are the rest of the message where all of it fits
    /// into `whole` bytes.
    #[inline]
    pub(super) fn len(&self, units: usize, whole: usize) -> usize {
        if self.len + units > whole { self.len + 8 } else { self.len }
    }

    /// Writes it with a head, to as many bytes as it has.
    #[inline]
    pub(super) fn write(&self, out: &mut [u8], head: &Head) {
        out[..self.len].copy_from_slice(&self.bytes[..self.len]);
        out[4..8].copy_from_slice(&head.requests.to_le_bytes());
        if out.len() > self.len {
            out[3] |= (Self::LONG >> 24) as u8;
            out[self.len..].copy_from_slice(&head.units.to_le_bytes());
        }
    }

    /// Adds what process `from` says of itself to what `all` have said, and keeps what it says in `heard`
    /// until it says something new; the head behind it.
    #[inline]
    pub(super) fn read(
        all: &mut Summary,
        from: Pid,
        heard: &mut Option<News>,
        bytes: &mut Reader<'_>,
    ) -> Option<Head> {
        let (mark, requests) = (bytes.u32()?, bytes.u32()?);
        if mark & Self::NEWS != 0 {
            let (requests, hash, calls) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
            let (context, abandoned, area) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
            let lowest = Registrations { hash, calls, pid: (context >> 32) as Pid, area };
            let mut highest = lowest;
            if mark & Self::DIFFERS != 0 {
                let (hash, calls) = (bytes.u64()?, bytes.u64()?);
                highest =
                    Registrations { hash, calls, pid: bytes.u64()? as Pid, area: bytes.u64()? };
            }
            let context = context as u32;
            *heard = Some(News { requests, context, lowest, highest, abandoned });
        }
        let news = heard.as_ref()?;
        let mut arrived = [lpf_core::runtime::Summary::NO_PROCESS; 4];
        *arrived.get_mut((mark & 0xff) as usize)? = from;
        let one = lpf_core::runtime::Summary {
            arrived,
            kinds: Announced(mark >> 8 & 0xffff),
            requests: news.requests,
            lowest: news.lowest,
            highest: news.highest,
            abandoned: [news.abandoned; 2],
        };
        all.merge(&Summary { common: one, context: news.context });
        let units = if mark & Self::LONG != 0 { bytes.u64()? } else { bytes.0.len() as u64 };
        Some(Head { requests, units })
    }
}

/// A run of requests as its receiver has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit<'a> {
    pub(super) flags: u8,
    pub(super) slot: usize,
    /// Of one request.
    pub(super) bytes: usize,
    pub(super) offset: usize,
    pub(super) count: usize,
    pub(super) stride: isize,
    /// The bytes of inline puts, one request behind the other.
    pub(super) payload: &'a [u8],
}

impl Unit<'_> {
    pub(super) fn is_get(&self) -> bool {
        self.flags & unit::GET != 0
    }

    pub(super) fn is_inline(&self) -> bool {
        self.flags & unit::INLINE != 0
    }

    /// Offset of request `nth`.
    pub(super) fn offset_of(&self, nth: usize) -> usize {
        (self.offset as isize).wrapping_add(self.stride.wrapping_mul(nth as isize)) as usize
    }

    /// The range that all requests of the run lie in: lowest offset, and the end of the highest.
    /// `None` where they do not lie in any.
    pub(super) fn range(&self) -> Option<(usize, usize)> {
        let last = (self.stride.checked_mul(self.count as isize - 1))
            .and_then(|step| isize::try_from(self.offset).ok()?.checked_add(step))
            .and_then(|last| usize::try_from(last).ok())?;
        let end = self.offset.max(last).checked_add(self.bytes)?;
        Some((self.offset.min(last), end))
    }
}

/// Bytes of a unit's words.
pub(super) fn words_of(flags: u8) -> usize {
    16 + if flags & unit::RUN != 0 { 16 } else { 0 } + if flags & unit::LONG != 0 { 8 } else { 0 }
}

/// The flags of a run, all but INLINE.
pub(super) fn flags_of(run: &Run, is_get: bool) -> u8 {
    let mut flags = 0;
    if is_get {
        flags |= unit::GET;
    }
    if run.count > 1 {
        flags |= unit::RUN;
    }
    if u32::try_from(run.first.bytes).is_err() {
        flags |= unit::LONG;
    }
    flags
}

/// Writes a unit's words.
pub(super) fn write_words(out: &mut Vec<u8>, flags: u8, run: &Run) {
    let bytes = if flags & unit::LONG != 0 { 0 } else { run.first.bytes as u64 };
    let word = u64::from(flags) | (run.first.slot as u64) << 8 | bytes << 32;
    out.extend_from_slice(&word.to_le_bytes());
    out.extend_from_slice(&(run.first.offset as u64).to_le_bytes());
    if flags & unit::RUN != 0 {
        out.extend_from_slice(&(run.count as u64).to_le_bytes());
        out.extend_from_slice(&(run.offset_stride as u64).to_le_bytes());
    }
    if flags & unit::LONG != 0 {
        out.extend_from_slice(&(run.first.bytes as u64).to_le_bytes());
    }
}

/// Reads numbers and units from what came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// The number of a process. Whether the section has that process is checked where the number is used.
    #[inline]
    pub(super) fn pid(&mut self) -> Option<Pid> {
        Pid::try_from(self.u32()?).ok()
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|b| u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
    }

    /// The next unit; `None` at the end, or where the bytes are none.
    #[inline]
    pub(super) fn unit(&mut self) -> Option<Unit<'a>> {
        let word = self.u64()?;
        let offset = usize::try_from(self.u64()?).ok()?;
        let flags = word as u8;
        let slot = (word >> 8 & 0xff_ffff) as usize;
        let mut unit = Unit {
            flags,
            slot,
            bytes: (word >> 32) as usize,
            offset,
            count: 1,
            stride: 0,
            payload: &[],
        };
        if flags & unit::RUN != 0 {
            unit.count = usize::try_from(self.u64()?).ok().filter(|&n| n > 0 && n < 1 << 32)?;
            unit.stride = self.u64()? as isize;
        }
        if flags & unit::LONG != 0 {
            unit.bytes = usize::try_from(self.u64()?).ok()?;
        }
        if flags & (unit::INLINE | unit::GET) == unit::INLINE {
            let bytes = unit.bytes.checked_mul(unit.count)?;
            unit.payload = self.take(bytes)?;
            self.take(bytes.wrapping_neg() % 8)?;
        }
        Some(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lpf_core::request::Request;

    fn run(bytes: usize, count: usize) -> Run {
        let first = Request { address: std::ptr::null_mut(), bytes, slot: 0xab_cdef, offset: 77 };
        Run { first, count, address_stride: 5, offset_stride: -3 }
    }

    #[test]
    fn a_unit_is_read_as_it_was_written() {
        for (run, payload) in [(run(5, 1), true), (run(5, 3), true), (run(1 << 33, 4), false)] {
            let mut out = Vec::new();
            let flags = flags_of(&run, false) | if payload { unit::INLINE } else { 0 };
            write_words(&mut out, flags, &run);
            assert_eq!(out.len(), words_of(flags));
            let bytes: Vec<u8> = (0..run.first.bytes.min(5) * run.count).map(|b| b as u8).collect();
            if payload {
                out.extend_from_slice(&bytes);
                out.resize(out.len().next_multiple_of(8), 0);
            }
            let mut reader = Reader(&out);
            let unit = reader.unit().unwrap();
            assert_eq!(
                (unit.slot, unit.bytes, unit.count),
                (0xab_cdef, run.first.bytes, run.count)
            );
            assert_eq!((unit.offset, unit.is_inline()), (77, payload));
            assert_eq!(unit.offset_of(run.count - 1), 77 - 3 * (run.count - 1));
            assert!(unit.payload == if payload { &bytes[..] } else { &[] });
            assert!(reader.0.is_empty() && reader.unit().is_none());
        }
    }

    fn summary(pid: Pid, purpose: Purpose) -> Summary {
        Summary::of(&LocalState::new(pid, 10, None).unwrap(), purpose)
    }

    /// One in which every number is another.
    fn full_summary(purpose: Purpose) -> Summary {
        let mut one = summary(7, purpose);
        (one.common.kinds, one.common.requests) = (Announced(flags::MORE), 1 << 40);
        one.common.lowest = Registrations { hash: 3, calls: 1 << 50, pid: 7, area: 1 << 40 };
        one.common.highest = one.common.lowest;
        one.common.abandoned = [1 << 60; 2];
        Summary { context: 99, ..one }
    }

    #[test]
    fn a_summary_is_read_as_it_was_written() {
        let (one, mut out) = (full_summary(Purpose::Rehook), Vec::new());
        one.write(&mut out);
        assert_eq!(out.len(), Summary::BYTES);
        assert_eq!(Summary::read(&mut Reader(&out)), Some(one));
    }

    #[test]
    fn an_opening_says_what_it_was_told() {
        for (kind, news, whole) in [(0, false, 64), (1, true, 64), (2, false, 63), (2, true, 0)] {
            let kind = Purpose::ALL[kind];
            let one = full_summary(kind);
            let known = News::of(&one);
            let opening = Opening::of(kind, one.common.kinds.0, news.then_some(&known));
            const END: usize = Opening::LONGEST;
            let mut out = [0; END + 56];
            let head = Head { requests: 5, units: 56 };
            let start = END - opening.len(56, whole);
            opening.write(&mut out[start..END], &head);
            let is_long = 8 + 48 * usize::from(news) + 56 > whole;
            assert_eq!(END - start, 8 + 48 * usize::from(news) + 8 * usize::from(is_long));
            let mut heard = (!news).then_some(known);
            let other = summary(9, Purpose::Close);
            let (mut all, mut merged) = (other, other);
            let mut reader = Reader(&out[start..]);
            assert_eq!(Opening::read(&mut all, 7, &mut heard, &mut reader), Some(head));
            merged.merge(&one);
            assert_eq!((all, heard, reader.0.len()), (merged, Some(known), 56));
            let read = |n| Opening::read(&mut { other }, 7, &mut None, &mut Reader(&out[start..n]));
            assert!((start..END).all(|n| read(n).is_none()));
        }
        let mut all = summary(0, Purpose::Sync);
        assert!(Opening::read(&mut all, 0, &mut None, &mut Reader(&[3; 56])).is_none());
    }

    #[test]
    fn nonsense_is_no_unit() {
        for byte in 0..=255u8 {
            for len in 0..64 {
                let bytes = vec![byte; len];
                let mut reader = Reader(&bytes);
                while let Some(unit) = reader.unit() {
                    assert!(unit.payload.len() <= len);
                    let _ = unit.range();
                }
            }
        }
    }
}
