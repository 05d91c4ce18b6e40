//! Why a process could not join.

use std::net::SocketAddr;
use std::time::Duration;

use lpf_core::{Cause, Error};
use lpf_messages::Rank;

use crate::files::TooFew;

/// Why a process could not join. The job may be tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeetError {
    /// A wrong argument or setting.
    #[error("{0}")]
    Setting(String),
    /// Process 0 cannot listen.
    #[error(
        "process 0 cannot listen at {address}: {reason}; it was started twice, or another job uses this port: choose another port"
    )]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's reason.
        reason: String,
    },
    /// Process 0 was not found.
    #[error(
        "process 0 was not found at {address} within {} s: {reason}; check that it runs, and that this is its address",
        time.as_secs_f64()
    )]
    Unreachable {
        /// Where.
        address: String,
        /// After how long.
        time: Duration,
        /// What happened last.
        reason: String,
    },
    /// Another process refused this one.
    #[error("process {by} refused this process: {reason}")]
    Refused {
        /// Which.
        by: Rank,
        /// Its words.
        reason: String,
    },
    /// Some processes have not arrived.
    #[error(
        "{} not arrived at {address} within {} s; {}",
        names(ranks, "has", "have"),
        time.as_secs_f64(),
        note(ranks, notes)
    )]
    Missing {
        /// Which.
        ranks: Vec<Rank>,
        /// Where they were awaited.
        address: String,
        /// After how long without progress.
        time: Duration,
        /// What process 0 saw of others, for people.
        notes: String,
    },
    /// All have arrived, but could not connect to each other.
    #[error(
        "{} not connected to all others within {} s{}{notes}",
        names(ranks, "was", "were"),
        time.as_secs_f64(),
        if notes.is_empty() { "" } else { "; " }
    )]
    Unconnected {
        /// Which.
        ranks: Vec<Rank>,
        /// After how long without progress.
        time: Duration,
        /// Which process did not reach which, at which address, and why, for people.
        notes: String,
    },
    /// A process ended during the rendezvous.
    #[error("process {rank} ended during the rendezvous: {reason}")]
    Ended {
        /// Which.
        rank: Rank,
        /// How.
        reason: String,
    },
    /// The reason of process 0 for a rendezvous that failed.
    #[error("the rendezvous failed: {0}")]
    Failed(String),
    /// This process may not open as many connections as it will have.
    #[error("process {rank} cannot connect to the others of {size}: {limit}")]
    Files {
        /// Which.
        rank: Rank,
        /// Of how many.
        size: Rank,
        /// The limit, and what is needed.
        limit: TooFew,
    },
    /// The system refused something else.
    #[error("the system refused a resource for the rendezvous: {0}")]
    System(String),
}

impl MeetError {
    pub(super) fn system(error: std::io::Error) -> Self {
        MeetError::System(error.to_string())
    }
}

/// *Misuse* for a wrong setting of this process, *mitigable* if the system refused a resource, and *fatal*
/// if another process is the cause: the error began there, before the first superstep.
impl From<MeetError> for Error {
    fn from(error: MeetError) -> Self {
        let text = error.to_string();
        let at = |rank| Error::fatal(rank, 0, Cause::Setting(text.clone()));
        match error {
            MeetError::Setting(_) | MeetError::Refused { .. } => Error::setting(text),
            MeetError::Listen { .. } | MeetError::Files { .. } => {
                Error::refused(Cause::Setting(text))
            }
            MeetError::System(reason) => Error::refused(Cause::Refused {
                what: "a resource for the rendezvous".into(),
                reason,
            }),
            MeetError::Missing { ranks, .. } | MeetError::Unconnected { ranks, .. } => {
                at(ranks.first().copied().unwrap_or(0))
            }
            MeetError::Ended { rank, .. } => at(rank),
            MeetError::Unreachable { .. } | MeetError::Failed(_) => at(0),
        }
    }
}

/// "processes 2, 5 to 7 and 9 have"
pub(super) fn names(ranks: &[Rank], one: &str, many: &str) -> String {
    const MOST: usize = 16;
    let mut runs: Vec<(Rank, Rank)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let more = runs.len().saturating_sub(MOST);
    let mut list: Vec<String> = Vec::new();
    for &(first, last) in runs.iter().take(MOST) {
        match last - first {
            0 => list.push(first.to_string()),
            1 => list.extend([first.to_string(), last.to_string()]),
            _ => list.push(format!("{first} to {last}")),
        }
    }
    if more > 0 {
        list.push(format!("{more} more ranges"));
    }
    let text = match list.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => list.concat(),
    };
    match ranks.len() {
        1 => format!("process {text} {one}"),
        _ => format!("processes {text} {many}"),
    }
}

/// What process 0 saw, or what to look at first.
fn note(ranks: &[Rank], notes: &str) -> String {
    let it = if ranks.len() == 1 { "does it" } else { "do they" };
    match notes {
        "" => format!("{it} run? (LPF_MEET_TIMEOUT=SECONDS waits longer)"),
        notes => notes.into(),
    }
}

#[cfg(test)]
mod tests {
    use lpf_core::Kind;

    use super::*;

    #[test]
    fn what_a_caller_can_do_is_told_by_the_kind() {
        let time = Duration::from_secs(30);
        let (address, reason) = (SocketAddr::from(([127, 0, 0, 1], 4711)), String::from("why"));
        let name = String::from("node3:4711");
        let missing = MeetError::Missing {
            ranks: vec![2, 3],
            address: name.clone(),
            time,
            notes: String::new(),
        };
        let unreachable = MeetError::Unreachable { address: name, time, reason: reason.clone() };
        let cases = [
            (MeetError::Setting("rank 3 is not one of 0 to 2".into()), Kind::Misuse, None),
            (MeetError::Refused { by: 0, reason: reason.clone() }, Kind::Misuse, None),
            (MeetError::Listen { address, reason: reason.clone() }, Kind::Mitigable, None),
            (MeetError::System(reason.clone()), Kind::Mitigable, None),
            (unreachable, Kind::Fatal, Some(0)),
            (missing, Kind::Fatal, Some(2)),
            (
                MeetError::Unconnected { ranks: vec![1], time, notes: String::new() },
                Kind::Fatal,
                Some(1),
            ),
            (
                MeetError::Files { rank: 3, size: 9, limit: TooFew { limit: 40, needed: 51 } },
                Kind::Mitigable,
                None,
            ),
            (MeetError::Ended { rank: 3, reason }, Kind::Fatal, Some(3)),
            (MeetError::Failed("over".into()), Kind::Fatal, Some(0)),
        ];
        for (error, kind, process) in cases {
            let (text, error) = (error.to_string(), Error::from(error));
            assert_eq!((error.kind(), error.process()), (kind, process), "{error}");
            assert!(error.to_string().ends_with(&text), "{error}");
        }
    }
}
