//! The socket of a connection: bytes go in and come out, on their way sealed or as they are.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, RawFd};

use lpf_control::connection::Stream;
use mio::net::TcpStream;
use socket2::SockRef;

use super::sealed::{Received, Sealed};
use super::system;
use super::vectors::Vectors;

pub(super) struct Socket {
    stream: TcpStream,
    sealed: Option<Box<Sealed>>,
}

impl Socket {
    pub(super) fn new(stream: Stream) -> io::Result<Self> {
        let (stream, seal) = stream.into_parts();
        let sealed = seal.map(|seal| Box::new(Sealed::new(seal)));
        Ok(Socket { stream: prepare(stream)?, sealed })
    }

    /// What the system knows.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The same, to be registered for events.
    pub(super) fn stream_mut(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Whether something that was sent is not in the hands of the system yet.
    pub(super) fn has_unsent(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.has_unsent())
    }

    /// Whether something can be received of which the system does not know any more.
    pub(super) fn has_unread(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.has_unread())
    }

    /// Whether something that was received was changed on its way.
    pub(super) fn is_altered(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.is_altered())
    }

    /// Reads what is there into the pieces; 0 at the end of the stream, `None` if nothing is there.
    ///
    /// # Safety
    /// The pieces are valid for writes.
    pub(super) unsafe fn receive(&mut self, vectors: &Vectors) -> io::Result<Option<Received>> {
        if let Some(sealed) = &mut self.sealed {
            // SAFETY: the caller's promise.
            return unsafe { sealed.receive(&self.stream, vectors) };
        }
        // SAFETY: the caller's promise.
        let received = unsafe { system::receive(&self.stream, vectors)? };
        Ok(received.map(|bytes| Received { bytes, is_all: bytes < vectors.bytes() }))
    }

    /// Takes of the pieces what there is room for; `None` where there is none. If that is not all of them, or something
    /// is [unsent](Self::has_unsent), the socket is full.
    ///
    /// # Safety
    /// The pieces are valid for reads.
    pub(super) unsafe fn send(&mut self, vectors: &Vectors) -> io::Result<Option<usize>> {
        match &mut self.sealed {
            // SAFETY: the caller's promise.
            None => unsafe { system::send(&self.stream, vectors) },
            // SAFETY: the caller's promise.
            Some(sealed) => unsafe { sealed.send(&self.stream, vectors) },
        }
    }

    /// Hands what was taken to the system; whether that is all.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        match &mut self.sealed {
            None => Ok(true),
            Some(sealed) => sealed.flush(&self.stream),
        }
    }

    /// Makes the other side find out, if the connection is sealed, whether something that was sent was left out on its
    /// way.
    pub(super) fn prove(&mut self) -> io::Result<()> {
        match &mut self.sealed {
            None => Ok(()),
            Some(sealed) => sealed.prove(&self.stream),
        }
    }

    /// Gives memory back that is not in use.
    pub(super) fn shrink(&mut self) {
        if let Some(sealed) = &mut self.sealed {
            sealed.shrink();
        }
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how)
    }
}

/// A stream as it is used here.
///
/// The sizes of its buffers are left to the system, which grows them as the traffic asks for (to
/// megabytes, `tcp_rmem` and `tcp_wmem`); a size that is set stays, and was never faster here. So is the
/// control of congestion, unless it is BBR, which is made for long paths: it probes for their length with
/// more than the queues of a switch hold. Four hosts with 100 Mbit/s each exchange 1 MiB per pair in 302 ms
/// with it and in 272 with CUBIC; what the links can do is 263.
fn prepare(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let socket = SockRef::from(&stream);
    if socket.tcp_congestion().is_ok_and(|name| name.starts_with(b"bbr")) {
        // The second may be set everywhere, the first often by root alone.
        let _ = socket.set_tcp_congestion(b"cubic").or_else(|_| socket.set_tcp_congestion(b"reno"));
    }
    Ok(TcpStream::from_std(stream))
}
