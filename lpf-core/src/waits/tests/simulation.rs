//! Random programs on a simulated machine, right and wrong ones.
//!
//! The machine runs processes in random order, delays messages and credits, and publishes statuses
//! late. At random moments a waiting process asks. Whoever is accused must be stuck when nothing
//! moves any more (no false alarm), and when nothing moves any more while somebody waits in an
//! expected sync, somebody must be accused within two rounds (no hang).

use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

use super::*;

const WINDOW: u64 = 2;

#[derive(Clone, Debug)]
enum Op {
    Compute,
    Enter(Call),
    Put(Pid),
    Expect(Pid),
    Flush,
    FullSync,
}

#[derive(Clone, Debug, Default)]
struct Wire {
    /// The call word of every put made.
    made: Vec<u64>,
    sent: u64,
    arrived: u64,
    awaited: u64,
    released: u64,
    /// The sender's knowledge of `released`.
    credit: u64,
}

#[derive(Clone, Debug, Default)]
struct Process {
    program: VecDeque<Op>,
    doing: Doing,
    call: Call,
    superstep: u64,
    /// What others see: as it was at some time before.
    shown: Status,
    /// It received a message of another call: the runtime's stamp ends it here.
    broken: bool,
}

struct Machine {
    /// Counts are read at the moment of the question, not published with the rest.
    counts_are_live: bool,
    processes: Vec<Process>,
    wires: BTreeMap<(Pid, Pid), Wire>,
    random: u64,
    /// Everybody who accused somebody, the steps of its program that were left, and the cause.
    accusers: Vec<(Pid, usize, String)>,
}

