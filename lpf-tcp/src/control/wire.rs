//! One connection: never blocks, reads frames, writes what it is given.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::frame::{Inflow, TooLong};

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

/// A connection and what is under way on it.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    inflow: Inflow,
    out: Vec<u8>,
    sent: usize,
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
        let _ = socket2::SockRef::from(&self.stream).set_tcp_thin_linear_timeouts(true);
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

    /// The stream itself, where nothing is under way on it.
    pub(crate) fn into_stream(self) -> Option<std::net::TcpStream> {
        let is_quiet = self.inflow.is_empty() && self.sent == self.out.len();
        is_quiet.then(|| self.stream.into())
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
                Ok(0) => return Filled::Closed("its connection was closed".into()),
                Ok(bytes) => {
                    self.inflow.extend(&buffer[..bytes]);
                    self.heard = true;
                    taken += bytes;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Filled::All;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Filled::Closed(broken(&error)),
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
        while self.writable && self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&error)),
            }
        }
        Ok(self.sent == self.out.len())
    }
}

fn broken(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => "its connection was closed".into(),
        _ => format!("its connection broke: {error}"),
    }
}
