//! The full sync: the four phases on shared memory.
//!
//! 1. *Meeting and meta-data.* Every process completes its request lists, grouped by target, shows
//!    where each begins (a [`Row`] per target), and meets the others.
//! 2. *Conflicts.* Each destination executes what is aimed at its memory one request after another,
//!    its own gets among them, so any overlap gets the outcome of a serial order: nothing to
//!    resolve.
//! 3. *Data.* The destination copies.
//! 4. *Meeting.* Sources may be rewritten and rows reused after it.
//!
//! Two shortcuts, both agreed by the bits that the first meeting combines. Where no process has
//! anything that others must read from its memory, the second meeting is left out. And a few small
//! puts travel as payload of the process's own line in the first meeting: a source may not change
//! before the sync, so an early copy is legal, and it needs no second meeting either.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::request::{List, Request, Way};
use lpf_core::slot::Entry;
use lpf_core::{Cause, Error, Pid, Result};

use crate::barrier::{PAYLOAD, Watch};
use crate::comm::Row;
use crate::long_wait::LongWait;
use crate::threads::{Recent, Threads};

/// What a process came to a meeting for: exactly one of the first three.
pub(crate) mod bits {
    /// A full sync.
    pub(crate) const SYNC: u32 = 1;
    /// The closing barrier of a section.
    pub(crate) const CLOSE: u32 = 1 << 1;
    /// The entry of a rehook.
    pub(crate) const REHOOK: u32 = 1 << 2;
    pub(crate) const KINDS: u32 = SYNC | CLOSE | REHOOK;
    /// This process's payload holds puts.
    pub(crate) const PAYLOAD: u32 = 1 << 3;
    /// Others read this process's rows or memory: a second meeting is needed.
    pub(crate) const SECOND: u32 = 1 << 4;
    /// It has rows: requests for others, or gets that name them.
    pub(crate) const ROWS: u32 = SECOND | 1 << 8;
    /// Global slots or inboxes were registered or deregistered.
    pub(crate) const REGISTERED: u32 = 1 << 5;
    /// A capacity changes.
    pub(crate) const RESIZED: u32 = 1 << 6;
    /// In a second meeting: this process found an error in phase 2 or 3.
    pub(crate) const FAILED: u32 = 1 << 7;
}

/// How a process came to call what it called, for the text of a mismatch.
pub(crate) fn kind_name(bits: u32) -> &'static str {
    match bits & bits::KINDS {
        bits::CLOSE => "the end of its function",
        bits::REHOOK => "rehook",
        _ => "sync",
    }
}

/// Puts in a line: word 0 is the number of puts; each is a head word (target, length), the place
/// at the target, and its bytes.
const FIRST_PUT: usize = 1;
const HEAD_WORDS: usize = 2;
/// With at most this many processes the rows are words of the line, two each: what the first
/// meeting has fetched already.
const ROWS_IN_LINE: Pid = (PAYLOAD / 2) as Pid;
/// More puts than this are never worth looking whether they fit.
const MOST_INLINE: usize = 6;

impl Threads {
    /// A full sync.
    pub(crate) fn full_sync(&mut self) -> Result<()> {
        if self.has_links() {
            self.settle_links()?;
        }
        if self.queue.used() == 0 && !self.dirty && !self.checked {
            let all = self.meet(bits::SYNC)?;
            if all == bits::SYNC {
                self.superstep += 1;
                return Ok(());
            }
            return self.phases(all, false);
        }
        let mine = self.announce();
        let all = self.meet(mine)?;
        self.phases(all, mine & bits::PAYLOAD != 0)
    }

