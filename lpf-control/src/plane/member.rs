//! Every process's part: what it is told, and what it answers.

mod section;

use section::Own;
pub(crate) use section::Section;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lpf_core::waits::Status;
use lpf_core::{Cause, Error, Pid};
use lpf_messages::{Order, Rank, SectionId};

use super::questions::{Next, is_readable};
use super::rules::{Garbled, MOST_SECTIONS, fault_of};
use super::words::{
    Decision, Down, LONGEST_ORDER, Up, is_report, longest_record, reportable, tellable,
};

/// Orders that wait to be served, and their bytes.
pub(crate) const MOST_ORDERS: usize = 1024;
const MOST_ORDERED: usize = 64 << 20;

/// Why no order comes any more.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Process 0 said that the job is over.
    Finished,
    /// Process 0, or this process in its eyes, is gone.
    Gone(Error),
}

impl End {
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, End::Gone(_))
    }
}

/// The round of questions that belong to no round of a wait.
const SURVEY: u64 = 0;

/// One process's memory.
#[derive(Debug)]
pub(crate) struct Member {
    rank: Rank,
    size: Rank,
    sections: BTreeMap<SectionId, Section>,
    dead: BTreeMap<Rank, String>,
    orders: VecDeque<Order>,
    end: Option<End>,
    /// Whether all close their network, once that is decided.
    pub(crate) closes: Option<bool>,
    /// Whether this process has said that it leaves.
    pub(crate) leaving: bool,
    /// Who is gone, why, and with it every section: process 0, or this process in its eyes.
    lost: Option<(Rank, String)>,
    /// Agreements that this process wishes to close, by question.
    wishes: HashMap<u64, Option<Decision>>,
    questions: u64,
    /// Failures and deaths so far.
    changes: Arc<AtomicU64>,
    mourners: Mourners,
}

/// What is called at a death.
type Tell = Box<dyn FnMut(Rank, &str) + Send>;

/// Who is told of deaths.
#[derive(Default)]
struct Mourners(Vec<Tell>);

impl std::fmt::Debug for Mourners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Mourners").field(&self.0.len()).finish()
    }
}

