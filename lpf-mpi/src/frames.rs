//! Frames: what every message begins with, and most are all of.
//!
//! ```text
//! a whole message   context u32, channel u24, kind u8 = 0, its bytes
//! a long one        context u32, channel u24, kind u8 = 1, number of its body u32, bytes of it u64
//! ```
//!
//! Through a ring of this host come long messages as well, in parts. Both sides name theirs by its ticket:
//!
//! ```text
//! a long one        context u32, channel u24, kind u8 = 2, bytes of it u64, the send u64
//! its parts may go  0 u32, 0 u24, kind u8 = 3, the send u64, the receive u64
//! it is unwanted    0 u32, 0 u24, kind u8 = 4, the send u64
//! a part            0 u32, 0 u24, kind u8 = 5, the receive u64, its bytes
//! ```
//!
//! The frames of one sender arrive in the order in which they were sent, and are matched here: all that MPI
//! has are under one tag, and those of a process of this host go through one [ring](super::near). They are
//! short enough to leave at once with the MPIs that were measured.

use std::collections::VecDeque;

use lpf_messages::{Outcome, Piece, Rank, Tag};

use super::bodies::{Body, Buffer};
use super::library::{Library, Request, byte};
use super::matching::Coming;
use super::pieces;

/// MPI's tag of frames; bodies have the others.
pub(crate) const TAG: i32 = 0;

/// The longest frame. The 4 KiB that Open MPI sends through shared memory without asking its receiver
/// first, less its own header: with 16 bytes more a message takes 4.2 us in place of 2.5. MPICH's
/// limit is twice that.
const FRAME: usize = 4032;

pub(crate) const HEADER: usize = 8;
const LONG_HEADER: usize = HEADER + 12;
/// Behind the ring's word the bytes of a part begin with a line.
pub(crate) const PART_HEADER: usize = HEADER + 48;

/// A longer message has a body.
pub(crate) const LONGEST_WHOLE: usize = FRAME - HEADER;

const WHOLE: u32 = 0;
const LONG: u32 = 1;
const OFFERED: u32 = 2;
const WANTED: u32 = 3;
const UNWANTED: u32 = 4;
const PART: u32 = 5;

/// Channels of a tag.
const CHANNELS: u32 = 1 << 24;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A message: its bytes, or that they are still to come.
    Message { tag: Tag, bytes: &'a [u8], rest: Option<Coming> },
    /// Parts of a long message may go to a receive.
    Wanted { send: u64, receive: u64 },
    /// Nobody will receive a long message.
    Unwanted { send: u64 },
    /// A part of a long message.
    Part { receive: u64, bytes: &'a [u8] },
}

/// What a whole message begins with.
#[inline]
pub(crate) fn whole_header(tag: Tag) -> [u8; HEADER] {
    begin(tag, WHOLE)
}

#[inline]
fn begin(tag: Tag, kind: u32) -> [u8; HEADER] {
    debug_assert!(tag.channel < CHANNELS, "channel {}", tag.channel);
    let words = u64::from(tag.channel | kind << 24) << 32 | u64::from(tag.context);
    words.to_le_bytes()
}

/// As many words, and what is behind them.
fn words<const N: usize>(bytes: &[u8]) -> Option<([u64; N], &[u8])> {
    let (all, _) = bytes.as_chunks::<8>();
    let words: &[[u8; 8]; N] = all.first_chunk()?;
    Some((words.map(u64::from_le_bytes), &bytes[8 * N..]))
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*word), rest))
}

