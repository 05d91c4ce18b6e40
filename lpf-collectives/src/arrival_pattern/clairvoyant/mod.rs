//! Clairvoyant schedules: the transfers of a reduction, by rounds, if all processes know the arrival times of all
//! (Proficz and Ocetkiewicz 2020).
//!
//! A vector is cut into segments. In a round, which takes the *round time* d, a process sends at most one segment
//! and receives at most one. All numbers are integers, so that all processes make the same schedule. Two
//! algorithms make it, with the same transfers in the same order ([`Scheduler`]). They pass on each transfer at once, and
//! keep none. Tests compare both with the paper's segment tree.

mod bits;
mod canonical;
mod check;
mod linear;
#[cfg(test)]
mod tests;
mod timeline;
mod to_all;
mod window;

use std::fmt;

use lpf_core::Pid;

pub use canonical::{Digest, canonical};
pub use check::{Mistake, check};
pub use timeline::Timeline;
pub use to_all::to_all;

/// The most a time may be, in ns: sums of two fit a word.
pub const MOST: u64 = 1 << 62;

/// The instance of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    segments: u32,
    root: Pid,
    round_time: u64,
    arrivals: Vec<u64>,
}

/// Why there is no schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible(String);

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

impl Instance {
    /// An instance of `segments` segments, to be combined at process `root`. A segment takes `round_time` ns to be sent
    /// and combined, and process i arrives at `arrivals[i]` ns.
    ///
    /// # Errors
    /// The reason: there is no process or no such root, the round time is 0, or a time is 2^62 ns or more.
    pub fn new(
        segments: u32,
        root: Pid,
        round_time: u64,
        arrivals: Vec<u64>,
    ) -> Result<Self, Impossible> {
        let p = arrivals.len();
        let late = arrivals.iter().position(|&time| time >= MOST);
        let text = if p == 0 {
            "a reduction needs at least one process".into()
        } else if p > u32::MAX as usize {
            format!("{p} processes are more than can be numbered")
        } else if root >= p {
            format!("the root is process {root}, but the last process is {}", p - 1)
        } else if round_time == 0 || round_time >= MOST {
            format!("a round takes {round_time} ns, and it has to be 1 to 2^62 - 1")
        } else if let Some(rank) = late {
            format!("process {rank} arrives at {} ns, and 2^62 - 1 is the latest", arrivals[rank])
        } else {
            return Ok(Instance { segments, root, round_time, arrivals });
        };
        Err(Impossible(text))
    }

    /// How many processes take part.
    pub fn processes(&self) -> usize {
        self.arrivals.len()
    }

    /// How many segments the vector is cut into.
    pub fn segments(&self) -> u32 {
        self.segments
    }

    /// Where the result is wanted.
    pub fn root(&self) -> Pid {
        self.root
    }

    /// The time of a round, ns.
    pub fn round_time(&self) -> u64 {
        self.round_time
    }

    /// When each process arrives, ns.
    pub fn arrivals(&self) -> &[u64] {
        &self.arrivals
    }

    /// A bit for each segment.
    fn column(&self) -> Vec<u64> {
        let mut column = vec![u64::MAX; self.segments.div_ceil(64) as usize];
        if let (Some(last), 1..) = (column.last_mut(), self.segments % 64) {
            *last = (1 << (self.segments % 64)) - 1;
        }
        column
    }
}

/// One segment that goes from one process to another. In the order of (round, sender, receiver, segment).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transfer {
    /// From 0 on; rounds in which no process can send are counted.
    pub round: u64,
    /// The sender.
    pub sender: Pid,
    /// The receiver.
    pub receiver: Pid,
    /// Which segment.
    pub segment: u32,
    /// Whether the receiver holds no value of the segment, and stores the one that arrives; else it combines. A value
    /// that it has sent is stale.
    pub overwrites: bool,
}

/// How a schedule is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// By search among all processes for each segment (Listing 2, with the state P'): a bit for each process and
    /// segment.
    Linear,
    /// By counting, for all segments at once, the processes that may still send them: 2 bits, and for each segment at
    /// most twice the bits of the number of processes.
    Bits,
}

impl Scheduler {
    /// All of them.
    pub const ALL: [Self; 2] = [Scheduler::Linear, Scheduler::Bits];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Linear => "linear",
            Scheduler::Bits => "bits",
        }
    }

    /// The memory for pairs of process and segment while it makes a schedule, in bytes. It needs some more words for each
    /// process and for each segment.
    pub fn bytes(self, processes: usize, segments: usize) -> usize {
        match self {
            Scheduler::Linear => linear::bytes(processes, segments),
            Scheduler::Bits => bits::bytes(processes, segments),
        }
    }

    /// Hands out the transfers of a schedule, round by round; within a round in the order in which their
    /// receivers are served. P of them at most in a round, and (P-1) N at least in all.
    pub fn schedule(self, instance: &Instance, mut each: impl FnMut(Transfer)) {
        match self {
            Scheduler::Linear => linear::schedule(instance, &mut each),
            Scheduler::Bits => bits::schedule(instance, &mut each),
        }
    }
}
