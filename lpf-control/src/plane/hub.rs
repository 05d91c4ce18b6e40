//! Process 0's part: it knows who is there, decides which report of a section is the first, relays, and
//! remembers for those who enter later.

mod closing;
mod deaths;
mod section;

use std::collections::{BTreeMap, VecDeque};

use lpf_core::{Cause, Error};
use lpf_messages::{Order, Rank, SectionId};

use super::mail::Mail;
use super::rules::{Garbled, MOST_SECTIONS, fault_of, fault_of_order};
use super::words::{Decision, Down, LONGEST_ORDER, Up, is_report, longest_record};
use closing::Closing;
use section::Section;

/// Sections that nobody is in any more but some member never entered: so many are remembered.
const FADING: usize = 1024;

/// The most bytes that are kept for all sections together.
const MOST_KEPT: usize = 1 << 30;

/// Whether a process takes part in the job.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Presence {
    Here,
    /// It said goodbye, or closed its connection after the end of the job.
    Left,
    Dead(String),
}

/// Process 0's memory.
#[derive(Debug)]
pub(crate) struct Hub {
    presence: Vec<Presence>,
    /// Sections that each process is in.
    inside: Vec<usize>,
    sections: BTreeMap<SectionId, Section>,
    /// Sections that nobody is in, oldest first.
    fading: VecDeque<SectionId>,
    kept: usize,
    closing: Closing,
    finished: bool,
}

impl Hub {
    pub(crate) fn new(size: Rank) -> Self {
        Hub {
            presence: vec![Presence::Here; size],
            inside: vec![0; size],
            sections: BTreeMap::new(),
            fading: VecDeque::new(),
            kept: 0,
            closing: Closing::of(size),
            finished: false,
        }
    }

    fn size(&self) -> Rank {
        self.presence.len()
    }

    fn is_here(&self, rank: Rank) -> bool {
        self.presence[rank] == Presence::Here
    }

    /// Whether all others have left or died.
    pub(crate) fn is_alone(&self) -> bool {
        (1..self.size()).all(|rank| !self.is_here(rank))
    }

    /// Does what `from` asks for. Who says what no process says has broken the protocol, and is to be
    /// taken for dead.
    pub(crate) fn hear(&mut self, from: Rank, word: Up, mail: &mut Mail) -> Result<(), Garbled> {
        if !self.is_here(from) {
            return Ok(());
        }
        match word {
            Up::Beat(supersteps) => self.note_supersteps(from, &supersteps),
            Up::Enter { section, members } => return self.enter(from, section, members, mail),
            Up::Leave(section) => return self.leave(from, section),
            Up::Declare { section, error } => {
                let known = self.section_of(from, section)?;
                if !is_report(&error, known.members().len()) {
                    return Err("it reported a failure without a cause".into());
                }
                let error = self.by_death(section, error);
                let known = self.section_of(from, section)?;
                self.kept -= known.fail(section, error, mail);
            }
            Up::Record { section, from: pid, topic, record } => {
                let known = self.section_of(from, section)?;
                if !known.has(from, pid) {
                    return Err("it wrote for another process".into());
                }
                if record.bytes.len() > longest_record(known.members().len()) {
                    return Err(format!("it wrote a record of {} bytes", record.bytes.len()));
                }
                let (more, less) = known.write(section, pid, topic, record, mail)?;
                self.kept = self.kept + more - less;
                if self.kept > MOST_KEPT {
                    self.give_up_board(section, from, mail);
                }
            }
            Up::Agree { section, topic, question, bytes } => {
                let room = self.kept < MOST_KEPT;
                let known = self.section_of(from, section)?;
                if bytes.len() > longest_record(known.members().len()) {
                    return Err(format!("it wrote an agreement of {} bytes", bytes.len()));
                }
                let (decision, more) = match room {
                    true => known.agree(section, from, topic, bytes, mail),
                    false => (Decision::NoRoom, 0),
                };
                self.kept += more;
                mail.down(from, Down::Decided { question, decision });
            }
            Up::Fetched { section, topic } => {
                self.kept -= self.section_of(from, section)?.fetched(from, topic);
            }
            Up::Ask { section, by, of, round } => self.ask(from, section, (by, of), round, mail)?,
            Up::Answer { section, of, to, round, status } => {
                if let Some(known) = self.sections.get(&section) {
                    if !known.has(from, of) {
                        return Err("it answered for another process".into());
                    }
                    if let Some(rank) = known.inside(to) {
                        mail.down(rank, Down::Answered { section, of, to, round, status });
                    }
                }
            }
            Up::Order(order) => return self.order(from, order, mail),
            Up::Ready(can) => self.ready(from, can, mail),
            Up::Goodbye => self.goodbye(from, mail),
            Up::Verdict { reason } => {
                self.died(from, format!("it gave up process 0: {reason}"), mail)
            }
        }
        Ok(())
    }

    /// The report of a broken connection, with the death that is behind it. A process that gives up its section shuts
    /// its connections, and after a death nobody calls MPI: both look like the end of a process that is here. The dead
    /// process may have left this section before it died, so its death alone has not ended the section.
    fn by_death(&self, section: SectionId, error: Error) -> Error {
        let Some(known) = self.sections.get(&section) else { return error };
        let dead = |rank: Rank| match &self.presence[rank] {
            Presence::Dead(reason) => Some(reason),
            _ => None,
        };
        let named = error.process().and_then(|pid| known.members().get(pid));
        let is_death = matches!(error.cause(), Cause::Died { .. });
        if !is_death || named.is_some_and(|&rank| dead(rank).is_some()) {
            return error;
        }
        let mut members = known.members().iter().zip(0..);
        let found = members.find_map(|(&rank, pid)| Some((pid, dead(rank)?)));
        found.map_or(error, |(pid, reason)| {
            let cause = Cause::Died { reason: reason.clone() };
            Error::fatal(pid, known.superstep(pid), cause)
        })
    }

