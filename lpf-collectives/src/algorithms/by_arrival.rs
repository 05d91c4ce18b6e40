//! Reductions whose order is that of arrival: what each member does of a schedule of [`arrival_pattern`].
//!
//! A vector is cut into segments. What a member has of one lies in its output from the first operand on that it
//! combines, and is its own contribution before: so the output is room at every member, not at a root alone.
//!
//! [`arrival_pattern`]: crate::arrival_pattern

use lpf_core::Pid;

use super::member::Member;
use super::reduce::Order;
use super::vector::{Vector, input, output};
use crate::arrival_pattern::chain::{Plan, Step};
use crate::arrival_pattern::clairvoyant::{Instance, Scheduler, Transfer as InRound, to_all};
use crate::arrival_pattern::trees::{Tree, children};
use crate::blocks::{Blocks, Span};
use crate::schedule::{Region, Schedule};

/// How the rounds of a schedule end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// A member's are its own: it waits for nobody but who sends to it.
    Own,
    /// All members have the same, and a message is no longer than so many bytes.
    Common { longest: usize },
}

/// The schedule of one member, as it is written.
struct Segments<'a> {
    s: &'a mut Schedule,
    blocks: Blocks<'static>,
    /// Where its value of each segment lies: in the output, or still in the input.
    combined: Vec<bool>,
    /// A transfer goes in so many parts of so many bytes.
    parts: usize,
    longest: usize,
}

/// A transfer, seen from one of its ends: who is at the other, and which segment it is. Kept as it is, or combined.
type Transfer = (Pid, u32, bool);

impl<'a> Segments<'a> {
    fn new(s: &'a mut Schedule, v: Vector, segments: usize, rounds: Rounds) -> Self {
        let blocks = v.blocks(segments);
        let bytes = (0..segments).map(|segment| blocks.of(segment).bytes).max().unwrap_or(0);
        let longest = match rounds {
            Rounds::Own => usize::MAX,
            Rounds::Common { longest } => (longest / v.element.max(1) * v.element).max(v.element),
        };
        let parts = bytes.div_ceil(longest.max(1)).max(1);
        Segments { s, blocks, combined: vec![false; segments], parts, longest }
    }

    /// A part of a segment; nothing where it has no such part.
    fn part(&self, segment: u32, part: usize) -> Span {
        let whole = self.blocks.of(segment as usize);
        let start = part.saturating_mul(self.longest).min(whole.bytes);
        let bytes = (whole.bytes - start).min(self.longest);
        Span { start: whole.start + start, bytes }
    }

    /// What this member has of a part.
    fn held(&self, segment: u32, part: usize) -> Region {
        let span = self.part(segment, part);
        if self.combined[segment as usize] { output(span) } else { input(span) }
    }

    fn send(&mut self, (to, segment, kept): Transfer, part: usize) {
        let from = self.held(segment, part);
        self.s.send(to, from, kept, 0);
    }

    /// `left`: what comes is the left operand.
    fn receive(&mut self, (from, segment, kept): Transfer, part: usize, left: bool) {
        let (with, into) = (self.held(segment, part), output(self.part(segment, part)));
        match kept {
            true => self.s.take(from, into, 0),
            false => self.s.fold(from, with, into, left, 0),
        }
        if part + 1 == self.parts {
            self.combined[segment as usize] = true;
        }
    }

    /// A round in which this member sends and receives one segment at most.
    fn round(&mut self, sends: Option<Transfer>, receives: Option<Transfer>, left: bool) {
        for part in 0..self.parts {
            if let Some(transfer) = sends {
                self.send(transfer, part);
            }
            if let Some(transfer) = receives {
                self.receive(transfer, part, left);
            }
            self.s.next_round();
        }
    }
}

/// A Clairvoyant schedule: a member's transfers, of which it has one each way in a round. What comes is the right
/// operand.
fn clairvoyant(
    s: &mut Schedule,
    m: Member,
    (v, segments): (Vector, u32),
    rounds: Rounds,
    schedule: impl FnOnce(&mut dyn FnMut(InRound)),
) {
    let mut segments = Segments::new(s, v, segments as usize, rounds);
    let (mut now, mut sends, mut receives) = (None, None, None);
    let mut end = |sends: &mut Option<Transfer>, receives: &mut Option<Transfer>| {
        if sends.is_some() || receives.is_some() || rounds != Rounds::Own {
            segments.round(sends.take(), receives.take(), false);
        }
    };
    schedule(&mut |transfer| {
        if now.is_some_and(|round| round != transfer.round) {
            end(&mut sends, &mut receives);
        }
        now = Some(transfer.round);
        if transfer.sender == m.me {
            sends = Some((transfer.receiver, transfer.segment, transfer.overwrites));
        }
        if transfer.receiver == m.me {
            receives = Some((transfer.sender, transfer.segment, transfer.overwrites));
        }
    });
    end(&mut sends, &mut receives);
    if m.members == 1 {
        s.copy(input(v.span()), output(v.span()));
    }
}

