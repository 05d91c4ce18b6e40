//! What the members of a group agree on before a call: when each of them will arrive, or that nobody knows.
//!
//! Only the helper of member 0 closes agreements, one for each call, in the order of calls; what it has closed it never
//! changes. Everything is said in registers of the board, of which readers see the latest: words that come late or
//! twice say nothing new, as each names its call.
//!
//! | register | of | says |
//! |---|---|---|
//! | `Said` | each member's helper | the call and when the member will arrive |
//! | `Asked` | each member | the call that it has come to and when it came; it waits for the agreement |
//! | `Closed`, [`KEPT`] of them | member 0's helper | the agreement on a call, in register call mod `KEPT` |
//! | `Ended` | member 0 | its monitor is gone: no call from this one on has an agreement |
//!
//! A register of an agreement is used again when all members have been heard of a later call: then all have read it. So
//! who is ahead, as one may be after a reduction to somebody else, is at most `KEPT` calls ahead, and then waits.

use crate::arrival_pattern::Estimates;

/// Agreements that are kept for members that come to their calls late.
pub(super) const KEPT: u64 = 4;

/// What somebody says of itself: when it arrives at a call, by the group's clock, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// From 1 on.
    pub(super) call: u64,
    pub(super) arrival_ns: u64,
}

impl Word {
    pub(super) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.call.to_le_bytes());
        bytes[8..].copy_from_slice(&self.arrival_ns.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [call, arrival_ns] = words(bytes)?.try_into().ok()?;
        Some(Word { call, arrival_ns })
    }
}

fn words(bytes: &[u8]) -> Option<Vec<u64>> {
    let chunks = bytes.chunks_exact(8);
    let is_whole = chunks.remainder().is_empty();
    is_whole
        .then(|| chunks.map(|word| u64::from_le_bytes(word.try_into().expect("eight"))).collect())
}

/// What is agreed on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agreement {
    pub(super) call: u64,
    /// Nothing: who asked first came before all had said when they would.
    pub(super) arrivals: Option<Estimates>,
}

impl Agreement {
    /// A word for the call, and one for the grain and each member if something is known.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let known = self.arrivals.iter();
        let known =
            known.flat_map(|all| [all.grain_ns()].into_iter().chain(all.times_ns().to_vec()));
        std::iter::once(self.call).chain(known).flat_map(u64::to_le_bytes).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let words = words(bytes)?;
        let (&call, rest) = words.split_first()?;
        let arrivals = rest.split_first().map(|(&grain, times)| Estimates::new(times, grain));
        Some(Agreement { call, arrivals })
    }
}

/// The grain of estimates: a 64th of what they are apart, as a power of two, and this at least, ns.
const LEAST_GRAIN: u64 = 1 << 10;

/// Estimates of these times, rounded so that like ones become the same.
fn rounded(times: &[u64]) -> Estimates {
    let (first, last) = (times.iter().min(), times.iter().max());
    let spread = last.zip(first).map_or(0, |(last, first)| last - first);
    Estimates::new(times, (spread / 64).max(LEAST_GRAIN).next_power_of_two())
}

/// Closes the agreements of a group.
#[derive(Debug)]
pub(super) struct Closer {
    /// The call whose agreement is the next.
    pub(super) next: u64,
}

impl Default for Closer {
    fn default() -> Self {
        Closer { next: 1 }
    }
}

impl Closer {
    /// The next agreement, if it can be closed: by what each member's helper has said last, and what each has asked
    /// last.
    pub(super) fn close(
        &mut self,
        said: &[Option<Word>],
        asked: &[Option<Word>],
    ) -> Option<Agreement> {
        let call = self.next;
        let heard = |word: &Option<Word>| word.map_or(0, |word| word.call);
        let mut both = said.iter().zip(asked);
        // All have read what is in the register: they have been in a later call.
        let read = |(said, asked)| heard(said).max(heard(asked)) + KEPT > call;
        if call > KEPT && !both.all(read) {
            return None;
        }
        // Who has come says when; who is past this call had no need of knowing.
        let of = |word: &Option<Word>| word.filter(|word| word.call == call);
        let arrival = |(said, asked)| of(asked).or(of(said)).map(|word: Word| word.arrival_ns);
        let all: Option<Vec<u64>> = said.iter().zip(asked).map(arrival).collect();
        let is_asked = asked.iter().any(|asked| heard(asked) >= call);
        if all.is_none() && !is_asked {
            return None;
        }
        self.next += 1;
        Some(Agreement { call, arrivals: all.map(|times| rounded(&times)) })
    }
}