impl Machine {
    fn new(programs: Vec<VecDeque<Op>>, seed: u64) -> Self {
        let p = programs.len();
        let wires = (0..p).flat_map(|a| (0..p).map(move |b| ((a, b), Wire::default()))).collect();
        let with = |program| Process { program, ..Default::default() };
        let processes = programs.into_iter().map(with).collect();
        let counts_are_live = seed.is_multiple_of(2);
        Machine { counts_are_live, processes, wires, random: seed | 1, accusers: vec![] }
    }

    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) as usize % below
    }

    fn p(&self) -> Pid {
        self.processes.len()
    }

    /// The oldest thing on the wire moves by one: a put leaves, a message arrives, a credit arrives.
    fn move_wire(&mut self, from: Pid, to: Pid, what: usize) -> bool {
        let wire = self.wires.get_mut(&(from, to)).unwrap();
        let (count, limit) = match what {
            0 => (&mut wire.sent, (wire.made.len() as u64).min(wire.credit + WINDOW)),
            1 => (&mut wire.arrived, wire.sent),
            _ => (&mut wire.credit, wire.released),
        };
        let moves = *count < limit;
        *count += u64::from(moves);
        moves
    }

    /// Wants of a flush: the release that lets the last put made leave.
    fn unflushed(&self, pid: Pid) -> Vec<Want> {
        let wires = (0..self.p()).map(|to| (to, &self.wires[&(pid, to)]));
        let stuck = wires.filter(|(_, w)| w.sent < w.made.len() as u64);
        let want = |(to, w): (Pid, &Wire)| Want {
            what: What::Releases,
            stream: stream(pid, to),
            have: w.credit,
            need: (w.made.len() as u64).saturating_sub(WINDOW),
        };
        stuck.map(want).collect()
    }

    /// What every sync does first.
    fn release_all(&mut self, pid: Pid) {
        for from in 0..self.p() {
            let wire = self.wires.get_mut(&(from, pid)).unwrap();
            wire.released = wire.awaited;
        }
    }

    /// One step of a process; false where it can do nothing.
    fn step(&mut self, pid: Pid) -> bool {
        let process = &self.processes[pid];
        if process.broken || process.doing == Doing::Left {
            return false;
        }
        match (process.doing.clone(), process.program.front().cloned()) {
            (Doing::Computing, Some(op)) => self.begin(pid, op),
            (Doing::Computing, None) => {
                self.release_all(pid);
                self.wait_for_flush(pid, None)
            }
            (Doing::FullSync(superstep), _) => self.end_full_sync(pid, superstep),
            (Doing::Waiting(_), Some(Op::Expect(from))) => self.end_expect(pid, from),
            (Doing::Waiting(_), op) => self.wait_for_flush(pid, op),
            (Doing::Left, _) => false,
        }
    }

    fn begin(&mut self, pid: Pid, op: Op) -> bool {
        let process = &mut self.processes[pid];
        match op {
            Op::Compute => {}
            Op::Enter(call) => process.call = call,
            Op::Put(to) => {
                let word = process.call.word();
                self.wires.get_mut(&(pid, to)).unwrap().made.push(word);
            }
            Op::Expect(from) => {
                self.release_all(pid);
                let wire = self.wires.get_mut(&(from, pid)).unwrap();
                wire.awaited += 1;
                let want = Want { have: wire.arrived, ..message(from, pid, wire.awaited) };
                self.processes[pid].doing = Doing::Waiting(vec![want]);
                return true;
            }
            Op::Flush | Op::FullSync => {
                self.release_all(pid);
                return self.wait_for_flush(pid, Some(op));
            }
        }
        self.processes[pid].program.pop_front();
        true
    }

    fn end_expect(&mut self, pid: Pid, from: Pid) -> bool {
        let wire = &self.wires[&(from, pid)];
        if wire.arrived < wire.awaited {
            return false;
        }
        let word = wire.made[wire.awaited as usize - 1];
        let process = &mut self.processes[pid];
        if word != process.call.word() {
            process.broken = true;
        } else {
            process.program.pop_front();
            process.doing = Doing::Computing;
        }
        true
    }

    /// In the flush of a `Flush`, of a `FullSync`, or of leaving (`None`).
    fn wait_for_flush(&mut self, pid: Pid, op: Option<Op>) -> bool {
        let wants = self.unflushed(pid);
        let process = &mut self.processes[pid];
        let next = match (wants.is_empty(), op) {
            (false, _) => Doing::Waiting(wants),
            (true, Some(Op::FullSync)) => Doing::FullSync(process.superstep),
            (true, Some(_)) => {
                process.program.pop_front();
                Doing::Computing
            }
            (true, None) => Doing::Left,
        };
        let moved = next != process.doing || next == Doing::Computing;
        process.doing = next;
        moved
    }

    fn end_full_sync(&mut self, pid: Pid, superstep: u64) -> bool {
        let arrived =
            |q: &Process| q.superstep > superstep || q.doing == Doing::FullSync(superstep);
        if !self.processes.iter().all(arrived) {
            return false;
        }
        let process = &mut self.processes[pid];
        process.superstep += 1;
        process.doing = Doing::Computing;
        process.program.pop_front();
        true
    }

    fn counts(&self, pid: Pid) -> BTreeMap<Stream, Counts> {
        let counts = (0..self.p()).flat_map(|other| {
            let (out, into) = (&self.wires[&(pid, other)], &self.wires[&(other, pid)]);
            let made = out.made.len() as u64;
            let sends = (stream(pid, other), sent(made));
            let receives = (stream(other, pid), received(into.released, 0));
            if other == pid {
                let both = Counts { sent: sent(made).sent, ..received(into.released, 0) };
                vec![(stream(pid, pid), both)]
            } else {
                vec![sends, receives]
            }
        });
        counts.collect()
    }

    /// A process's status as it is.
    fn status(&self, pid: Pid) -> Status {
        let Process { doing, superstep, call, .. } = &self.processes[pid];
        let (doing, superstep, call) = (doing.clone(), *superstep, *call);
        let counts = self.counts(pid);
        Status { doing, superstep, group: 1, call, counts, ..Status::default() }
    }

    /// A process's status as another sees it.
    fn shown(&self, pid: Pid) -> Status {
        let mut status = self.processes[pid].shown.clone();
        if self.counts_are_live {
            status.counts = self.counts(pid);
        }
        status
    }

    /// One random event, not of `except`.
    fn happen(&mut self, except: Option<Pid>) {
        let (a, b) = (self.random(self.p()), self.random(self.p()));
        match self.random(8) {
            0..4 if except != Some(a) => {
                self.step(a);
            }
            4 => {
                self.processes[a].shown = self.status(a);
            }
            what => {
                self.move_wire(a, b, what % 3);
            }
        }
    }

    /// Process `asker` asks, while the others go on.
    fn ask(&mut self, asker: Pid, suspicion: &mut Suspicion) {
        let process = &self.processes[asker];
        let left = process.program.len();
        let own = self.status(asker);
        let fault = suspicion.diagnose(asker, &own, |pid| {
            for _ in 0..self.random(6) {
                self.happen(Some(asker));
            }
            Some(self.shown(pid))
        });
        if let Some(fault) = fault {
            self.accusers.push((asker, left, fault.cause.to_string()));
        }
    }

    /// Runs until nothing moves, with questions in between.
    fn run(&mut self) {
        // A suspicion belongs to one wait: to one step of the program.
        let mut suspicions: Vec<(usize, Suspicion)> = Vec::new();
        suspicions.resize_with(self.processes.len(), Default::default);
        let mut moved = true;
        while moved {
            for _ in 0..40 {
                self.happen(None);
                let asker = self.random(self.processes.len());
                let process = &self.processes[asker];
                if matches!(process.doing, Doing::Waiting(_)) && !process.broken {
                    let left = process.program.len();
                    if suspicions[asker].0 != left {
                        suspicions[asker] = (left, Suspicion::default());
                    }
                    self.ask(asker, &mut suspicions[asker].1);
                }
            }
            moved = false;
            for a in 0..self.p() {
                moved |= self.step(a);
                for b in 0..self.p() {
                    moved |= (0..3).any(|what| self.move_wire(a, b, what));
                }
            }
        }
    }

    /// The end of a run: everybody who accused is stuck in that very wait.
    fn check_accusers(&self) {
        for (pid, left, cause) in &self.accusers {
            let process = &self.processes[*pid];
            let waits = matches!(process.doing, Doing::Waiting(_));
            let stuck = process.broken || waits && process.program.len() == *left;
            assert!(stuck, "process {pid}, {left} steps to go, went on after {cause}");
        }
    }

    /// Two rounds of questions when nothing moves: does anybody find a fault?
    fn somebody_accuses(&mut self) -> bool {
        for pid in 0..self.p() {
            self.processes[pid].shown = self.status(pid);
        }
        (0..self.p()).any(|pid| {
            let own = self.status(pid);
            let mut suspicion = Suspicion::default();
            let mut ask = || suspicion.diagnose(pid, &own, |q| Some(self.shown(q)));
            ask().or_else(ask).is_some()
        })
    }
}