impl<'a> Frame<'a> {
    #[inline]
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (context, rest) = word(bytes)?;
        let (channel, rest) = word(rest)?;
        let tag = Tag { context, channel: channel % CHANNELS };
        let long = |coming| Frame::Message { tag, bytes: &[], rest: Some(coming) };
        match channel / CHANNELS {
            WHOLE => Some(Frame::Message { tag, bytes: rest, rest: None }),
            LONG => {
                let (number, rest) = word(rest)?;
                let ([bytes], []) = words(rest)? else { return None };
                let bytes = usize::try_from(bytes).ok()?;
                // Frames have the tag 0.
                (number > 0).then(|| long(Coming::Mpi(Body { number, bytes })))
            }
            OFFERED => {
                let ([bytes, send], []) = words(rest)? else { return None };
                let bytes = usize::try_from(bytes).ok()?;
                Some(long(Coming::Parts { send, bytes }))
            }
            WANTED => {
                let ([send, receive], []) = words(rest)? else { return None };
                Some(Frame::Wanted { send, receive })
            }
            UNWANTED => {
                let ([send], []) = words(rest)? else { return None };
                Some(Frame::Unwanted { send })
            }
            PART => {
                let ([receive, ..], bytes) = words::<6>(rest)?;
                Some(Frame::Part { receive, bytes })
            }
            _ => None,
        }
    }
}

/// What stands for a long message that MPI brings.
fn long_header(tag: Tag, Body { number, bytes }: Body) -> [u8; LONG_HEADER] {
    let mut header = [0; LONG_HEADER];
    header[..HEADER].copy_from_slice(&begin(tag, LONG));
    header[HEADER..HEADER + 4].copy_from_slice(&number.to_le_bytes());
    header[HEADER + 4..].copy_from_slice(&(bytes as u64).to_le_bytes());
    header
}

/// What stands for a long message that goes in parts.
pub(crate) fn offered(tag: Tag, bytes: usize, send: u64) -> [u8; HEADER + 16] {
    with_words(tag, OFFERED, [bytes as u64, send])
}

/// The answer: its parts may go to this receive.
pub(crate) fn wanted(send: u64, receive: u64) -> [u8; HEADER + 16] {
    with_words(NONE, WANTED, [send, receive])
}

/// The answer: nobody receives it.
pub(crate) fn unwanted(send: u64) -> [u8; HEADER + 8] {
    with_words(NONE, UNWANTED, [send])
}

/// What a part begins with.
pub(crate) fn part_header(receive: u64) -> [u8; PART_HEADER] {
    with_words(NONE, PART, [receive, 0, 0, 0, 0, 0])
}

const NONE: Tag = Tag { context: 0, channel: 0 };

fn with_words<const N: usize, const BYTES: usize>(
    tag: Tag,
    kind: u32,
    words: [u64; N],
) -> [u8; BYTES] {
    const { assert!(BYTES == HEADER + 8 * N) };
    let mut frame = [0; BYTES];
    let (header, rest) = frame.split_at_mut(HEADER);
    header.copy_from_slice(&begin(tag, kind));
    for (place, word) in rest.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    frame
}

/// Frames on their way out, in buffers that are used again.
pub(crate) struct Outgoing {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Those that MPI may still read, oldest first as far as they leave in order.
    flying: VecDeque<u32>,
}

struct Slot {
    buffer: Buffer,
    request: Request,
    to: Rank,
}

/// How many of the oldest frames are asked about when a buffer is needed.
const ASKED: usize = 4;

impl Outgoing {
    pub(crate) fn new() -> Self {
        Outgoing { slots: Vec::new(), free: Vec::new(), flying: VecDeque::new() }
    }

    /// Sends a message whole.
    ///
    /// # Safety
    /// The pieces are valid for reads, of no more than [`LONGEST_WHOLE`] bytes in all.
    #[inline]
    pub(crate) unsafe fn send_whole(
        &mut self,
        library: &Library,
        to: Rank,
        tag: Tag,
        pieces: &[Piece],
        bytes: usize,
    ) -> Outcome<()> {
        let slot = self.slot(library)?;
        let base = self.slots[slot as usize].buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: MPI does not read the buffer any more, which has room for the header and the bytes.
        unsafe {
            base.cast::<[u8; HEADER]>().write(whole_header(tag));
            pieces::gather(pieces, base.add(HEADER));
        }
        self.leave(library, slot, to, HEADER + bytes)
    }

    /// Says that a message is long, and where its bytes are to be had.
    pub(crate) fn send_long(
        &mut self,
        library: &Library,
        to: Rank,
        tag: Tag,
        body: Body,
    ) -> Outcome<()> {
        let slot = self.slot(library)?;
        let base = self.slots[slot as usize].buffer.as_mut_ptr();
        // SAFETY: MPI does not read the buffer any more, which has room for the header.
        unsafe { base.cast::<[u8; LONG_HEADER]>().write(long_header(tag, body)) };
        self.leave(library, slot, to, LONG_HEADER)
    }

