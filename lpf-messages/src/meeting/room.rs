//! What an exchange sends and receives, and why it may refuse.

use std::ops::Range;

use super::super::memory::Memory;
use super::super::transport::Broken;
use super::super::wire::{Head, LARGEST_UNIT, Opening};
use super::chunks::Transit;
use lpf_core::Pid;
use lpf_core::error::{Cause, Error};
use lpf_core::runtime::LocalState;
use lpf_core::settings::Exchange;

/// A message up to this length is copied, so that its send is not awaited.
pub(super) const COPIED: usize = 1 << 10;

/// What the others may send to a process.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Allowed<'a> {
    /// At most this number of requests.
    Requests(usize),
    /// From each process the number of messages that this one has awaited: [`Purpose::Count`](lpf_core::runtime::Purpose::Count).
    Messages(&'a [u16]),
}

/// Room for messages, which grows with the capacity for requests.
#[derive(Debug, Default)]
pub(in super::super) struct Room {
    /// The units that this process sends in the first exchange. Before those of each receiver there is room for an
    /// [`Opening`].
    pub(in super::super) out: Vec<u8>,
    /// For each receiver, the range of its units in `out`, and the number of their requests.
    pub(in super::super) places: Vec<Range<usize>>,
    pub(in super::super) requests: Vec<u32>,
    /// Units of others for this process that were copied out of the buffers in which they arrived.
    pub(super) rest: Memory,
    /// Units that this process passes on: see [`bruck`](super::bruck).
    pub(super) transit: Transit,
}

impl Room {
    /// Room for `requests` requests, or the bytes that were refused.
    pub(in super::super) fn new(
        way: Exchange,
        nprocs: usize,
        eager: usize,
        requests: usize,
    ) -> std::result::Result<Self, usize> {
        let units = requests.saturating_mul(LARGEST_UNIT);
        let bytes = nprocs.saturating_mul(Opening::LONGEST + eager).saturating_add(units);
        let mut out = Vec::new();
        out.try_reserve_exact(bytes).map_err(|_| bytes)?;
        let mut places = Vec::new();
        places.try_reserve_exact(nprocs).map_err(|_| bytes)?;
        places.resize(nprocs, 0..0);
        let mut counts = Vec::new();
        counts.try_reserve_exact(nprocs).map_err(|_| bytes)?;
        counts.resize(nprocs, 0);
        let rest = if requests == 0 { 0 } else { bytes };
        let transit = match way {
            Exchange::Direct => Transit::default(),
            Exchange::Bruck => Transit::new(nprocs, units)?,
        };
        Ok(Room { out, places, requests: counts, rest: Memory::new(rest)?, transit })
    }

    /// The units for process `to`.
    #[inline]
    pub(in super::super) fn units(&self, to: Pid) -> &[u8] {
        &self.out[self.places[to].clone()]
    }

    #[inline]
    pub(super) fn head(&self, to: Pid) -> Head {
        let units = self.places[to].len() as u64;
        Head { requests: self.requests[to], units }
    }

    /// The range in `out` of the message for a process, which may be received in one part up to `whole` bytes.
    #[inline]
    pub(super) fn place(&self, to: Pid, opening: &Opening, whole: usize) -> Range<usize> {
        let place = self.places[to].clone();
        place.start - opening.len(place.len(), whole)..place.end
    }

    /// That message, complete.
    #[inline]
    pub(super) fn message(&mut self, to: Pid, opening: &Opening, whole: usize) -> &[u8] {
        let (head, place) = (self.head(to), self.place(to, opening, whole));
        opening.write(&mut self.out[place.start..self.places[to].start], &head);
        &self.out[place]
    }
}

/// Why a meeting could not be made, without the process and the superstep, which the caller adds.
#[derive(Debug)]
pub(in super::super) enum Refused {
    Memory(usize),
    Network(Broken),
}

impl Refused {
    pub(in super::super) fn at(self, local: &LocalState) -> Error {
        match self {
            Refused::Memory(bytes) => local.refused("the first exchange", bytes),
            Refused::Network(broken) => {
                Error::fatal(local.pid, 0, Cause::Died { reason: broken.reason })
            }
        }
    }
}
