//! Which of many connections have something to do, in one system call.
//!
//! Of the well-kept libraries this is mio and not polling, because a look is one call in mio
//! (`epoll_wait`), and five in polling 3 (a timer set and watched, the wait, a notification cleared
//! and watched again). The price is that mio tells of changes only, never that something is still
//! to be read: so what was told and not dealt with is listed here.
//!
//! Writing is watched only while something waits to be written. A change that is told twice costs
//! one read or write that finds nothing.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};

use super::connection::Connection;
use super::incoming::Scratch;
use super::matching::Matching;

/// Changes told at once; the others are told the next time.
const EVENTS: usize = 256;

pub(super) struct Readiness {
    poll: Poll,
    events: Events,
    /// The connections that may have something to do.
    listed: Vec<usize>,
}

impl Readiness {
    pub(super) fn new(connections: &mut [Connection]) -> io::Result<Self> {
        let poll = Poll::new()?;
        for (number, connection) in connections.iter_mut().enumerate() {
            if let Some(socket) = &mut connection.socket {
                poll.registry().register(socket.stream_mut(), Token(number), Interest::READABLE)?;
            }
        }
        let listed = Vec::with_capacity(connections.len());
        Ok(Readiness { poll, events: Events::with_capacity(EVENTS), listed })
    }

    /// Reads and writes what has become readable and writable.
    pub(super) fn progress(
        &mut self,
        connections: &mut [Connection],
        matching: &mut Matching,
        scratch: &mut Scratch,
    ) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(Duration::ZERO)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &self.events {
            let Some(connection) = connections.get_mut(event.token().0) else { continue };
            let ends = event.is_read_closed() || event.is_write_closed() || event.is_error();
            connection.readable |= event.is_readable() || ends;
            connection.writable |= event.is_writable();
            // The end is told once: a read that brings the last bytes must not pass for the last.
            connection.to_the_end |= ends;
            list(&mut self.listed, event.token().0, connection);
        }
        let mut nth = 0;
        while let Some(&number) = self.listed.get(nth) {
            let connection = &mut connections[number];
            if connection.readable {
                connection.read(matching, scratch);
            }
            if connection.writable {
                connection.write(matching, scratch);
            }
            watch(&self.poll, number, connection)?;
            connection.listed = connection.has_more();
            if connection.listed {
                nth += 1;
            } else {
                self.listed.swap_remove(nth);
            }
        }
        Ok(())
    }

    /// Something was written to a connection, or could not be.
    pub(super) fn wrote(&mut self, number: usize, connection: &mut Connection) -> io::Result<()> {
        if connection.has_more() {
            list(&mut self.listed, number, connection);
        }
        watch(&self.poll, number, connection)
    }

    /// A descriptor that is readable when there may be something to do; `None` where there is now.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.listed.is_empty().then(|| self.poll.as_raw_fd())
    }
}

fn list(listed: &mut Vec<usize>, number: usize, connection: &mut Connection) {
    if !std::mem::replace(&mut connection.listed, true) {
        listed.push(number);
    }
}

/// Watches writing exactly while something is to be written.
fn watch(poll: &Poll, number: usize, connection: &mut Connection) -> io::Result<()> {
    let wanted = connection.has_unsent();
    if wanted == connection.watched {
        return Ok(());
    }
    connection.watched = wanted;
    let Some(socket) = &mut connection.socket else { return Ok(()) };
    let interest =
        if wanted { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
    poll.registry().reregister(socket.stream_mut(), Token(number), interest)
}