    #[inline]
    fn leave(&mut self, library: &Library, slot: u32, to: Rank, bytes: usize) -> Outcome<()> {
        let Slot { buffer, request, to: receiver } = &mut self.slots[slot as usize];
        // SAFETY: so many bytes of the buffer were written; it is left alone while it is in `flying`.
        *request = unsafe { library.send(false, buffer.as_ptr().cast(), bytes, byte(), to, TAG) }?;
        *receiver = to;
        self.flying.push_back(slot);
        Ok(())
    }

    /// A buffer that MPI does not read.
    #[inline]
    fn slot(&mut self, library: &Library) -> Outcome<u32> {
        if let Some(slot) = self.free.pop() {
            return Ok(slot);
        }
        self.collect(library, ASKED)?;
        Ok(self.free.pop().unwrap_or_else(|| self.grow()))
    }

    /// While there is nothing else to do: whether the oldest has left.
    #[inline]
    pub(crate) fn look(&mut self, library: &Library) -> Outcome<()> {
        if self.flying.is_empty() { Ok(()) } else { self.collect(library, 1) }
    }

    /// Asks about some of the oldest. One that does not leave, because its receiver has stopped, makes
    /// way for the next.
    fn collect(&mut self, library: &Library, most: usize) -> Outcome<()> {
        for _ in 0..most.min(self.flying.len()) {
            let Some(oldest) = self.flying.pop_front() else { break };
            let slot = &mut self.slots[oldest as usize];
            if library.is_complete(&mut slot.request, Some(slot.to))? {
                self.free.push(oldest);
            } else {
                self.flying.push_back(oldest);
            }
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        let request = super::library::no_request();
        self.slots.push(Slot { buffer: Buffer::with_capacity(FRAME), request, to: 0 });
        self.slots.len() as u32 - 1
    }

    /// Whether all have left.
    pub(crate) fn have_left(&mut self, library: &Library) -> Outcome<bool> {
        self.collect(library, self.flying.len())?;
        Ok(self.flying.is_empty())
    }

    /// Keeps their memory for ever.
    pub(crate) fn leak(&mut self) {
        self.slots.drain(..).for_each(|slot| std::mem::forget(slot.buffer));
        self.free.clear();
        self.flying.clear();
    }
}

/// Receives for frames of anybody that are always posted. MPI keeps what comes while all are full.
pub(crate) struct Incoming {
    memory: Buffer,
    /// The next frame comes into the first, the one after it into the second, and round again.
    receives: [Request; Self::RECEIVES],
    next: usize,
    /// How many before it are not posted.
    idle: usize,
    /// How many of them have ended for good.
    ended: usize,
}

impl Incoming {
    const RECEIVES: usize = 64;

    pub(crate) fn new(library: &Library) -> Outcome<Self> {
        let memory = Buffer::with_capacity(Self::RECEIVES * FRAME);
        let receives = [super::library::no_request(); Self::RECEIVES];
        let mut incoming = Incoming { memory, receives, next: 0, idle: 0, ended: 0 };
        match (0..Self::RECEIVES).try_for_each(|nth| incoming.post(library, nth)) {
            Ok(()) => Ok(incoming),
            Err(broken) => {
                incoming.leak();
                Err(broken)
            }
        }
    }

    fn post(&mut self, library: &Library, nth: usize) -> Outcome<()> {
        let base = self.place(nth);
        // SAFETY: the place is this receive's, which is started here and in `post_again`, when nobody looks
        // at what came before; the memory is kept until all have ended.
        unsafe {
            self.receives[nth] = library.standing_receive(base, FRAME, TAG)?;
            library.start(&mut self.receives[nth])
        }
    }

    fn place(&mut self, nth: usize) -> *mut u8 {
        self.memory.as_mut_ptr().cast::<u8>().wrapping_add(nth * FRAME)
    }

