//! What collectives take on a machine whose members arrive at different times: how many segments, and when each
//! member is done.

mod oversubscription;

use std::collections::VecDeque;

use lpf_core::machine::Machine;

use crate::algorithms::{Member, Vector, log2_up};
use crate::arrival_pattern::clairvoyant::Transfer;
use crate::cost::Supersteps;
use crate::schedule::{Schedule, Step, Then};
use oversubscription::{Oversubscription, Programs};

/// More segments are not worth the time of their schedule.
const MOST_SEGMENTS: u32 = 4096;

/// No segment is shorter than an element.
pub(crate) fn most_segments(v: Vector) -> u32 {
    let elements = (v.bytes / v.element.max(1)).max(1);
    u32::try_from(elements).unwrap_or(u32::MAX).min(MOST_SEGMENTS)
}

/// The time in which so many bytes are sent, and combined where they are not kept, ns: at least 1.
pub(crate) fn transfer_ns(machine: &Machine, members: usize, bytes: usize, kept: bool) -> u64 {
    let (h_bytes, combined_bytes) = (bytes as f64, if kept { 0.0 } else { bytes as f64 });
    let one = Supersteps { count: 1.0, h_bytes, messages: 1.0, combined_bytes };
    (1e9 * one.seconds(machine, members)).max(1.0) as u64
}

/// The time of a segment, one of so many of a vector.
pub(crate) fn segment_ns(machine: &Machine, members: usize, v: Vector, segments: u32) -> u64 {
    transfer_ns(machine, members, v.bytes.div_ceil(segments.max(1) as usize), false)
}

/// The time in which one member sends all it has to another, who combines: while few do, as where the last ones come,
/// so that each has a core.
pub(crate) fn pair_ns(machine: &Machine, members: usize, v: Vector) -> u64 {
    let on_few_cores =
        Oversubscription::of(machine, members).map(|threads| threads.pair_ns(v.bytes));
    on_few_cores.unwrap_or_else(|| {
        let all_at_once = transfer_ns(machine, members, v.bytes, false) as f64;
        (of_core(machine, members) * all_at_once).max(1.0) as u64
    })
}

/// How many segments a vector is cut into where each goes up a tree behind the one before it: with N of them it takes
/// (N + ⌈log2 p⌉) times what a segment takes, which is least where a segment's bytes take the p-th share of its
/// latency. At least 1, and no more than elements.
pub(crate) fn segments(machine: &Machine, members: usize, v: Vector) -> u32 {
    let latency = transfer_ns(machine, members, 0, true) as f64;
    let bytes = transfer_ns(machine, members, v.bytes, false) as f64 - latency;
    let best = (f64::from(log2_up(members).max(1)) * bytes.max(0.0) / latency).sqrt();
    best.round().clamp(1.0, f64::from(most_segments(v))) as u32
}

/// When members of a collective are done on a machine, by a model in which a message occupies its sender for w g(w),
/// arrives l later, and occupies its receiver, who takes one after the other, for as long and for what it takes to
/// combine it. So a superstep costs what [`Supersteps`] says, and one that begins when its messages are there less.
struct Model<'m> {
    machine: &'m Machine,
    /// When each has received all so far, and has sent all so far.
    received: Vec<u64>,
    sent: Vec<u64>,
    /// Of the message before, which most are as long as: its length, and what it takes.
    bytes: usize,
    occupies: u64,
    latency: u64,
}

impl<'m> Model<'m> {
    fn new(machine: &'m Machine, arrivals: &[u64]) -> Self {
        let (received, sent) = (arrivals.to_vec(), arrivals.to_vec());
        Model { machine, received, sent, bytes: usize::MAX, occupies: 0, latency: 0 }
    }

    /// A message whose sender has it since `issued`.
    fn transfer(&mut self, issued: u64, from: usize, to: usize, bytes: usize, kept: bool) {
        if self.bytes != bytes {
            let p = self.received.len();
            self.bytes = bytes;
            self.latency = transfer_ns(self.machine, p, 0, true);
            self.occupies = transfer_ns(self.machine, p, bytes, true).saturating_sub(self.latency);
        }
        let combined = if kept { 0.0 } else { 1e9 * self.machine.combining() * bytes as f64 };
        let begin = issued.max(self.sent[from]);
        self.sent[from] = begin + self.occupies;
        let there = (self.sent[from] + self.latency).max(self.received[to] + self.occupies);
        self.received[to] = there + combined as u64;
    }

