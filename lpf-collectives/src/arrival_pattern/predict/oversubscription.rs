//! The same for more threads than cores (oversubscription): a thread that waits leaves its core to the others.
//!
//! g and l do not describe that. A message is read where it lies, by its receiver, so that sending takes next to nothing; and a
//! vector that several messages in a row are combined into stays in the cache. Measured with eight threads on two
//! cores, calls of 64 KiB to 4 MiB: `benches/runs/2026-11-24-reduce-threads`, of which this finds the best or one
//! within 5 % in 28 of 30 cells, and the model of a message on its way in 19.
//!
//! What it gains: without it the default choice of a reduce takes 4 to 28 % longer for 4 and 8 threads that arrive within
//! 0.5 ms. There is no difference for larger delays, nor for 16 threads (`benches/runs/2026-11-27-oversubscription`).

use std::collections::VecDeque;

use lpf_core::attr::SyncAttr;
use lpf_core::machine::{Growth, Machine};

use crate::arrival_pattern::clairvoyant::Transfer;
use crate::schedule::{Region, Schedule, Step, Then};

/// What passes between memory and core for each byte of a message: it is read, what it is combined with is read, and
/// what comes of it is written.
const KEPT: u32 = 2;
const COMBINED: u32 = 3;
/// Where the message before went into the same place.
const ACCUMULATED: u32 = 1;

/// Of what a byte takes in a full superstep, in which it is far from every cache, one of these takes so much.
const OF_BYTE: f64 = 0.25;
/// Of what a wait takes, in which a core changes from one thread to another, a message takes so much.
const OF_WAIT: f64 = 0.2;

/// Later than anything.
const NEVER: u64 = u64::MAX;

/// A step of a member.
#[derive(Clone, Copy)]
enum Act {
    Send { to: usize },
    Receive { from: usize, bytes: usize, passes: u32 },
}

/// What all members do.
pub(super) struct Programs(Vec<Vec<Act>>);

impl Programs {
    pub(super) fn of_schedules(all: impl Iterator<Item = Schedule>) -> Self {
        Programs(all.map(|schedule| acts(&schedule)).collect())
    }

    /// Of transfers that are handed out round by round: a member sends and receives one at most in a round.
    pub(super) fn of_transfers(
        members: usize,
        bytes: usize,
        schedule: impl FnOnce(&mut dyn FnMut(Transfer)),
    ) -> Self {
        let mut all = vec![Vec::new(); members];
        let mut round: Vec<Transfer> = Vec::new();
        let mut end = |round: &mut Vec<Transfer>| {
            for one in round.iter() {
                all[one.sender].push(Act::Send { to: one.receiver });
            }
            for one in round.drain(..) {
                let passes = if one.overwrites { KEPT } else { COMBINED };
                let act = Act::Receive { from: one.sender, bytes, passes };
                all[one.receiver].push(act);
            }
        };
        schedule(&mut |transfer| {
            if round.first().is_some_and(|first| first.round != transfer.round) {
                end(&mut round);
            }
            round.push(transfer);
        });
        end(&mut round);
        Programs(all)
    }
}

fn acts(schedule: &Schedule) -> Vec<Act> {
    let mut acts = Vec::with_capacity(schedule.steps().len());
    for round in schedule.rounds() {
        let mut before: Option<Region> = None;
        for step in round.all() {
            match *step {
                Step::Send { to, .. } => acts.push(Act::Send { to }),
                Step::Receive { from, bytes, then, .. } => {
                    let (into, passes) = match then {
                        Then::Keep(_) => (None, KEPT),
                        Then::Combine { into, .. } if before == Some(into) => {
                            (Some(into), ACCUMULATED)
                        }
                        Then::Combine { into, .. } => (Some(into), COMBINED),
                    };
                    before = into;
                    acts.push(Act::Receive { from, bytes, passes });
                }
                Step::Copy { .. } => {}
            }
        }
    }
    acts
}

/// More threads than cores.
pub(super) struct Oversubscription<'m> {
    machine: &'m Machine,
    members: usize,
    cores: usize,
    wait: f64,
}

