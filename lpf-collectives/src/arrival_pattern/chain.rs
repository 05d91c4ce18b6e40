//! All-reductions in which each process sends only to the next: the linear tree and the ring. Two of them order the
//! processes by arrival (Proficz 2018): the sorted linear tree (SLT) and the pre-reduced ring (PRR), corrected.
//!
//! A vector is cut into one segment for each process. The processes have *places*. The process at place i
//! sends to place i+1, the last to place 0. A program is the order in which a process sends and receives; messages
//! between two arrive in the order in which they were sent.

use std::collections::VecDeque;

use lpf_core::Pid;

/// An algorithm along a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chain {
    /// Sums go from place 0 to the last, and from there on: places are ranks.
    Linear,
    /// Segment i begins at place i and goes round twice: places are ranks.
    Ring,
    /// The linear tree in the order of arrival.
    SortedLinearTree,
    /// The ring in the order of arrival. Early processes reduce further segments before the others arrive, as long as
    /// there is time.
    PreReducedRing,
}

impl Chain {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Chain::Linear, Chain::Ring, Chain::SortedLinearTree, Chain::PreReducedRing];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Chain::Linear => "linear",
            Chain::Ring => "ring",
            Chain::SortedLinearTree => "slt",
            Chain::PreReducedRing => "prr",
        }
    }
}

/// One step of a program. Sends do not wait; receives do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Sends the value held of a segment to a process.
    Send {
        /// Its rank.
        to: Pid,
        /// Which segment.
        segment: u32,
        /// Whether that is the result, which the receiver stores; else it combines.
        whole: bool,
    },
    /// Receives a segment from a process.
    Receive {
        /// Its rank.
        from: Pid,
        /// Which segment.
        segment: u32,
        /// Whether it is the result, and stored; else it is combined, as the left operand.
        whole: bool,
    },
}

/// The place of each process, and the number of steps that it takes before the others arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    chain: Chain,
    /// The rank at each place.
    ranks: Vec<Pid>,
    /// Segments that the process at each place reduces ahead.
    ahead: Vec<u32>,
    /// The place at which each segment begins.
    starts: Vec<u32>,
}

impl Plan {
    /// For processes that arrive at these times. A segment takes `tau` to be sent and combined; in any unit,
    /// the same at all processes. P log P.
    pub fn new(chain: Chain, tau: u64, arrivals: &[u64]) -> Self {
        let p = arrivals.len();
        let mut ranks: Vec<Pid> = (0..p).collect();
        if matches!(chain, Chain::SortedLinearTree | Chain::PreReducedRing) {
            ranks.sort_unstable_by_key(|&rank| (arrivals[rank], rank));
        }
        let mut ahead = vec![0u32; p];
        if chain == Chain::PreReducedRing {
            let last = ranks.last().map_or(0, |&rank| arrivals[rank]);
            for place in (0..p.saturating_sub(1)).rev() {
                let next = arrivals[ranks[place + 1]];
                let needed = u128::from(ahead[place + 1] + 1) * u128::from(tau);
                let is_time = u128::from(last - next) >= needed;
                ahead[place] = ahead[place + 1] + u32::from(is_time);
            }
        }
        let mut first = 0;
        let starts = (0..p).map(|segment| {
            while first + (ahead[first] as usize) < segment {
                first += 1;
            }
            first as u32
        });
        let starts = starts.collect();
        Plan { chain, ranks, ahead, starts }
    }

    /// How many processes take part.
    pub fn processes(&self) -> usize {
        self.ranks.len()
    }

    /// The rank at each place.
    pub fn ranks(&self) -> &[Pid] {
        &self.ranks
    }

    /// Segments that the process at each place reduces before the ring goes round: 0 but in the pre-reduced ring.
    pub fn ahead(&self) -> &[u32] {
        &self.ahead
    }

    /// Where a process is.
    pub(crate) fn place_of(&self, rank: Pid) -> usize {
        self.ranks.iter().position(|&at| at == rank).unwrap_or(0)
    }

    /// The steps of the process at a place, in their order.
    pub fn program(&self, place: usize) -> Vec<Step> {
        let p = self.processes();
        if p < 2 {
            return Vec::new();
        }
        match self.chain {
            Chain::Linear | Chain::SortedLinearTree => self.along(place),
            Chain::Ring | Chain::PreReducedRing => self.round(place),
        }
    }

    fn send(&self, place: usize, segment: usize, whole: bool) -> Step {
        let to = self.ranks[(place + 1) % self.processes()];
        Step::Send { to, segment: segment as u32, whole }
    }

    fn receive(&self, place: usize, segment: usize, whole: bool) -> Step {
        let from = self.ranks[(place + self.processes() - 1) % self.processes()];
        Step::Receive { from, segment: segment as u32, whole }
    }

    /// Figure 5.
    fn along(&self, place: usize) -> Vec<Step> {
        let (p, mut steps) = (self.processes(), Vec::with_capacity(4 * self.processes()));
        for segment in 0..p {
            if place > 0 {
                steps.push(self.receive(place, segment, false));
            }
            steps.push(self.send(place, segment, place == p - 1));
        }
        for segment in 0..p {
            if place < p - 1 {
                steps.push(self.receive(place, segment, true));
            }
            if place + 2 < p {
                steps.push(self.send(place, segment, true));
            }
        }
        steps
    }

