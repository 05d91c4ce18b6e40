//! The board of a section whose processes are threads of one process of the system.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::{Board, Record, Topic};
use crate::Pid;
use crate::error::{Cause, Error, Result};

/// The registers of a section in memory, which an engine keeps and all handles share.
#[derive(Clone, Debug)]
pub struct Registers {
    clock: fn() -> Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the section among those that use these registers one after another.
    section: u64,
    failure: Option<Error>,
    latest: HashMap<(Pid, Topic), Record>,
    agreements: HashMap<Topic, Agreement>,
}

#[derive(Debug)]
struct Agreement {
    bytes: Vec<u8>,
    fetched: Vec<bool>,
}

impl Registers {
    /// Empty ones, with the engine's clock.
    pub fn new(clock: fn() -> Duration) -> Self {
        Registers { clock, state: Arc::default() }
    }

    /// The handle of process `pid` of `processes`.
    pub fn board(&self, pid: Pid, processes: Pid) -> MemoryBoard {
        MemoryBoard { registers: self.clone(), pid, processes, section: self.lock().section }
    }

    /// The section has failed: every call on a handle returns this report, unless there was an earlier one.
    pub fn fail(&self, report: Error) {
        self.lock().failure.get_or_insert(report);
    }

    /// Another section begins, which did not fail. The handles of the one before are of no use any more.
    pub fn begin_section(&self) {
        let state = &mut *self.lock();
        *state = State { section: state.section + 1, ..State::default() };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The board of one process, in memory that all processes of the section share.
#[derive(Clone, Debug)]
pub struct MemoryBoard {
    registers: Registers,
    pid: Pid,
    processes: Pid,
    section: u64,
}

impl MemoryBoard {
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.registers.lock();
        if state.section != self.section {
            let cause = Cause::Board("the section of this board has ended".into());
            return Err(Error::fatal(self.pid, 0, cause));
        }
        match &state.failure {
            Some(report) => Err(report.clone()),
            None => Ok(state),
        }
    }

    fn check_length(&self, record: &[u8]) -> Result<()> {
        if record.len() <= self.max_record() {
            return Ok(());
        }
        let (bytes, most) = (record.len(), self.max_record());
        let text = format!("a board record has {bytes} bytes; the most is {most}");
        Err(Error::misuse(self.pid, 0, Cause::Board(text)))
    }
}

impl Board for MemoryBoard {
    fn max_record(&self) -> usize {
        8 * self.processes + 64
    }

    fn is_in_one_process(&self) -> bool {
        true
    }

    fn now(&self) -> Duration {
        (self.registers.clock)()
    }

    fn write(&self, topic: Topic, record: &[u8]) -> Result<()> {
        self.check_length(record)?;
        let mut state = self.lock()?;
        let place = state.latest.entry((self.pid, topic));
        let latest = place.or_insert(Record { version: 0, bytes: Vec::new() });
        latest.version += 1;
        latest.bytes.clear();
        latest.bytes.extend_from_slice(record);
        Ok(())
    }

    fn read(&self, from: Pid, topic: Topic) -> Result<Option<Record>> {
        if from >= self.processes {
            let last = self.processes - 1;
            return Err(Error::misuse(self.pid, 0, Cause::NoSuchProcess { pid: from, last }));
        }
        Ok(self.lock()?.latest.get(&(from, topic)).cloned())
    }

    fn read_all(&self, topic: Topic) -> Result<Vec<Option<Record>>> {
        let state = self.lock()?;
        let processes = 0..self.processes;
        Ok(processes.map(|from| state.latest.get(&(from, topic)).cloned()).collect())
    }

    fn agree(&self, topic: Topic, record: &[u8]) -> Result<bool> {
        self.check_length(record)?;
        let fetched = vec![false; self.processes];
        let mut state = self.lock()?;
        let is_first = !state.agreements.contains_key(&topic);
        if is_first {
            state.agreements.insert(topic, Agreement { bytes: record.to_vec(), fetched });
        }
        Ok(is_first)
    }

    fn agreed(&self, topic: Topic) -> Result<Option<Vec<u8>>> {
        let mut state = self.lock()?;
        let Some(agreement) = state.agreements.get_mut(&topic) else {
            return Ok(None);
        };
        if std::mem::replace(&mut agreement.fetched[self.pid], true) {
            return Ok(None);
        }
        if agreement.fetched.iter().all(|&fetched| fetched) {
            return Ok(state.agreements.remove(&topic).map(|agreement| agreement.bytes));
        }
        Ok(Some(agreement.bytes.clone()))
    }
}
