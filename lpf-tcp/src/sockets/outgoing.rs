//! The sending side of a connection: what the socket has not taken yet, in order.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;

use lpf_messages::Piece;
use lpf_messages::network::Slab;

use super::frame::{HEADER, given_up, has_end};
use super::matching::{Operation, Stage};
use super::socket::Socket;
use super::vectors::{Vectors, ZEROS};

/// Writes in a row to one connection, before others have their turn.
const WRITES: usize = 4;

/// Memory for copies that is kept when all of them are out.
const KEPT: usize = 1 << 20;

/// A stretch of the stream.
enum Part {
    /// So many bytes of the copies: frames of messages that were copied.
    Copied(usize),
    /// A frame whose message stays with its sender: a send's.
    Message(u32),
    /// The rest of a long message whose send was cancelled, in zeros.
    Filler(usize),
}

/// The parts that are not out.
#[derive(Default)]
pub(super) struct Outgoing {
    parts: VecDeque<Part>,
    copies: VecDeque<u8>,
    /// Bytes of its header and of its end that are out, where the first part is a message.
    headers_out: usize,
    /// Sends that are sealed, and whose records the socket has not taken. Their memory is not read any more.
    sealed: Vec<u32>,
}

/// What is left to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Nothing.
    All,
    /// Something, and the socket is full.
    Full,
    /// Something, for which the socket may have room.
    More,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.sealed.is_empty()
    }

    /// Queues bytes, the caller's again on return.
    pub(super) fn copy(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.copies.extend(bytes);
        match self.parts.back_mut() {
            Some(Part::Copied(count)) => *count += bytes.len(),
            _ => self.parts.push_back(Part::Copied(bytes.len())),
        }
    }

    /// Queues a send.
    pub(super) fn push(&mut self, send: u32) {
        self.parts.push_back(Part::Message(send));
    }

    /// Writes what the socket takes. Never waits.
    ///
    /// # Errors
    /// Where nothing can be written any more.
    pub(super) fn flush(
        &mut self,
        socket: &mut Socket,
        operations: &mut Slab<Operation>,
        vectors: &mut Vectors,
    ) -> io::Result<Written> {
        for _ in 0..WRITES {
            if !socket.flush()? {
                return Ok(Written::Full);
            }
            for send in self.sealed.drain(..) {
                operations[send].stage = Stage::Finished;
            }
            if self.parts.is_empty() {
                return Ok(Written::All);
            }
            self.gather(operations, vectors);
            // SAFETY: the memory is that of copies, of headers, of zeros, or of sends that are
            // neither finished nor cancelled: valid by the promise of who made them.
            let Some(bytes) = (unsafe { socket.send(vectors)? }) else {
                return Ok(Written::Full);
            };
            self.out(bytes, socket.has_unsent(), operations);
            if bytes < vectors.bytes() || socket.has_unsent() {
                return Ok(Written::Full);
            }
        }
        Ok(if self.parts.is_empty() { Written::All } else { Written::More })
    }

    /// The beginning of the stream, as much as one call takes.
    fn gather(&self, operations: &Slab<Operation>, vectors: &mut Vectors) {
        vectors.clear();
        let mut copied = 0;
        for (nth, part) in self.parts.iter().enumerate() {
            let all = match part {
                Part::Copied(count) => {
                    let (front, back) = self.copies.as_slices();
                    let range = copied..copied + count;
                    copied += count;
                    let (here, there) = split(range, front.len());
                    vectors.push(Piece::of(&front[here])) && vectors.push(Piece::of(&back[there]))
                }
                Part::Message(send) => {
                    let send = &operations[*send];
                    let out = if nth == 0 { self.headers_out } else { 0 };
                    vectors.push(Piece::of(send.header.get(out..).unwrap_or_default()))
                        && vectors.extend(send.pieces.rest(), send.pieces.left())
                        && vectors.push(Piece::of(end_of(send, out)))
                }
                Part::Filler(count) => {
                    let mut left = *count;
                    std::iter::from_fn(|| {
                        let bytes = left.min(ZEROS.len());
                        left -= bytes;
                        (bytes > 0).then(|| vectors.push(Piece::of(&ZEROS[..bytes])))
                    })
                    .all(|all| all)
                }
            };
            if !all {
                return;
            }
        }
    }

    /// `bytes` more bytes are out; or sealed, if the socket `is_full`.
    fn out(&mut self, mut bytes: usize, is_full: bool, operations: &mut Slab<Operation>) {
        while bytes > 0
            && let Some(part) = self.parts.front_mut()
        {
            let done = match part {
                Part::Copied(count) => {
                    let now = bytes.min(*count);
                    self.copies.drain(..now);
                    (*count, bytes) = (*count - now, bytes - now);
                    *count == 0
                }
                &mut Part::Message(place) => {
                    let send = &mut operations[place];
                    let header = bytes.min(HEADER.saturating_sub(self.headers_out));
                    self.headers_out += header;
                    let now = (bytes - header).min(send.pieces.left());
                    send.pieces.advance(now);
                    bytes -= header + now;
                    // It begins when the message is out.
                    let end = end_of(send, self.headers_out).len();
                    let ended = if send.pieces.left() == 0 { bytes.min(end) } else { 0 };
                    self.headers_out += ended;
                    bytes -= ended;
                    let is_headed = self.headers_out >= HEADER;
                    let done = is_headed && send.pieces.left() == 0 && ended == end;
                    send.stage = if done && !is_full { Stage::Finished } else { Stage::Moving };
                    if done && is_full {
                        self.sealed.push(place);
                    }
                    done
                }
                Part::Filler(count) => {
                    let now = bytes.min(*count);
                    (*count, bytes) = (*count - now, bytes - now);
                    *count == 0
                }
            };
            if done {
                self.parts.pop_front();
                self.headers_out = 0;
            }
        }
        if self.parts.is_empty() {
            self.copies.shrink_to(KEPT);
        }
    }

    /// A send is cancelled: its memory is not read any more. What is sealed leaves. If none of its frame is out, none
    /// will be; else the rest must follow, or the receiver would be out of step: a copy of it, or zeros and an end that
    /// says so.
    pub(super) fn withdraw(&mut self, send: u32, operations: &Slab<Operation>) {
        let found =
            self.parts.iter().position(|part| matches!(part, Part::Message(s) if *s == send));
        let Some(nth) = found else { return self.sealed.retain(|&place| place != send) };
        if nth > 0 || self.headers_out == 0 {
            self.parts.remove(nth);
            return;
        }
        self.parts.pop_front();
        let operation = &operations[send];
        let out = std::mem::take(&mut self.headers_out);
        let left = operation.pieces.left();
        match end_of(operation, out) {
            // The rest of an end is that of a whole message.
            end if left == 0 => self.copy_ahead(end),
            [] => {
                for Piece { base, bytes } in
                    operation.pieces.rest().collect::<Vec<_>>().into_iter().rev()
                {
                    // SAFETY: the send is not cancelled yet: its memory is valid for reads.
                    self.copy_ahead(unsafe { std::slice::from_raw_parts(base, bytes) });
                }
            }
            _ => {
                self.copy_ahead(&given_up(operation.header));
                self.parts.push_front(Part::Filler(left));
            }
        }
        self.copy_ahead(operation.header.get(out..).unwrap_or_default());
    }

    /// Queues bytes ahead of all others, the caller's again on return.
    fn copy_ahead(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.parts.push_front(Part::Copied(bytes.len()));
            bytes.iter().rev().for_each(|byte| self.copies.push_front(*byte));
        }
    }

    /// Cancels all sends.
    pub(super) fn withdraw_all(&mut self, operations: &Slab<Operation>) {
        self.sealed.clear();
        for nth in (0..self.parts.len()).rev() {
            if let Some(Part::Message(send)) = self.parts.get(nth) {
                self.withdraw(*send, operations);
            }
        }
    }

    /// The connection is broken: nothing goes out any more.
    pub(super) fn abandon(&mut self) {
        *self = Outgoing::default();
    }
}

/// The part of a send's end that is not out, of which there is none where the header says so. It is a copy
/// of the header.
fn end_of(send: &Operation, headers_out: usize) -> &[u8] {
    match has_end(&send.header) {
        true => &send.header[headers_out.saturating_sub(HEADER)..],
        false => &[],
    }
}

/// A range of two slices, one behind the other, as ranges of each; `front` is the first's length.
fn split(
    range: std::ops::Range<usize>,
    front: usize,
) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    let here = range.start.min(front)..range.end.min(front);
    (here, range.start.saturating_sub(front)..range.end.saturating_sub(front))
}
