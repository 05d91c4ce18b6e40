//! The algorithm of a call: how it is chosen, and what it writes.

use lpf_core::{Context, Lpf};

use super::lens::Lens;
use super::raw::{RawCall, Write};
use crate::algorithms::*;
use crate::collectives::Collectives;
use crate::cost::{Supersteps, choose};
use crate::hash::mixed;
use crate::kinds::Collective;
use crate::run::Buffers;
use crate::schedule::Schedule;
use crate::scratch::Scratch;
use crate::ways::*;

/// The algorithm of a call.
#[derive(Clone, Copy)]
pub(super) enum Algorithm<'a> {
    Broadcast(Broadcast),
    Reduce(Reduce),
    Allreduce(Allreduce),
    ReduceScatter(ReduceScatter),
    Scan(Scan),
    Gather(Gather),
    Scatter(Gather),
    Allgather(Allgather),
    Alltoall(Alltoall),
    /// An alltoall of blocks of different lengths.
    Exchange,
    /// One that the caller has chosen.
    Given(Write<'a>),
}

impl Algorithm<'_> {
    /// Its number among those of its collective.
    pub(super) fn number(self, given: usize) -> usize {
        match self {
            Algorithm::Broadcast(one) => one as usize,
            Algorithm::Reduce(one) => one as usize,
            Algorithm::Allreduce(one) => one as usize,
            Algorithm::ReduceScatter(one) => one as usize,
            Algorithm::Scan(one) => one as usize,
            Algorithm::Gather(one) | Algorithm::Scatter(one) => one as usize,
            Algorithm::Allgather(one) => one as usize,
            Algorithm::Alltoall(one) => one as usize,
            Algorithm::Exchange => Alltoall::ALL.len(),
            Algorithm::Given(_) => given,
        }
    }

    pub(super) fn scratch(self, members: usize) -> Scratch {
        match self {
            Algorithm::Broadcast(one) => one.scratch(),
            Algorithm::Reduce(one) => one.scratch(members),
            Algorithm::Allreduce(one) => one.scratch(members),
            Algorithm::ReduceScatter(one) => one.scratch(members),
            Algorithm::Scan(one) => one.scratch(members),
            Algorithm::Gather(one) | Algorithm::Scatter(one) => one.scratch(members),
            Algorithm::Allgather(one) => one.scratch(members),
            Algorithm::Alltoall(one) => one.scratch(members),
            // No member knows the counts of all, so no round is joined by all.
            Algorithm::Exchange => Scratch { unknown: true, ..Scratch::default() },
            Algorithm::Given(_) => Scratch::default(),
        }
    }
}

/// A part of a call that is carried out at a time, in elements: of a vector, or of each block.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) len: usize,
    /// Whether it is a part of each block of an evenly divided vector.
    pub(super) of_blocks: bool,
}

impl<'a> RawCall<'a> {
    /// The vector of a member; of blocks, all of them.
    fn vector(&self, members: usize) -> Vector {
        let element = self.what.element;
        let len = match self.what.kind {
            Collective::Broadcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Scan
            | Collective::Exscan => self.lens.longest(),
            _ => self.lens.total(members),
        };
        Vector { bytes: len * element, element }
    }

    /// The elements that are worked on part by part.
    pub(super) fn len(&self, of_blocks: bool, members: usize) -> usize {
        match self.lens {
            Lens::Equal(_) if of_blocks => {
                let v = self.vector(members);
                v.blocks(members).longest() / v.element.max(1)
            }
            // Not in parts.
            Lens::Exchange { .. } => 0,
            lens => lens.longest(),
        }
    }

    /// Where a part lies.
    pub(super) fn buffers(&self, m: Member, part: Part) -> Buffers {
        let own = self.lens.skipped(m.me, part.first);
        let (x, y) = match self.what.kind {
            _ if part.of_blocks => (0, 0),
            Collective::Broadcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Scan
            | Collective::Exscan => (own, own),
            Collective::Gather => (own, 0),
            Collective::ReduceScatter | Collective::Scatter => (0, own),
            Collective::Allgather | Collective::Alltoall => (0, 0),
        };
        let element = self.what.element;
        let Buffers { input, output } = self.memory;
        Buffers { input: input.from(x * element), output: output.from(y * element) }
    }

    /// Writes the schedule of a part.
    pub(super) fn write(
        &self,
        algorithm: Algorithm<'a>,
        ends: &[Vec<usize>; 2],
        s: &mut Schedule,
        m: Member,
        part: Part,
    ) {
        let (root, element, commutes) = (self.what.root, self.what.element, self.what.commutes);
        let (first, bytes) = (part.first * element, part.len * element);
        let v = Vector { bytes, element };
        let piece = || match part.of_blocks {
            true => Piece { v: self.vector(m.members), first, most: bytes },
            false => v.into(),
        };
        let blocks = self.lens.blocks(&ends[0], element, (part.first, part.len));
        match algorithm {
            Algorithm::Broadcast(one) => by_way::broadcast(one, s, m, root, v),
            Algorithm::Reduce(one) => by_way::reduce((one, commutes), s, m, root, piece()),
            Algorithm::Allreduce(one) => by_way::allreduce(one, s, m, piece()),
            Algorithm::ReduceScatter(one) => {
                by_way::reduce_scatter(one, s, m, blocks, Results::Front);
            }
            Algorithm::Scan(one) => {
                by_way::scan(one, s, m, v, self.what.kind == Collective::Exscan);
            }
            Algorithm::Gather(one) => by_way::gather(one, s, m, root, blocks),
            Algorithm::Scatter(one) => by_way::scatter(one, s, m, root, blocks),
            Algorithm::Allgather(one) => {
                own_block(s, m, self.lens.skipped(m.me, part.first) * element, blocks);
                by_way::allgather(one, s, m, blocks);
            }
            Algorithm::Alltoall(one) => by_way::alltoall(one, s, m, blocks),
            Algorithm::Exchange => {
                let part = (0, self.lens.longest());
                let [sent, received] =
                    ends.each_ref().map(|ends| self.lens.blocks(ends, element, part));
                alltoall_direct(s, m, sent, received);
            }
            Algorithm::Given(write) => write(s, m),
        }
    }
}

