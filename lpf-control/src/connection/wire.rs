//! One connection: never blocks, reads frames, writes what it is given.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::ended::{CLOSED, reason};
use super::frame::{Inflow, TooLong};
use super::seal::{self, Altered, Seal};
use super::stream::Stream;
use super::tcp_info::{self, TcpInfo};

/// Read from one connection before others have their turn.
const TURN: usize = 256 << 10;

/// Handed to the socket at once.
pub(crate) const BATCH: usize = 64 << 10;

/// What reading brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// There is no more for now.
    All,
    /// There may be more.
    Some,
    /// The other side closed it, or it broke.
    Closed(String),
}

/// What a connection needs if it is sealed.
#[derive(Debug)]
struct Sealed {
    seal: Seal,
    /// What has come of a record that is not there as a whole.
    came: Vec<u8>,
    /// What a record is opened into.
    opened: Vec<u8>,
    /// Records that have not left, from `sent` on.
    records: Vec<u8>,
    sent: usize,
}

/// A connection and what is under way on it.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    inflow: Inflow,
    out: Vec<u8>,
    sent: usize,
    sealed: Option<Box<Sealed>>,
    /// Edges: what the system said and was not used up yet.
    readable: bool,
    writable: bool,
    /// Something has come since this was asked.
    heard: bool,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Words are short and somebody waits for them. Where the system refuses, they are slower.
        let _ = stream.set_nodelay(true);
        Wire {
            stream,
            inflow: Inflow::default(),
            out: Vec::new(),
            sent: 0,
            sealed: None,
            readable: true,
            writable: true,
            heard: false,
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut self.stream, token, interest)?;
        // What came before is told by no edge.
        (self.readable, self.writable) = (true, true);
        Ok(())
    }

    /// As [`register`](Self::register), where it was registered under another token.
    pub(crate) fn reregister(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.reregister(&mut self.stream, token, interest)?;
        (self.readable, self.writable) = (true, true);
        Ok(())
    }

    /// What is lost in an outage is sent again every 0.2 s for 1.4 s, and not after 0.2, 0.6, 1.4 and 3 s:
    /// beats arrive soon after an outage that is shorter than what is taken for silence.
    pub(crate) fn lives_through_outages(&self) {
        // Where the system refuses, or has no such option, a shorter outage is taken for a death.
        #[cfg(target_os = "linux")]
        {
            let _ = socket2::SockRef::from(&self.stream).set_tcp_thin_linear_timeouts(true);
            tcp_info::limit_time_out(&self.stream);
        }
    }

    /// What is sent now and gets lost, the system sends again after so long. Not known while it does.
    pub(crate) fn time_out(&self) -> Option<Duration> {
        TcpInfo::of(&self.stream).filter(|info| info.again == 0).map(|info| info.time_out)
    }

    pub(crate) fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut self.stream)
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn peer(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// From now on everything is sealed. False if something is under way that is not.
    pub(crate) fn seal(&mut self, seal: Seal) -> bool {
        let is_quiet = self.is_quiet();
        let (came, opened, records) = Default::default();
        self.sealed = Some(Box::new(Sealed { seal, came, opened, records, sent: 0 }));
        is_quiet
    }

    fn is_quiet(&self) -> bool {
        let is_sealed_quiet =
            |sealed: &Sealed| sealed.came.is_empty() && sealed.sent == sealed.records.len();
        self.inflow.is_empty()
            && self.sent == self.out.len()
            && self.sealed.as_deref().is_none_or(is_sealed_quiet)
    }

    /// The stream itself, if nothing is under way on it; with its seal, if what follows `is_sealed`, too. A stream without
    /// a seal does not pass for one that has it.
    pub(crate) fn into_stream(self, is_sealed: bool) -> Option<Stream> {
        let is_fit = self.is_quiet() && (self.sealed.is_some() || !is_sealed);
        let seal = self.sealed.filter(|_| is_sealed).map(|sealed| sealed.seal);
        is_fit.then(|| Stream::new(self.stream.into(), seal))
    }

    /// The system says that something can be read or written.
    pub(crate) fn note(&mut self, event: &mio::event::Event) {
        self.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        self.writable |= event.is_writable() || event.is_write_closed() || event.is_error();
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether anything has come; told once.
    pub(crate) fn take_heard(&mut self) -> bool {
        std::mem::take(&mut self.heard)
    }

    /// Reads what is there, up to a turn.
    pub(crate) fn fill(&mut self) -> Filled {
        let mut buffer = [0; 16 << 10];
        let mut taken = 0;
        while taken < TURN {
            match self.stream.read(&mut buffer) {
                // It stays readable: who reads on behalf of others must not keep the end to itself.
                Ok(0) => return Filled::Closed(CLOSED.into()),
                Ok(bytes) => {
                    taken += bytes;
                    let came = &buffer[..bytes];
                    match &mut self.sealed {
                        None => {
                            self.inflow.extend(came);
                            self.heard = true;
                        }
                        Some(sealed) => match sealed.open(came, &mut self.inflow) {
                            Ok(is_any) => self.heard |= is_any,
                            Err(altered) => return Filled::Closed(altered.to_string()),
                        },
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Filled::All;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Filled::Closed(reason(&error)),
            }
        }
        Filled::Some
    }

    /// The next frame that has come as a whole.
    pub(crate) fn next(&mut self, most: usize) -> Result<Option<&[u8]>, TooLong> {
        self.inflow.next(most)
    }

    /// What waits to be written, to append to; short of [`BATCH`] more may be added.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        &mut self.out
    }

    /// Writes as much as the socket takes. True when everything has left.
    pub(crate) fn flush(&mut self) -> Result<bool, String> {
        let (stream, writable) = (&self.stream, &mut self.writable);
        let Some(sealed) = &mut self.sealed else {
            return write(stream, writable, &self.out, &mut self.sent);
        };
        loop {
            let all = write(stream, writable, &sealed.records, &mut sealed.sent)?;
            if !all || self.sent == self.out.len() {
                return Ok(all);
            }
            sealed.take(&self.out[self.sent..]);
            self.sent = self.out.len();
        }
    }
}

/// Writes what is not sent yet, as much as the socket takes; whether that is all.
fn write(
    mut stream: &TcpStream,
    writable: &mut bool,
    bytes: &[u8],
    sent: &mut usize,
) -> Result<bool, String> {
    while *writable && *sent < bytes.len() {
        match stream.write(&bytes[*sent..]) {
            Ok(written) => *sent += written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => *writable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(reason(&error)),
        }
    }
    Ok(*sent == bytes.len())
}

impl Sealed {
    /// Opens what has arrived whole; whether that is anything.
    fn open(&mut self, came: &[u8], into: &mut Inflow) -> Result<bool, Altered> {
        self.came.extend_from_slice(came);
        let mut rest = &self.came[..];
        while let Some((part, later)) = rest.split_at_checked(self.seal.expected()) {
            if self.opened.len() < part.len() {
                self.opened.resize(part.len(), 0);
            }
            let bytes = self.seal.open(part, &mut self.opened)?;
            into.extend(&self.opened[..bytes]);
            rest = later;
        }
        let done = self.came.len() - rest.len();
        self.came.drain(..done);
        Ok(done > 0)
    }

    /// Makes records of bytes, where all earlier ones have left.
    fn take(&mut self, bytes: &[u8]) {
        let pieces = bytes.chunks(seal::MOST);
        self.records.resize(pieces.clone().map(|piece| seal::length(piece.len())).sum(), 0);
        let mut length = 0;
        for piece in pieces {
            let (first, rest) = piece.split_at(piece.len().min(seal::SHORT));
            length += self.seal.seal(first, rest, &mut self.records[length..]);
        }
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_sealed_is_no_stream_without_a_seal() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let wire = || Wire::new(TcpStream::connect(address).unwrap());
        let sealed = || {
            let mut wire = wire();
            assert!(wire.seal(seal::tests::pair().0));
            wire
        };
        assert!(wire().into_stream(true).is_none());
        for (stream, is_sealed) in [
            (wire().into_stream(false), false),
            (sealed().into_stream(false), false),
            (sealed().into_stream(true), true),
        ] {
            assert_eq!(stream.unwrap().is_sealed(), is_sealed);
        }
    }
}
