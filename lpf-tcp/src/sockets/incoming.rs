//! The receiving side of a connection: from a stream of bytes to messages in their places.
//!
//! One read takes the rest of the message that is under way straight into its place, and whatever
//! follows into a buffer that all connections share. What is in the buffer is dealt with at once:
//! short messages are copied out, and of a long one that begins there only the beginning is. So a
//! connection keeps nothing but a piece of a header.

use lpf_control::connection::{CLOSED, reason};
use lpf_messages::{Piece, Rank, Tag};

use super::frame::{HEADER, Header, Kind, NO_TAG, no_frame};
use super::matching::{Matching, Place, Stage};
use super::sealed::Received;
use super::socket::Socket;
use super::vectors::Vectors;

/// Length of the shared buffer. Longer ones save reads where many short messages come together, and
/// copy more of every long message; at this length both are small beside the system call.
pub(super) const BUFFER: usize = 16 << 10;

/// Reads in a row from one connection, before others have their turn.
const READS: usize = 8;

/// How far the stream has been read.
pub(super) struct Incoming {
    from: Rank,
    place: Place,
    /// The tag of the frame under way, and the bytes of its message that have not come.
    tag: Tag,
    left: usize,
    /// Whether the message under way has an end; and where it is, once only the end has not come.
    has_end: bool,
    ending: Option<Place>,
    /// The part of a header that has come.
    header: [u8; HEADER],
    have: usize,
}

/// What is left to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Nothing at this moment.
    Nothing,
    /// Perhaps more.
    More,
}

/// What reading needs beside the connection. Empty between two calls.
pub(super) struct Scratch {
    pub(super) buffer: Box<[u8]>,
    pub(super) vectors: Vectors,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Scratch { buffer: vec![0; BUFFER].into(), vectors: Vectors::new() }
    }
}

impl Incoming {
    pub(super) fn new(from: Rank) -> Self {
        let header = [0; HEADER];
        Incoming {
            from,
            place: Place::Header,
            tag: NO_TAG,
            left: 0,
            has_end: false,
            ending: None,
            header,
            have: 0,
        }
    }

    /// Reads what is there. With `to_the_end` it goes on until the system says that nothing is;
    /// else a read that brought less than it had room for is taken to have emptied the socket.
    ///
    /// # Errors
    /// Why nothing more can come.
    pub(super) fn read(
        &mut self,
        socket: &mut Socket,
        to_the_end: bool,
        matching: &mut Matching,
        scratch: &mut Scratch,
    ) -> Result<Read, String> {
        for _ in 0..READS {
            if self.is_held_back(matching) {
                return Ok(Read::Nothing);
            }
            let straight = self.aim(matching, scratch);
            // SAFETY: the memory is the buffer's, a waiting message's, or that of a receive that is
            // neither finished nor cancelled (`give_up` is called where it is): valid by the promise
            // of who posted it.
            let received = unsafe { socket.receive(&scratch.vectors) };
            let Received { bytes, is_all } = match received {
                Ok(None) => return Ok(Read::Nothing),
                Ok(Some(Received { bytes: 0, .. })) => return Err(self.ended()),
                Ok(Some(received)) => received,
                Err(error) => return Err(reason(&error)),
            };
            self.landed(bytes.min(straight), matching);
            self.take(&scratch.buffer[..bytes.saturating_sub(straight)], matching)?;
            if is_all && !to_the_end {
                return Ok(Read::Nothing);
            }
        }
        Ok(Read::More)
    }

    /// Whether a message has begun for which there is neither a receive nor more room: it and all behind
    /// it stay where they are until its receive is posted.
    fn is_held_back(&self, matching: &Matching) -> bool {
        match self.place {
            Place::Message(message) => matching.kept[message].room() == 0,
            _ => false,
        }
    }

    /// Says where the next bytes are to be read: first, straight, the rest of the message under
    /// way, so many bytes; then the buffer.
    fn aim(&self, matching: &mut Matching, scratch: &mut Scratch) -> usize {
        let vectors = &mut scratch.vectors;
        vectors.clear();
        match self.place {
            Place::Receive(receive) => {
                vectors.extend(matching.operations[receive].pieces.rest(), self.left);
            }
            Place::Message(message) => {
                let bytes = matching.kept[message].room().min(self.left);
                let arrived = &mut matching.kept[message].arrived;
                let end = arrived.spare_capacity_mut().as_mut_ptr().cast();
                vectors.push(Piece { base: end, bytes });
                if bytes < self.left {
                    // What follows is of this message too.
                    return bytes;
                }
            }
            Place::Header | Place::Nowhere => {}
        }
        let straight = vectors.bytes();
        vectors.push(Piece::of_mut(&mut scratch.buffer));
        straight
    }

    /// So many bytes of the message under way are in their place.
    fn landed(&mut self, bytes: usize, matching: &mut Matching) {
        match self.place {
            Place::Receive(receive) => matching.operations[receive].pieces.advance(bytes),
            Place::Message(message) => {
                let arrived = &mut matching.kept[message].arrived;
                // SAFETY: so many bytes behind its end have been read into its spare capacity.
                unsafe { arrived.set_len(arrived.len() + bytes) };
            }
            Place::Header | Place::Nowhere => return,
        }
        self.left -= bytes;
        self.pass_on_if_done(matching);
    }

