//! The board: every process has all latest records, so only `agree` asks anybody.

use std::time::Duration;

use lpf_core::board::{Board, Record, Topic};
use lpf_core::{Cause, Error, Pid, Result};
use lpf_messages::{Control, SectionId, now};

use super::ControlPlane;
use super::member::Section;
use super::state::State;
use super::words::{Decision, Up, longest_record};

/// The registers of a section, as one of its processes has them.
#[derive(Clone, Debug)]
pub struct ControlBoard {
    plane: ControlPlane,
    section: SectionId,
    pid: Pid,
    processes: Pid,
}

impl ControlBoard {
    pub(super) fn new(plane: ControlPlane, section: SectionId, pid: Pid, processes: Pid) -> Self {
        ControlBoard { plane, section, pid, processes }
    }

    /// The section, if it goes on.
    fn open<'a>(&self, state: &'a mut State) -> Result<&'a mut Section> {
        let Some(known) = state.member.section(self.section) else {
            let cause = Cause::Board("the section of this board has ended".into());
            return Err(Error::fatal(self.pid, 0, cause));
        };
        match &known.failure {
            Some(report) => Err(report.clone()),
            None => Ok(known),
        }
    }

    /// Whether this process may say it.
    fn check(&self, record: &[u8]) -> Result<()> {
        self.plane.check_process(self.pid)?;
        let (bytes, most) = (record.len(), self.max_record());
        if bytes <= most {
            return Ok(());
        }
        let text = format!("a board record has {bytes} bytes; the most is {most}");
        Err(Error::misuse(self.pid, 0, Cause::Board(text)))
    }

    fn no_room(&self, record: &[u8]) -> Error {
        let cause = Cause::OutOfMemory { what: "a board record".into(), bytes: record.len() };
        Error::mitigable(self.pid, 0, cause)
    }
}

impl Board for ControlBoard {
    fn max_record(&self) -> usize {
        longest_record(self.processes)
    }

    fn now(&self) -> Duration {
        now()
    }

    fn write(&self, topic: Topic, record: &[u8]) -> Result<()> {
        self.check(record)?;
        self.plane.shared().change(|state| {
            let known = self.open(state)?;
            let record =
                known.write(self.pid, topic, record).ok_or_else(|| self.no_room(record))?;
            state.say(Up::Record { section: self.section, from: self.pid, topic, record });
            Ok(())
        })
    }

    fn read(&self, from: Pid, topic: Topic) -> Result<Option<Record>> {
        if from >= self.processes {
            let cause = Cause::NoSuchProcess { pid: from, last: self.processes.saturating_sub(1) };
            return Err(Error::misuse(self.pid, 0, cause));
        }
        self.plane.check_process(self.pid)?;
        self.plane.shared().look(|state| Ok(self.open(state)?.record(from, topic)))
    }

    fn read_all(&self, topic: Topic) -> Result<Vec<Option<Record>>> {
        self.plane.check_process(self.pid)?;
        self.plane.shared().look(|state| {
            let known = self.open(state)?;
            Ok((0..self.processes).map(|from| known.record(from, topic)).collect())
        })
    }

    fn agree(&self, topic: Topic, record: &[u8]) -> Result<bool> {
        self.check(record)?;
        let (section, bytes) = (self.section, record.to_vec());
        let shared = self.plane.shared();
        let question = shared.look(|state| state.member.wish());
        let decided = shared.wait(
            |state| {
                if self.open(state).is_ok() {
                    state.say(Up::Agree { section, topic, question, bytes });
                }
            },
            |state| match self.open(state) {
                Err(report) => Some(Err(report)),
                Ok(_) => state.member.decision(question).map(Ok),
            },
            self.plane.agreement_deadline(),
        );
        shared.look(|state| state.member.forget_wish(question));
        match decided {
            Some(Ok(Decision::First)) => Ok(true),
            Some(Ok(Decision::Later)) => Ok(false),
            Some(Ok(Decision::NoRoom)) => Err(self.no_room(record)),
            Some(Err(report)) => Err(report),
            // Whether it was closed is not known, so the section cannot go on.
            None => {
                let cause = Cause::Died { reason: "process 0 gave no answer".into() };
                Err(self.plane.declare(section, Error::fatal(self.pid, 0, cause)))
            }
        }
    }

    fn agreed(&self, topic: Topic) -> Result<Option<Vec<u8>>> {
        self.plane.check_process(self.pid)?;
        self.plane.shared().change(|state| {
            let Some((fetched, is_last)) = self.open(state)?.fetch(self.pid, topic) else {
                return Ok(None);
            };
            if is_last {
                state.say(Up::Fetched { section: self.section, topic });
            }
            Ok(Some(fetched))
        })
    }
}