/// A right program: a sequence of events, each appended to those who take part in it.
fn right(p: Pid, events: &[(u8, Pid, Pid)]) -> Vec<VecDeque<Op>> {
    let mut programs = vec![VecDeque::new(); p];
    let mut call = Call { number: 1, stamp: 9, ..Call::default() };
    programs.iter_mut().for_each(|program| program.push_back(Op::Enter(call)));
    for &(kind, a, b) in events {
        let (a, b) = (a % p, b % p);
        match kind {
            0 => programs.iter_mut().for_each(|program| program.push_back(Op::FullSync)),
            1 => {
                call.number += 1;
                programs.iter_mut().for_each(|program| program.push_back(Op::Enter(call)));
            }
            2 => programs[a].push_back(Op::Compute),
            3 => programs[a].push_back(Op::Flush),
            _ => {
                programs[a].push_back(Op::Put(b));
                programs[b].push_back(Op::Expect(a));
            }
        }
    }
    programs
}

/// Breaks a program at one place.
fn damage(programs: &mut [VecDeque<Op>], who: usize, place: usize, how: u8) {
    let p = programs.len();
    let program = &mut programs[who % p];
    if program.is_empty() {
        return;
    }
    let place = place % program.len();
    match how {
        0 => {
            program.remove(place);
        }
        1 => program.truncate(place),
        // Calls stay in order, because they are counted.
        2 if [place, place / 2].iter().all(|&i| !matches!(program[i], Op::Enter(_))) => {
            program.swap(place / 2, place);
        }
        2 => {}
        3 => program.insert(place, Op::FullSync),
        4 => program.insert(place, Op::Expect(place % p)),
        _ => {
            if let Some(Op::Enter(call)) = program.get_mut(place) {
                call.stamp += 1;
            }
        }
    }
}

fn events() -> impl Strategy<Value = Vec<(u8, Pid, Pid)>> {
    prop::collection::vec((0..12_u8, 0..5_usize, 0..5_usize), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..Default::default() })]

    #[test]
    fn right_programs_end_and_nobody_is_accused(
        p in 1..5_usize, events in events(), seed in any::<u64>()
    ) {
        let mut machine = Machine::new(right(p, &events), seed);
        machine.run();
        prop_assert!(machine.processes.iter().all(|q| q.doing == Doing::Left), "the simulation hangs");
        prop_assert!(machine.accusers.is_empty());
    }

    #[test]
    fn wrong_programs_are_accused_when_they_are_stuck_and_not_before(
        p in 1..5_usize, events in events(), seed in any::<u64>(),
        damages in prop::collection::vec((0..4_usize, 0..40_usize, 0..6_u8), 1..4)
    ) {
        let mut programs = right(p, &events);
        for (who, place, how) in damages {
            damage(&mut programs, who, place, how);
        }
        let mut machine = Machine::new(programs, seed);
        machine.run();
        machine.check_accusers();
        let broken = machine.processes.iter().any(|q| q.broken);
        let waits = machine.processes.iter().any(|q| matches!(q.doing, Doing::Waiting(_)));
        prop_assert!(!waits || broken || machine.somebody_accuses(), "a wait that nobody ends");
    }
}
