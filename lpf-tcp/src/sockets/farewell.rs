//! The end of a network: what was copied still leaves.
//!
//! A message that was copied has been sent, as far as its sender can tell, and who has sent its
//! last one may go. So what the sockets have not taken yet, and what was not acknowledged, is given a second. What has
//! come is read and thrown away: a socket that is closed with unread bytes resets the connection, and loses what
//! it has not sent yet. Sends that are not finished are cancelled.

use std::io::Read;
use std::net::Shutdown;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use lpf_control::connection::TcpInfo;
use mio::net::TcpStream;

use super::network::Network;
use super::system;

/// How long the last messages have to leave.
const LINGER: Duration = Duration::from_secs(1);

/// From one look at what is acknowledged to the next.
const STEP: Duration = Duration::from_millis(1);

/// What is read and thrown away at most, in buffers: more than a socket holds.
const BUFFERS: usize = 1 << 12;

impl Drop for Network {
    fn drop(&mut self) {
        if !self.maker.is_here() {
            // A child that was forked closes its copies of the descriptors, and says nothing on them.
            return;
        }
        for connection in &mut self.connections {
            connection.outgoing.withdraw_all(&self.matching.operations);
        }
        let end = Instant::now() + LINGER;
        while let Some(descriptor) = self.flush()
            && Instant::now() < end
        {
            system::wait(Some(descriptor), true, end.saturating_duration_since(Instant::now()));
        }
        while self.is_unanswered() && Instant::now() < end {
            std::thread::sleep(STEP);
        }
        for connection in &self.connections {
            if let Some(socket) = &connection.socket {
                // It may be closed already.
                let _ = socket.shutdown(Shutdown::Write);
                throw_away(socket.stream(), &mut self.scratch.buffer);
            }
        }
    }
}

impl Network {
    /// Writes what is queued; a socket that has not taken all, if there is one.
    fn flush(&mut self) -> Option<RawFd> {
        let mut full = None;
        for connection in &mut self.connections {
            if connection.has_unsent() {
                connection.write(&mut self.matching, &mut self.scratch);
            }
            if let Some(socket) = &connection.socket
                && connection.has_unsent()
            {
                // The other side may not read before it has written.
                throw_away(socket.stream(), &mut self.scratch.buffer);
                full = Some(socket.descriptor());
            }
        }
        full
    }

    /// Whether something that was sent may have been lost. What comes to a closed socket resets the connection, and what
    /// was lost is not sent again then.
    fn is_unanswered(&mut self) -> bool {
        let mut sockets = self.connections.iter().filter_map(|one| one.socket.as_ref());
        sockets.any(|socket| {
            throw_away(socket.stream(), &mut self.scratch.buffer);
            TcpInfo::of(socket.stream()).is_some_and(|info| info.is_unanswered)
        })
    }
}

/// Reads what is there, or notices the end, which is of no interest any more.
fn throw_away(mut stream: &TcpStream, buffer: &mut [u8]) {
    for _ in 0..BUFFERS {
        if !matches!(stream.read(buffer), Ok(1..)) {
            return;
        }
    }
}