    /// The meeting that opens a full sync, a rehook or the end of a section. Everybody came for
    /// the same, or the section fails.
    pub(crate) fn meet(&mut self, mine: u32) -> Result<u32> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        self.epoch = self.epoch.wrapping_add(1);
        self.meeting += 1;
        let comm = &*self.comm;
        let watch = Watch::Meeting(&comm.failure, self.meeting);
        let mut long = LongWait::new(self, mine);
        let met =
            comm.barrier.meet(self.pid as usize, self.epoch, mine, watch, &mut || long.look());
        match met {
            Ok(all) if !long.was_given_up() => {
                if (all & bits::KINDS).is_power_of_two() {
                    return Ok(all);
                }
                let mismatch = self.mismatch();
                Err(self.fail(self.meeting, mismatch))
            }
            _ => Err(self.die()),
        }
    }

    /// The second meeting of a sync. Nobody can be missing: all are inside it.
    fn meet_again(&mut self, mine: u32) -> u32 {
        self.epoch = self.epoch.wrapping_add(1);
        let comm = &*self.comm;
        let met = comm.barrier.meet(self.pid as usize, self.epoch, mine, Watch::Bound, &mut || {});
        met.unwrap_or(bits::FAILED)
    }

    /// Who called what, where not all called the same.
    #[cold]
    fn mismatch(&self) -> Error {
        let kinds: Vec<u32> = (0..self.nprocs)
            .map(|who| self.comm.barrier.line(who as usize, self.epoch).bits() & bits::KINDS)
            .collect();
        let find = |wanted: fn(u32) -> bool| kinds.iter().position(|&kind| wanted(kind));
        let own = self.superstep;
        if let (Some(left), Some(stayed)) =
            (find(|kind| kind == bits::CLOSE), find(|kind| kind != bits::CLOSE))
        {
            let cause = Cause::LeftEarly { own, other: stayed as Pid, next: own + 1 };
            return Error::fatal(left as Pid, own, cause);
        }
        let first = kinds[0];
        let other = kinds.iter().position(|&kind| kind != first).unwrap_or(0);
        let cause = Cause::Mismatch {
            own: kind_name(first).into(),
            other: other as Pid,
            theirs: kind_name(kinds[other]).into(),
        };
        Error::fatal(0, own, cause)
    }

    /// Completes the request lists and shows them; returns what the first meeting has to know.
    fn announce(&mut self) -> u32 {
        let mut mine = bits::SYNC;
        if self.dirty {
            mine |= self.announce_changes();
        }
        if self.checked {
            mine |= bits::SECOND;
        }
        if self.queue.used() == 0 {
            return mine;
        }
        if self.queue.used() <= MOST_INLINE && !self.checked && self.write_payload() {
            self.queue.reset();
            self.recent = Recent::NONE;
            return mine | bits::PAYLOAD;
        }
        let epoch = self.epoch.wrapping_add(1);
        let in_line = self.nprocs <= ROWS_IN_LINE;
        for other in 0..self.nprocs {
            let gets = self.queue.count(Way::Get, other);
            let is_empty = gets == 0 && self.queue.count(Way::Put, other) == 0;
            let row = if is_empty {
                Row::EMPTY
            } else {
                Row { puts: self.queue.finish(Way::Put, other), gets }
            };
            if in_line {
                self.write_row_in_line(other, row, epoch);
            } else if !is_empty {
                // SAFETY: before this process's arrival at the first meeting.
                unsafe {
                    self.comm.peers[self.pid as usize].rows[other as usize].write(row, epoch)
                };
            }
        }
        mine | bits::ROWS
    }

    fn write_row_in_line(&self, other: Pid, row: Row, epoch: u32) {
        let line = self.comm.barrier.line(self.pid as usize, epoch);
        let at = 2 * other as usize;
        for (place, word) in line.payload[at..at + 2].iter().zip(row.to_words()) {
            place.store(word, Relaxed);
        }
    }

    /// What process `from` has for this one, in the meeting that opened this sync.
    fn read_row(&self, from: Pid, epoch: u32) -> Row {
        let line = self.comm.barrier.line(from as usize, epoch);
        if line.bits() & bits::ROWS != bits::ROWS {
            return Row::EMPTY;
        }
        if self.nprocs > ROWS_IN_LINE {
            let rows = &self.comm.peers[from as usize].rows;
            // SAFETY: between the two meetings.
            return unsafe { rows[self.pid as usize].read(epoch) };
        }
        let at = 2 * self.pid as usize;
        Row::from_words([0, 1].map(|word| line.payload[at + word].load(Relaxed)))
    }

    /// Writes all puts into this process's line, if they are few and small enough and there are
    /// no gets.
    fn write_payload(&mut self) -> bool {
        let epoch = self.epoch.wrapping_add(1);
        let mut words = [0u64; PAYLOAD];
        let mut at = FIRST_PUT;
        for other in 0..self.nprocs {
            if self.queue.count(Way::Get, other) > 0 {
                return false;
            }
            let requests = self.queue.count(Way::Put, other);
            if requests == 0 {
                continue;
            }
            let list = self.queue.finish(Way::Put, other);
            let mut moved = 0;
            // SAFETY: the list was just finished by this thread.
            let fits = unsafe {
                list.for_each(|put| {
                    moved += 1;
                    append(&mut words, &mut at, other, put)
                })
            };
            if fits.is_err() {
                return false;
            }
            // Puts that move nothing count at their target too.
            for _ in moved..requests {
                let nothing =
                    Request { address: std::ptr::null_mut(), bytes: 0, slot: 0, offset: 0 };
                if append(&mut words, &mut at, other, nothing).is_err() {
                    return false;
                }
            }
            words[0] += u64::from(requests);
        }
        let line = self.comm.barrier.line(self.pid as usize, epoch);
        for (place, &word) in line.payload.iter().zip(&words[..at]) {
            place.store(word, Relaxed);
        }
        true
    }

    /// Phases 1 to 4 after the first meeting.
    fn phases(&mut self, all: u32, sent_payload: bool) -> Result<()> {
        let mut result = if all & (bits::REGISTERED | bits::RESIZED) != 0 {
            self.compare_changes(all)
        } else {
            Ok(())
        };
        if result.is_ok() && self.checked {
            result = self.check_superstep();
        }
        if result.is_ok() {
            result = self.execute(all, sent_payload);
        }
        if all & bits::SECOND != 0 {
            let failed = match &result {
                Ok(()) => 0,
                Err(error) => {
                    // Of the next meeting: this one is complete, and whoever still waits to hear so
                    // must not give it up, for others copy from its memory already.
                    self.comm.failure.declare(self.meeting + 1, error.clone());
                    bits::FAILED
                }
            };
            if self.meet_again(failed) & bits::FAILED != 0 {
                return Err(self.die());
            }
        } else if let Err(error) = result {
            return Err(self.fail(self.meeting + 1, error));
        }
        self.queue.reset();
        self.recent = Recent::NONE;
        if self.checked {
            self.settle_checks();
        }
        if self.dirty || all & (bits::REGISTERED | bits::RESIZED) != 0 {
            self.apply_changes(all);
        }
        self.superstep += 1;
        Ok(())
    }

    /// Phases 2 and 3: everything aimed at this process's memory, one request after another.
    fn execute(&mut self, all: u32, sent_payload: bool) -> Result<()> {
        let mut load = Load::new(self.pid, if sent_payload { 0 } else { self.queue.used() });
        if all & bits::PAYLOAD != 0 {
            self.execute_payloads(&mut load)?;
        }
        if all & bits::SECOND != 0 {
            self.execute_lists(&mut load)?;
        }
        self.check_load(&load)
    }

    fn execute_payloads(&self, load: &mut Load) -> Result<()> {
        for from in 0..self.nprocs {
            let line = self.comm.barrier.line(from as usize, self.epoch);
            if line.bits() & bits::PAYLOAD == 0 {
                continue;
            }
            let mut at = FIRST_PUT;
            let mut requests = 0;
            for _ in 0..line.payload[0].load(Relaxed) {
                let head = line.payload[at].load(Relaxed);
                let (to, bytes) = ((head >> 32) as Pid, head as u32 as usize);
                let words = bytes.div_ceil(size_of::<u64>());
                if to == self.pid {
                    // A put to oneself counts at both sides.
                    requests += 1 + u32::from(from == to);
                    let place = line.payload[at + 1].load(Relaxed);
                    let data = at + HEAD_WORDS;
                    let data: &[_] = &line.payload[data..data + words];
                    let put = Request {
                        address: data.as_ptr().cast_mut().cast(),
                        bytes,
                        slot: (place >> 40) as usize,
                        offset: (place & ((1 << 40) - 1)) as usize,
                    };
                    self.execute_put(from, self.slots.global_entries(), put)?;
                } else if from == self.pid {
                    requests += 1;
                }
                at += HEAD_WORDS + words;
            }
            load.add(from, requests);
        }
        Ok(())
    }

    fn execute_lists(&mut self, load: &mut Load) -> Result<()> {
        // Each begins with another source, so that not all read from the same.
        for step in 0..self.nprocs {
            let from = (self.pid + step) % self.nprocs;
            let row = self.read_row(from, self.epoch);
            if from != self.pid {
                load.add(from, row.puts.requests + row.gets);
            }
            self.execute_puts(from, row.puts)?;
            if self.queue.used() > 0 && self.queue.count(Way::Get, from) > 0 {
                let gets = self.queue.finish(Way::Get, from);
                self.execute_gets(from, gets)?;
            }
        }
        Ok(())
    }

    fn execute_puts(&self, from: Pid, puts: List) -> Result<()> {
        let entries = self.slots.global_entries();
        // SAFETY: between the two meetings, so the list is complete and its pool unchanged.
        unsafe { puts.for_each(|put| self.execute_put(from, entries, put)) }
    }

    #[inline]
    fn execute_put(&self, from: Pid, entries: &[Entry], put: Request) -> Result<()> {
        let place = entries.get(put.slot).filter(|entry| entry.is_active());
        let range = place.and_then(|entry| entry.range(put.offset, put.bytes));
        let Some(range) = range else {
            if put.bytes == 0 {
                return Ok(());
            }
            return Err(self.remote_out_of_range(from, self.pid, place, put));
        };
        // SAFETY: the origin checked its own range, in a slot that it keeps until its sync
        // returns; the destination's was checked here. Nobody's user code runs: all processes are
        // inside the sync, or the bytes lie in the origin's line.
        unsafe { lpf_core::copy::copy(put.address, range, put.bytes) };
        Ok(())
    }

    fn execute_gets(&self, from: Pid, gets: List) -> Result<()> {
        let peer = &self.comm.peers[from as usize];
        // SAFETY: between the two meetings.
        let entries = unsafe { peer.table() };
        // SAFETY: as in execute_puts; the list is this process's own.
        unsafe {
            gets.for_each(|get| {
                let place = entries.get(get.slot).filter(|entry| entry.is_active());
                let range = place.and_then(|entry| entry.range(get.offset, get.bytes));
                let Some(range) = range else {
                    return Err(self.remote_out_of_range(self.pid, from, place, get));
                };
                lpf_core::copy::copy(range, get.address, get.bytes);
                Ok(())
            })
        }
    }

    #[cold]
    fn remote_out_of_range(
        &self,
        origin: Pid,
        target: Pid,
        place: Option<&Entry>,
        request: Request,
    ) -> Error {
        let cause = Cause::RemoteOutOfRange {
            origin,
            target,
            slot: format!("global {}", request.slot),
            offset: request.offset,
            bytes: request.bytes,
            len: place.map_or(0, Entry::len),
        };
        Error::fatal(origin, self.superstep, cause)
    }

    /// A process may be subject to as many requests as it reserved.
    fn check_load(&self, load: &Load) -> Result<()> {
        let reserved = self.queue.capacity();
        if load.total <= reserved {
            return Ok(());
        }
        let (origin, target) = (load.heaviest, self.pid);
        let cause = Cause::TargetOverrun { target, origin, count: load.total, reserved };
        Err(Error::fatal(origin, self.superstep, cause))
    }
}

