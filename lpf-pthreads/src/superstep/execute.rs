//! Phases 2 and 3: the destination executes what is aimed at its memory.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::request::{List, Request, Way};
use lpf_core::runtime::Remote;
use lpf_core::slot::Entry;
use lpf_core::{Error, Pid, Result};

use super::announce::{FIRST_PUT, HEAD_WORDS};
use super::bits;
use crate::threads::Threads;

impl Threads {
    /// Phases 2 and 3: everything aimed at this process's memory, one request after another.
    pub(super) fn execute(&mut self, all: u32, sent_payload: bool) -> Result<()> {
        let mut load =
            Load::new(self.local.pid, if sent_payload { 0 } else { self.local.queue.used() });
        if all & bits::PAYLOAD != 0 {
            self.execute_payloads(&mut load)?;
        }
        if all & bits::SECOND != 0 {
            self.execute_lists(&mut load)?;
        }
        self.check_load(&load)
    }

    fn execute_payloads(&self, load: &mut Load) -> Result<()> {
        for from in 0..self.local.nprocs {
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
                if to == self.local.pid {
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
                    self.execute_put(from, self.local.slots.global_entries(), put)?;
                } else if from == self.local.pid {
                    load.total += 1;
                }
                at += HEAD_WORDS + words;
            }
            load.add(from, requests);
        }
        Ok(())
    }

    fn execute_lists(&mut self, load: &mut Load) -> Result<()> {
        // Each begins with another source, so that not all read from the same.
        for step in 0..self.local.nprocs {
            let from = (self.local.pid + step) % self.local.nprocs;
            let row = self.read_row(from, self.epoch);
            if from != self.local.pid {
                load.add(from, row.puts.requests + row.gets);
            }
            self.execute_puts(from, row.puts)?;
            if self.local.queue.has_gets() && self.local.queue.count(Way::Get, from) > 0 {
                let gets = self.local.queue.finish(Way::Get, from);
                self.execute_gets(from, gets)?;
            }
        }
        Ok(())
    }

    fn execute_puts(&self, from: Pid, puts: List) -> Result<()> {
        let entries = self.local.slots.global_entries();
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
            return Err(self.remote_out_of_range(from, self.local.pid, place, put));
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
                    return Err(self.remote_out_of_range(self.local.pid, from, place, get));
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
        entry: Option<&Entry>,
        request: Request,
    ) -> Error {
        let Request { slot, offset, bytes, .. } = request;
        let remote = Remote { target, slot, offset, bytes };
        self.found_late(origin, remote.out_of_range(origin, entry), |tracked| remote.is_of(tracked))
    }

    /// A process may be subject to as many requests as it reserved.
    fn check_load(&self, load: &Load) -> Result<()> {
        if load.total <= self.local.queue.capacity() {
            return Ok(());
        }
        let (origin, target) = (load.heaviest, self.local.pid);
        let cause = self.local.queue.overrun(target, origin, load.total);
        // The latest may be the one too many.
        Err(self.found_late(origin, cause, |tracked| tracked.asked.other == target))
    }
}

/// The requests that a process makes or is subject to in one superstep.
struct Load {
    total: usize,
    heaviest: Pid,
    most: u32,
}

impl Load {
    pub(super) fn new(own: Pid, made: usize) -> Self {
        Load { total: made, heaviest: own, most: 0 }
    }

    pub(super) fn add(&mut self, from: Pid, requests: u32) {
        self.total += requests as usize;
        if requests > self.most {
            (self.most, self.heaviest) = (requests, from);
        }
    }
}
