//! A sealed connection between its frames and its socket: bytes become records, and records bytes.
//!
//! # Sending
//! Bytes are sealed as soon as the socket has taken all earlier records, at most [`AT_ONCE`] records at a time. What
//! the socket does not take stays here. The memory of what is sealed is not read again.
//!
//! # Receiving
//! What the socket has is read into a buffer, and opened from there: into its place if it fits there, else into a
//! second buffer. A process that does not take more than it has asked for leaves the rest in the socket, as
//! without a seal.
//!
//! # References
//! Bytes are sealed from users' memory and opened into it through references, which copies between processes avoid: two
//! requests of a superstep may by mistake use the same bytes. Here each reference lives through one call of `seal` or
//! `open`. What is at its other end is a buffer of this connection, and all other requests are served by the same thread,
//! before or after. So nothing else reads or writes these bytes while the reference exists.
//!
//! # Memory
//! A connection begins with 10 KiB for what it sends and 18 KiB for what it receives. Once it carries long messages it
//! has five records (320 KiB) for what it sends, four (256 KiB) for what it receives, and one that is opened and not
//! taken. Each is allocated when it is needed first, and given back while the process waits, if it is empty then. If the
//! memory is refused, the connection breaks.
//!
//! On AMD's processors a copy takes 20 times as long if its target lies in its page up to 31 bytes behind the place of
//! the source in its own page. The memory of a long message begins with a page, or 16 bytes behind that. So records
//! begin half a page aside ([`ASIDE`]), and gathered bytes elsewhere.

use std::io::{self, Read, Write};

use lpf_control::connection::seal::{self, HEAD, LONGEST, MOST, SHORT, Seal};
use mio::net::TcpStream;

use super::system::unless_blocked;
use super::vectors::{Vectors, Walk, ZEROS};

/// Records that are sealed before the first of them is written.
const AT_ONCE: usize = 4;

/// Where records begin in their buffer, and what is opened in its own.
const ASIDE: usize = 2 << 10;

/// The room for what is received: at first, and once a longer record has arrived.
const ROOM: (usize, usize) = (16 << 10, 4 * LONGEST);

/// Bytes to send for which a small buffer is enough, and its parts: room for a record, and for what is gathered.
const FEW: usize = 3 << 10;
const SMALL: (usize, usize) = (4 << 10, 4 << 10);

/// The parts of a large one. The gathered bytes are in another place of their page than records and messages.
const LARGE: (usize, usize) = (AT_ONCE * LONGEST + (1 << 10), MOST);

/// A piece so long ends a record: the next one is sealed from where it is, instead of from a copy.
const LONG: usize = 8 << 10;

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// The number of bytes; 0 at the end of the stream.
    pub(super) bytes: usize,
    /// The socket is taken to be empty.
    pub(super) is_all: bool,
}

/// The seal of a connection, and what is under way.
pub(super) struct Sealed {
    seal: Seal,
    /// Records, up to `made`. The first `sent` bytes have left.
    records: Vec<u8>,
    sent: usize,
    made: usize,
    /// The most bytes that a receiver may wait for, if some were left out on their way.
    unproven: usize,
    /// What has arrived: opened up to `begin`, and to be opened up to `end`.
    came: Vec<u8>,
    begin: usize,
    end: usize,
    /// What is opened and found no room: from `taken` to `length`.
    opened: Vec<u8>,
    taken: usize,
    length: usize,
    /// Long messages have passed since the last call of [`shrink`](Self::shrink).
    is_in_use: bool,
    is_altered: bool,
}

impl Sealed {
    pub(super) fn new(seal: Seal) -> Self {
        Sealed {
            seal,
            records: Vec::new(),
            sent: 0,
            made: 0,
            unproven: 0,
            came: Vec::new(),
            begin: 0,
            end: 0,
            opened: Vec::new(),
            taken: 0,
            length: 0,
            is_in_use: false,
            is_altered: false,
        }
    }

    /// Whether anything did not open.
    pub(super) fn is_altered(&self) -> bool {
        self.is_altered
    }

