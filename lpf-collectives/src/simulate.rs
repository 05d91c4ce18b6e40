//! All members of a group in memory: what algorithms do, without a backend.

use std::collections::{HashMap, VecDeque};

use crate::algorithms::Member;
use crate::blocks::Span;
use crate::schedule::{Buffer, Region, Schedule, Step, Then};

/// A member's buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) input: Vec<u8>,
    /// Nothing: the output is the input.
    pub(crate) output: Option<Vec<u8>>,
    pub(crate) scratch: Vec<u8>,
}

impl Memory {
    fn buffer(&mut self, buffer: Buffer) -> &mut Vec<u8> {
        match buffer {
            Buffer::Output => self.output.as_mut().unwrap_or(&mut self.input),
            Buffer::Input => &mut self.input,
            Buffer::Scratch => &mut self.scratch,
        }
    }

    fn read(&mut self, region: Region) -> Vec<u8> {
        self.buffer(region.buffer)[region.span.start..region.span.end()].to_vec()
    }

    fn write(&mut self, region: Region, bytes: &[u8]) {
        self.buffer(region.buffer)[region.span.start..region.span.end()].copy_from_slice(bytes);
    }

    pub(crate) fn result(&self) -> &[u8] {
        self.output.as_ref().unwrap_or(&self.input)
    }
}

/// Everybody's schedule.
pub(crate) fn schedules(
    members: usize,
    mut write: impl FnMut(&mut Schedule, Member),
) -> Vec<Schedule> {
    (0..members)
        .map(|me| {
            let mut schedule = Schedule::default();
            write(&mut schedule, Member { me, members });
            schedule
        })
        .collect()
}

/// What a superstep of a schedule moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Superstep {
    /// The most that a member sends or receives.
    pub(crate) h: usize,
    /// The most messages that a member sends or receives.
    pub(crate) messages: usize,
    /// The most bytes that a member combines.
    pub(crate) combined: usize,
}

/// Checks that the rounds of all members fit each other, and says what they move.
pub(crate) fn supersteps(all: &[Schedule]) -> Vec<Superstep> {
    let rounds = all[0].rounds().len();
    assert!(all.iter().all(|one| one.rounds().len() == rounds), "not as many rounds everywhere");
    (0..rounds).map(|round| superstep(all, round)).collect()
}

/// Bytes, whether they are kept, and where they are staged.
type Sent = (usize, bool, usize);

fn superstep(all: &[Schedule], round: usize) -> Superstep {
    let mut sent: HashMap<(usize, usize), VecDeque<Sent>> = HashMap::new();
    let (mut out, mut into) = (vec![(0, 0); all.len()], vec![(0, 0); all.len()]);
    for (me, schedule) in all.iter().enumerate() {
        let mut has_received = false;
        for step in schedule.rounds().nth(round).expect("there are as many").all() {
            match *step {
                Step::Send { to, from, kept, stage, .. } => {
                    assert!(!has_received, "sends come before receives in a round");
                    assert_ne!(to, me);
                    sent.entry((me, to)).or_default().push_back((from.span.bytes, kept, stage));
                    out[me] = (out[me].0 + from.span.bytes, out[me].1 + 1);
                }
                Step::Receive { .. } => has_received = true,
                _ => {}
            }
        }
    }
    let mut combined = 0;
    for (me, schedule) in all.iter().enumerate() {
        let mut staged: Vec<Span> = Vec::new();
        let mut own = 0;
        for step in schedule.rounds().nth(round).expect("there are as many").all() {
            let Step::Receive { from, bytes, stage, then, .. } = *step else { continue };
            let queue = sent.get_mut(&(from, me)).expect("a member sends in this round");
            let kept = matches!(then, Then::Keep(_));
            assert_eq!(queue.pop_front(), Some((bytes, kept, stage)), "round {round}, member {me}");
            let here = Span { start: stage, bytes };
            let meets = |other: &Span| here.start < other.end() && other.start < here.end();
            assert!(!staged.iter().any(meets), "stages overlap: {here:?} {staged:?}");
            staged.push(here);
            into[me] = (into[me].0 + bytes, into[me].1 + 1);
            own += if kept { 0 } else { bytes };
        }
        combined = combined.max(own);
    }
    assert!(sent.values().all(VecDeque::is_empty), "a message without a receive");
    let most = |f: fn(&(usize, usize)) -> usize| out.iter().chain(&into).map(f).max().unwrap_or(0);
    Superstep { h: most(|x| x.0), messages: most(|x| x.1), combined }
}

