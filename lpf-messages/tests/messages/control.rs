//! A control plane in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use lpf_core::board::{Board, Record, Topic};
use lpf_core::waits::{ASK_AFTER, Doing, Status, Suspicion};
use lpf_core::{Cause, Error, Pid, Result};
use lpf_messages::{Control, Order, Rank, SectionId};

#[derive(Default)]
struct Section {
    members: Vec<Rank>,
    failure: Option<Error>,
    statuses: HashMap<Pid, Status>,
    suspicions: HashMap<Pid, Suspicion>,
    latest: HashMap<(Pid, Topic), Record>,
    agreements: HashMap<Topic, (Vec<u8>, Vec<Pid>)>,
}

#[derive(Default)]
struct State {
    sections: HashMap<SectionId, Section>,
    orders: Vec<VecDeque<Order>>,
    failures: u64,
    finished: bool,
}

#[derive(Clone)]
pub(crate) struct MemoryControl {
    state: Arc<(Mutex<State>, Condvar)>,
    rank: Rank,
    asker: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl MemoryControl {
    pub(crate) fn new(size: usize) -> Self {
        let state = State { orders: vec![VecDeque::new(); size], ..State::default() };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let control = MemoryControl { state, rank: 0, asker: Arc::default() };
        let asker = control.clone();
        *control.asker.lock().unwrap() = Some(std::thread::spawn(move || asker.ask()));
        control
    }

    pub(crate) fn at(&self, rank: Rank) -> Self {
        MemoryControl { rank, ..self.clone() }
    }

    fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.0.lock().unwrap())
    }

    pub(crate) fn finish(&self) {
        self.with(|state| state.finished = true);
        self.state.1.notify_all();
        let asker = self.asker.lock().unwrap().take();
        asker.into_iter().for_each(|asker| asker.join().unwrap());
    }

    pub(crate) fn next_order(&self) -> Option<Order> {
        let mut state = self.state.0.lock().unwrap();
        loop {
            if let Some(order) = state.orders[self.rank].pop_front() {
                return Some(order);
            }
            if state.finished {
                return None;
            }
            state = self.state.1.wait(state).unwrap();
        }
    }

    /// What the helper threads of a real one do: asks for whoever waits.
    fn ask(&self) {
        while !self.with(|state| state.finished) {
            let state = self.state.0.lock().unwrap();
            drop(self.state.1.wait_timeout_while(state, ASK_AFTER / 2, |state| !state.finished));
            self.with(|state| {
                let mut failed = Vec::new();
                for (&id, section) in &mut state.sections {
                    for pid in 0..section.members.len() {
                        let Some(own) = section.statuses.get(&pid).cloned() else { continue };
                        if !matches!(own.doing, Doing::Waiting(_)) {
                            section.suspicions.remove(&pid);
                            continue;
                        }
                        let statuses = &section.statuses;
                        let fetch =
                            |pid: Pid| Some(statuses.get(&pid).cloned().unwrap_or_default());
                        let suspicion = section.suspicions.entry(pid).or_default();
                        if let Some(fault) = suspicion.diagnose(pid, &own, fetch) {
                            failed.push((
                                id,
                                Error::fatal(fault.process, own.superstep, fault.cause),
                            ));
                        }
                    }
                }
                for (id, error) in failed {
                    fail(state, id, error);
                }
            });
        }
    }
}

fn fail(state: &mut State, id: SectionId, error: Error) -> Error {
    state.failures += 1;
    let section = state.sections.entry(id).or_default();
    section.failure.get_or_insert(error).clone()
}

impl Control for MemoryControl {
    type Board = MemoryBoard;

    fn enter(&self, section: SectionId, members: &[Rank]) {
        self.with(|state| {
            state.sections.entry(section).or_default().members = members.to_vec();
        });
    }

    fn track(&self, _section: SectionId, _supersteps: Arc<AtomicU64>) {}

    fn leave(&self, _section: SectionId) {}

