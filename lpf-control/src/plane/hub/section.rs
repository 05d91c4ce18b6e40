//! What process 0 keeps of one section.

use std::collections::HashMap;
use std::ops::Range;

use lpf_core::board::{Record, Topic};
use lpf_core::{Error, Pid};
use lpf_messages::{Rank, SectionId};

use crate::plane::mail::Mail;
use crate::plane::rules::{Garbled, MOST_WRITTEN, pids_of, ranks_of, weight};
use crate::plane::words::{Decision, Down};

/// A member's part in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// It has not entered.
    Expected,
    Inside,
    /// It has left, or died.
    Out,
}

#[derive(Debug)]
struct Agreement {
    bytes: Vec<u8>,
    owner: Pid,
    fetched: Vec<bool>,
}

/// A section as process 0 knows it.
#[derive(Debug)]
pub(super) struct Section {
    members: Vec<Rank>,
    parts: Vec<Part>,
    supersteps: Vec<u64>,
    failure: Option<Error>,
    records: HashMap<(Pid, Topic), Record>,
    agreements: HashMap<Topic, Agreement>,
    /// Bytes kept of each member: of its records, and of agreements that it closed.
    written: Vec<usize>,
    agreed: Vec<usize>,
}

impl Section {
    pub(super) fn new(members: &[Rank]) -> Self {
        Section {
            parts: vec![Part::Expected; members.len()],
            supersteps: vec![0; members.len()],
            failure: None,
            records: HashMap::new(),
            agreements: HashMap::new(),
            written: vec![0; members.len()],
            agreed: vec![0; members.len()],
            members: members.to_vec(),
        }
    }

    pub(super) fn members(&self) -> &[Rank] {
        &self.members
    }

    /// The first process that is at a member of the job.
    pub(super) fn pid_of(&self, rank: Rank) -> Option<Pid> {
        self.members.iter().position(|&member| member == rank)
    }

    /// Whether a process is at this member of the job.
    pub(super) fn has(&self, rank: Rank, pid: Pid) -> bool {
        self.members.get(pid) == Some(&rank)
    }

    /// The processes that are there.
    pub(super) fn pids_of(&self, rank: Rank) -> Range<Pid> {
        pids_of(&self.members, rank)
    }

    fn part_of(&self, rank: Rank) -> Option<Part> {
        self.pid_of(rank).map(|pid| self.parts[pid])
    }

    pub(super) fn has_inside(&self, rank: Rank) -> bool {
        self.part_of(rank) == Some(Part::Inside)
    }

    pub(super) fn expects(&self, rank: Rank) -> bool {
        self.part_of(rank) == Some(Part::Expected)
    }

    /// The rank of a process that exists and is inside.
    pub(super) fn inside(&self, pid: Pid) -> Option<Rank> {
        let is_inside = self.parts.get(pid) == Some(&Part::Inside);
        is_inside.then(|| self.members[pid])
    }

    pub(super) fn is_inhabited(&self) -> bool {
        self.parts.contains(&Part::Inside)
    }

    /// Members that have not entered.
    pub(super) fn expected(&self) -> impl Iterator<Item = Rank> {
        self.ranks_that_are(Part::Expected)
    }

    fn ranks_inside(&self) -> impl Iterator<Item = Rank> {
        self.ranks_that_are(Part::Inside)
    }

    fn ranks_that_are(&self, part: Part) -> impl Iterator<Item = Rank> {
        ranks_of(&self.members)
            .filter(move |&(_, pid)| self.parts[pid] == part)
            .map(|(rank, _)| rank)
    }

    /// How far a process is, as far as is known here: its own last word may be a beat old, and
    /// supersteps that all take part in keep it near process 0, which knows its own.
    pub(super) fn superstep(&self, pid: Pid) -> u64 {
        let own = self.pid_of(0).map_or(0, |zero| self.supersteps[zero]);
        self.supersteps[pid].max(own)
    }

    pub(super) fn note_superstep(&mut self, rank: Rank, superstep: u64) {
        self.supersteps[pids_of(&self.members, rank)].fill(superstep);
    }

