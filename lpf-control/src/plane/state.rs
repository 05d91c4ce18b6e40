//! All that one process remembers and decides, without a socket: words go in, words come out.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use lpf_messages::Rank;

use super::hub::Hub;
use super::mail::Mail;
use super::member::Member;
use super::pulse::{Beats, Pulse, SILENCE};
use super::words::{Down, Up};
use crate::connection::frame::decode;

/// One process's memory: a member's, and at process 0 the hub's too.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) member: Member,
    pub(crate) hub: Option<Hub>,
    pub(crate) mail: Mail,
    pub(crate) pulse: Pulse,
    /// It has left, or the handles to it are gone: the helper ends.
    pub(crate) stopped: bool,
}

impl State {
    pub(crate) fn new(
        rank: Rank,
        size: Rank,
        beats: Beats,
        changes: Arc<AtomicU64>,
        now: Instant,
    ) -> Self {
        let connections = if rank == 0 { size } else { 1 };
        let mut pulse = Pulse::new(beats, connections, now);
        if rank == 0 {
            pulse.forget(0);
        }
        State {
            member: Member::new(rank, size, changes),
            hub: (rank == 0).then(|| Hub::new(size)),
            mail: Mail::new(connections),
            pulse,
            stopped: false,
        }
    }

    /// Tells process 0.
    pub(crate) fn say(&mut self, word: Up) {
        let mut says = vec![word];
        while !says.is_empty() {
            for word in std::mem::take(&mut says) {
                match &mut self.hub {
                    None => self.mail.up(&word),
                    Some(hub) => {
                        if let Err(fault) = hub.hear(0, word, &mut self.mail) {
                            hub.died(0, fault, &mut self.mail);
                        }
                    }
                }
            }
            self.deliver(&mut says);
        }
    }

    /// Takes what process 0 said to itself.
    fn deliver(&mut self, says: &mut Vec<Up>) {
        while let Some(word) = self.mail.take_local() {
            let heard = self.member.hear(word, says);
            debug_assert_eq!(heard, Ok(()), "process 0 understands itself");
        }
    }

    /// At process 0: takes what it has said to itself.
    pub(crate) fn settle(&mut self) {
        let mut says = Vec::new();
        self.deliver(&mut says);
        self.say_all(says);
    }

    fn say_all(&mut self, says: Vec<Up>) {
        for word in says {
            self.say(word);
        }
    }

    /// A frame came on a connection.
    pub(crate) fn frame(&mut self, connection: usize, frame: &[u8]) {
        if let Err(fault) = self.understand(connection, frame) {
            self.lost(connection, format!("it broke the protocol of the control plane: {fault}"));
        }
    }

    fn understand(&mut self, connection: usize, frame: &[u8]) -> Result<(), String> {
        let unreadable = || "a word that there is not".to_owned();
        let mut says = Vec::new();
        match &mut self.hub {
            Some(hub) => {
                let word: Up = decode(frame).ok_or_else(unreadable)?;
                hub.hear(connection, word, &mut self.mail)?;
                self.deliver(&mut says);
            }
            None => {
                let word: Down = decode(frame).ok_or_else(unreadable)?;
                self.member.hear(word, &mut says)?;
            }
        }
        self.say_all(says);
        Ok(())
    }

    /// A connection was closed or broke by itself.
    pub(crate) fn closed(&mut self, connection: usize, reason: String) {
        self.pulse.forget(connection);
        self.note_own();
        match &mut self.hub {
            Some(hub) => {
                hub.closed(connection, reason, &mut self.mail);
                self.mail.outbox(connection).close();
                self.settle();
            }
            None => {
                self.mail.outbox(0).close();
                match self.member.leaving || self.member.is_finished() {
                    true => self.member.part(),
                    false => self.member.lose(0, reason),
                }
            }
        }
    }

    /// At process 0: how far it is itself, which tells how far others were better than their last beat.
    fn note_own(&mut self) {
        if self.hub.is_some() {
            self.say(self.member.beat());
        }
    }

    /// This process gives up a connection.
    pub(crate) fn lost(&mut self, connection: usize, reason: String) {
        self.pulse.forget(connection);
        self.note_own();
        match &mut self.hub {
            Some(hub) => {
                hub.died(connection, reason, &mut self.mail);
                self.settle();
            }
            None => {
                self.mail.up(&Up::Verdict { reason: reason.clone() });
                self.mail.close(0);
                self.member.lose(0, reason);
            }
        }
    }

    /// What is due when a tick or a hurried beat is.
    pub(crate) fn tick(&mut self, now: Instant) {
        for peer in self.pulse.hurried(now) {
            match self.hub {
                Some(_) => self.mail.down(peer, Down::Beat),
                None => self.beat(),
            }
        }
        for silent in self.pulse.tick(now) {
            let time = SILENCE.as_secs_f64();
            self.lost(silent, format!("it gave no sign of life for {time} s"));
        }
        if self.pulse.beats() {
            self.beat();
        }
        let mut says = Vec::new();
        self.member.tick(now, &mut says);
        self.say_all(says);
    }

    fn beat(&mut self) {
        let word = self.member.beat();
        self.say(word);
        if let Some(hub) = &mut self.hub {
            hub.beat(&mut self.mail);
        }
    }

    /// Gives up connections that take nothing.
    pub(crate) fn give_up_overflown(&mut self) {
        for connection in self.mail.take_overflown() {
            self.lost(connection, "it does not take what it is sent".into());
        }
    }
}
