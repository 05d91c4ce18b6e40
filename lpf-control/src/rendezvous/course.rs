//! What the course of process 0 and those of the others have in common: what they begin with, what they end with, and
//! how they wait.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};

use super::address::Names;
use super::error::MeetError;
use super::handshake::Identity;
use super::patience::Patience;
use super::words::Begin;
use crate::connection::wire::Wire;

/// The token of the threads that look names up.
const NAMES: Token = Token(usize::MAX);

/// What a course needs to know.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) me: Identity,
    pub(super) address: String,
    pub(super) began: Instant,
    pub(super) time: Duration,
    pub(super) begin: Begin,
}

impl Plan {
    pub(super) fn patience(&self) -> Patience {
        Patience::new(self.began, self.time, self.me.size)
    }
}

/// What a course ends with: connections of the control plane, and those for data.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) wires: Vec<Option<Wire>>,
    pub(super) streams: Vec<Option<Wire>>,
    pub(super) begin: Begin,
}

/// Looks up what an address stands for; each answer wakes `poll`.
pub(super) fn names(address: &str, poll: &Poll) -> Result<Names, MeetError> {
    let waker = Waker::new(poll.registry(), NAMES).map_err(MeetError::system)?;
    Names::new(address, &Arc::new(waker))
}

/// Sleeps until something comes.
pub(super) fn sleep(poll: &mut Poll, events: &mut Events, until: Instant) -> Result<(), MeetError> {
    let time = until.saturating_duration_since(Instant::now());
    match poll.poll(events, Some(time)) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::Interrupted => {
            events.clear();
            Ok(())
        }
        Err(error) => Err(MeetError::system(error)),
    }
}

/// A connection, if it is there and stands.
pub(super) fn taken(stream: &Option<Wire>) -> Option<&Wire> {
    stream.as_ref().filter(|wire| match wire.stream().peek(&mut [0]) {
        Ok(bytes) => bytes > 0,
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    })
}