    fn failures(&self) -> u64 {
        self.with(|state| state.failures)
    }

    fn failure(&self, section: SectionId) -> Option<Error> {
        self.with(|state| state.sections.get(&section)?.failure.clone())
    }

    fn declare(&self, section: SectionId, error: Error) -> Error {
        self.with(|state| fail(state, section, error))
    }

    fn statuses(&self, section: SectionId) -> Vec<Option<Status>> {
        self.with(|state| {
            let section = state.sections.entry(section).or_default();
            let of = |pid: Pid| Some(section.statuses.get(&pid).cloned().unwrap_or_default());
            (0..section.members.len()).map(of).collect()
        })
    }

    fn publish(&self, section: SectionId, pid: Pid, status: Status) {
        self.with(|state| {
            state.sections.entry(section).or_default().statuses.insert(pid, status);
        });
    }

    fn board(&self, section: SectionId, pid: Pid, processes: Pid) -> MemoryBoard {
        MemoryBoard { control: self.clone(), section, pid, processes }
    }

    fn order(&self, order: Order) -> Result<()> {
        self.with(|state| {
            for &member in &order.members[1..] {
                state.orders[member].push_back(order.clone());
            }
        });
        self.state.1.notify_all();
        Ok(())
    }

    /// The network in memory closes by itself.
    fn close_together(&self, can: bool) -> bool {
        can
    }

    fn stays_open(&self) -> bool {
        false
    }
}

#[derive(Clone)]
pub(crate) struct MemoryBoard {
    control: MemoryControl,
    section: SectionId,
    pid: Pid,
    processes: Pid,
}

impl MemoryBoard {
    fn with<R>(&self, f: impl FnOnce(&mut Section) -> R) -> Result<R> {
        self.control.with(|state| {
            let section = state.sections.entry(self.section).or_default();
            match &section.failure {
                Some(error) => Err(error.clone()),
                None => Ok(f(section)),
            }
        })
    }

    fn check(&self, record: &[u8]) -> Result<()> {
        if record.len() <= self.max_record() {
            return Ok(());
        }
        let cause = Cause::Board("a record that is too long".into());
        Err(Error::misuse(self.pid, 0, cause))
    }
}

impl Board for MemoryBoard {
    fn max_record(&self) -> usize {
        8 * self.processes + 64
    }

    fn now(&self) -> Duration {
        lpf_messages::now()
    }

    fn write(&self, topic: Topic, record: &[u8]) -> Result<()> {
        self.check(record)?;
        self.with(|section| {
            let none = Record { version: 0, bytes: Vec::new() };
            let latest = section.latest.entry((self.pid, topic)).or_insert(none);
            *latest = Record { version: latest.version + 1, bytes: record.to_vec() };
        })
    }

    fn read(&self, from: Pid, topic: Topic) -> Result<Option<Record>> {
        if from >= self.processes {
            let cause = Cause::NoSuchProcess { pid: from, last: self.processes - 1 };
            return Err(Error::misuse(self.pid, 0, cause));
        }
        self.with(|section| section.latest.get(&(from, topic)).cloned())
    }

    fn read_all(&self, topic: Topic) -> Result<Vec<Option<Record>>> {
        (0..self.processes).map(|from| self.read(from, topic)).collect()
    }

    fn agree(&self, topic: Topic, record: &[u8]) -> Result<bool> {
        self.check(record)?;
        self.with(|section| {
            let is_first = !section.agreements.contains_key(&topic);
            section.agreements.entry(topic).or_insert_with(|| (record.to_vec(), Vec::new()));
            is_first
        })
    }

    fn agreed(&self, topic: Topic) -> Result<Option<Vec<u8>>> {
        self.with(|section| {
            let (bytes, fetched) = section.agreements.get_mut(&topic)?;
            if fetched.contains(&self.pid) {
                return None;
            }
            fetched.push(self.pid);
            Some(bytes.clone())
        })
    }
}