    /// Whether records have not left.
    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.made
    }

    /// Whether something has arrived that can be taken though the socket is empty.
    pub(super) fn has_unread(&self) -> bool {
        self.taken < self.length || self.end - self.begin >= self.seal.expected()
    }

    /// Writes what is sealed; whether all of it has left.
    pub(super) fn flush(&mut self, mut stream: &TcpStream) -> io::Result<bool> {
        if self.has_unsent() {
            let written = unless_blocked(|| stream.write(&self.records[self.sent..self.made]))?;
            self.sent += written.unwrap_or(0);
        }
        Ok(!self.has_unsent())
    }

    /// Seals and writes as many bytes as the socket takes, and how many these are. Some of their records may
    /// remain to be [flushed](Self::flush).
    ///
    /// # Safety
    /// The pieces are valid for reads.
    pub(super) unsafe fn send(
        &mut self,
        stream: &TcpStream,
        vectors: &Vectors,
    ) -> io::Result<Option<usize>> {
        let mut from = Walk::new(vectors);
        while self.flush(stream)? && from.left() > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.make_records(&mut from)? };
        }
        let bytes = vectors.bytes() - from.left();
        Ok((bytes > 0).then_some(bytes))
    }

    /// Sends a record that holds nothing if anything was sent since the last one. If a part of that was left out on its
    /// way, the receiver waits for a head or tail that this one fills up, and that does not open.
    pub(super) fn prove(&mut self, stream: &TcpStream) -> io::Result<()> {
        if self.unproven > 0 && self.flush(stream)? {
            let zeros = &ZEROS[..self.unproven.saturating_sub(HEAD)];
            reserve(&mut self.records, ASIDE + seal::length(SHORT + zeros.len()))?;
            let made = self.seal.seal_nothing(zeros, &mut self.records[ASIDE..]);
            (self.sent, self.made, self.unproven) = (ASIDE, ASIDE + made, 0);
            self.flush(stream)?;
        }
        Ok(())
    }

    /// Gives the memory for long messages back, as far as nothing is in it, if none has passed since the last call: what
    /// is sent again and again is sent without allocating.
    pub(super) fn shrink(&mut self) {
        if std::mem::take(&mut self.is_in_use) {
            return;
        }
        if !self.has_unsent() && self.records.len() > ASIDE + SMALL.0 + SMALL.1 {
            (self.records, self.sent, self.made) = (Vec::new(), 0, 0);
        }
        if self.begin == self.end && self.came.len() > ASIDE + ROOM.0 {
            (self.came, self.begin, self.end) = (Vec::new(), 0, 0);
        }
        if self.taken == self.length && self.opened.len() > ASIDE + HEAD {
            (self.opened, self.taken, self.length) = (Vec::new(), 0, 0);
        }
    }

    /// Seals some of the pieces, where all earlier records have left.
    ///
    /// # Safety
    /// The pieces are valid for reads.
    unsafe fn make_records(&mut self, from: &mut Walk<'_>) -> io::Result<()> {
        let (room, gathered) = if from.left() <= FEW { SMALL } else { LARGE };
        self.is_in_use |= room == LARGE.0;
        reserve(&mut self.records, ASIDE + room + gathered)?;
        let (records, beyond) = self.records.split_at_mut(ASIDE + room);
        (self.sent, self.made) = (ASIDE, ASIDE);
        for _ in 0..AT_ONCE {
            let mut first = [0; SHORT];
            // SAFETY: the caller's promise; what was allocated here is behind no piece.
            let length = unsafe { from.read(&mut first) };
            if length == 0 {
                break;
            }
            let (rest, next) = (from.left().min(MOST - SHORT), from.next());
            let rest = if next.bytes >= rest.min(LONG) {
                let bytes = rest.min(next.bytes);
                from.advance(bytes);
                match bytes {
                    0 => &[],
                    // SAFETY: `bytes` bytes are next and contiguous, so `base` is not null, and they are valid for reads
                    // by the caller's promise. Nothing writes to them while the reference exists (see above).
                    _ => unsafe { std::slice::from_raw_parts(next.base, bytes) },
                }
            } else {
                // SAFETY: as above.
                let gathered = unsafe { from.read(&mut beyond[..rest]) };
                &beyond[..gathered]
            };
            let record = self.seal.seal(&first[..length], rest, &mut records[self.made..]);
            self.made += record;
            self.unproven = record.max(self.unproven.saturating_sub(record));
        }
        Ok(())
    }

    /// Reads what is there into the pieces; `None` if nothing is there.
    ///
    /// # Errors
    /// The system's, and [`Altered`](seal::Altered).
    ///
    /// # Safety
    /// The pieces are valid for writes.
    pub(super) unsafe fn receive(
        &mut self,
        stream: &TcpStream,
        vectors: &Vectors,
    ) -> io::Result<Option<Received>> {
        let mut into = Walk::new(vectors);
        let mut is_empty = false;
        loop {
            // SAFETY: the caller's promise; what was allocated here is behind no piece.
            self.taken += unsafe { into.write(&self.opened[self.taken..self.length]) };
            let bytes = vectors.bytes() - into.left();
            if into.left() == 0 {
                return Ok(Some(Received { bytes, is_all: false }));
            }
            if self.has_unread() {
                // A read into another place may go straight there, if nothing but the last piece is left of this one.
                let or_not = bytes > 0 && into.is_last();
                // SAFETY: the caller's promise.
                match unsafe { self.open(&mut into, or_not) } {
                    Ok(true) => {}
                    Ok(false) => return Ok(Some(Received { bytes, is_all: false })),
                    Err(error) => {
                        self.is_altered |= error.kind() == io::ErrorKind::InvalidData;
                        // What has arrived before is delivered. The rest does not open the next time, either.
                        let delivered = (bytes > 0).then_some(Received { bytes, is_all: false });
                        return delivered.map_or(Err(error), |before| Ok(Some(before)));
                    }
                }
            } else if is_empty {
                return Ok((bytes > 0).then_some(Received { bytes, is_all: true }));
            } else {
                match self.fill(stream)? {
                    Some(0) => return Ok(Some(Received { bytes, is_all: true })),
                    Some(_) => is_empty = self.end < self.came.len(),
                    None => is_empty = true,
                }
            }
        }
    }

    /// Opens the next head or tail. If it does not fit into what is next and `or_not`, it is left for a read into
    /// another place; whether it was opened.
    ///
    /// # Safety
    /// The pieces are valid for writes.
    unsafe fn open(&mut self, into: &mut Walk<'_>, or_not: bool) -> io::Result<bool> {
        let expected = self.seal.expected();
        self.is_in_use |= expected > HEAD;
        let part = &self.came[self.begin..self.begin + expected];
        let next = into.next();
        if next.bytes >= expected {
            // SAFETY: `expected` bytes are next and contiguous, so `base` is not null, and they are valid for writes by the
            // caller's promise. Nothing else uses them while the reference exists (see above). They may be new memory (of
            // a message without a receive): a reference needs initialised bytes, so zeros are written first.
            let place = unsafe {
                next.base.write_bytes(0, expected);
                std::slice::from_raw_parts_mut(next.base, expected)
            };
            into.advance(self.seal.open(part, place).map_err(altered)?);
        } else if or_not && expected > HEAD {
            return Ok(false);
        } else {
            reserve(&mut self.opened, ASIDE + expected)?;
            let length = self.seal.open(part, &mut self.opened[ASIDE..]).map_err(altered)?;
            (self.taken, self.length) = (ASIDE, ASIDE + length);
        }
        self.begin += expected;
        Ok(true)
    }

    /// Reads what is there; 0 bytes at the end of the stream.
    fn fill(&mut self, mut stream: &TcpStream) -> io::Result<Option<usize>> {
        let expected = self.seal.expected();
        reserve(&mut self.came, ASIDE + if expected > ROOM.0 { ROOM.1 } else { ROOM.0 })?;
        if self.begin == self.end || self.came.len() - self.begin < expected {
            self.came.copy_within(self.begin..self.end, ASIDE);
            (self.begin, self.end) = (ASIDE, ASIDE + self.end - self.begin);
        }
        let bytes = unless_blocked(|| stream.read(&mut self.came[self.end..]))?;
        self.end += bytes.unwrap_or(0);
        Ok(bytes)
    }
}

