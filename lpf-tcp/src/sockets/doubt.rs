//! Whether the host of a peer is still reached, when what is sent to it is not acknowledged.
//!
//! TCP sends again after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s. On a path that loses every tenth packet, the first four are
//! lost once in some thousand times. So silence alone proves little: after the third time the peer's host is called
//! at the same address by a new connection, twice a second. Its system answers at once, most often with a refusal, and
//! then TCP gets more time.

use std::io::{self, ErrorKind};
use std::time::Duration;

use lpf_control::connection::TcpInfo;
use mio::net::TcpStream;

/// A host is called when the system has sent so often again.
const DOUBTED: u8 = 3;

/// After so long a host is given up if it did not answer [`CALLS`] calls, and the system has sent [`AGAIN`]: what an
/// outage of 1.5 s has lost is sent again after 3 s.
const SILENT: Duration = Duration::from_millis(3500);
const CALLS: u32 = 3;
const AGAIN: u8 = 4;

/// When the system has sent so often again, a host is given up though it answers calls: a firewall between the two may
/// have forgotten the old connection, and allow new ones.
const HOPELESS: u8 = 6;

/// What one connection does about a peer that acknowledges nothing.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    call: Option<TcpStream>,
    /// Calls in a row that were not answered.
    missed: u32,
}

impl Doubt {
    /// How long nothing has been acknowledged, if that is the end of this connection. Is asked twice a second.
    pub(super) fn silence(&mut self, stream: &TcpStream) -> Option<Duration> {
        let doubtful = |info: &TcpInfo| info.is_unanswered && info.again >= DOUBTED;
        let Some(TcpInfo { silent, again, .. }) = TcpInfo::of(stream).filter(doubtful) else {
            *self = Doubt::default();
            return None;
        };
        if let Some(call) = self.call.take() {
            self.missed = if is_answered(&call) { 0 } else { self.missed + 1 };
        }
        let is_silent = silent >= SILENT && again >= AGAIN && self.missed >= CALLS;
        if is_silent || again >= HOPELESS {
            return Some(silent);
        }
        match stream.peer_addr().and_then(TcpStream::connect) {
            Ok(call) => self.call = Some(call),
            Err(error) => self.missed = if is_answer(&error) { 0 } else { self.missed + 1 },
        }
        None
    }
}

/// Whether the other side has accepted or refused.
fn is_answered(call: &TcpStream) -> bool {
    match call.take_error() {
        Ok(None) => call.peer_addr().is_ok(),
        Ok(Some(error)) | Err(error) => is_answer(&error),
    }
}

fn is_answer(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn is_answered_soon(call: &TcpStream) -> bool {
        // On one machine an answer is there when the call returns, or a moment later.
        (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            is_answered(call)
        })
    }

    #[test]
    fn to_accept_and_to_refuse_are_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(is_answered_soon(&TcpStream::connect(address).unwrap()));
        drop(listener);
        match TcpStream::connect(address) {
            Ok(call) => assert!(is_answered_soon(&call)),
            Err(error) => assert!(is_answer(&error), "{error}"),
        }
    }
}
