//! A random program as plain data.

use std::ops::Range;

use lpf_core::Pid;

use crate::random::words::{Reader, to_bytes};

/// From this size on a slot is sparse: address space of which only windows are touched.
pub(super) const SPARSE: u64 = 1 << 30;
/// The size that stands for a null area.
pub(super) const NULL: u64 = u64::MAX;

/// A whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) procs: Pid,
    pub(super) slots: Vec<SlotSpec>,
    pub(super) steps: Vec<Step>,
}

/// One slot at all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotSpec {
    pub(super) global: bool,
    /// Bytes by process, or [`NULL`].
    pub(super) sizes: Vec<u64>,
}

impl SlotSpec {
    /// Bytes at process `pid`.
    pub(super) fn bytes(&self, pid: Pid) -> u64 {
        Some(self.sizes[pid]).filter(|&size| size != NULL).unwrap_or(0)
    }
}

/// One superstep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Whether slot s at process q is written in this superstep, at `q * slots + s`; the others
    /// may be read.
    pub(super) written: Vec<bool>,
    /// Flush and expected syncs before the full one, which may not complete anything.
    pub(super) partial_syncs: u64,
    /// End it under the attribute no-conflict, if there are none.
    pub(super) promise: bool,
    pub(super) requests: Vec<Request>,
}

/// A range of a slot at a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) pid: Pid,
    pub(super) slot: usize,
    pub(super) offset: u64,
}

/// One put or get: `bytes` bytes from one place to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// A put of the source's process, else a get of the target's.
    pub(super) is_put: bool,
    pub(super) source: Place,
    pub(super) target: Place,
    pub(super) bytes: u64,
}

impl Request {
    /// The process that makes it.
    pub(super) fn origin(&self) -> Pid {
        if self.is_put { self.source.pid } else { self.target.pid }
    }

    /// The process that is subject to it.
    pub(super) fn other(&self) -> Pid {
        if self.is_put { self.target.pid } else { self.source.pid }
    }

    /// The bytes it writes.
    pub(super) fn written(&self) -> Range<u64> {
        self.target.offset..self.target.offset + self.bytes
    }

    /// The bytes it reads.
    pub(super) fn read(&self) -> Range<u64> {
        self.source.offset..self.source.offset + self.bytes
    }
}

/// The bytes of `place.pid`'s slot that `of` names and `beside` bytes around them, or all of a slot
/// that is not sparse: what is filled before and checked after a superstep.
pub(super) fn windows(spec: &SlotSpec, pid: Pid, named: &[Range<u64>]) -> Vec<Range<u64>> {
    const BESIDE: u64 = 64;
    let len = spec.bytes(pid);
    if len < SPARSE {
        return std::iter::once(0..len).collect();
    }
    let mut around: Vec<Range<u64>> = named
        .iter()
        .map(|range| range.start.saturating_sub(BESIDE)..(range.end + BESIDE).min(len))
        .collect();
    around.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in around {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

impl Step {
    /// Whether no two requests write the same byte.
    pub(super) fn is_conflict_free(&self) -> bool {
        self.requests.iter().enumerate().all(|(i, a)| {
            self.requests[..i].iter().all(|b| {
                let (x, y) = (a.written(), b.written());
                let same = (a.target.pid, a.target.slot) == (b.target.pid, b.target.slot);
                !same || x.end <= y.start || y.end <= x.start || a.bytes == 0 || b.bytes == 0
            })
        })
    }

    /// Requests that process `pid` makes or is subject to.
    fn load(&self, pid: Pid) -> usize {
        let count = |request: &Request| {
            usize::from(request.origin() == pid) + usize::from(request.other() == pid)
        };
        self.requests.iter().map(count).sum()
    }
}

impl Program {
    /// The queue it needs, exactly.
    pub(super) fn capacity(&self) -> usize {
        let loads = self.steps.iter().flat_map(|step| (0..self.procs).map(|pid| step.load(pid)));
        loads.max().unwrap_or(0)
    }

    /// As bytes, to travel.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut words = vec![self.procs as u64, self.slots.len() as u64];
        for slot in &self.slots {
            words.push(slot.global.into());
            words.extend(&slot.sizes);
        }
        words.push(self.steps.len() as u64);
        for step in &self.steps {
            words.extend(step.written.iter().map(|&written| u64::from(written)));
            words.extend([step.partial_syncs, step.promise.into(), step.requests.len() as u64]);
            for request in &step.requests {
                words.push(request.is_put.into());
                for place in [request.source, request.target] {
                    words.extend([place.pid as u64, place.slot as u64, place.offset]);
                }
                words.push(request.bytes);
            }
        }
        to_bytes(&words)
    }

    /// The program of these bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = Reader::new(bytes);
        let mut next = || words.next();
        let procs = next() as Pid;
        let slots: Vec<SlotSpec> = (0..next())
            .map(|_| SlotSpec { global: next() == 1, sizes: (0..procs).map(|_| next()).collect() })
            .collect();
        let steps = (0..next()).map(|_| read_step(procs * slots.len(), &mut next));
        let steps = steps.collect();
        Program { procs, slots, steps }
    }
}

fn read_step(places: usize, next: &mut impl FnMut() -> u64) -> Step {
    let written = (0..places).map(|_| next() == 1).collect();
    let (partial_syncs, promise) = (next(), next() == 1);
    let requests = (0..next())
        .map(|_| {
            let is_put = next() == 1;
            let source = read_place(next);
            let target = read_place(next);
            Request { is_put, source, target, bytes: next() }
        })
        .collect();
    Step { written, partial_syncs, promise, requests }
}

fn read_place(next: &mut impl FnMut() -> u64) -> Place {
    Place { pid: next() as Pid, slot: next() as usize, offset: next() }
}