/// Appends a put to a line's payload, or fails where there is no room.
fn append(
    words: &mut [u64; PAYLOAD],
    at: &mut usize,
    to: Pid,
    put: Request,
) -> std::result::Result<(), ()> {
    let data = put.bytes.div_ceil(size_of::<u64>());
    if put.bytes > size_of_val(words) || *at + HEAD_WORDS + data > PAYLOAD {
        return Err(());
    }
    if put.slot >= 1 << 24 || put.offset >= 1 << 40 {
        return Err(());
    }
    words[*at] = u64::from(to) << 32 | put.bytes as u64;
    words[*at + 1] = put.offset as u64 | (put.slot as u64) << 40;
    let room = &mut words[*at + HEAD_WORDS..][..data];
    // SAFETY: the request's local range was checked when it was queued; the words have room.
    unsafe { lpf_core::copy::copy(put.address, room.as_mut_ptr().cast(), put.bytes) };
    *at += HEAD_WORDS + data;
    Ok(())
}

/// The requests that a process makes or is subject to in one superstep.
struct Load {
    total: usize,
    heaviest: Pid,
    most: u32,
}

impl Load {
    fn new(own: Pid, made: usize) -> Self {
        Load { total: made, heaviest: own, most: 0 }
    }

    fn add(&mut self, from: Pid, requests: u32) {
        self.total += requests as usize;
        if requests > self.most {
            (self.most, self.heaviest) = (requests, from);
        }
    }
}