/// Reduce by a Clairvoyant schedule, for operators that commute.
pub(crate) fn reduce_clairvoyant(
    s: &mut Schedule,
    m: Member,
    instance: &Instance,
    v: Vector,
    rounds: Rounds,
) {
    clairvoyant(s, m, (v, instance.segments()), rounds, |each| {
        Scheduler::Bits.schedule(instance, each);
    });
}

/// Allreduce by a Clairvoyant schedule, for operators that commute.
pub(crate) fn allreduce_clairvoyant(
    s: &mut Schedule,
    m: Member,
    instance: &Instance,
    v: Vector,
    rounds: Rounds,
) {
    clairvoyant(s, m, (v, instance.segments()), rounds, |each| to_all(instance, each));
}

/// Reduce by a tree that does not depend on arrivals. Where the operator does not commute and the root is not the
/// first member, that one passes the result on.
pub(crate) fn reduce_tree(
    s: &mut Schedule,
    m: Member,
    (tree, commutes): (Tree, bool),
    root: usize,
    v: Vector,
    rounds: Rounds,
) {
    let (order, all) = (Order::new(m, root, commutes), children(tree, m.members));
    let pair = |child, node| [order.member(child), order.member(node)];
    let pairs = all
        .iter()
        .enumerate()
        .rev()
        .flat_map(|(node, children)| children.iter().map(move |&child| pair(child, node)));
    pairs_in_rounds(s, m, pairs, (v, rounds), |_| false, order.passes_on(root));
}

/// Reduce by pairs, each a sender and a receiver, in the order in which each of them takes part in its own. Operands
/// are in the order of their members' numbers.
pub(crate) fn reduce_pairs(
    s: &mut Schedule,
    m: Member,
    pairs: impl Iterator<Item = [usize; 2]>,
    v: Vector,
    rounds: Rounds,
) {
    pairs_in_rounds(s, m, pairs, (v, rounds), |[from, to]| from < to, None);
}

/// `left`: what comes is the left operand. At last the result is passed on.
fn pairs_in_rounds(
    s: &mut Schedule,
    m: Member,
    pairs: impl Iterator<Item = [usize; 2]>,
    (v, rounds): (Vector, Rounds),
    left: impl Fn([usize; 2]) -> bool,
    passes_on: Option<[usize; 2]>,
) {
    let mut segments = Segments::new(s, v, 1, rounds);
    // The next round of each, and what goes in which.
    let mut next = vec![0; m.members];
    let mut hops: Vec<(usize, [usize; 2], bool)> = Vec::with_capacity(m.members);
    let kept = pairs.map(|pair| (pair, false)).chain(passes_on.map(|pair| (pair, true)));
    for (pair @ [from, to], kept) in kept {
        let round = next[from].max(next[to]);
        hops.push((round, pair, kept));
        (next[from], next[to]) = (round + 1, round + 1);
    }
    hops.sort_by_key(|&(round, ..)| round);
    let last = hops.last().map_or(0, |&(round, ..)| round + 1);
    let mut hops = hops.into_iter().peekable();
    for round in 0..last {
        let (mut sends, mut receives, mut is_left) = (None, None, false);
        while let Some((_, pair @ [from, to], kept)) = hops.next_if(|&(of, ..)| of == round) {
            if from == m.me {
                sends = Some((to, 0, kept));
            }
            if to == m.me {
                (receives, is_left) = (Some((from, 0, kept)), left(pair));
            }
        }
        if sends.is_some() || receives.is_some() || rounds != Rounds::Own {
            segments.round(sends, receives, is_left);
        }
    }
    if m.members == 1 {
        s.copy(input(v.span()), output(v.span()));
    }
}

/// Allreduce by a chain, in which a member sends to the next alone. For operators that commute, but the linear one.
pub(crate) fn allreduce_chain(s: &mut Schedule, m: Member, plan: &Plan, v: Vector, rounds: Rounds) {
    let place = plan.place_of(m.me);
    let mut segments = Segments::new(s, v, m.members, rounds);
    let transfer = |step: Step| match step {
        Step::Send { to, segment, whole } => (to, segment, whole),
        Step::Receive { from, segment, whole } => (from, segment, whole),
    };
    if rounds == Rounds::Own {
        // What is sent leaves at once; who waits has a round to himself.
        for step in plan.program(place) {
            match step {
                Step::Send { .. } => segments.send(transfer(step), 0),
                Step::Receive { .. } => {
                    segments.receive(transfer(step), 0, true);
                    segments.s.next_round();
                }
            }
        }
        segments.s.next_round();
    } else {
        for [sends, receives] in plan.supersteps(place) {
            segments.round(sends.map(transfer), receives.map(transfer), true);
        }
    }
    if m.members == 1 {
        s.copy(input(v.span()), output(v.span()));
    }
}