    /// Ends a section for which there is no memory.
    fn give_up_board(&mut self, section: SectionId, rank: Rank, mail: &mut Mail) {
        let Some(known) = self.sections.get_mut(&section) else { return };
        let Some(pid) = known.pid_of(rank) else { return };
        let cause = Cause::OutOfMemory { what: "the board, at process 0".into(), bytes: MOST_KEPT };
        let error = Error::fatal(pid, known.superstep(pid), cause);
        self.kept -= known.fail(section, error, mail);
    }

    fn section_of(&mut self, from: Rank, section: SectionId) -> Result<&mut Section, Garbled> {
        let known = self.sections.get_mut(&section).filter(|known| known.has_inside(from));
        known.ok_or_else(|| format!("it spoke of section {}, which it is not in", section.0))
    }

    fn note_supersteps(&mut self, from: Rank, supersteps: &[(SectionId, u64)]) {
        for (section, superstep) in supersteps {
            if let Some(known) = self.sections.get_mut(section) {
                known.note_superstep(from, *superstep);
            }
        }
    }

    /// The section, made if it is new.
    fn make(
        &mut self,
        from: Rank,
        section: SectionId,
        members: Vec<Rank>,
    ) -> Result<&mut Section, Garbled> {
        if let Some(fault) = fault_of(&members, from, self.size()) {
            return Err(format!("it named section {}, {fault}", section.0));
        }
        let known = self.sections.entry(section).or_insert_with(|| Section::new(&members));
        match known.members() == members {
            true => Ok(known),
            false => Err(format!("it named section {} with other members", section.0)),
        }
    }

    fn enter(
        &mut self,
        from: Rank,
        section: SectionId,
        members: Vec<Rank>,
        mail: &mut Mail,
    ) -> Result<(), Garbled> {
        if self.inside[from] >= MOST_SECTIONS {
            return Err(format!("it is in {MOST_SECTIONS} sections and entered one more"));
        }
        self.make(from, section, members)?.enter(section, from, mail)?;
        self.inside[from] += 1;
        self.mourn(section, mail);
        Ok(())
    }

    fn leave(&mut self, from: Rank, section: SectionId) -> Result<(), Garbled> {
        self.section_of(from, section)?.leave(from);
        self.inside[from] -= 1;
        self.fade(section);
        Ok(())
    }

    /// Drops a section that nobody is in: at once where nobody will be, else when others have come
    /// after it, for a member that enters late has to learn of its failure.
    fn fade(&mut self, section: SectionId) {
        let Some(known) = self.sections.get_mut(&section) else { return };
        if known.is_inhabited() {
            return;
        }
        self.kept -= known.drop_records();
        let expected: Vec<Rank> = known.expected().collect();
        if !expected.into_iter().any(|rank| self.is_here(rank)) {
            self.sections.remove(&section);
            return;
        }
        if !self.fading.contains(&section) {
            self.fading.push_back(section);
        }
        while self.fading.len() > FADING {
            let oldest = self.fading.pop_front().unwrap_or(section);
            if self.sections.get(&oldest).is_some_and(|known| !known.is_inhabited()) {
                self.sections.remove(&oldest);
            }
        }
    }

    fn ask(
        &mut self,
        from: Rank,
        section: SectionId,
        (by, of): (lpf_core::Pid, lpf_core::Pid),
        round: u64,
        mail: &mut Mail,
    ) -> Result<(), Garbled> {
        let known = self.section_of(from, section)?;
        if !known.has(from, by) {
            return Err("it asked for another process".into());
        }
        if of >= known.members().len() {
            return Err(format!("it asked for process {of}, which does not exist"));
        }
        match known.inside(of) {
            Some(rank) => mail.down(rank, Down::Asked { section, of, by, round }),
            None => mail.down(from, Down::Answered { section, of, to: by, round, status: None }),
        }
        Ok(())
    }

    fn order(&mut self, from: Rank, order: Order, mail: &mut Mail) -> Result<(), Garbled> {
        if order.bytes.len() > LONGEST_ORDER || order.members.first() != Some(&from) {
            return Err("it gave an invalid order".into());
        }
        let section = order.section;
        if let Some(fault) = fault_of_order(&order.members, from, self.size()) {
            return Err(format!("it ordered section {}, {fault}", section.0));
        }
        let is_new = !self.sections.contains_key(&section);
        let others = self.make(from, section, order.members.clone())?.members()[1..].to_vec();
        mail.down_to_all(others.into_iter(), &Down::Order(order));
        self.mourn(section, mail);
        if is_new {
            // Who gives orders and never enters must not fill the memory.
            self.fade(section);
        }
        Ok(())
    }

    /// A sign of life to everybody.
    pub(crate) fn beat(&mut self, mail: &mut Mail) {
        let others = (1..self.size()).filter(|&rank| self.is_here(rank));
        mail.down_to_all(others, &Down::Beat);
    }

    /// The job is over.
    pub(crate) fn finish(&mut self, mail: &mut Mail) {
        if !std::mem::replace(&mut self.finished, true) {
            let all = (0..self.size()).filter(|&rank| self.is_here(rank));
            mail.down_to_all(all, &Down::Finish);
        }
    }

    /// Process 0 leaves.
    pub(crate) fn farewell(&mut self, mail: &mut Mail) {
        let others = (1..self.size()).filter(|&rank| self.is_here(rank));
        mail.down_to_all(others, &Down::Farewell);
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.kept, self.sections.len())
    }
}
