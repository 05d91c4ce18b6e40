//! What the members of a group agree on before a call: when each of them will arrive, or that nobody knows.
//!
//! Only the helper of member 0 closes agreements, one for each call, in the order of calls; what it has closed it never
//! changes. Everything is said in registers of the board, of which readers see the latest: words that come late or
//! twice say nothing new, as each names its call.
//!
//! | register | of | says |
//! |---|---|---|
//! | `Said` | each member's helper | the call, when the member will arrive, and whether it will know better |
//! | `Asked` | each member | the call that it has come to and when it came; it waits for the agreement |
//! | `Closed`, [`KEPT`] of them | member 0's helper | the agreement on a call, in register call mod `KEPT` |
//! | `Unknown` | member 0's helper | a [`Gap`]: calls of which nobody knows when members come, and which are in no register |
//! | `Ended` | member 0 | its monitor is gone: no call from this one on has an agreement |
//!
//! A register of an agreement is used again when all members have been heard of a later call: then all have read it. Who
//! is ahead of one that has not, as it may be after a reduction to somebody else or where that one has no more use for
//! its monitor, does not wait for it: there is nothing to be known of a call whose members are so far apart, and its
//! agreement is that. Such calls are told by their first and last. A gap grows until there is a call of which all have
//! been heard; so all are past it before there is another one.

use crate::arrival_pattern::Estimates;

/// Agreements that are kept for members that come to their calls late.
pub(super) const KEPT: u64 = 4;

/// What somebody says of itself: when it arrives at a call, by the group's clock, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// From 1 on.
    pub(super) call: u64,
    pub(super) arrival_ns: u64,
    /// Whether it will say more: it goes by the phases before, and has an edge to come.
    pub(super) is_early: bool,
}

impl Word {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        bytes(&[self.call, self.arrival_ns, u64::from(self.is_early)])
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [call, arrival_ns, is_early] = words(bytes)?.try_into().ok()?;
        Some(Word { call, arrival_ns, is_early: is_early != 0 })
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
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

/// Calls, from the first to the last, of which it is agreed that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Gap {
    pub(super) fn has(self, call: u64) -> bool {
        (self.first..=self.last).contains(&call)
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        bytes(&[self.first, self.last])
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [first, last] = words(bytes)?.try_into().ok()?;
        Some(Gap { first, last })
    }
}

/// What is to be told of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// In its register.
    Kept(Agreement),
    /// That it is the last of a gap.
    Unknown(Gap),
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
    /// The latest, which grows if not all have been heard past it.
    pub(super) gap: Option<Gap>,
}

impl Default for Closer {
    fn default() -> Self {
        Closer { next: 1, gap: None }
    }
}

impl Closer {
    /// The next agreement, if it can be closed: by what each member's helper has said last, and what each has asked
    /// last.
    pub(super) fn close(
        &mut self,
        said: &[Option<Word>],
        asked: &[Option<Word>],
    ) -> Option<Closed> {
        let call = self.next;
        let heard = |word: &Option<Word>| word.map_or(0, |word| word.call);
        let latest = said.iter().zip(asked).map(|(said, asked)| heard(said).max(heard(asked)));
        let all_heard = latest.min().unwrap_or(0);
        // Who has come says when; who is past this call had no need of knowing.
        let of = |word: &Option<Word>| word.filter(|word| word.call == call);
        let both = said.iter().zip(asked);
        let words: Option<Vec<Word>> = both.map(|(said, asked)| of(asked).or(of(said))).collect();
        let is_complete = words.as_ref().is_some_and(|all| !all.iter().any(|word| word.is_early));
        let is_asked = asked.iter().any(|asked| heard(asked) >= call);
        if !is_complete && !is_asked {
            return None;
        }
        let all = words.map(|all| all.iter().map(|word| word.arrival_ns).collect::<Vec<_>>());
        self.next += 1;
        // All have read what is in the register: they have been in a later call.
        let is_read = all_heard + KEPT > call;
        let open = self.gap.filter(|gap| all_heard <= gap.last);
        if is_read && open.is_none() {
            return Some(Closed::Kept(Agreement {
                call,
                arrivals: all.map(|times| rounded(&times)),
            }));
        }
        let gap = Gap { first: open.map_or(call, |gap| gap.first), last: call };
        self.gap = Some(gap);
        Some(Closed::Unknown(gap))
    }
}