/// Carries out all schedules, each step as early as it can be.
pub(crate) fn run(
    all: &[Schedule],
    memory: &mut [Memory],
    combine: impl Fn(&[u8], &[u8]) -> Vec<u8>,
) {
    let mut next = vec![0; all.len()];
    let mut under_way: HashMap<(usize, usize), VecDeque<Vec<u8>>> = HashMap::new();
    loop {
        let mut advanced = false;
        for me in 0..all.len() {
            while let Some(step) = all[me].steps().get(next[me]) {
                let own = &mut memory[me];
                match *step {
                    Step::Send { to, from, .. } => {
                        let message = own.read(from);
                        under_way.entry((me, to)).or_default().push_back(message);
                    }
                    Step::Receive { from, bytes, then, .. } => {
                        let queue = under_way.get_mut(&(from, me));
                        let Some(message) = queue.and_then(VecDeque::pop_front) else { break };
                        assert_eq!(message.len(), bytes);
                        match then {
                            Then::Keep(to) => own.write(to, &message),
                            Then::Combine { with, into, left } => {
                                let here = own.read(with);
                                let (a, b) =
                                    if left { (&message, &here) } else { (&here, &message) };
                                own.write(into, &combine(a, b));
                            }
                        }
                    }
                    Step::Copy { from, to, .. } => {
                        let bytes = own.read(from);
                        own.write(to, &bytes);
                    }
                }
                next[me] += 1;
                advanced = true;
            }
        }
        if !advanced {
            break;
        }
    }
    for (me, schedule) in all.iter().enumerate() {
        assert_eq!(next[me], schedule.steps().len(), "member {me} waits for ever");
    }
    assert!(under_way.values().all(VecDeque::is_empty));
}

/// Numbers for tests, the same in every run: xorshift64*.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
    }
}

/// A number above 0, and no more than 1.
pub(crate) fn uniform(random: &mut Random) -> f64 {
    (random.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64
}

/// How long something takes whose mean is 1: a number of a gamma distribution whose deviation is `cv`.
pub(crate) fn gamma(random: &mut Random, cv: f64) -> f64 {
    if cv == 0.0 {
        return 1.0;
    }
    // By Marsaglia and Tsang, who do so for shapes of 1 and more: a lesser one is one more by the power of a number.
    let wanted = 1.0 / (cv * cv);
    let (shape, part) = match wanted {
        1.0.. => (wanted, 1.0),
        _ => (wanted + 1.0, uniform(random).powf(1.0 / wanted)),
    };
    let (d, c) = (shape - 1.0 / 3.0, 1.0 / (9.0 * shape - 3.0).sqrt());
    loop {
        // A normal number, by Box and Muller.
        let far = (-2.0 * uniform(random).ln()).sqrt();
        let x = far * (std::f64::consts::TAU * uniform(random)).cos();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && uniform(random).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v * part / wanted;
        }
    }
}

/// How long something takes that is run so many times: the mean, the variance, and how far both may be off, as standard
/// deviations of theirs.
pub(crate) fn makespans(runs: u32, mut one: impl FnMut() -> f64) -> [(f64, f64); 2] {
    let all: Vec<f64> = (0..runs).map(|_| one()).collect();
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / f64::from(runs);
    let middle = mean(&mut all.iter().copied());
    let moment = |nth| mean(&mut all.iter().map(|one| (one - middle).powi(nth)));
    let (variance, fourth) = (moment(2), moment(4));
    let off = |variance: f64| (variance / f64::from(runs)).sqrt();
    [(middle, off(variance)), (variance, off(fourth - variance * variance))]
}