    /// Figure 7, corrected: a segment's start is looked for in a loop; who receives the last operand sends the
    /// result on; a result is sent on by who has received it.
    fn round(&self, place: usize) -> Vec<Step> {
        let (p, mut steps) = (self.processes(), Vec::with_capacity(4 * self.processes()));
        let before = |place: usize| (place + p - 1) % p;
        let first = place + self.ahead[place] as usize;
        let segments = || (0..p).map(|step| (first + p - step) % p);
        for segment in segments() {
            let start = self.starts[segment] as usize;
            if start != place {
                steps.push(self.receive(place, segment, false));
            }
            // Its last operand was that of the place before the start.
            steps.push(self.send(place, segment, before(start) == place));
        }
        for segment in segments() {
            let last = before(self.starts[segment] as usize);
            if last != place {
                steps.push(self.receive(place, segment, true));
                if before(last) != place {
                    steps.push(self.send(place, segment, true));
                }
            }
        }
        steps
    }

    /// What the process at a place sends and receives in supersteps of all: a message goes in the first one in
    /// which its sender has what it sends, and its receiver has received all that comes to it before.
    pub(crate) fn supersteps(&self, place: usize) -> Vec<[Option<Step>; 2]> {
        struct At {
            program: Vec<Step>,
            step: usize,
            /// The superstep that is next here.
            now: usize,
            /// From which superstep on each message may go, and which step sends it.
            sent: VecDeque<(usize, Step)>,
        }
        let p = self.processes();
        let at =
            |place| At { program: self.program(place), step: 0, now: 0, sent: VecDeque::new() };
        let mut all: Vec<At> = (0..p).map(at).collect();
        let mut own: Vec<[Option<Step>; 2]> = Vec::new();
        let mut moved = true;
        while moved {
            moved = false;
            for here in 0..p {
                let before = (here + p - 1) % p;
                while let Some(&step) = all[here].program.get(all[here].step) {
                    let now = all[here].now;
                    if let Step::Send { .. } = step {
                        all[here].sent.push_back((now, step));
                    } else {
                        let Some((sent, sends)) = all[before].sent.pop_front() else { break };
                        let superstep = now.max(sent);
                        all[here].now = superstep + 1;
                        own.resize(own.len().max(superstep + 1), [None; 2]);
                        if before == place {
                            own[superstep][0] = Some(sends);
                        }
                        if here == place {
                            own[superstep][1] = Some(step);
                        }
                    }
                    all[here].step += 1;
                    moved = true;
                }
            }
        }
        own
    }

    /// The time at which each process receives last, by rank, and the times and ends of all transfers. In this model
    /// a transfer takes `tau`. It begins when its sender has sent all transfers before it, and its receiver has received
    /// all before it and waits for it. A time that does not fit a word is the latest one that does.
    pub fn timeline(&self, tau: u64, arrivals: &[u64]) -> (Vec<u64>, Vec<Hop>) {
        let p = self.processes();
        let mut lanes: Vec<Lane> = self
            .ranks
            .iter()
            .enumerate()
            .map(|(place, &rank)| Lane {
                program: self.program(place),
                at: 0,
                now: arrivals[rank],
                sent: Vec::new(),
                come: 0,
                free: 0,
            })
            .collect();
        let mut hops = Vec::new();
        let mut moved = true;
        while moved {
            moved = false;
            for place in 0..p {
                let before = (place + p - 1) % p;
                while let Some(&step) = lanes[place].program.get(lanes[place].at) {
                    let now = lanes[place].now;
                    match step {
                        Step::Send { .. } => lanes[place].sent.push(now),
                        Step::Receive { from, segment, whole } => {
                            let sender = &mut lanes[before];
                            let Some(&issued) = sender.sent.get(sender.come) else { break };
                            let begin = issued.max(sender.free).max(now);
                            sender.come += 1;
                            sender.free = begin.saturating_add(tau);
                            lanes[place].now = sender.free;
                            hops.push(Hop { from, to: self.ranks[place], segment, whole, begin });
                        }
                    }
                    lanes[place].at += 1;
                    moved = true;
                }
            }
        }
        let mut last = vec![0; p];
        self.ranks.iter().zip(lanes).for_each(|(&rank, lane)| last[rank] = lane.now);
        (last, hops)
    }
}

/// A process in the model.
struct Lane {
    program: Vec<Step>,
    /// The step that is next.
    at: usize,
    now: u64,
    /// When it sent each message to the next place.
    sent: Vec<u64>,
    /// How many of these have come, and when the last of them did.
    come: usize,
    free: u64,
}

/// A segment on its way from one process to another, by their ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The sender.
    pub from: Pid,
    /// The receiver.
    pub to: Pid,
    /// Which segment.
    pub segment: u32,
    /// Whether it is the result, which is stored; else it is combined.
    pub whole: bool,
    /// When it begins.
    pub begin: u64,
}
