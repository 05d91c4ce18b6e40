//! What a process keeps of a section that it is in.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lpf_core::board::{Record, Topic};
use lpf_core::waits::Status;
use lpf_core::{Cause, Error, Pid};
use lpf_messages::Rank;

use crate::plane::questions::Questions;
use crate::plane::rules::{MOST_WRITTEN, weight};

/// A section that this process is in.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) members: Vec<Rank>,
    pub(crate) pid: Pid,
    pub(crate) failure: Option<Error>,
    /// Whether process 0 has been told that this process is in it.
    pub(super) told: bool,
    pub(super) status: Status,
    /// Counted if the section runs.
    pub(super) supersteps: Arc<AtomicU64>,
    pub(super) questions: Questions,
    /// Answers of all, for a wait that is given up.
    pub(super) survey: Option<BTreeMap<Pid, Option<Status>>>,
    records: HashMap<(Pid, Topic), Record>,
    /// Bytes of each member's records.
    written: Vec<usize>,
    agreements: HashMap<Topic, Vec<u8>>,
    agreed: usize,
}

impl Section {
    pub(super) fn new(members: Vec<Rank>, pid: Pid) -> Self {
        Section {
            written: vec![0; members.len()],
            members,
            pid,
            failure: None,
            told: false,
            status: Status::default(),
            supersteps: Arc::default(),
            questions: Questions::default(),
            survey: None,
            records: HashMap::new(),
            agreements: HashMap::new(),
            agreed: 0,
        }
    }

    /// The superstep that this process is in.
    pub(super) fn superstep(&self) -> u64 {
        self.supersteps.load(Ordering::Relaxed)
    }

    pub(crate) fn processes(&self) -> Pid {
        self.members.len()
    }

    /// The latest record of a process.
    pub(crate) fn record(&self, from: Pid, topic: Topic) -> Option<Record> {
        self.records.get(&(from, topic)).cloned()
    }

    /// Keeps a record unless a newer one is there; false if there is no room.
    pub(super) fn keep(&mut self, from: Pid, topic: Topic, record: Record) -> bool {
        let before = self.records.get(&(from, topic));
        if before.is_some_and(|before| before.version >= record.version) {
            return true;
        }
        let less = before.map_or(0, |before| weight(&before.bytes));
        let written = self.written[from] + weight(&record.bytes) - less;
        if written > MOST_WRITTEN {
            return false;
        }
        self.written[from] = written;
        self.records.insert((from, topic), record);
        true
    }

    /// Replaces this process's own record; `None` if there is no room.
    pub(crate) fn write(&mut self, topic: Topic, bytes: &[u8]) -> Option<Record> {
        let version = self.records.get(&(self.pid, topic)).map_or(0, |before| before.version) + 1;
        let record = Record { version, bytes: bytes.to_vec() };
        self.keep(self.pid, topic, record.clone()).then_some(record)
    }

    /// Fetches an agreement, once.
    pub(crate) fn fetch(&mut self, topic: Topic) -> Option<Vec<u8>> {
        let bytes = self.agreements.remove(&topic)?;
        self.agreed -= weight(&bytes);
        Some(bytes)
    }

    pub(super) fn agree(&mut self, topic: Topic, bytes: Vec<u8>) -> bool {
        self.agreed += weight(&bytes);
        if let Some(before) = self.agreements.insert(topic, bytes) {
            self.agreed -= weight(&before);
        }
        self.agreed <= MOST_WRITTEN * self.members.len()
    }

    pub(super) fn has(&self, pid: Pid) -> bool {
        pid < self.members.len()
    }

    /// Its report stands, and the board has ended.
    pub(super) fn fail(&mut self, error: Error) {
        self.failure = Some(error);
        self.records = HashMap::new();
        self.agreements = HashMap::new();
        self.written.fill(0);
        self.agreed = 0;
    }

    /// The report of a section whose processes have lost the one that holds them together.
    pub(super) fn loss(&self, rank: Rank, reason: &str) -> Error {
        let superstep = self.superstep();
        match self.members.iter().position(|&member| member == rank) {
            Some(pid) => Error::fatal(pid, superstep, Cause::Died { reason: reason.into() }),
            None => {
                let reason = format!("process {rank} of the job, which held it together: {reason}");
                Error::fatal(self.pid, superstep, Cause::Died { reason })
            }
        }
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.written.iter().sum::<usize>() + self.agreed
    }
}
