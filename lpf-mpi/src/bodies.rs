//! The bytes of long messages, which MPI moves from memory to memory.
//!
//! One piece goes as it is. Many pieces go through a derived type that says where they are, made for
//! this message alone; where they are small, MPI's walk through such a type costs several times a
//! copy, so they are packed into a buffer. Each side does what suits its own pieces: what travels is
//! the same.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::MaybeUninit;

use lpf_messages::{Outcome, Piece, Rank};
use mpi::ffi;

use super::library::{Datatype, Library, Request, byte};
use super::pieces::{total, window};

/// The bytes of a long message: a message of MPI's under a tag of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) number: u32,
    pub(crate) bytes: usize,
}

/// What the bodies from one process to another are cut into, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bytes of a part. What nobody wants any more is received into a buffer of this size.
    part: usize,
    /// So many parts are in MPI's hands at most.
    window: usize,
    /// Of so many one waits for its receiver: MPI may have copied the others, to send them when it can.
    waits: usize,
}

impl Cut {
    /// On one host bytes go from memory to memory; only MPI's counts, of 32 bits, have to be kept to.
    pub(crate) const NEAR: Cut = Cut { part: 256 << 20, window: 16, waits: usize::MAX };

    /// Between hosts a longer part would wait until its receiver has answered, and answers stand in line
    /// behind what the receiver sends. On links of 100 Mbit/s, four processes with 130 KB for each other
    /// took 54 ms when sent whole, 38 ms in parts; with 5.6 MB 2.0 s, and 1.4 s.
    pub(crate) const FAR: Cut = Cut { part: 48 << 10, window: 16, waits: 8 };
}

/// How far a body is in MPI's hands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) bytes: usize,
    parts: usize,
    /// Where the next part begins: in which piece, so many bytes behind its beginning.
    piece: usize,
    within: usize,
}

impl Given {
    /// The pieces of the next so many bytes.
    pub(crate) fn next<'p>(
        &self,
        pieces: &'p [Piece],
        bytes: usize,
    ) -> impl Iterator<Item = Piece> + use<'p> {
        window(pieces.get(self.piece..).unwrap_or_default(), self.within, bytes)
    }

    /// So many more bytes are given.
    pub(crate) fn add(&mut self, pieces: &[Piece], bytes: usize) {
        (self.bytes, self.parts) = (self.bytes + bytes, self.parts + 1);
        self.within += bytes;
        while let Some(piece) = pieces.get(self.piece).filter(|piece| piece.bytes <= self.within) {
            (self.piece, self.within) = (self.piece + 1, self.within - piece.bytes);
        }
    }
}

/// Pieces shorter than this on average are packed. Measured on two cores, both ways at once, with Open
/// MPI 4.1 and MPICH 4.0: 2,000 pieces of 64 B take 27 and 28 us packed, 265 and 82 by type; of
/// 512 B 183 and 182 against 485 and 229; from 1 KiB on it is as long either way.
const SMALL_PIECE: usize = 513;

/// Nothing longer is packed.
const LARGEST_PACKED: usize = 4 << 20;

/// Buffers that are kept for the next packed messages.
const SPARE: usize = 4;

/// Memory that MPI reads or writes.
pub(crate) type Buffer = Vec<MaybeUninit<u8>>;

/// The bytes of a message that are in a buffer, which has room for them.
pub(crate) fn in_buffer(buffer: &mut Buffer, bytes: usize) -> [Piece; 1] {
    [Piece { base: buffer.as_mut_ptr().cast(), bytes }]
}

#[derive(Default)]
pub(crate) struct Buffers(Vec<Buffer>);

impl Buffers {
    /// A buffer, where these pieces are better packed and there is memory for it.
    pub(crate) fn for_pieces(&mut self, pieces: &[Piece], bytes: usize) -> Option<Buffer> {
        let packs = pieces.len() > 1
            && bytes <= LARGEST_PACKED
            && bytes < pieces.len().saturating_mul(SMALL_PIECE);
        if packs { self.take(bytes) } else { None }
    }

    /// Room for so many bytes, if there is memory for it.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Buffer> {
        let mut buffer = self.0.pop().unwrap_or_default();
        buffer.try_reserve_exact(bytes).ok()?;
        Some(buffer)
    }

    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        if buffer.capacity() <= LARGEST_PACKED && self.0.len() < SPARE {
            self.0.push(buffer);
        }
    }
}

/// Which way a body goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// To the peer, and else from it.
    pub(crate) sends: bool,
    pub(crate) peer: Rank,
    pub(crate) cut: Cut,
}

impl Way {
    /// Gives one part to MPI; one that `waits`, if it is sent, is complete when its receive is posted, and
    /// not before.
    ///
    /// # Safety
    /// As [`Library::send`] and [`Library::receive`].
    unsafe fn post(
        self,
        library: &Library,
        waits: bool,
        tag: c_int,
        base: *mut u8,
        count: usize,
        kind: Datatype,
    ) -> Outcome<Request> {
        // SAFETY: the caller's promise.
        unsafe {
            match self.sends {
                true => library.send(waits, base, count, kind, self.peer, tag),
                false => library.receive(base, count, kind, self.peer, tag),
            }
        }
    }
}

/// Lists for MPI, used again for every message.
#[derive(Default)]
pub(crate) struct Layout {
    lengths: Vec<c_int>,
    /// From the first piece.
    places: Vec<ffi::MPI_Aint>,
}

/// Longer lists are not kept for the next message.
const KEPT: usize = 1 << 14;