    /// The next frame that has come, and who sent it: nothing, where it is none. To be followed by
    /// [`taken`](Self::taken).
    #[inline]
    pub(crate) fn next(&mut self, library: &Library) -> Outcome<Option<(Rank, Option<Frame<'_>>)>> {
        let Some(came) = library.came(&mut self.receives[self.next])? else { return Ok(None) };
        let base = self.place(self.next);
        // SAFETY: MPI has written so many bytes there, and writes no more before the next start.
        let bytes = unsafe { std::slice::from_raw_parts(base, came.bytes.min(FRAME)) };
        Ok(Some((came.from, Frame::read(bytes))))
    }

    /// The frame was looked at. Its receive is posted again while there is nothing else to do, or when
    /// many are not.
    #[inline]
    pub(crate) fn taken(&mut self, library: &Library) -> Outcome<()> {
        (self.next, self.idle) = ((self.next + 1) % Self::RECEIVES, self.idle + 1);
        if self.idle <= Self::RECEIVES / 2 { Ok(()) } else { self.post_again(library) }
    }

    /// Posts the receives of frames that were looked at again.
    #[inline]
    pub(crate) fn post_again(&mut self, library: &Library) -> Outcome<()> {
        while self.idle > 0 {
            let oldest = (self.next + Self::RECEIVES - self.idle) % Self::RECEIVES;
            // SAFETY: a standing receive that has ended; nobody looks at its memory any more.
            unsafe { library.start(&mut self.receives[oldest]) }?;
            self.idle -= 1;
        }
        Ok(())
    }

    /// Asks MPI to end all of them.
    pub(crate) fn cancel(&mut self, library: &Library) -> Outcome<()> {
        self.post_again(library)?;
        self.receives.iter_mut().try_for_each(|receive| library.cancel(receive))
    }

    /// Whether all have ended after [`cancel`](Self::cancel), and are given up.
    pub(crate) fn have_ended(&mut self, library: &Library) -> Outcome<bool> {
        while let Some(receive) = self.receives.get_mut(self.ended) {
            if !library.is_complete(receive, None)? {
                return Ok(false);
            }
            library.free_request(receive)?;
            self.ended += 1;
        }
        Ok(true)
    }

    /// Keeps their memory for ever.
    pub(crate) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_what_it_was_told() {
        let tag = Tag { context: u32::MAX, channel: CHANNELS - 1 };
        let mut whole = begin(tag, WHOLE).to_vec();
        assert_eq!(Frame::read(&whole), Some(Frame::Message { tag, bytes: &[], rest: None }));
        whole.extend([1, 2, 3]);
        assert_eq!(
            Frame::read(&whole),
            Some(Frame::Message { tag, bytes: &[1, 2, 3], rest: None })
        );
        let tag = Tag { context: 0, channel: 0 };
        let long = |coming| Some(Frame::Message { tag, bytes: &[], rest: Some(coming) });
        let body = Body { number: 7, bytes: 1 << 40 };
        assert_eq!(Frame::read(&long_header(tag, body)), long(Coming::Mpi(body)));
        let (bytes, send, receive) = (1 << 40, 5 << 32, u64::MAX);
        assert_eq!(Frame::read(&offered(tag, bytes, send)), long(Coming::Parts { send, bytes }));
        assert_eq!(Frame::read(&wanted(send, receive)), Some(Frame::Wanted { send, receive }));
        assert_eq!(Frame::read(&unwanted(send)), Some(Frame::Unwanted { send }));
        let part = [&part_header(receive)[..], &[1, 2, 3]].concat();
        assert_eq!(Frame::read(&part), Some(Frame::Part { receive, bytes: &[1, 2, 3] }));
    }

    #[test]
    fn what_is_no_frame_is_nothing() {
        let tag = Tag { context: 1, channel: 2 };
        let long = long_header(tag, Body { number: 7, bytes: 9 });
        assert!((0..LONG_HEADER).all(|bytes| Frame::read(&long[..bytes]).is_none()));
        assert_eq!(Frame::read(&[&long[..], &[0]].concat()), None);
        assert_eq!(Frame::read(&[&wanted(1, 2)[..], &[0]].concat()), None);
        assert_eq!(Frame::read(&unwanted(1)[..12]), None);
        assert_eq!(Frame::read(&begin(tag, 6)), None);
    }
}
