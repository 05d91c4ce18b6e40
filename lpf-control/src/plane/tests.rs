//! Whole jobs without a socket: words are carried by hand.

pub(crate) mod hostile;
mod nodes;
mod stories;

use lpf_core::board::{Record, Topic};

use super::*;
use crate::connection::frame::{Inflow, encode};
use crate::plane::words::Down;

/// The processes of a job, and which connections stand.
struct Job {
    states: Vec<State>,
    changes: Vec<Arc<AtomicU64>>,
    connected: Vec<bool>,
}

const S: SectionId = SectionId(7);

impl Job {
    fn new(size: Rank) -> Self {
        let changes: Vec<Arc<AtomicU64>> = (0..size).map(|_| Arc::default()).collect();
        let state = |rank| State::new(rank, size, Beats::On, changes[rank].clone(), Instant::now());
        Job { states: (0..size).map(state).collect(), connected: vec![true; size], changes }
    }

    /// A job whose processes have all entered section `S`.
    fn in_section(size: Rank) -> Self {
        let mut job = Job::new(size);
        let members: Vec<Rank> = (0..size).collect();
        (0..size).for_each(|rank| job.enter(rank, S, &members));
        job.carry();
        job
    }

    fn at(&mut self, rank: Rank) -> &mut State {
        &mut self.states[rank]
    }

    fn say(&mut self, rank: Rank, word: Up) {
        self.at(rank).say(word);
    }

    fn enter(&mut self, rank: Rank, section: SectionId, members: &[Rank]) {
        if let Some(word) = self.at(rank).member.enter(section, members) {
            self.say(rank, word);
        }
    }

    fn leave(&mut self, rank: Rank, section: SectionId) {
        if let Some(word) = self.at(rank).member.leave(section) {
            self.say(rank, word);
        }
    }

    fn write(&mut self, rank: Rank, topic: u64, bytes: &[u8]) {
        let topic = Topic(topic);
        let known = self.at(rank).member.section(S).expect("it is in the section");
        let from = known.pids.start;
        let record = known.write(from, topic, bytes).expect("there is room");
        self.say(rank, Up::Record { section: S, from, topic, record });
    }

    fn read(&mut self, rank: Rank, from: Pid, topic: u64) -> Option<Record> {
        self.at(rank).member.section(S)?.record(from, Topic(topic))
    }

    fn failure(&mut self, rank: Rank) -> Option<String> {
        Some(self.at(rank).member.section(S)?.failure.as_ref()?.to_string())
    }

    /// Carries all words to where they go, until nobody says anything.
    fn carry(&mut self) {
        while (1..self.states.len()).any(|rank| self.carry_both_ways(rank)) {}
    }

    fn carry_both_ways(&mut self, rank: usize) -> bool {
        if !self.connected[rank] {
            return false;
        }
        let mut moved = false;
        for (from, its, to, its_own) in [(rank, 0, 0, rank), (0, rank, rank, 0)] {
            let mut bytes = Vec::new();
            self.states[from].mail.outbox(its).drain(&mut bytes, usize::MAX);
            moved |= !bytes.is_empty();
            let mut inflow = Inflow::default();
            inflow.extend(&bytes);
            while let Some(frame) = inflow.next(words::LONGEST).expect("frames are bounded") {
                self.states[to].frame(its_own, frame);
            }
        }
        let closing = self.states[0].mail.take_closing();
        for gone in closing {
            // What was queued goes ahead of the end.
            self.carry_both_ways(gone);
            self.cut(gone);
        }
        moved
    }

    /// Breaks a connection.
    fn cut(&mut self, rank: usize) {
        if std::mem::replace(&mut self.connected[rank], false) {
            self.states[0].closed(rank, "its connection was closed".into());
            self.states[rank].closed(0, "its connection was closed".into());
        }
    }
}