    /// When each is done.
    fn ends(self) -> Vec<u64> {
        self.received.iter().zip(&self.sent).map(|(&received, &sent)| received.max(sent)).collect()
    }
}

/// A member that carries out its schedule in the model.
struct At {
    schedule: Schedule,
    step: usize,
    /// To whom, and when: messages that are not there yet.
    under_way: VecDeque<(usize, u64)>,
}

/// What each member has of a core: 1 but where they are known to be more than the cores.
pub(crate) fn of_core(machine: &Machine, members: usize) -> f64 {
    let cores = machine.cores().unwrap_or(members);
    (cores as f64 / members.max(1) as f64).min(1.0)
}

/// When each member is done with its part of schedules, ns.
pub(crate) fn ends_ns(
    machine: &Machine,
    arrivals: &[u64],
    mut write: impl FnMut(&mut Schedule, Member),
) -> Vec<u64> {
    let members = arrivals.len();
    let schedules = (0..members).map(|me| {
        let mut schedule = Schedule::default();
        write(&mut schedule, Member { me, members });
        schedule
    });
    if let Some(threads) = Oversubscription::of(machine, members) {
        return threads.ends(arrivals, &Programs::of_schedules(schedules));
    }
    let at = |schedule| At { schedule, step: 0, under_way: VecDeque::new() };
    let mut all: Vec<At> = schedules.map(at).collect();
    let mut model = Model::new(machine, arrivals);
    let mut moved = true;
    while moved {
        moved = false;
        for me in 0..members {
            while let Some(&step) = all[me].schedule.steps().get(all[me].step) {
                match step {
                    Step::Send { to, .. } => {
                        all[me].under_way.push_back((to, model.received[me]));
                    }
                    Step::Receive { from, bytes, then, .. } => {
                        let under_way = &mut all[from].under_way;
                        let nth = under_way.iter().position(|&(to, _)| to == me);
                        let Some((_, issued)) = nth.and_then(|nth| under_way.remove(nth)) else {
                            break;
                        };
                        model.transfer(issued, from, me, bytes, matches!(then, Then::Keep(_)));
                    }
                    Step::Copy { .. } => {}
                }
                all[me].step += 1;
                moved = true;
            }
        }
    }
    model.ends()
}

/// When each member is done with its part of a Clairvoyant schedule, which hands out its transfers round by round.
pub(crate) fn clairvoyant_ends_ns(
    machine: &Machine,
    arrivals: &[u64],
    (v, segments): (Vector, u32),
    schedule: impl FnOnce(&mut dyn FnMut(Transfer)),
) -> Vec<u64> {
    let bytes = v.bytes.div_ceil(segments.max(1) as usize);
    if let Some(threads) = Oversubscription::of(machine, arrivals.len()) {
        return threads.ends(arrivals, &Programs::of_transfers(arrivals.len(), bytes, schedule));
    }
    let mut model = Model::new(machine, arrivals);
    let mut round: Vec<Transfer> = Vec::new();
    // What is sent in a round was there before it.
    let mut end = |round: &mut Vec<Transfer>| {
        let issued: Vec<u64> = round.iter().map(|one| model.received[one.sender]).collect();
        for (one, issued) in round.drain(..).zip(issued) {
            model.transfer(issued, one.sender, one.receiver, bytes, one.overwrites);
        }
    };
    schedule(&mut |transfer| {
        if round.first().is_some_and(|first| first.round != transfer.round) {
            end(&mut round);
        }
        round.push(transfer);
    });
    end(&mut round);
    model.ends()
}

/// When members are done, in the mean.
pub(crate) fn mean(ends_ns: &[u64]) -> f64 {
    ends_ns.iter().map(|&end| end as f64).sum::<f64>() / ends_ns.len().max(1) as f64
}
