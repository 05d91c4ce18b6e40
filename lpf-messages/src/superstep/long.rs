//! The messages of requests whose bytes do not travel with the meta-data.

use std::ops::Range;

use super::super::tickets::Tickets;
use super::super::transport::{Piece, Transport};
use super::super::turns::Turns;
use lpf_core::Pid;
use lpf_core::conflict::Conflicts;

/// Long messages of one superstep.
#[derive(Debug, Default)]
pub(super) struct Long {
    pub(super) incoming: Vec<Piece>,
    pub(super) outgoing: Vec<Piece>,
    pub(super) pairs: Vec<Pair>,
    /// One message's pieces, empty ones left out and neighbours joined.
    pub(super) message: Vec<Piece>,
    pub(super) receiving: Tickets,
    pub(super) sending: Turns,
    /// The writes of this superstep that may overlap.
    pub(super) conflicts: Conflicts,
    /// Messages of this superstep.
    pub(super) sent: u64,
}

/// The long requests between this process and one other.
#[derive(Clone, Debug, Default)]
pub(super) struct Pair {
    pub(super) incoming: Range<usize>,
    pub(super) outgoing: Range<usize>,
    /// Bytes of short gets: this process's gets from it, and its gets from this process.
    pub(super) short_in: usize,
    pub(super) short_out: usize,
    /// Puts of it have arrived with their bytes.
    pub(super) short_puts: bool,
}

impl Pair {
    /// The length of its longest possible answer.
    pub(super) fn answer_in(&self, resolve: bool) -> usize {
        let lengths = if resolve { self.outgoing.len() * size_of::<u64>() } else { 0 };
        self.short_in.next_multiple_of(8) + lengths
    }

    /// Whether the other process waits for an answer.
    pub(super) fn answers(&self, resolve: bool) -> bool {
        self.short_out > 0 || resolve && !self.incoming.is_empty()
    }
}

impl Long {
    /// Room for `requests` requests, or the bytes that were refused.
    pub(super) fn new(nprocs: usize, requests: usize) -> std::result::Result<Self, usize> {
        let mut long = Long {
            receiving: Tickets::with_capacity(nprocs),
            sending: Turns::new(nprocs),
            ..Long::default()
        };
        let bytes = requests.saturating_mul(3 * size_of::<Piece>()).saturating_add(nprocs);
        for list in [&mut long.incoming, &mut long.outgoing, &mut long.message] {
            list.try_reserve_exact(requests).map_err(|_| bytes)?;
        }
        long.pairs.try_reserve_exact(nprocs).map_err(|_| bytes)?;
        // Own gets and others' puts: together no more than this.
        long.conflicts.reserve(requests)?;
        Ok(long)
    }

    /// Cancels everything in flight. Returns false if the network may still touch users' memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        self.receiving.close(net) & self.sending.close(net)
    }

    pub(super) fn outgoing_to(&self, other: Pid) -> usize {
        let outgoing = self.pairs[other].outgoing.clone();
        self.outgoing[outgoing].iter().map(|piece| piece.bytes).sum()
    }

    /// Keeps the last `length` bytes of each piece of a list, and gathers what is left as a message.
    pub(super) fn gather(message: &mut Vec<Piece>, list: &[Piece]) {
        message.clear();
        for piece in list.iter().filter(|piece| piece.bytes > 0) {
            match message.last_mut() {
                Some(last) if last.base.wrapping_add(last.bytes) == piece.base => {
                    last.bytes += piece.bytes;
                }
                _ => message.push(*piece),
            }
        }
    }
}

pub(super) fn keep_last(piece: &mut Piece, bytes: usize) {
    let bytes = bytes.min(piece.bytes);
    piece.base = piece.base.wrapping_add(piece.bytes - bytes);
    piece.bytes = bytes;
}
