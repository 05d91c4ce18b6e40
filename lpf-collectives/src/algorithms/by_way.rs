//! The algorithm of each way to do a collective: what the calls use, and the tests. A way that is missing here
//! does not compile.

use super::*;
use crate::blocks::Blocks;
use crate::schedule::Schedule;
use crate::ways::*;

/// A broadcast of a vector.
pub(crate) fn broadcast(way: Broadcast, s: &mut Schedule, m: Member, root: usize, v: Vector) {
    match way {
        Broadcast::Direct => broadcast_direct(s, m, root, v),
        Broadcast::Binomial => broadcast_binomial(s, m, root, v),
        Broadcast::Square => broadcast_square(s, m, root, v),
        Broadcast::TwoPhase => broadcast_two_phase(s, m, root, v),
    }
}

/// A reduction of vectors; of an operator that does not commute in the order of members.
pub(crate) fn reduce(
    (way, commutes): (Reduce, bool),
    s: &mut Schedule,
    m: Member,
    root: usize,
    piece: impl Into<Piece>,
) {
    let (piece, members) = (piece.into(), m.members);
    let v = piece.v;
    match way {
        Reduce::Direct => reduce_direct(s, m, root, v),
        Reduce::Transpose => reduce_transpose(s, m, root, piece.blocks(members)),
        Reduce::Square => reduce_square(s, m, root, v, commutes),
        Reduce::Binomial => reduce_binomial(s, m, root, v, commutes),
        Reduce::Rabenseifner => reduce_rabenseifner(s, m, root, v),
        Reduce::Radix => reduce_radix(s, m, root, piece.blocks(members)),
        Reduce::Ring => reduce_ring(s, m, root, piece.blocks(members)),
    }
}

/// An all-reduce of vectors.
pub(crate) fn allreduce(way: Allreduce, s: &mut Schedule, m: Member, piece: impl Into<Piece>) {
    let piece = piece.into();
    match way {
        Allreduce::Doubling => allreduce_doubling(s, m, piece.v),
        Allreduce::Ring => allreduce_ring(s, m, piece.blocks(m.members)),
        Allreduce::Rabenseifner => allreduce_rabenseifner(s, m, piece.v),
        Allreduce::Transpose => allreduce_transpose(s, m, piece.blocks(m.members)),
    }
}

/// A reduce-scatter of blocks.
pub(crate) fn reduce_scatter(
    way: ReduceScatter,
    s: &mut Schedule,
    m: Member,
    blocks: Blocks<'_>,
    into: Results,
) {
    match way {
        ReduceScatter::Direct => reduce_scatter_direct(s, m, blocks, into),
        ReduceScatter::Ring => reduce_scatter_ring(s, m, blocks, into),
    }
}

/// A scan of vectors, or an exscan.
pub(crate) fn scan(way: Scan, s: &mut Schedule, m: Member, v: Vector, exclusive: bool) {
    match way {
        Scan::Direct => scan_direct(s, m, v, exclusive),
        Scan::Tree => scan_tree(s, m, v, exclusive),
    }
}

/// A gather of blocks.
pub(crate) fn gather(way: Gather, s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    match way {
        Gather::Direct => gather_direct(s, m, root, blocks),
        Gather::Binomial => gather_binomial(s, m, root, blocks),
    }
}

/// A scatter of blocks.
pub(crate) fn scatter(way: Gather, s: &mut Schedule, m: Member, root: usize, blocks: Blocks<'_>) {
    match way {
        Gather::Direct => scatter_direct(s, m, root, blocks),
        Gather::Binomial => scatter_binomial(s, m, root, blocks),
    }
}

/// An all-gather of blocks.
pub(crate) fn allgather(way: Allgather, s: &mut Schedule, m: Member, blocks: Blocks<'_>) {
    match way {
        Allgather::Direct => allgather_direct(s, m, blocks),
        Allgather::Bruck => allgather_bruck(s, m, blocks),
        Allgather::Ring => allgather_ring(s, m, blocks),
    }
}

/// An exchange of blocks of one length.
pub(crate) fn alltoall(way: Alltoall, s: &mut Schedule, m: Member, blocks: Blocks<'_>) {
    match way {
        Alltoall::Direct => alltoall_direct(s, m, blocks, blocks),
        Alltoall::Bruck => alltoall_bruck(s, m, blocks, blocks),
    }
}
