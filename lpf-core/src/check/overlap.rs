//! The same bytes read and written in one superstep.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

use super::Place;
use crate::Pid;
use crate::error::Cause;
use crate::request::{Asked, Way};
use crate::slot::{GlobalSlot, Slot};

/// A put or get as its process made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracked {
    /// What it said.
    pub asked: Asked,
    /// Its address at the process that made it.
    pub address: usize,
    /// Where in the source.
    pub place: Place,
}

/// What one request does to the memory of the process that checks.
#[derive(Clone, Copy, Debug)]
struct Access<'a> {
    start: usize,
    end: usize,
    writes: bool,
    slot: Slot,
    offset: usize,
    origin: Pid,
    request: &'a Tracked,
}

impl Access<'_> {
    /// A range of addresses, as bytes of the slot.
    fn in_slot(&self, addresses: Range<usize>) -> Range<usize> {
        self.offset + (addresses.start - self.start)..self.offset + (addresses.end - self.start)
    }
}

/// "process 1's put at main.rs:3:5 writes bytes 0..8 of global slot 1"
impl fmt::Display for Access<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tracked { asked, place, .. } = self.request;
        let name = if asked.way == Way::Put { "put" } else { "get" };
        let verb = if self.writes { "writes" } else { "reads" };
        let bytes = self.in_slot(self.start..self.end);
        let (origin, slot) = (self.origin, self.slot);
        write!(f, "process {origin}'s {name} at {place} {verb} bytes {bytes:?} of {slot}")
    }
}

/// All reads and writes of one process's memory in one superstep.
///
/// Made anew for each full sync; it borrows the lists. O(m) memory for m requests.
#[derive(Debug)]
pub struct Checker<'a> {
    owner: Pid,
    accesses: Vec<Access<'a>>,
}

impl<'a> Checker<'a> {
    /// For the memory of process `owner`.
    pub fn new(owner: Pid) -> Self {
        Checker { owner, accesses: Vec::new() }
    }

    /// Adds the local sides of the requests that the owner made: a put reads them, a get writes
    /// them.
    pub fn own(&mut self, requests: &'a [Tracked]) {
        for request in requests {
            let (slot, offset) = (request.asked.local, request.asked.local_offset);
            let writes = request.asked.way == Way::Get;
            self.add(request.address, writes, slot, offset, self.owner, request);
        }
    }

    /// Adds the remote sides of those requests of process `origin` that name the owner: a put
    /// writes them, a get reads them. `base` gives the address of an active slot of the owner;
    /// requests on others are left out, because phase 1 finds them.
    pub fn from(
        &mut self,
        origin: Pid,
        requests: &'a [Tracked],
        base: impl Fn(GlobalSlot) -> Option<usize>,
    ) {
        let owner = self.owner;
        for request in requests.iter().filter(|r| r.asked.other == owner) {
            let (slot, offset) = (request.asked.remote, request.asked.remote_offset);
            let Some(start) = base(slot).and_then(|base| base.checked_add(offset)) else {
                continue;
            };
            self.add(start, request.asked.way == Way::Put, slot.into(), offset, origin, request);
        }
    }

    fn add(
        &mut self,
        start: usize,
        writes: bool,
        slot: Slot,
        offset: usize,
        origin: Pid,
        request: &'a Tracked,
    ) {
        let end = start.checked_add(request.asked.bytes);
        if let Some(end) = end.filter(|&end| end > start) {
            self.accesses.push(Access { start, end, writes, slot, offset, origin, request });
        }
    }

    /// The overlap of a read and a write at the lowest address, if there is any. O(m log m).
    pub fn overlap(&mut self) -> Option<Cause> {
        // Stable, so that every run of a program names the same pair.
        self.accesses.sort_by_key(|a| a.start);
        // Of the reads and of the writes that began so far, the one that ends last: if anything of
        // its kind reaches the access at hand, it does.
        let mut last: [Option<Access<'_>>; 2] = [None, None];
        for access in &self.accesses {
            if let Some(other) = last[usize::from(!access.writes)].filter(|o| o.end > access.start)
            {
                return Some(self.describe(access, &other));
            }
            let own = &mut last[usize::from(access.writes)];
            if own.is_none_or(|o| o.end < access.end) {
                *own = Some(*access);
            }
        }
        None
    }

    fn describe(&self, a: &Access<'_>, b: &Access<'_>) -> Cause {
        let (read, write) = if a.writes { (b, a) } else { (a, b) };
        let both = read.start.max(write.start)..read.end.min(write.end);
        let (bytes, slot, owner) = (write.in_slot(both), write.slot, self.owner);
        Cause::Checked(format!(
            "bytes {bytes:?} of {slot} at process {owner} are read and written in one \
             superstep: {write}, and {read}"
        ))
    }
}

#[cfg(test)]
mod tests;
