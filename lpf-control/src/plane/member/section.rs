//! What a process keeps of a section that it is in.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lpf_core::board::{Record, Topic};
use lpf_core::waits::Status;
use lpf_core::{Cause, Error, Pid};
use lpf_messages::Rank;

use crate::plane::questions::Questions;
use crate::plane::rules::{MOST_WRITTEN, pids_of, weight};

/// A section that this process is in.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) members: Vec<Rank>,
    /// The processes here: one, or those of a node.
    pub(crate) pids: Range<Pid>,
    pub(crate) failure: Option<Error>,
    /// Whether process 0 has been told that this process is in it.
    pub(super) told: bool,
    /// Of each process here.
    pub(super) own: Vec<Own>,
    /// Counted if the section runs.
    pub(super) supersteps: Arc<AtomicU64>,
    /// Answers of all, for a wait that is given up.
    pub(super) survey: Option<BTreeMap<Pid, Option<Status>>>,
    records: HashMap<(Pid, Topic), Record>,
    /// Bytes of each member's records.
    written: Vec<usize>,
    agreements: HashMap<Topic, Agreement>,
    agreed: usize,
}

/// What a process does, and whom it asks.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) status: Status,
    pub(super) questions: Questions,
}

/// An agreement, and the processes here that have fetched it.
#[derive(Debug)]
struct Agreement {
    bytes: Vec<u8>,
    fetched: Vec<bool>,
}

impl Section {
    /// Without processes here, it is as if process 0 were.
    pub(super) fn new(members: Vec<Rank>, rank: Rank) -> Self {
        let pids = pids_of(&members, rank);
        let pids = if pids.is_empty() { 0..1 } else { pids };
        Section {
            written: vec![0; members.len()],
            members,
            own: pids.clone().map(|_| Own::default()).collect(),
            pids,
            failure: None,
            told: false,
            supersteps: Arc::default(),
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

    /// Replaces the record of a process here; `None` if there is no room.
    pub(crate) fn write(&mut self, pid: Pid, topic: Topic, bytes: &[u8]) -> Option<Record> {
        let version = self.records.get(&(pid, topic)).map_or(0, |before| before.version) + 1;
        let record = Record { version, bytes: bytes.to_vec() };
        self.keep(pid, topic, record.clone()).then_some(record)
    }

    /// Fetches an agreement for a process here, once; and whether it was the last to do so.
    pub(crate) fn fetch(&mut self, pid: Pid, topic: Topic) -> Option<(Vec<u8>, bool)> {
        let Agreement { bytes, fetched } = self.agreements.get_mut(&topic)?;
        let fetched_it = fetched.get_mut(pid.checked_sub(self.pids.start)?)?;
        if std::mem::replace(fetched_it, true) {
            return None;
        }
        if !fetched.iter().all(|&fetched| fetched) {
            return Some((bytes.clone(), false));
        }
        self.agreed -= weight(bytes);
        self.agreements.remove(&topic).map(|agreement| (agreement.bytes, true))
    }

    pub(super) fn agree(&mut self, topic: Topic, bytes: Vec<u8>) -> bool {
        self.agreed += weight(&bytes);
        let fetched = vec![false; self.pids.len()];
        if let Some(before) = self.agreements.insert(topic, Agreement { bytes, fetched }) {
            self.agreed -= weight(&before.bytes);
        }
        self.agreed <= MOST_WRITTEN * self.members.len()
    }

    pub(super) fn has(&self, pid: Pid) -> bool {
        pid < self.members.len()
    }

    /// What a process here does.
    pub(super) fn own(&mut self, pid: Pid) -> Option<&mut Own> {
        self.own.get_mut(pid.checked_sub(self.pids.start)?)
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
                Error::fatal(self.pids.start, superstep, Cause::Died { reason })
            }
        }
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.written.iter().sum::<usize>() + self.agreed
    }
}