/// Makes a buffer at least so long.
fn reserve(buffer: &mut Vec<u8>, length: usize) -> io::Result<()> {
    if let Some(missing) = length.checked_sub(buffer.len())
        && missing > 0
    {
        buffer.try_reserve_exact(missing).map_err(|_| {
            io::Error::new(
                io::ErrorKind::OutOfMemory,
                format!("{length} bytes for records are refused"),
            )
        })?;
        buffer.resize(length, 0);
    }
    Ok(())
}

fn altered(altered: seal::Altered) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, altered)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use lpf_control::rendezvous::{Meeting, Secret, bind_first};
    use lpf_messages::Piece;

    use super::*;

    /// Both ends of a connection that a rendezvous has sealed.
    fn ends() -> [(Sealed, TcpStream); 2] {
        let listener = bind_first("127.0.0.1").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut listener = Some(listener);
        let joining = [0, 1].map(|rank| {
            let mut meeting = Meeting::new(&address, rank, 2);
            meeting.secret = Some(Secret::new("a secret of these tests").unwrap());
            meeting.listener = listener.take();
            thread::spawn(|| meeting.join().unwrap())
        });
        joining.map(|process| {
            let streams = process.join().unwrap().streams;
            let stream = streams.into_iter().flatten().next().unwrap();
            let (tcp, seal) = stream.into_parts();
            (Sealed::new(seal.unwrap()), TcpStream::from_std(tcp))
        })
    }

    /// Sends bytes and receives them.
    fn pass(bytes: &[u8], from: (&mut Sealed, &TcpStream), to: (&mut Sealed, &TcpStream)) {
        let mut into = vec![0; bytes.len()];
        let (mut sent, mut received) = (0, 0);
        while received < bytes.len() {
            let (mut source, mut target) = (Vectors::new(), Vectors::new());
            source.push(Piece::of(&bytes[sent..]));
            target.push(Piece::of_mut(&mut into[received..]));
            // SAFETY: both live through the calls, and are not used otherwise.
            let (out, came) =
                unsafe { (from.0.send(from.1, &source), to.0.receive(to.1, &target)) };
            sent += out.unwrap().unwrap_or(0);
            received += came.unwrap().map_or(0, |came| came.bytes);
        }
        assert!(into == bytes);
    }

    fn memory(end: &Sealed) -> usize {
        end.records.len() + end.came.len() + end.opened.len()
    }

    #[test]
    fn what_a_long_message_took_is_given_back_once_it_is_empty() {
        let [(mut one, stream), (mut other, other_stream)] = ends();
        for bytes in [1 << 20, 100, 1 << 20] {
            pass(&vec![7; bytes], (&mut one, &stream), (&mut other, &other_stream));
            let held = [&one, &other].map(memory);
            assert_eq!(held.iter().any(|&held| held > LONGEST), bytes > LONGEST, "{held:?}");
            one.shrink();
            other.shrink();
            assert_eq!([&one, &other].map(memory), held, "given back at once");
            one.shrink();
            other.shrink();
            let held = [&one, &other].map(memory);
            assert!(held.iter().all(|&held| held < LONGEST), "{held:?}");
        }
        // What has not left stays.
        let (bytes, mut vectors) = (vec![7; 16 << 20], Vectors::new());
        vectors.push(Piece::of(&bytes));
        // SAFETY: the bytes live through the call.
        while unsafe { one.send(&stream, &vectors) }.unwrap().is_some() {}
        let unsent = one.made - one.sent;
        assert!(unsent > 0);
        one.shrink();
        assert_eq!(one.made - one.sent, unsent);
    }
}