    /// Lets a member in and tells it what it missed.
    pub(super) fn enter(
        &mut self,
        section: SectionId,
        rank: Rank,
        mail: &mut Mail,
    ) -> Result<(), Garbled> {
        let pid = self.pid_of(rank).ok_or("it entered a section of others")?;
        if self.parts[pid] != Part::Expected {
            return Err(format!("it entered section {} twice", section.0));
        }
        self.parts[pids_of(&self.members, rank)].fill(Part::Inside);
        if let Some(error) = self.failure.clone() {
            mail.down(rank, Down::Failed { section, error });
            return Ok(());
        }
        for (&(from, topic), record) in &self.records {
            mail.down(rank, Down::Record { section, from, topic, record: record.clone() });
        }
        for (&topic, agreement) in &self.agreements {
            mail.down(rank, Down::Agreed { section, topic, bytes: agreement.bytes.clone() });
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, rank: Rank) {
        self.parts[pids_of(&self.members, rank)].fill(Part::Out);
    }

    /// The first report stands and is told; the board has ended. Returns the bytes given up.
    pub(super) fn fail(&mut self, section: SectionId, error: Error, mail: &mut Mail) -> usize {
        if self.failure.is_some() {
            return 0;
        }
        self.failure = Some(error.clone());
        mail.down_to_all(self.ranks_inside(), &Down::Failed { section, error });
        self.drop_records()
    }

    /// Forgets the board; returns the bytes given up.
    pub(super) fn drop_records(&mut self) -> usize {
        self.records = HashMap::new();
        self.agreements = HashMap::new();
        let kept = self.written.iter_mut().chain(&mut self.agreed);
        kept.map(std::mem::take).sum()
    }

    /// Keeps a record and passes it on; returns the bytes kept and given up.
    pub(super) fn write(
        &mut self,
        section: SectionId,
        pid: Pid,
        topic: Topic,
        record: Record,
        mail: &mut Mail,
    ) -> Result<(usize, usize), Garbled> {
        if self.failure.is_some() {
            return Ok((0, 0));
        }
        let more = weight(&record.bytes);
        let before = self.records.get(&(pid, topic));
        if before.is_some_and(|before| before.version >= record.version) {
            return Err("it wrote an older record after a newer one".into());
        }
        let less = before.map_or(0, |before| weight(&before.bytes));
        let written = self.written[pid] + more - less;
        if written > MOST_WRITTEN {
            return Err(format!("it keeps {written} bytes on one board"));
        }
        self.written[pid] = written;
        self.records.insert((pid, topic), record.clone());
        let writer = self.members[pid];
        let others = self.ranks_inside().filter(|&rank| rank != writer);
        mail.down_to_all(others, &Down::Record { section, from: pid, topic, record });
        Ok((more, less))
    }

    /// Closes an agreement if it is open; returns the bytes kept.
    pub(super) fn agree(
        &mut self,
        section: SectionId,
        from: Rank,
        topic: Topic,
        bytes: Vec<u8>,
        mail: &mut Mail,
    ) -> (Decision, usize) {
        let Some(owner) = self.pid_of(from).filter(|_| self.failure.is_none()) else {
            return (Decision::NoRoom, 0);
        };
        if self.agreements.contains_key(&topic) {
            return (Decision::Later, 0);
        }
        let more = weight(&bytes);
        if self.agreed[owner] + more > MOST_WRITTEN {
            return (Decision::NoRoom, 0);
        }
        self.agreed[owner] += more;
        let told = Down::Agreed { section, topic, bytes: bytes.clone() };
        mail.down_to_all(self.ranks_inside(), &told);
        let fetched = vec![false; self.members.len()];
        self.agreements.insert(topic, Agreement { bytes, owner, fetched });
        (Decision::First, more)
    }

    /// All processes of a member have fetched an agreement; returns the bytes given up, once all members' have.
    pub(super) fn fetched(&mut self, rank: Rank, topic: Topic) -> usize {
        let Some(agreement) = self.agreements.get_mut(&topic) else { return 0 };
        agreement.fetched[pids_of(&self.members, rank)].fill(true);
        if !agreement.fetched.iter().all(|&fetched| fetched) {
            return 0;
        }
        let less = weight(&agreement.bytes);
        self.agreed[agreement.owner] -= less;
        self.agreements.remove(&topic);
        less
    }
}
