//! The words of the control plane: what a process says to process 0, and what process 0 says to it.

use lpf_core::board::{Record, Topic};
use lpf_core::waits::Status;
use lpf_core::{Cause, Error, Pid};
use lpf_messages::{Order, Rank, SectionId};
use serde::{Deserialize, Serialize};

use super::outbox::Key;

/// The longest frame either way.
pub(crate) const LONGEST: usize = 4 << 20;

/// The most bytes of an order.
pub(crate) const LONGEST_ORDER: usize = 1 << 20;

/// The most bytes of an error, of a word that carries one.
const LONGEST_ERROR: usize = 16 << 10;

/// The most text of an error that is too long.
const KEPT_TEXT: usize = 4 << 10;

/// The longest status that is told; who has a longer one is not asked again.
const LONGEST_STATUS: usize = 1 << 20;

/// To process 0. A process has entered a section before it says anything else of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Up {
    /// I live; these supersteps have come in my sections.
    Beat(Vec<(SectionId, u64)>),
    /// I take part in a section of these members.
    Enter { section: SectionId, members: Vec<Rank> },
    /// I take no part any more.
    Leave(SectionId),
    /// The section failed.
    Declare { section: SectionId, error: Error },
    /// The latest record of a process of mine.
    Record { section: SectionId, from: Pid, topic: Topic, record: Record },
    /// Close this agreement with these bytes, if it is open; the answer bears the number.
    Agree { section: SectionId, topic: Topic, question: u64, bytes: Vec<u8> },
    /// I have fetched this agreement.
    Fetched { section: SectionId, topic: Topic },
    /// A process of mine asks: what is that process doing?
    Ask { section: SectionId, by: Pid, of: Pid, round: u64 },
    /// To a question that was handed on: what that process of mine is doing, if I am in that section.
    Answer { section: SectionId, of: Pid, to: Pid, round: u64, status: Option<Status> },
    /// To each member but the first, which is I.
    Order(Order),
    /// I can close my network together with all others, or I cannot.
    Ready(bool),
    /// I leave the job, and nothing has failed.
    Goodbye,
    /// I take you for dead, and leave.
    Verdict { reason: String },
}

/// What became of a wish to close an agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Decision {
    /// It was the first.
    First,
    /// It was closed before.
    Later,
    /// Too much is agreed and not fetched.
    NoRoom,
}

/// From process 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Down {
    /// I live.
    Beat,
    /// This is what ended the section, for all its members.
    Failed { section: SectionId, error: Error },
    /// A process has died.
    Died { rank: Rank, reason: String },
    /// The latest record of a member.
    Record { section: SectionId, from: Pid, topic: Topic, record: Record },
    /// An agreement that is closed.
    Agreed { section: SectionId, topic: Topic, bytes: Vec<u8> },
    /// The answer to `Agree`.
    Decided { question: u64, decision: Decision },
    /// A process asks what that process of yours is doing.
    Asked { section: SectionId, of: Pid, by: Pid, round: u64 },
    /// The answer to `Ask`.
    Answered { section: SectionId, of: Pid, to: Pid, round: u64, status: Option<Status> },
    /// Begin a section.
    Order(Order),
    /// The job is over: no order comes any more.
    Finish,
    /// All can close their network, and do; or some cannot, and nobody does.
    Close(bool),
    /// I say nothing more, and nothing has failed.
    Farewell,
    /// You are taken for dead: you said nothing, or nothing that could be understood.
    Verdict { reason: String },
}

impl Up {
    /// Words of equal key replace each other while they wait to be sent.
    pub(crate) fn key(&self) -> Option<Key> {
        match *self {
            Up::Beat(_) => Some(Key::Beat),
            Up::Record { section, from, topic, .. } => Some(Key::Record(section, from, topic)),
            Up::Ask { section, by, of, .. } => Some(Key::Asked(section, by, of)),
            Up::Answer { section, of, to, .. } => Some(Key::Answered(section, of, to)),
            _ => None,
        }
    }
}

impl Down {
    /// As of [`Up`].
    pub(crate) fn key(&self) -> Option<Key> {
        match *self {
            Down::Beat => Some(Key::Beat),
            Down::Record { section, from, topic, .. } => Some(Key::Record(section, from, topic)),
            Down::Asked { section, by, of, .. } => Some(Key::Asked(section, by, of)),
            Down::Answered { section, of, to, .. } => Some(Key::Answered(section, of, to)),
            _ => None,
        }
    }
}

/// The longest record of a board of `processes`.
pub(crate) fn longest_record(processes: usize) -> usize {
    8 * processes + 64
}

/// A report that can travel: fatal, naming a process of the section, and no longer than a frame.
pub(crate) fn reportable(error: Error, pid: Pid) -> Error {
    let process = error.process().unwrap_or(pid);
    let superstep = error.superstep().unwrap_or(0);
    let is_short = postcard::to_stdvec(&error).is_ok_and(|bytes| bytes.len() <= LONGEST_ERROR);
    match (error.is_fatal() && error.process().is_some(), is_short) {
        (true, true) => error,
        (false, true) => Error::fatal(process, superstep, error.cause().clone()),
        (_, false) => Error::fatal(process, superstep, shortened(error.cause())),
    }
}

/// Whether a report that came is one that [`reportable`] lets go.
pub(crate) fn is_report(error: &Error, processes: usize) -> bool {
    error.is_fatal() && error.process().is_some_and(|process| process < processes)
}

fn shortened(cause: &Cause) -> Cause {
    let cut = |text: &str| {
        let end = (0..=text.len().min(KEPT_TEXT)).rev().find(|&end| text.is_char_boundary(end));
        format!("{} (cut off)", &text[..end.unwrap_or(0)])
    };
    match cause {
        Cause::Panicked { message } => Cause::Panicked { message: cut(message) },
        Cause::Returned { message } => Cause::Returned { message: cut(message) },
        Cause::Died { reason } => Cause::Died { reason: cut(reason) },
        Cause::Deadlock(text) => Cause::Deadlock(cut(text)),
        Cause::Disagreement(text) => Cause::Disagreement(cut(text)),
        Cause::Protocol(text) => Cause::Protocol(cut(text)),
        Cause::Checked(text) => Cause::Checked(cut(text)),
        other => Cause::Program(cut(&other.to_string())),
    }
}

/// A status as it may be told.
pub(crate) fn tellable(status: &Status) -> Option<Status> {
    let length = postcard::experimental::serialized_size(status).ok()?;
    (length <= LONGEST_STATUS).then(|| status.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_a_long_text_is_cut_and_stays_what_it_is() {
        let message = "é".repeat(1 << 20);
        let error = reportable(Error::fatal(2, 3, Cause::Panicked { message }), 0);
        let Cause::Panicked { message } = error.cause() else { panic!("{error}") };
        assert!(message.ends_with("é (cut off)") && message.len() <= KEPT_TEXT + 10);
        assert_eq!((error.process(), error.superstep()), (Some(2), Some(3)));
    }

    #[test]
    fn a_report_is_always_fatal() {
        let error = reportable(Error::program("matrix is empty"), 5);
        assert!(error.is_fatal());
        assert_eq!(error.to_string(), "fatal: process 5, superstep 0: matrix is empty");
    }
}