impl<'m> Oversubscription<'m> {
    /// `None` if each member has a core, if the number of cores is unknown, or if the members are not threads.
    pub(super) fn of(machine: &'m Machine, members: usize) -> Option<Self> {
        let cores = machine.cores()?;
        if machine.parameters().growth != Growth::SharedMemory {
            return None;
        }
        let of_core = cores as f64 / members as f64;
        let wait = 1e9 * of_core * machine.l(members, 1, &SyncAttr::Default);
        (cores < members).then_some(Oversubscription { machine, members, cores, wait })
    }

    /// What one pass of a byte takes on a core, in messages of that length, ns.
    fn pass(&self, bytes: usize) -> f64 {
        let g = self.machine.g(self.members, bytes.max(1), &SyncAttr::Default);
        1e9 * OF_BYTE * g * self.cores as f64 / self.members as f64
    }

    /// What it takes that one sends so much to another, who combines it, where each has a core, ns: at least 1.
    pub(super) fn pair_ns(&self, bytes: usize) -> u64 {
        let passes = f64::from(COMBINED) * self.pass(bytes) * bytes as f64;
        ((1.0 + 2.0 * OF_WAIT) * self.wait + passes).max(1.0) as u64
    }

    /// When each is done, ns: whatever can go on first has the core that is free first.
    pub(super) fn ends(&self, arrivals: &[u64], Programs(programs): &Programs) -> Vec<u64> {
        let members = self.members;
        let (mut now, mut next) = (arrivals.to_vec(), vec![0; members]);
        let mut cores = vec![0; self.cores];
        // Messages from one to another, by when they were sent; and whom each waits for.
        let mut under_way: Vec<VecDeque<u64>> = vec![VecDeque::new(); members * members];
        let mut waits_for = vec![None; members];
        // From when on each can go on: they are few, and the first of them is found by looking at all.
        let mut ready = now.clone();
        let mut pass = (usize::MAX, 0.0);
        loop {
            let first = (0..members).min_by_key(|&member| ready[member]);
            let Some(me) = first.filter(|&me| ready[me] < NEVER) else { return now };
            let mut at = ready[me];
            let Some(&act) = programs[me].get(next[me]) else {
                ready[me] = NEVER;
                continue;
            };
            let takes = match act {
                Act::Send { .. } => OF_WAIT * self.wait,
                Act::Receive { from, bytes, passes } => {
                    let Some(sent) = under_way[from * members + me].pop_front() else {
                        waits_for[me] = Some(from);
                        ready[me] = NEVER;
                        continue;
                    };
                    if pass.0 != bytes {
                        pass = (bytes, self.pass(bytes) * bytes as f64);
                    }
                    let wait = if sent > now[me] { self.wait } else { 0.0 };
                    at = at.max(sent);
                    wait + OF_WAIT * self.wait + f64::from(passes) * pass.1
                }
            };
            let core = cores.iter_mut().min().expect("a machine has cores");
            now[me] = (*core).max(at) + takes as u64;
            *core = now[me];
            next[me] += 1;
            ready[me] = now[me];
            if let Act::Send { to } = act {
                under_way[me * members + to].push_back(now[me]);
                if waits_for[to].take_if(|from| *from == me).is_some() {
                    ready[to] = now[me].max(now[to]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lpf_core::machine::Parameters;

    use super::*;
    use crate::algorithms::by_way;
    use crate::algorithms::{Member, Vector};
    use crate::arrival_pattern::clairvoyant::{Instance, Scheduler};
    use crate::simulate::schedules;
    use crate::ways::{Allreduce, Reduce};

    const V: Vector = Vector { bytes: 1 << 20, element: 8 };

    /// A machine whose bytes take 1 ns in messages of any length, and whose l is this.
    fn machine(members: usize, cores: usize, l_ns: f64) -> Machine {
        let mut parameters = Parameters::guess(Growth::SharedMemory);
        parameters.p = members;
        for row in &mut parameters.rows {
            (row.g_ns_per_byte, row.l_ns) = (1.0, l_ns);
        }
        Machine::new(members, members, members, Arc::new(parameters)).on_cores(cores)
    }

    fn ends(machine: &Machine, arrivals: &[u64], programs: &Programs) -> Vec<u64> {
        Oversubscription::of(machine, arrivals.len())
            .expect("more than cores")
            .ends(arrivals, programs)
    }

    fn transposed(members: usize) -> Programs {
        let write = |s: &mut Schedule, m: Member| by_way::allreduce(Allreduce::Transpose, s, m, V);
        Programs::of_schedules(schedules(members, write).into_iter())
    }

    #[test]
    fn members_with_a_core_each_are_not_oversubscribed() {
        assert!(Oversubscription::of(&machine(4, 4, 1.0), 4).is_none());
        assert!(Oversubscription::of(&machine(4, 3, 1.0), 4).is_some());
        let parameters = Arc::new(Parameters::guess(Growth::MessagePassing));
        assert!(
            Oversubscription::of(&Machine::new(4, 4, 4, parameters), 4).is_none(),
            "nothing is known"
        );
    }

    #[test]
    fn cores_share_all_that_is_to_be_done() {
        // Seven blocks of an eighth are combined, the first of them cold, and seven are kept, by each.
        let passes = f64::from(COMBINED + 6 * ACCUMULATED + 7 * KEPT) / 8.0;
        for cores in [1, 2, 3] {
            let machine = machine(8, cores, 1e-9);
            let of_core = 8.0 * passes * V.bytes as f64 * OF_BYTE / 8.0;
            let last = ends(&machine, &[0; 8], &transposed(8)).into_iter().max().unwrap() as f64;
            assert!((of_core * 0.99..of_core * 1.2).contains(&last), "{cores}: {last}, {of_core}");
        }
    }

    #[test]
    fn who_is_late_finds_the_others_done_with_what_they_could_do() {
        let machine = machine(8, 2, 1e-9);
        let mut arrivals = [0; 8];
        let together = *ends(&machine, &arrivals, &transposed(8)).iter().max().unwrap();
        arrivals[5] = 10 * together;
        let late = *ends(&machine, &arrivals, &transposed(8)).iter().max().unwrap() - arrivals[5];
        assert!(late < together && late > together / 2, "{late} of {together}");
    }

    #[test]
    fn waits_and_messages_take_time_of_a_core() {
        let quick = ends(&machine(8, 2, 1e-9), &[0; 8], &transposed(8));
        let slow = ends(&machine(8, 2, 40_000.0), &[0; 8], &transposed(8));
        let [quick, slow] = [quick, slow].map(|all| all.into_iter().max().unwrap());
        // 8 members send and receive 14 messages each on 2 cores, and wait for none or for all.
        let (wait, message) = (10_000, 2_000);
        let (messages, waits) = (8 * 28 * message / 2, 8 * 14 * wait / 2);
        assert!(slow > quick + messages && slow <= quick + messages + waits, "{quick}, {slow}");
    }

    #[test]
    fn transfers_in_rounds_are_the_schedules_of_their_members() {
        let (machine, arrivals) = (machine(5, 2, 1000.0), vec![0, 3_000_000, 0, 50_000, 700_000]);
        let instance = Instance::new(4, 2, 100_000, arrivals.clone()).unwrap();
        let of_transfers = Programs::of_transfers(5, V.bytes / 4, |each| {
            Scheduler::Bits.schedule(&instance, each);
        });
        let write = |s: &mut Schedule, m: Member| {
            use crate::algorithms::by_arrival::{Rounds, reduce_clairvoyant};
            reduce_clairvoyant(s, m, &instance, V, Rounds::Own);
        };
        let of_schedules = Programs::of_schedules(schedules(5, write).into_iter());
        let [one, other] = [of_transfers, of_schedules].map(|of| ends(&machine, &arrivals, &of));
        assert_eq!(one, other);
    }

    #[test]
    fn a_result_that_is_accumulated_is_cheaper_than_one_that_goes_on_from_member_to_member() {
        let machine = machine(8, 2, 1000.0);
        let root = |way| {
            let write = |s: &mut Schedule, m: Member| by_way::reduce((way, true), s, m, 0, V);
            ends(&machine, &[0; 8], &Programs::of_schedules(schedules(8, write).into_iter()))[0]
        };
        assert!(3 * root(Reduce::Transpose) < 2 * root(Reduce::Ring));
    }
}
