//! Deaths and departures: who is told, and which sections end.

use std::ops::Range;

use lpf_core::{Cause, Error, Pid};
use lpf_messages::{Rank, SectionId};

use super::section::Section;
use super::{Hub, Presence};
use crate::plane::mail::Mail;
use crate::plane::words::Down;

impl Hub {
    /// Why a process takes no part any more.
    fn absence(&self, rank: Rank) -> Option<String> {
        match &self.presence[rank] {
            Presence::Here => None,
            Presence::Left => Some("it has left the job".into()),
            Presence::Dead(reason) => Some(reason.clone()),
        }
    }

    /// Fails a section that waits for a process which takes no part any more.
    pub(super) fn mourn(&mut self, section: SectionId, mail: &mut Mail) {
        let Some(known) = self.sections.get(&section) else { return };
        let gone = known.expected().find_map(|rank| Some((rank, self.absence(rank)?)));
        if let Some((rank, reason)) = gone {
            self.fail_by(section, rank, &reason, mail);
        }
    }

    fn fail_by(&mut self, section: SectionId, rank: Rank, reason: &str, mail: &mut Mail) {
        let Some(known) = self.sections.get_mut(&section) else { return };
        let Some(pid) = known.pid_of(rank) else { return };
        let cause = Cause::Died { reason: of_node(reason, known.pids_of(rank)) };
        let error = Error::fatal(pid, known.superstep(pid), cause);
        self.kept -= known.fail(section, error, mail);
    }

    /// Takes a process for dead, and tells everybody.
    pub(crate) fn died(&mut self, rank: Rank, reason: String, mail: &mut Mail) {
        if !self.is_here(rank) {
            return;
        }
        self.presence[rank] = Presence::Dead(reason.clone());
        // Ahead of the failures that follow from it: a network that is not to be used after a death must
        // not be used by who gives up its section.
        let others = (0..self.size()).filter(|&other| self.is_here(other));
        mail.down_to_all(others, &Down::Died { rank, reason: reason.clone() });
        self.decide(false, mail);
        self.fail_sections_of(rank, &reason, mail);
        mail.down(rank, Down::Verdict { reason });
        mail.close(rank);
    }

    /// The connection of a process was closed, which is its death unless it said so before, or the
    /// job is over.
    pub(crate) fn closed(&mut self, rank: Rank, reason: String, mail: &mut Mail) {
        match self.finished && self.is_here(rank) {
            true => self.goodbye(rank, mail),
            false => self.died(rank, reason, mail),
        }
    }

    pub(super) fn goodbye(&mut self, rank: Rank, mail: &mut Mail) {
        if !self.is_here(rank) {
            return;
        }
        self.presence[rank] = Presence::Left;
        self.decide(false, mail);
        self.fail_sections_of(rank, "it has left the job", mail);
        mail.down(rank, Down::Farewell);
        mail.close(rank);
    }

    fn fail_sections_of(&mut self, rank: Rank, reason: &str, mail: &mut Mail) {
        let concerns = |known: &Section| known.expects(rank) || known.has_inside(rank);
        let concerned = self.sections.iter().filter(|(_, known)| concerns(known));
        for section in concerned.map(|(&section, _)| section).collect::<Vec<_>>() {
            self.fail_by(section, rank, reason, mail);
            if let Some(known) = self.sections.get_mut(&section) {
                known.leave(rank);
            }
            self.fade(section);
        }
        self.inside[rank] = 0;
    }
}

/// Why the processes at a member of the job take no part any more.
fn of_node(reason: &str, pids: Range<Pid>) -> String {
    match pids.len() {
        ..2 => reason.into(),
        _ => format!("{reason}; processes {} to {} are on its node", pids.start, pids.end - 1),
    }
}