impl Layout {
    /// Gives as much of a body as may be in MPI's hands, between it and `pieces`. On an error some of it
    /// may be under way: what is in `requests`.
    ///
    /// # Safety
    /// The pieces are valid for what MPI does with them until all requests are complete.
    pub(crate) unsafe fn give(
        &mut self,
        library: &Library,
        way: Way,
        body: Body,
        pieces: &[Piece],
        given: &mut Given,
        requests: &mut VecDeque<Request>,
    ) -> Outcome<()> {
        debug_assert!(total(pieces).is_some_and(|room| body.bytes <= room));
        let (cut, tag) = (way.cut, body.number as c_int);
        while given.bytes < body.bytes && requests.len() < cut.window {
            let here = cut.part.min(body.bytes - given.bytes);
            let mut part = given.next(pieces, here);
            let Some(first) = part.next() else { break };
            let waits = given.parts % cut.waits == cut.waits - 1;
            let mut made = None;
            let (count, kind) = if first.bytes == here {
                (here, byte())
            } else {
                self.list(first, part);
                (1, *made.insert(self.kind(library)?))
            };
            // SAFETY: the caller's promise; a type that was made leads from the first piece to all others.
            let request = unsafe { way.post(library, waits, tag, first.base, count, kind) };
            requests.push_back(request?);
            given.add(pieces, here);
            if let Some(mut kind) = made {
                library.free_type(&mut kind)?;
            }
        }
        self.lengths.shrink_to(KEPT);
        self.places.shrink_to(KEPT);
        Ok(())
    }

    fn list(&mut self, first: Piece, rest: impl Iterator<Item = Piece>) {
        self.lengths.clear();
        self.places.clear();
        for piece in std::iter::once(first).chain(rest) {
            self.lengths.push(piece.bytes as c_int);
            self.places
                .push((piece.base as ffi::MPI_Aint).wrapping_sub(first.base as ffi::MPI_Aint));
        }
    }

    /// The distance of neighbours, where all are of one length and equally far apart. MPI walks
    /// through those faster.
    fn stride(&self) -> Option<ffi::MPI_Aint> {
        let stride = *self.places.get(1)?;
        let regular = self.lengths.iter().all(|length| *length == self.lengths[0])
            && self.places.windows(2).all(|two| two[1].wrapping_sub(two[0]) == stride);
        regular.then_some(stride)
    }

    /// A type that says where the listed pieces are.
    fn kind(&self, library: &Library) -> Outcome<Datatype> {
        let count = self.lengths.len() as c_int;
        // SAFETY: the lists have `count` entries; MPI has copied them when it returns. A type that is
        // made is the caller's.
        unsafe {
            let mut kind = ffi::RSMPI_DATATYPE_NULL;
            let (code, call) = match self.stride() {
                Some(stride) => {
                    let length = self.lengths[0];
                    let code =
                        ffi::MPI_Type_create_hvector(count, length, stride, byte(), &mut kind);
                    (code, "MPI_Type_create_hvector")
                }
                None => {
                    let (lengths, places) = (self.lengths.as_ptr(), self.places.as_ptr());
                    let code =
                        ffi::MPI_Type_create_hindexed(count, lengths, places, byte(), &mut kind);
                    (code, "MPI_Type_create_hindexed")
                }
            };
            library.judge(code, call, None)?;
            library.judge(ffi::MPI_Type_commit(&mut kind), "MPI_Type_commit", None)?;
            Ok(kind)
        }
    }
}

/// Bodies that nobody wants: received, so that their senders' memory is free and no later body is
/// taken for one of them, and dropped.
#[derive(Default)]
pub(crate) struct Sinks(Vec<Sink>);

struct Sink {
    from: Rank,
    tag: c_int,
    left: usize,
    cut: Cut,
    buffer: Buffer,
    request: Request,
}

impl Sinks {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Receives a body, or says why that cannot be.
    pub(crate) fn add(
        &mut self,
        library: &Library,
        from: Rank,
        cut: Cut,
        body: Body,
    ) -> Result<(), String> {
        let Body { number, bytes } = body;
        let tag = number as c_int;
        let mut buffer = Buffer::new();
        let room = bytes.min(cut.part);
        buffer.try_reserve_exact(room).map_err(|error| {
            format!("a message of {bytes} bytes without a receive cannot be dropped: {error}")
        })?;
        // SAFETY: the buffer is kept until the request is complete.
        let request =
            unsafe { library.receive(buffer.as_mut_ptr().cast(), room, byte(), from, tag) };
        let request = request.map_err(|broken| broken.reason)?;
        self.0.push(Sink { from, tag, left: bytes - room, cut, buffer, request });
        Ok(())
    }

    /// Goes on with them.
    pub(crate) fn look(&mut self, library: &Library) -> Outcome<()> {
        let mut open = 0;
        while open < self.0.len() {
            let sink = &mut self.0[open];
            if !library.is_complete(&mut sink.request, Some(sink.from))? {
                open += 1;
                continue;
            }
            if sink.left == 0 {
                self.0.swap_remove(open);
                continue;
            }
            let room = sink.left.min(sink.cut.part);
            let base = sink.buffer.as_mut_ptr().cast();
            // SAFETY: the buffer has room for the first part, which was no shorter, and is kept until
            // the request is complete.
            sink.request = unsafe { library.receive(base, room, byte(), sink.from, sink.tag) }?;
            sink.left -= room;
        }
        Ok(())
    }

    /// Keeps their memory for ever.
    pub(crate) fn leak(&mut self) {
        self.0.drain(..).for_each(|sink| std::mem::forget(sink.buffer));
    }
}
