//! The helper thread: it sleeps until something comes, something is to be sent, or a tick is due.
//!
//! The lock is held while words are understood, never while the system is called. Everything that has
//! come is heard before a tick counts who was silent.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use super::shared::Shared;
use super::state::State;
use super::words::LONGEST;
use crate::connection::wire::{BATCH, Filled, Wire};

/// The token of those who wake the helper.
pub(super) const WAKE: Token = Token(usize::MAX);

/// What the helper owns.
pub(super) struct Helper {
    shared: Arc<Shared>,
    poll: Poll,
    /// By connection; at process 0 by rank.
    wires: Vec<Option<Wire>>,
}

/// What came on a connection.
struct Came {
    connection: usize,
    closed: Option<String>,
}

/// If the helper ends by a panic, nobody may wait for it.
struct Mourner(Arc<Shared>);

impl Drop for Mourner {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let rank = self.0.rank;
            self.0.change(|state| {
                state.member.lose(rank, "its control plane panicked".into());
                state.stopped = true;
            });
        }
    }
}

impl Helper {
    pub(super) fn new(shared: Arc<Shared>, poll: Poll, wires: Vec<Option<Wire>>) -> Self {
        Helper { shared, poll, wires }
    }

    /// Serves until it is told to stop or nobody is left to be heard.
    pub(super) fn run(mut self) {
        let _mourner = Mourner(self.shared.clone());
        let mut events = Events::with_capacity(256);
        let mut broken = Vec::new();
        let mut sleeps = false;
        loop {
            self.sleep(&mut events, sleeps);
            let mut came = self.read();
            came.append(&mut broken);
            let (ends, closing) = self.hear(came);
            broken = self.write();
            for connection in closing {
                self.wires[connection] = None;
            }
            if ends {
                return;
            }
            let rest = self.wires.iter().flatten().any(Wire::is_readable);
            sleeps = broken.is_empty() && !rest && !self.has_queued();
        }
    }

    /// Until something comes, or the next tick.
    fn sleep(&mut self, events: &mut Events, sleeps: bool) {
        let due = self.shared.look(|state| state.pulse.due());
        let time = match sleeps {
            true => due.saturating_duration_since(Instant::now()),
            false => Duration::ZERO,
        };
        match self.poll.poll(events, Some(time)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => events.clear(),
            // No handle of ours is wrong; what the system is short of may come back.
            Err(_) => {
                events.clear();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        for event in events.iter() {
            if let Some(Some(wire)) = self.wires.get_mut(event.token().0) {
                wire.note(event);
            }
        }
    }

    fn read(&mut self) -> Vec<Came> {
        let wires = self.wires.iter_mut().enumerate();
        let readable = wires.filter_map(|(at, wire)| Some((at, wire.as_mut()?)));
        let readable = readable.filter(|(_, wire)| wire.is_readable());
        readable
            .map(|(connection, wire)| match wire.fill() {
                Filled::Closed(reason) => Came { connection, closed: Some(reason) },
                Filled::All | Filled::Some => Came { connection, closed: None },
            })
            .collect()
    }

    /// When a tick is due: after how long each connection's system would send again.
    fn paths(&self) -> Vec<(usize, Duration)> {
        if Instant::now() < self.shared.look(|state| state.pulse.due()) {
            return Vec::new();
        }
        let wires = self.wires.iter().enumerate();
        wires
            .filter_map(|(connection, wire)| Some((connection, wire.as_ref()?.time_out()?)))
            .collect()
    }

    /// Understands what came, does what is due, and takes what is to be sent. Returns whether the
    /// helper ends, and the connections to be closed.
    fn hear(&mut self, came: Vec<Came>) -> (bool, Vec<usize>) {
        let paths = self.paths();
        let wires = &mut self.wires;
        self.shared.change_as_helper(|state| {
            let mut closing = Vec::new();
            for Came { connection, closed } in came {
                let Some(wire) = &mut wires[connection] else { continue };
                if wire.take_heard() {
                    state.pulse.heard(connection);
                }
                hear_frames(state, connection, wire);
                if let Some(reason) = closed {
                    state.closed(connection, reason);
                    closing.push(connection);
                }
            }
            let now = Instant::now();
            if now >= state.pulse.due() {
                for (connection, time_out) in paths {
                    state.pulse.note_path(connection, time_out, now);
                }
                state.tick(now);
            }
            state.give_up_overflown();
            for (connection, wire) in wires.iter_mut().enumerate() {
                if let Some(wire) = wire {
                    state.mail.outbox(connection).drain(wire.out(), BATCH);
                }
            }
            for rank in state.mail.take_closing() {
                state.mail.outbox(rank).close();
                closing.push(rank);
            }
            let is_deaf = state.hub.is_none() && closing.contains(&0);
            (state.stopped || is_deaf, closing)
        })
    }

    /// Hands the sockets what they take; who does not take it has closed.
    fn write(&mut self) -> Vec<Came> {
        let wires = self.wires.iter_mut().enumerate();
        wires
            .filter_map(|(connection, wire)| {
                let reason = wire.as_mut()?.flush().err()?;
                Some(Came { connection, closed: Some(reason) })
            })
            .collect()
    }

    /// Whether a connection that takes more has more.
    fn has_queued(&mut self) -> bool {
        let wires = &mut self.wires;
        self.shared.look(|state| {
            let idle = wires
                .iter_mut()
                .enumerate()
                .filter_map(|(at, wire)| wire.as_mut()?.out().is_empty().then_some(at));
            idle.into_iter().any(|connection| !state.mail.outbox(connection).is_empty())
        })
    }
}

/// Understands all that came, up to the first that cannot be.
fn hear_frames(state: &mut State, connection: usize, wire: &mut Wire) {
    loop {
        match wire.next(LONGEST) {
            Ok(Some(frame)) => state.frame(connection, frame),
            Ok(None) => return,
            Err(fault) => {
                let reason = format!("it broke the protocol of the control plane: {fault}");
                return state.lost(connection, reason);
            }
        }
    }
}
