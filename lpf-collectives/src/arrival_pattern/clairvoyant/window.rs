//! Which processes take part in a round.
//!
//! A round begins when the first of those that are not complete is available, the *head*, and is for all that
//! are available less than a round time after it. Who takes part does so in every later round until it is
//! complete, so the order of availability times never changes but for where it begins: it is the order of
//! `arrival mod d`, ties by rank, read in a circle from the head on. A process's *place* is its number in that
//! order.

use lpf_core::Pid;

use super::{Instance, Transfer};

/// What a schedule is made from, round by round.
#[derive(Debug)]
pub(crate) struct Window {
    /// The round time.
    d: u64,
    /// The process at a place.
    ranks: Vec<u32>,
    /// The place of the root.
    root: usize,
    /// When the process at a place was available last, and in which round that was: each round later it is a
    /// round time later.
    available: Vec<(u64, u64)>,
    /// Who has not taken part yet: places, the last to arrive first.
    awaited: Vec<u32>,
    /// Who takes part, a bit for a place.
    pub(crate) group: Vec<u64>,
    /// How many they are.
    members: usize,
    /// The number of the current round; nothing before the first.
    round: Option<u64>,
    /// The place of the head.
    pub(crate) head: usize,
    /// Who joined in this round.
    pub(crate) joined: Vec<u32>,
}

impl Window {
    pub(crate) fn new(instance: &Instance) -> Self {
        let Instance { round_time: d, root, arrivals, .. } = instance;
        let mut ranks: Vec<u32> = (0..arrivals.len() as u32).collect();
        ranks.sort_unstable_by_key(|&rank| (arrivals[rank as usize] % d, rank));
        let arrival = |&rank: &u32| (arrivals[rank as usize], 0);
        let mut awaited: Vec<u32> = (0..arrivals.len() as u32).collect();
        awaited.sort_unstable_by_key(|&place| {
            let rank = ranks[place as usize];
            std::cmp::Reverse((arrivals[rank as usize], rank))
        });
        if instance.segments == 0 {
            // Nobody has anything to send.
            awaited.clear();
        }
        Window {
            d: *d,
            root: ranks.iter().position(|&rank| rank as Pid == *root).unwrap_or(0),
            available: ranks.iter().map(arrival).collect(),
            awaited,
            group: vec![0; arrivals.len().div_ceil(64)],
            members: 0,
            round: None,
            head: 0,
            joined: Vec::new(),
            ranks,
        }
    }

    /// When a process is available next: its arrival, or in this round.
    fn available(&self, place: usize) -> (u64, u32) {
        let (time, round) = self.available[place];
        let later = if self.is_member(place) { (self.round() - round) * self.d } else { 0 };
        (time + later, self.ranks[place])
    }

    fn round(&self) -> u64 {
        self.round.unwrap_or(0)
    }

    fn is_member(&self, place: usize) -> bool {
        self.group[place / 64] >> (place % 64) & 1 == 1
    }

    /// The first member from the last head on.
    fn first_member(&self) -> Option<usize> {
        if self.members > 0 { self.members().next() } else { None }
    }

    /// Goes on to the next round in which two can take part; false when all is with one process. Members that hold
    /// nothing have left before.
    pub(crate) fn advance(&mut self) -> bool {
        let mut round = self.round.map_or(0, |round| round + 1);
        self.joined.clear();
        loop {
            self.round = Some(round);
            if self.members + self.awaited.len() < 2 {
                return false;
            }
            let first_awaited = self.awaited.last().map(|&place| place as usize);
            let head = match (self.first_member(), first_awaited) {
                (Some(member), Some(awaited)) => {
                    std::cmp::min_by_key(member, awaited, |&place| self.available(place))
                }
                (one, other) => one.or(other).unwrap_or(0),
            };
            self.head = head;
            // No time is looked at any more when all take part: it may be past what a word holds.
            while let Some(&place) = self.awaited.last()
                && self.available(place as usize).0 < self.available(head).0 + self.d
            {
                self.awaited.pop();
                self.joined.push(place);
                let time = self.available[place as usize].0;
                self.group[place as usize / 64] |= 1 << (place % 64);
                self.available[place as usize] = (time, round);
                self.members += 1;
            }
            if self.members > 1 {
                return true;
            }
            // It stays alone until the next one is there.
            let Some(&next) = self.awaited.last() else { return false };
            round += (self.available(next as usize).0 - self.available(head).0) / self.d;
        }
    }

    /// A member that holds nothing takes no part any more.
    pub(crate) fn complete(&mut self, place: usize) {
        self.group[place / 64] &= !(1 << (place % 64));
        self.members -= 1;
    }

    /// The root where it takes part, else the head: it takes what it does not hold, too, and before all others.
    pub(crate) fn sink(&self) -> usize {
        if self.is_member(self.root) { self.root } else { self.head }
    }

    /// All that take part, in the order in which they are served.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = usize> {
        let sink = self.sink();
        std::iter::once(sink).chain(self.members().filter(move |&place| place != sink))
    }

    /// A transfer of this round, between places.
    #[inline]
    pub(crate) fn transfer(
        &self,
        sender: usize,
        receiver: usize,
        segment: usize,
        overwrites: bool,
    ) -> Transfer {
        let (sender, receiver) = (self.ranks[sender] as Pid, self.ranks[receiver] as Pid);
        Transfer { round: self.round(), sender, receiver, segment: segment as u32, overwrites }
    }

    /// All that take part, from the head on.
    pub(crate) fn members(&self) -> impl Iterator<Item = usize> {
        let words = self.group.len();
        let (word, bit) = (self.head / 64, self.head % 64);
        (0..=words).flat_map(move |step| {
            let at = (word + step) % words;
            let kept = match step {
                0 => u64::MAX << bit,
                _ if step == words => !(u64::MAX << bit),
                _ => u64::MAX,
            };
            let mut bits = self.group[at] & kept;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(64 * at + bit)
            })
        })
    }
}
