//! What processes announce at a barrier, in a fixed size, however many they are.

use super::agreement::{Purpose, Registrations, mismatch};
use super::engine::Announced;
use super::local_state::LocalState;
use crate::Pid;
use crate::error::Result;

/// What processes announce at a barrier, together. [Merged](Self::merge) in any order, and however often, it is the same
/// everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// By the number of each purpose, the lowest process that has arrived for it; [`NO_PROCESS`](Self::NO_PROCESS) if there is none.
    pub arrived: [Pid; 4],
    /// The kinds of announcements, but [`Announced::ABANDONED`].
    pub kinds: Announced,
    /// The least capacity for requests.
    pub requests: u64,
    /// The lowest registrations. All are equal if these and the highest are.
    pub lowest: Registrations,
    /// The highest registrations.
    pub highest: Registrations,
    /// The least and the greatest word for abandoned slots. All are equal if these are.
    pub abandoned: [u64; 2],
}

impl Summary {
    /// Stands for no process. A protocol may write it in 32 bits.
    pub const NO_PROCESS: Pid = u32::MAX as Pid;

    /// What one process announces.
    pub fn of(local: &LocalState, purpose: Purpose) -> Self {
        let kind = |is_so, kind| if is_so { kind } else { 0 };
        let kinds = kind(local.changes.registered, Announced::REGISTERED)
            | kind(local.changes.resized, Announced::RESIZED);
        let [lowest, highest] = local.registrations();
        Summary {
            arrived: Purpose::ALL
                .map(|each| if each == purpose { local.pid } else { Self::NO_PROCESS }),
            kinds: Announced(kinds),
            requests: local.wanted_requests() as u64,
            lowest,
            highest,
            abandoned: [local.abandoned(); 2],
        }
    }

    /// Adds what others announce.
    #[inline]
    pub fn merge(&mut self, other: &Summary) {
        for (mine, theirs) in self.arrived.iter_mut().zip(other.arrived) {
            *mine = (*mine).min(theirs);
        }
        self.kinds.0 |= other.kinds.0;
        self.requests = self.requests.min(other.requests);
        // Copied only if it is new: a copy of what was just written number by number would wait for it.
        if other.lowest < self.lowest {
            self.lowest = other.lowest;
        }
        // Of equal ones the lowest process in both.
        let key = |r: &Registrations| (r.hash, r.calls, Pid::MAX - r.pid);
        if key(&other.highest) > key(&self.highest) {
            self.highest = other.highest;
        }
        let ([least, greatest], [lower, higher]) = (self.abandoned, other.abandoned);
        self.abandoned = [least.min(lower), greatest.max(higher)];
    }

    /// Whether all processes have arrived for the same purpose.
    ///
    /// # Errors
    /// *Fatal*, as [`mismatch`].
    #[inline]
    pub fn agree_on_purpose(&self, local: &LocalState) -> Result<()> {
        if self.arrived.iter().filter(|&&pid| pid != Self::NO_PROCESS).count() <= 1 {
            return Ok(());
        }
        let first =
            |purpose| Some(self.arrived[purpose as usize]).filter(|&pid| pid != Self::NO_PROCESS);
        Err(mismatch(local, first))
    }

    /// Whether all processes have abandoned the same slots, and any.
    #[inline]
    pub fn agrees_on_abandoned(&self) -> bool {
        let [least, greatest] = self.abandoned;
        least == greatest && least != 0
    }

    /// The announcements that core acts on.
    #[inline]
    pub fn announced(&self) -> Announced {
        let abandoned = if self.agrees_on_abandoned() { Announced::ABANDONED } else { 0 };
        Announced(self.kinds.0 & (Announced::REGISTERED | Announced::RESIZED) | abandoned)
    }

    /// The least capacity for requests that any process wants.
    pub fn agreed_requests(&self) -> usize {
        usize::try_from(self.requests).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_same_in_whatever_order() {
        let mut all: Vec<Summary> = (0..5)
            .map(|pid| {
                let local = LocalState::new(pid, 5, None).unwrap();
                let registered = Registrations { hash: (pid as u64) % 3, calls: 2, pid, area: 8 };
                Summary {
                    lowest: registered,
                    highest: registered,
                    requests: 10 + (pid as u64),
                    abandoned: [3 + (pid as u64); 2],
                    ..Summary::of(&local, Purpose::ALL[pid % 2])
                }
            })
            .collect();
        let merged = |all: &[Summary]| {
            let mut sum = all[0];
            all.iter().for_each(|one| sum.merge(one));
            sum
        };
        let first = merged(&all);
        all.reverse();
        assert_eq!(merged(&all), first);
        assert_eq!(
            (first.arrived, first.requests),
            ([0, 1, Summary::NO_PROCESS, Summary::NO_PROCESS], 10)
        );
        let local = LocalState::new(0, 5, None).unwrap();
        assert!(first.agree_on_purpose(&local).is_err() && all[0].agree_on_purpose(&local).is_ok());
        assert_eq!((first.lowest.pid, first.highest.pid), (0, 2));
        assert!(first.abandoned == [3, 7] && !first.agrees_on_abandoned());
        all.iter_mut().for_each(|one| one.abandoned = [5; 2]);
        assert!(merged(&all).agrees_on_abandoned());
        all[3].abandoned = [0; 2];
        assert!(!merged(&all).agrees_on_abandoned());
    }
}