impl Member {
    pub(crate) fn new(rank: Rank, size: Rank, changes: Arc<AtomicU64>) -> Self {
        Member {
            rank,
            size,
            sections: BTreeMap::new(),
            dead: BTreeMap::new(),
            orders: VecDeque::new(),
            end: None,
            closes: None,
            leaving: false,
            lost: None,
            wishes: HashMap::new(),
            questions: 0,
            changes,
            mourners: Mourners::default(),
        }
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn section(&mut self, section: SectionId) -> Option<&mut Section> {
        self.sections.get_mut(&section)
    }

    /// How a process died, if it did.
    pub(crate) fn death(&self, rank: Rank) -> Option<&String> {
        self.dead.get(&rank)
    }

    /// Tells of every death, those so far first.
    pub(crate) fn tell_deaths(&mut self, mut tell: Tell) {
        self.dead.iter().for_each(|(&rank, reason)| tell(rank, reason));
        self.mourners.0.push(tell);
    }

    fn died(&mut self, rank: Rank, reason: String) {
        self.mourners.0.iter_mut().for_each(|tell| tell(rank, &reason));
        self.dead.insert(rank, reason);
    }

    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether the job ended in order.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.end, Some(End::Finished))
    }

    /// Whether nothing comes from process 0 any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    pub(crate) fn take_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Enters a section; what process 0 is to be told, if anything.
    pub(crate) fn enter(&mut self, section: SectionId, members: &[Rank]) -> Option<Up> {
        if self.sections.contains_key(&section) {
            return None;
        }
        let mut known = Section::new(members.to_vec(), self.rank);
        known.failure = self.obstacle(&known);
        known.told = known.failure.is_none();
        let is_told = known.told;
        self.sections.insert(section, known);
        if !is_told {
            self.changed();
        }
        is_told.then(|| Up::Enter { section, members: members.to_vec() })
    }

    /// Why a section cannot be entered.
    fn obstacle(&self, known: &Section) -> Option<Error> {
        if let Some((rank, reason)) = &self.lost {
            return Some(known.loss(*rank, reason));
        }
        let fault = match fault_of(&known.members, self.rank, self.size) {
            Some(fault) => format!("it entered a section {fault}"),
            None if self.sections.len() < MOST_SECTIONS => return None,
            None => format!("it is in {MOST_SECTIONS} sections and entered one more"),
        };
        Some(Error::fatal(known.pids.start, 0, Cause::Protocol(fault)))
    }

    /// Leaves a section; what process 0 is to be told, if anything.
    pub(crate) fn leave(&mut self, section: SectionId) -> Option<Up> {
        let known = self.sections.remove(&section)?;
        known.told.then_some(Up::Leave(section))
    }

    /// Lets a report stand, unless there is one.
    pub(crate) fn fail(&mut self, section: SectionId, error: Error) {
        let Some(known) = self.sections.get_mut(&section) else { return };
        if known.failure.is_none() {
            known.fail(error);
            self.changed();
        }
    }

    pub(crate) fn publish(&mut self, section: SectionId, pid: Pid, status: Status, now: Instant) {
        let known = self.sections.get_mut(&section);
        if let Some(own) = known.and_then(|known| known.own(pid)) {
            own.questions.publish(&status.doing, now);
            own.status = status;
        }
    }

    /// Asks all others of a section for what they have published.
    pub(crate) fn survey(&mut self, section: SectionId) -> Vec<Up> {
        let Some(known) = self.open(section) else { return Vec::new() };
        let (pids, processes) = (known.pids.clone(), known.processes());
        let own = known.own.iter().map(|own| Some(own.status.clone()));
        known.survey = Some(pids.clone().zip(own).collect());
        let by = pids.start;
        let others = (0..processes).filter(|of| !pids.contains(of));
        others.map(|of| Up::Ask { section, by, of, round: SURVEY }).collect()
    }

    /// What they have answered, if all have, or the section has failed; or those that have.
    pub(crate) fn surveyed(
        &mut self,
        section: SectionId,
        partly: bool,
    ) -> Option<Vec<Option<Status>>> {
        let Some(known) = self.sections.get_mut(&section) else { return Some(Vec::new()) };
        let answers = known.survey.as_ref()?;
        let is_over = answers.len() == known.members.len() || known.failure.is_some();
        if !is_over && !partly {
            return None;
        }
        let answers = known.survey.take()?;
        Some((0..known.processes()).map(|of| answers.get(&of).cloned().flatten()).collect())
    }

    /// A new wish to close an agreement.
    pub(crate) fn wish(&mut self) -> u64 {
        self.questions += 1;
        self.wishes.insert(self.questions, None);
        self.questions
    }

    pub(crate) fn decision(&self, question: u64) -> Option<Decision> {
        self.wishes.get(&question).copied().flatten()
    }

    pub(crate) fn forget_wish(&mut self, question: u64) {
        self.wishes.remove(&question);
    }

    /// Nothing comes from process 0 any more, because `rank` has died: it, or this process to it.
    pub(crate) fn lose(&mut self, rank: Rank, reason: String) {
        if self.lost.is_none() {
            self.died(rank, reason.clone());
            if self.end.is_none() {
                let cause = Cause::Died { reason: reason.clone() };
                let superstep = self.sections.values().map(Section::superstep).max().unwrap_or(0);
                self.end = Some(End::Gone(Error::fatal(rank, superstep, cause)));
            }
            self.sever(rank, reason);
        }
    }

    /// Nothing comes from process 0 any more, because this process or that has left in order.
    pub(crate) fn part(&mut self) {
        self.end.get_or_insert(End::Finished);
        if self.lost.is_none() {
            let rank = if self.leaving { self.rank } else { 0 };
            self.sever(rank, "it has left the job".into());
        }
    }

    /// Every section that goes on fails.
    fn sever(&mut self, rank: Rank, reason: String) {
        for known in self.sections.values_mut().filter(|known| known.failure.is_none()) {
            known.fail(known.loss(rank, &reason));
        }
        self.lost = Some((rank, reason));
        self.closes.get_or_insert(false);
        self.changed();
    }

    /// Takes over the counter of a section's supersteps.
    pub(crate) fn track(&mut self, section: SectionId, supersteps: Arc<AtomicU64>) {
        if let Some(known) = self.sections.get_mut(&section) {
            known.supersteps = supersteps;
        }
    }

    /// What this process says regularly.
    pub(crate) fn beat(&self) -> Up {
        let supersteps = self.sections.iter().filter(|(_, known)| known.failure.is_none());
        Up::Beat(supersteps.map(|(&section, known)| (section, known.superstep())).collect())
    }

    /// Questions that are due.
    pub(crate) fn tick(&mut self, now: Instant, says: &mut Vec<Up>) {
        let mut faults = Vec::new();
        for (&section, known) in &mut self.sections {
            if known.failure.is_none() {
                let processes = known.processes();
                for (pid, own) in known.pids.clone().zip(&mut known.own) {
                    let next = own.questions.tick(pid, processes, &own.status, now);
                    act((section, pid), own, next, says, &mut faults);
                }
            }
        }
        says.append(&mut faults);
    }

    /// Takes what process 0 said; `says` is what this process answers.
    pub(crate) fn hear(&mut self, word: Down, says: &mut Vec<Up>) -> Result<(), Garbled> {
        match word {
            Down::Beat => {}
            Down::Failed { section, error } => {
                if let Some(known) = self.sections.get(&section) {
                    if !is_report(&error, known.members.len()) {
                        return Err("it reported a failure without a cause".into());
                    }
                    self.fail(section, error);
                }
            }
            Down::Died { rank, reason } => {
                if rank >= self.size {
                    return Err(format!(
                        "it reported the death of process {rank}, which does not exist"
                    ));
                }
                self.died(rank, reason);
                self.changed();
            }
            Down::Record { section, from, topic, record } => {
                let Some(known) = self.open(section) else { return Ok(()) };
                let most = longest_record(known.members.len());
                if !known.has(from) || record.bytes.len() > most {
                    return Err("it sent an invalid record".into());
                }
                // A process's own records are where it writes them.
                if !known.pids.contains(&from) && !known.keep(from, topic, record) {
                    return Err("it sent more records than a board may keep".into());
                }
            }
            Down::Agreed { section, topic, bytes } => {
                let Some(known) = self.open(section) else { return Ok(()) };
                if bytes.len() > longest_record(known.members.len()) || !known.agree(topic, bytes) {
                    return Err("it sent more agreements than a board may keep".into());
                }
            }
            Down::Decided { question, decision } => {
                if let Some(wish) = self.wishes.get_mut(&question) {
                    *wish = Some(decision);
                }
            }
            Down::Asked { section, of, by, round } => {
                let own = self.sections.get_mut(&section).and_then(|known| known.own(of));
                let status = own.and_then(|own| tellable(&own.status));
                says.push(Up::Answer { section, of, to: by, round, status });
            }
            Down::Answered { section, of, to, round, status } => {
                let Some(known) = self.open(section) else { return Ok(()) };
                let ends = (to, known.processes());
                if let Some(answers) = known.survey.as_mut().filter(|_| of < ends.1) {
                    let status = status.clone().filter(is_readable);
                    answers.insert(of, status);
                }
                let Some(own) = known.own(to) else { return Ok(()) };
                let next = own.questions.answered(ends, &own.status, of, round, status);
                let mut faults = Vec::new();
                act((section, to), own, next, says, &mut faults);
                says.append(&mut faults);
            }
            Down::Order(order) => return self.take(order, says),
            Down::Finish => self.end = self.end.take().or(Some(End::Finished)),
            Down::Close(closes) => self.closes = self.closes.or(Some(closes)),
            Down::Farewell => self.part(),
            Down::Verdict { reason } => {
                self.lose(self.rank, format!("it was taken for dead: {reason}"));
            }
        }
        Ok(())
    }

    /// A section that this process is in and that goes on.
    fn open(&mut self, section: SectionId) -> Option<&mut Section> {
        self.sections.get_mut(&section).filter(|known| known.failure.is_none())
    }

    /// Keeps an order until it is served; a section for which there is no room fails.
    fn take(&mut self, order: Order, says: &mut Vec<Up>) -> Result<(), Garbled> {
        let pid = order.members.iter().position(|&member| member == self.rank);
        let exist = order.members.iter().all(|&member| member < self.size);
        let fits = order.members.len() <= self.size && order.bytes.len() <= LONGEST_ORDER;
        let Some(pid) = pid.filter(|&pid| pid > 0 && exist && fits) else {
            return Err("it gave an invalid order".into());
        };
        let ordered = self.orders.iter().map(|order| order.bytes.len()).sum::<usize>();
        if self.orders.len() < MOST_ORDERS && ordered < MOST_ORDERED {
            self.orders.push_back(order);
            return Ok(());
        }
        let cause = Cause::OutOfMemory {
            what: "orders that it does not serve".into(),
            bytes: ordered + order.bytes.len(),
        };
        let (section, error) = (order.section, Error::fatal(pid, 0, cause));
        says.extend([
            Up::Enter { section, members: order.members },
            Up::Declare { section, error },
            Up::Leave(section),
        ]);
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        let sections = self.sections.values().map(Section::kept);
        let orders = self.orders.iter().map(|order| order.bytes.len() + 4 * order.members.len());
        sections.sum::<usize>() + orders.sum::<usize>()
    }
}

/// What follows from a round of questions of a process here.
fn act(
    (section, by): (SectionId, Pid),
    own: &Own,
    next: Next,
    says: &mut Vec<Up>,
    faults: &mut Vec<Up>,
) {
    match next {
        Next::Nothing => {}
        Next::Ask(round, pids) => {
            says.extend(pids.into_iter().map(|of| Up::Ask { section, by, of, round }));
        }
        Next::Declare(fault) => {
            let error = Error::fatal(fault.process, own.status.superstep, fault.cause);
            faults.push(Up::Declare { section, error: reportable(error, by) });
        }
    }
}