impl<'s> Collectives<'s> {
    /// The algorithm of a call: the given one, the preferred one, or the cheapest.
    pub(super) fn algorithm<'a, L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        call: &RawCall<'a>,
    ) -> Algorithm<'a> {
        if let Some(write) = call.given {
            return Algorithm::Given(write);
        }
        let (p, prefers) = (self.len(), &self.preferences);
        let (kind, commutes, v) = (call.what.kind, call.what.commutes, call.vector(p));
        let is_even = matches!(call.lens, Lens::Equal(_));
        let gather = |preferred: Option<Gather>| match is_even {
            true => preferred.unwrap_or_else(|| {
                let cost = |one: Gather| Some(one.supersteps(p, v));
                self.cheapest(ctx, (Collective::Gather, v, true), Gather::ALL, cost)
            }),
            // The tree is for blocks of one length.
            false => Gather::Direct,
        };
        match kind {
            Collective::Broadcast => Algorithm::Broadcast(prefers.broadcast.unwrap_or_else(|| {
                let cost = |one: Broadcast| Some(one.supersteps(p, v));
                self.cheapest(ctx, (kind, v, true), Broadcast::ALL, cost)
            })),
            Collective::Reduce => Algorithm::Reduce(self.usual_reduce(ctx, v, commutes)),
            Collective::Allreduce => Algorithm::Allreduce(self.usual_allreduce(ctx, v, commutes)),
            Collective::ReduceScatter if !commutes => {
                Algorithm::ReduceScatter(ReduceScatter::Direct)
            }
            Collective::ReduceScatter => {
                Algorithm::ReduceScatter(prefers.reduce_scatter.unwrap_or_else(|| {
                    let cost = |one: ReduceScatter| Some(one.supersteps(p, v));
                    self.cheapest(ctx, (kind, v, true), ReduceScatter::ALL, cost)
                }))
            }
            Collective::Scan | Collective::Exscan => {
                Algorithm::Scan(prefers.scan.unwrap_or_else(|| {
                    let exclusive = kind == Collective::Exscan;
                    let cost = |one: Scan| Some(one.supersteps(p, v, exclusive));
                    self.cheapest(ctx, (kind, v, true), Scan::ALL, cost)
                }))
            }
            Collective::Gather => Algorithm::Gather(gather(prefers.gather)),
            Collective::Scatter => Algorithm::Scatter(gather(prefers.scatter)),
            Collective::Allgather => Algorithm::Allgather(prefers.allgather.unwrap_or_else(|| {
                let cost = |one: Allgather| Some(one.supersteps(p, v));
                self.cheapest(ctx, (kind, v, true), Allgather::ALL, cost)
            })),
            Collective::Alltoall if !is_even => Algorithm::Exchange,
            Collective::Alltoall => Algorithm::Alltoall(prefers.alltoall.unwrap_or_else(|| {
                let cost = |one: Alltoall| Some(one.supersteps(p, v));
                self.cheapest(ctx, (kind, v, true), Alltoall::ALL, cost)
            })),
        }
    }

    /// The arrival-unaware algorithm of a reduction to one member: as preferred, or the cheapest.
    pub(super) fn usual_reduce<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        v: Vector,
        commutes: bool,
    ) -> Reduce {
        let one = self.preferences.reduce.unwrap_or_else(|| {
            self.cheapest(ctx, (Collective::Reduce, v, commutes), Reduce::ALL, |one| {
                (commutes || one != Reduce::Ring).then(|| one.supersteps(self.len(), v))
            })
        });
        if one == Reduce::Ring && !commutes { Reduce::Transpose } else { one }
    }

    /// The same of a reduction to all.
    pub(super) fn usual_allreduce<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        v: Vector,
        commutes: bool,
    ) -> Allreduce {
        let one = self.preferences.allreduce.unwrap_or_else(|| {
            self.cheapest(ctx, (Collective::Allreduce, v, commutes), Allreduce::ALL, |one| {
                (commutes || one != Allreduce::Ring).then(|| one.supersteps(self.len(), v))
            })
        });
        if one == Allreduce::Ring && !commutes { Allreduce::Transpose } else { one }
    }

    /// The cheapest of some algorithms of a collective on a vector; those that cannot be used have no cost.
    fn cheapest<L: Lpf, W: Copy>(
        &self,
        ctx: &Context<'s, L>,
        (kind, v, commutes): (Collective, Vector, bool),
        all: &[W],
        cost: impl Fn(W) -> Option<Supersteps>,
    ) -> W {
        let small = (v.bytes as u64) << 5 | (kind as u64) << 1 | u64::from(commutes);
        let choice = self.choices.of(mixed(small, v.element as u64).max(1), || {
            let (machine, members) = (ctx.probe(), self.len());
            choose(all, cost, |one| one.seconds(&machine, members))
        });
        all[choice]
    }
}
