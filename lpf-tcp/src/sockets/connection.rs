//! The connection to one process.
//!
//! A connection breaks once, for both directions, and after everything that came before has been
//! read: where writing fails first, what has come is still delivered.

use std::io;
use std::net::Shutdown;

use lpf_control::connection::reason;
use lpf_messages::{Broken, Outcome, Piece, Rank};

use super::doubt::Doubt;
use super::frame::Header;
use super::incoming::{Incoming, Read, Scratch};
use super::matching::Matching;
use super::outgoing::{Outgoing, Written};
use super::socket::Socket;

/// Frames up to this length are put together before they are sent: copying so little costs less
/// than the system's work on a list of two pieces.
const SHORT: usize = 4 << 10;

pub(super) struct Connection {
    peer: Rank,
    /// `None` to oneself, and where it is broken.
    pub(super) socket: Option<Socket>,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// Why nothing comes any more, and nothing goes.
    broken: Option<String>,
    /// Why nothing goes any more.
    unsendable: Option<String>,
    /// What was changed on its way. It stays open: else the other process, too, would report a connection that was
    /// closed, perhaps before this one reports the reason.
    altered: Option<Socket>,
    /// There may be something to read; it is read until the system says that nothing is there.
    pub(super) readable: bool,
    pub(super) to_the_end: bool,
    /// The socket may have room.
    pub(super) writable: bool,
    /// See [`Readiness`](super::readiness::Readiness): is it listed there, is its writing watched.
    pub(super) listed: bool,
    pub(super) watched: bool,
    pub(super) doubt: Doubt,
}

impl Connection {
    pub(super) fn new(peer: Rank, socket: Option<Socket>) -> Self {
        Connection {
            peer,
            socket,
            incoming: Incoming::new(peer),
            outgoing: Outgoing::default(),
            broken: None,
            unsendable: None,
            altered: None,
            readable: false,
            to_the_end: false,
            writable: true,
            listed: false,
            watched: false,
            doubt: Doubt::default(),
        }
    }

    fn error(&self, reason: &Option<String>) -> Outcome<()> {
        match reason {
            Some(reason) => Err(Broken { peer: Some(self.peer), reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// # Errors
    /// Where nothing comes any more.
    pub(super) fn can_receive(&self) -> Outcome<()> {
        self.error(&self.broken)
    }

    /// # Errors
    /// Where nothing goes any more.
    pub(super) fn can_send(&self) -> Outcome<()> {
        self.error(&self.broken)?;
        self.error(&self.unsendable)
    }

    /// Whether a read or write may find something to do.
    pub(super) fn has_more(&self) -> bool {
        self.socket.is_some() && (self.readable || self.writable && self.has_unsent())
    }

    /// Whether the system has not taken everything.
    pub(super) fn has_unsent(&self) -> bool {
        !self.outgoing.is_empty() || self.socket.as_ref().is_some_and(Socket::has_unsent)
    }

    /// Whether there is something to read of which the system does not know.
    pub(super) fn has_unread(&self) -> bool {
        self.readable && self.socket.as_ref().is_some_and(Socket::has_unread)
    }

    /// Reads what is there.
    pub(super) fn read(&mut self, matching: &mut Matching, scratch: &mut Scratch) {
        let Some(socket) = &mut self.socket else { return };
        match self.incoming.read(socket, self.to_the_end, matching, scratch) {
            Ok(Read::More) => self.readable = true,
            Ok(Read::Nothing) => {
                self.readable = false;
                if let Some(reason) = self.unsendable.take() {
                    self.break_off(reason, matching);
                }
            }
            Err(reason) => self.break_off(reason, matching),
        }
    }

    /// Writes what is queued, as far as there is room.
    pub(super) fn write(&mut self, matching: &mut Matching, scratch: &mut Scratch) {
        let Some(socket) = &mut self.socket else { return };
        match self.outgoing.flush(socket, &mut matching.operations, &mut scratch.vectors) {
            Ok(written) => self.writable = written != Written::Full,
            Err(error) => self.cannot_send(&error),
        }
    }

    /// Sends a message that is the caller's again on return.
    pub(super) fn send_copy(&mut self, header: Header, bytes: &[u8], scratch: &mut Scratch) {
        let header = header.encode();
        let mut out = 0;
        if let Some(socket) = &mut self.socket
            && self.outgoing.is_empty()
        {
            let Scratch { vectors, buffer } = scratch;
            vectors.clear();
            if let Some(frame) = buffer[..SHORT].get_mut(..header.len() + bytes.len()) {
                frame[..header.len()].copy_from_slice(&header);
                frame[header.len()..].copy_from_slice(bytes);
                vectors.push(Piece::of(frame));
            } else {
                let _ = vectors.push(Piece::of(&header)) && vectors.push(Piece::of(bytes));
            }
            // SAFETY: what is sent lives through the call.
            match unsafe { socket.send(vectors) } {
                Ok(sent) => out = sent.unwrap_or(0),
                Err(error) => return self.cannot_send(&error),
            }
            self.writable = out == header.len() + bytes.len() && !socket.has_unsent();
        }
        self.outgoing.copy(header.get(out..).unwrap_or_default());
        self.outgoing.copy(&bytes[out.saturating_sub(header.len())..]);
    }

    fn cannot_send(&mut self, error: &io::Error) {
        self.outgoing.abandon();
        self.unsendable = Some(reason(error));
        (self.readable, self.to_the_end) = (true, true);
    }

    /// The connection is broken from now on.
    pub(super) fn break_off(&mut self, reason: String, matching: &mut Matching) {
        self.incoming.abandon(matching);
        self.outgoing.abandon();
        self.broken.get_or_insert(reason);
        match self.socket.take() {
            Some(socket) if socket.is_altered() => self.altered = Some(socket),
            Some(socket) => {
                // So that the other side notices too; it may have closed already.
                let _ = socket.shutdown(Shutdown::Both);
            }
            None => {}
        }
    }
}
