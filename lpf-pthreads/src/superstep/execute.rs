//! Phases 2 and 3: the destination executes what is aimed at its memory.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::request::{List, Request, Way};
use lpf_core::runtime::{LocalState, Remote};
use lpf_core::slot::Entry;
use lpf_core::{Error, Pid, Result};

use super::announce::{FIRST_PUT, HEAD_WORDS};
use super::bits;
use crate::threads::ThreadEngine;

impl ThreadEngine {
    /// Phases 2 and 3: everything aimed at this process's memory, one request after another.
    #[inline]
    pub(super) fn execute(&self, local: &mut LocalState) -> Result<()> {
        let mut load = Load::new(local.pid, if self.sent_payload { 0 } else { local.queue.used() });
        if self.all & bits::PAYLOAD != 0 {
            self.execute_payloads(local, &mut load)?;
        }
        if self.all & bits::SECOND != 0 {
            self.execute_lists(local, &mut load)?;
        }
        self.check_load(local, &load)
    }

    fn execute_payloads(&self, local: &LocalState, load: &mut Load) -> Result<()> {
        for from in 0..local.nprocs {
            let line = self.comm.barrier.line(from, self.epoch);
            if line.bits() & bits::PAYLOAD == 0 {
                continue;
            }
            let mut at = FIRST_PUT;
            let mut requests = 0;
            for _ in 0..line.payload[0].load(Relaxed) {
                let head = line.payload[at].load(Relaxed);
                let (to, bytes) = ((head >> 32) as Pid, head as u32 as usize);
                let words = bytes.div_ceil(size_of::<u64>());
                if to == local.pid {
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
                    self.execute_put(local, from, put)?;
                } else if from == local.pid {
                    load.total += 1;
                }
                at += HEAD_WORDS + words;
            }
            load.add(from, requests);
        }
        Ok(())
    }

    fn execute_lists(&self, local: &mut LocalState, load: &mut Load) -> Result<()> {
        // Each begins with another source, so that not all read from the same.
        for step in 0..local.nprocs {
            let from = (local.pid + step) % local.nprocs;
            let row = self.read_row(local, from);
            if from != local.pid {
                load.add(from, row.puts.requests + row.gets);
            }
            self.execute_puts(local, from, row.puts)?;
            if local.queue.has_gets() && local.queue.count(Way::Get, from) > 0 {
                let gets = local.queue.finish(Way::Get, from);
                self.execute_gets(local, from, gets)?;
            }
        }
        Ok(())
    }

    fn execute_puts(&self, local: &LocalState, from: Pid, puts: List) -> Result<()> {
        // SAFETY: between the two meetings, so the list is complete and its pool unchanged.
        unsafe { puts.for_each(|put| self.execute_put(local, from, put)) }
    }

    #[inline]
    fn execute_put(&self, local: &LocalState, from: Pid, put: Request) -> Result<()> {
        let place = local.slots.global_entries().get(put.slot).filter(|entry| entry.is_active());
        let range = place.and_then(|entry| entry.range(put.offset, put.bytes));
        let Some(range) = range else {
            if put.bytes == 0 {
                return Ok(());
            }
            return Err(self.remote_out_of_range(local, from, local.pid, place, put));
        };
        // SAFETY: the origin checked its own range, in a slot that it keeps until its sync
        // returns; the destination's was checked here. Nobody's user code runs: all processes are
        // inside the sync, or the bytes lie in the origin's line.
        unsafe { lpf_core::copy::copy(put.address, range, put.bytes) };
        Ok(())
    }

    fn execute_gets(&self, local: &LocalState, from: Pid, gets: List) -> Result<()> {
        let peer = &self.comm.peers[from];
        // SAFETY: between the two meetings.
        let entries = unsafe { peer.table() };
        // SAFETY: as in execute_puts; the list is this process's own.
        unsafe {
            gets.for_each(|get| {
                let place = entries.get(get.slot).filter(|entry| entry.is_active());
                let range = place.and_then(|entry| entry.range(get.offset, get.bytes));
                let Some(range) = range else {
                    return Err(self.remote_out_of_range(local, local.pid, from, place, get));
                };
                lpf_core::copy::copy(range, get.address, get.bytes);
                Ok(())
            })
        }
    }

    #[cold]
    fn remote_out_of_range(
        &self,
        local: &LocalState,
        origin: Pid,
        target: Pid,
        entry: Option<&Entry>,
        request: Request,
    ) -> Error {
        let Request { slot, offset, bytes, .. } = request;
        let remote = Remote { target, slot, offset, bytes };
        self.found_late(local, origin, remote.out_of_range(origin, entry), |tracked| {
            remote.is_of(tracked)
        })
    }

    /// A process may be subject to as many requests as it reserved.
    fn check_load(&self, local: &LocalState, load: &Load) -> Result<()> {
        if load.total <= local.queue.capacity() {
            return Ok(());
        }
        let (origin, target) = (load.heaviest, local.pid);
        let cause = local.queue.overrun(target, origin, load.total);
        // The latest may be the one too many.
        Err(self.found_late(local, origin, cause, |tracked| tracked.asked.other == target))
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
