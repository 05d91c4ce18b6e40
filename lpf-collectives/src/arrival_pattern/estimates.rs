//! Predicted arrival times, the same at all members.

/// The predicted arrival time of each member of a group: whole multiples of a grain, from the first arrival on. They are
/// the same at all members, which make their schedules from them. The grain makes schedules of similar arrivals equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Estimates {
    grain_ns: u64,
    times_ns: Vec<u64>,
    /// What calls they are for, if that is known: members that took them from different monitors are told so.
    site: u64,
}

impl Estimates {
    /// Of these times, ns from any moment on, in the order of members. Each is rounded down to a multiple of
    /// `grain_ns` (of 1, if that is 0) after the first. Times beyond 2^61 ns are taken as 2^61.
    pub fn new(times_ns: &[u64], grain_ns: u64) -> Self {
        let (first, grain_ns) = (times_ns.iter().min().copied().unwrap_or(0), grain_ns.max(1));
        let rounded = |&time: &u64| {
            let after = (time - first).min(1 << 61);
            after - after % grain_ns
        };
        Estimates { grain_ns, times_ns: times_ns.iter().map(rounded).collect(), site: 0 }
    }

    /// For `members` members that arrive at once.
    pub fn together(members: usize) -> Self {
        Estimates { grain_ns: 1, times_ns: vec![0; members], site: 0 }
    }

    /// The same, for these calls.
    pub(crate) fn at(self, site: u64) -> Self {
        Estimates { site, ..self }
    }

    /// What calls they are for; 0 for any.
    pub(crate) fn site(&self) -> u64 {
        self.site
    }

    /// For each member, ns after the first.
    pub fn times_ns(&self) -> &[u64] {
        &self.times_ns
    }

    /// The grain, ns: all times are multiples of it.
    pub fn grain_ns(&self) -> u64 {
        self.grain_ns
    }

    /// The time from the first arrival to the last, ns.
    pub fn spread_ns(&self) -> u64 {
        self.times_ns.iter().max().copied().unwrap_or(0)
    }
}
