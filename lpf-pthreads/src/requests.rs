//! put and get: everything that can be checked here is, then the request is queued.

use lpf_core::error::AtCaller;
use lpf_core::request::Way;
use lpf_core::{Cause, Error, GlobalSlot, Pid, Result, Slot};

use crate::threads::Threads;

/// The slots of the latest request: most requests of a superstep name the same two. Forgotten when
/// a superstep ends or a slot goes.
#[derive(Debug)]
pub(crate) struct Recent {
    local: u64,
    remote: u64,
    base: *mut u8,
    len: usize,
    /// Not 0 where the next request has to look again: nothing is remembered, the slots are not
    /// noted as named yet, or checked mode wants to see every request.
    stale: u64,
}

// SAFETY: the address is only stored here; the slot's rules say who may touch the memory.
unsafe impl Send for Recent {}

impl Recent {
    pub(crate) const NONE: Recent =
        Recent { local: 0, remote: 0, base: std::ptr::null_mut(), len: 0, stale: 1 };

    #[inline(always)]
    fn is(&self, local: Slot, remote: GlobalSlot) -> bool {
        (self.local ^ local.to_bits()) | (self.remote ^ remote.to_bits()) | self.stale == 0
    }

    #[inline(always)]
    fn range(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let end = offset.checked_add(bytes)?;
        (end <= self.len).then(|| self.base.wrapping_add(offset))
    }

    /// The next request has to look again.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.stale = 1;
    }

    #[inline]
    fn is_new(&self) -> bool {
        self.stale != 0
    }
}

impl Threads {
    #[cold]
    fn requests_used_up(&self) -> Error {
        self.misuse(Cause::RequestsUsedUp { reserved: self.queue.capacity() })
    }

    /// The common part of put and get: checks everything that can be checked here, and queues.
    /// Inlined into put and get, whose other parts are out of line.
    #[inline(always)]
    #[track_caller]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn request(
        &mut self,
        way: Way,
        local: Slot,
        local_offset: usize,
        other: Pid,
        remote: GlobalSlot,
        remote_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        if other >= self.nprocs {
            return Err(self.no_such_process(other)).at_caller();
        }
        if !self.recent.is(local, remote) {
            self.look_up(local, remote).at_caller()?;
        }
        let Some(address) = self.recent.range(local_offset, bytes) else {
            return Err(self.out_of_range(local, local_offset, bytes)).at_caller();
        };
        if !self.queue.admit(other) {
            return Err(self.requests_used_up()).at_caller();
        }
        self.queue.push(way, other, address, bytes, remote.index(), remote_offset);
        if self.recent.is_new() {
            self.name_slots(local, remote);
            if self.checked {
                let request = (way, local, local_offset, other, remote, remote_offset, bytes);
                self.track(request, address);
            }
        }
        Ok(())
    }

    #[cold]
    fn outbox_as_local_side(&self, slot: Slot) -> Error {
        let text = format!("slot {slot} is an outbox, the source of puts on links alone");
        self.misuse(Cause::Arrivals(text))
    }

    /// Finds the slots of a request.
    #[inline(never)]
    fn look_up(&mut self, local: Slot, remote: GlobalSlot) -> Result<()> {
        if self.slots.remote_side(remote).is_none() {
            return Err(self.unknown(remote.into()));
        }
        if local.is_outbox() {
            return Err(self.outbox_as_local_side(local));
        }
        let Some(entry) = self.slots.local_side(local) else {
            return Err(self.unknown(local));
        };
        self.recent = Recent {
            local: local.to_bits(),
            remote: remote.to_bits(),
            base: entry.base(),
            len: entry.len(),
            stale: 1,
        };
        Ok(())
    }

    /// Notes that a request of this superstep names the slots: one that was refused has no effect.
    #[inline(never)]
    fn name_slots(&mut self, local: Slot, remote: GlobalSlot) {
        self.slots.name(local, self.superstep);
        self.slots.name(remote.into(), self.superstep);
        self.recent.stale = u64::from(self.checked);
    }
}