    /// Deals with bytes of the stream.
    ///
    /// # Errors
    /// Why they are the end of the connection.
    pub(super) fn take(&mut self, mut bytes: &[u8], matching: &mut Matching) -> Result<(), String> {
        while !bytes.is_empty() {
            if self.place == Place::Header {
                bytes = self.take_header(bytes, matching)?;
                continue;
            }
            let (now, later) = bytes.split_at(self.left.min(bytes.len()));
            match self.place {
                Place::Receive(receive) => {
                    // SAFETY: the receive is neither finished nor cancelled: its memory is valid by
                    // the promise of who posted it.
                    unsafe { matching.operations[receive].pieces.write(now) };
                }
                Place::Message(message) => {
                    matching.kept[message].arrived.extend_from_slice(now);
                }
                Place::Header | Place::Nowhere => {}
            }
            self.left -= now.len();
            self.pass_on_if_done(matching);
            bytes = later;
        }
        Ok(())
    }

    /// Takes a header, or the part of it that is there, and returns what follows.
    fn take_header<'b>(
        &mut self,
        bytes: &'b [u8],
        matching: &mut Matching,
    ) -> Result<&'b [u8], String> {
        let (now, later) = bytes.split_at((HEADER - self.have).min(bytes.len()));
        self.header[self.have..self.have + now.len()].copy_from_slice(now);
        self.have += now.len();
        if self.have == HEADER {
            self.have = 0;
            self.take_whole_header(matching)?;
        }
        Ok(later)
    }

    fn take_whole_header(&mut self, matching: &mut Matching) -> Result<(), String> {
        let not_understood = |reason| {
            let from = self.from;
            Err(format!("what process {from} sends is not understood: {reason}"))
        };
        let header = match Header::decode(self.header) {
            Ok(header) => header,
            Err(reason) => return not_understood(reason),
        };
        match (self.ending.take(), header.kind) {
            (Some(place), Kind::Ended) => finish(place, matching),
            // Its receive is never finished. Its sender has given up the context, and soon all will.
            (Some(Place::Message(message)), Kind::GivenUp) => {
                matching.discard(self.from, self.tag, message);
            }
            (Some(_), Kind::GivenUp) => {}
            (None, Kind::Plain | Kind::Ended) => {
                self.place = matching.arrival(self.from, header)?;
                (self.tag, self.left) = (header.tag, header.bytes);
                self.has_end = header.kind == Kind::Ended;
                self.pass_on_if_done(matching);
            }
            (Some(_), Kind::Plain) | (None, Kind::GivenUp) => {
                return not_understood(no_frame(self.header));
            }
        }
        Ok(())
    }

    /// What follows the last byte of a message.
    fn pass_on_if_done(&mut self, matching: &mut Matching) {
        if self.left == 0 {
            let place = std::mem::replace(&mut self.place, Place::Header);
            match self.has_end {
                true => self.ending = Some(place),
                false => finish(place, matching),
            }
        }
    }

    /// A receive has met a message that waits, or that is just arriving: the rest of that one goes
    /// straight to the receive.
    pub(super) fn met(&mut self, message: u32, receive: u32) -> bool {
        let under_way = self.under_way();
        let arriving = *under_way == Place::Message(message);
        if arriving {
            *under_way = Place::Receive(receive);
        }
        arriving
    }

    /// The place of the message that is not complete.
    fn under_way(&mut self) -> &mut Place {
        self.ending.as_mut().unwrap_or(&mut self.place)
    }

    /// A receive is cancelled: its memory is not touched any more.
    pub(super) fn give_up(&mut self, receive: u32) {
        let under_way = self.under_way();
        if *under_way == Place::Receive(receive) {
            *under_way = Place::Nowhere;
        }
    }

    /// A context is forgotten: of a message that is arriving the rest goes nowhere. Whether there is one.
    pub(super) fn forget(&mut self, context: u32, matching: &mut Matching) -> bool {
        self.tag.context == context && self.drop_half(matching)
    }

    /// The connection is broken: a message that is not complete never will be.
    pub(super) fn abandon(&mut self, matching: &mut Matching) {
        self.drop_half(matching);
        self.place = Place::Nowhere;
    }

    fn drop_half(&mut self, matching: &mut Matching) -> bool {
        let Place::Message(message) = *self.under_way() else { return false };
        *self.under_way() = Place::Nowhere;
        matching.discard(self.from, self.tag, message);
        true
    }

    /// The end of the stream, in words.
    fn ended(&self) -> String {
        match self.place {
            Place::Header if self.ending.is_some() => {
                format!("{CLOSED} before the end of a message")
            }
            Place::Header if self.have == 0 => CLOSED.into(),
            Place::Header => format!("{CLOSED} within a header"),
            _ => format!("{CLOSED} {} bytes before the end of a message", self.left),
        }
    }
}

/// A message is complete: a receive's is there, one that waits goes on to do so.
fn finish(place: Place, matching: &mut Matching) {
    if let Place::Receive(receive) = place {
        matching.operations[receive].stage = Stage::Finished;
    }
}
