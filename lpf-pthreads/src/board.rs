//! The board in shared memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lpf_core::board::{Board, Record, Topic};
use lpf_core::{Cause, Error, Pid, Result};
use parking_lot::{Mutex, MutexGuard};

use crate::comm::Comm;
use crate::sync::now;

/// A handle to the board of a section of threads.
#[derive(Clone, Debug)]
pub struct ThreadBoard {
    comm: Arc<Comm>,
    pid: Pid,
    /// The section's number among those that use the same memory one after another.
    section: u64,
}

#[derive(Debug, Default)]
struct Registers {
    section: u64,
    latest: HashMap<(Pid, Topic), Record>,
    agreements: HashMap<Topic, Agreement>,
}

#[derive(Debug)]
struct Agreement {
    bytes: Vec<u8>,
    fetched: Vec<bool>,
}

#[derive(Debug)]
pub(crate) struct BoardState {
    processes: usize,
    registers: Mutex<Registers>,
}

impl BoardState {
    pub(crate) fn new(processes: usize) -> Self {
        BoardState { processes, registers: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Registers> {
        self.registers.lock()
    }

    pub(crate) fn clear(&self) {
        let mut registers = self.lock();
        *registers = Registers { section: registers.section + 1, ..Registers::default() };
    }
}

impl ThreadBoard {
    pub(crate) fn new(comm: Arc<Comm>, pid: Pid) -> Self {
        let section = comm.board.lock().section;
        ThreadBoard { comm, pid, section }
    }

    fn lock(&self) -> Result<MutexGuard<'_, Registers>> {
        if let Some(report) = self.comm.failure.report() {
            return Err(report);
        }
        let registers = self.comm.board.lock();
        if registers.section != self.section {
            let cause = Cause::Board("the section of this board has ended".into());
            return Err(Error::fatal(self.pid, 0, cause));
        }
        Ok(registers)
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

impl Board for ThreadBoard {
    fn max_record(&self) -> usize {
        8 * self.comm.board.processes + 64
    }

    fn is_in_one_process(&self) -> bool {
        true
    }

    fn now(&self) -> Duration {
        now()
    }

    fn write(&self, topic: Topic, record: &[u8]) -> Result<()> {
        self.check_length(record)?;
        let mut registers = self.lock()?;
        let place = registers.latest.entry((self.pid, topic));
        let latest = place.or_insert(Record { version: 0, bytes: Vec::new() });
        latest.version += 1;
        latest.bytes.clear();
        latest.bytes.extend_from_slice(record);
        Ok(())
    }

    fn read(&self, from: Pid, topic: Topic) -> Result<Option<Record>> {
        if from as usize >= self.comm.board.processes {
            let last = self.comm.board.processes as Pid - 1;
            return Err(Error::misuse(self.pid, 0, Cause::NoSuchProcess { pid: from, last }));
        }
        Ok(self.lock()?.latest.get(&(from, topic)).cloned())
    }

    fn read_all(&self, topic: Topic) -> Result<Vec<Option<Record>>> {
        let registers = self.lock()?;
        let processes = 0..self.comm.board.processes as Pid;
        Ok(processes.map(|from| registers.latest.get(&(from, topic)).cloned()).collect())
    }

    fn agree(&self, topic: Topic, record: &[u8]) -> Result<bool> {
        self.check_length(record)?;
        let fetched = vec![false; self.comm.board.processes];
        let mut registers = self.lock()?;
        let is_first = !registers.agreements.contains_key(&topic);
        if is_first {
            registers.agreements.insert(topic, Agreement { bytes: record.to_vec(), fetched });
        }
        Ok(is_first)
    }

    fn agreed(&self, topic: Topic) -> Result<Option<Vec<u8>>> {
        let mut registers = self.lock()?;
        let Some(agreement) = registers.agreements.get_mut(&topic) else {
            return Ok(None);
        };
        if std::mem::replace(&mut agreement.fetched[self.pid as usize], true) {
            return Ok(None);
        }
        if agreement.fetched.iter().all(|&fetched| fetched) {
            return Ok(registers.agreements.remove(&topic).map(|agreement| agreement.bytes));
        }
        Ok(Some(agreement.bytes.clone()))
    }
}
