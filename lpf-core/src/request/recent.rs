//! put and get at the call: everything that can be checked there is, then the request is queued.

use serde::{Deserialize, Serialize};

use super::{Requests, Way};
use crate::Pid;
use crate::error::Cause;
use crate::slot::{GlobalSlot, Slot, SlotTable};

/// What a put or a get says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Put or get.
    pub way: Way,
    /// The slot at the process that calls.
    pub local: Slot,
    /// The offset there, in bytes.
    pub local_offset: usize,
    /// The other process.
    pub other: Pid,
    /// The slot there.
    pub remote: GlobalSlot,
    /// The offset there, in bytes.
    pub remote_offset: usize,
    /// How many bytes.
    pub bytes: usize,
}

/// Why a request was not queued. It has no effect then.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// This slot is not active: checked mode may know why.
    Unknown(Slot),
    /// Anything else.
    Because(Cause),
}

impl From<Cause> for Refusal {
    fn from(cause: Cause) -> Self {
        Refusal::Because(cause)
    }
}

/// The slots of the latest request: most requests of a superstep name the same two. Forgotten when
/// a superstep ends or a slot goes.
#[derive(Debug)]
pub struct Recent {
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
    /// Nothing is remembered.
    pub const NONE: Recent =
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
    pub fn forget(&mut self) {
        self.stale = 1;
    }

    /// Checks a request and queues it; returns its address at the process that calls. If the slots
    /// [are new](Self::is_new) afterwards, they have to be [named](Self::name_slots).
    ///
    /// Inlined into put and get, whose other parts are out of line; one by one its arguments stay in
    /// registers, where an [`Asked`] would be written to memory for every call.
    ///
    /// # Errors
    /// Why it was not queued.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub fn queue(
        &mut self,
        (slots, queue, nprocs): (&SlotTable, &mut Requests, Pid),
        way: Way,
        local: Slot,
        local_offset: usize,
        other: Pid,
        remote: GlobalSlot,
        remote_offset: usize,
        bytes: usize,
    ) -> Result<*mut u8, Refusal> {
        if other >= nprocs {
            return Err(no_such_process(other, nprocs));
        }
        if !self.is(local, remote) {
            self.look_up(slots, local, remote)?;
        }
        let Some(address) = self.range(local_offset, bytes) else {
            return Err(out_of_range(slots, local, local_offset, bytes));
        };
        if !queue.admit(other) {
            return Err(used_up(queue));
        }
        queue.push(way, other, address, bytes, remote.index(), remote_offset);
        Ok(address)
    }

    /// Finds the slots of a request.
    #[inline(never)]
    fn look_up(
        &mut self,
        slots: &SlotTable,
        local: Slot,
        remote: GlobalSlot,
    ) -> Result<(), Refusal> {
        if slots.remote_side(remote).is_none() {
            return Err(Refusal::Unknown(remote.into()));
        }
        if local.is_outbox() {
            let text = format!("{local} is an outbox, the source of puts on links alone");
            return Err(Cause::Link(text).into());
        }
        let Some(entry) = slots.local_side(local) else {
            return Err(Refusal::Unknown(local));
        };
        *self = Recent {
            local: local.to_bits(),
            remote: remote.to_bits(),
            base: entry.base(),
            len: entry.len(),
            stale: 1,
        };
        Ok(())
    }

    /// Whether the request just queued named slots that are not noted as named, or checked mode
    /// wants to see it.
    #[inline(always)]
    pub fn is_new(&self) -> bool {
        self.stale != 0
    }

    /// Notes that a request of this superstep names the slots: one that was refused does not.
    #[inline(never)]
    pub fn name_slots(
        &mut self,
        slots: &mut SlotTable,
        local: Slot,
        remote: GlobalSlot,
        checked: bool,
    ) {
        slots.name(local);
        slots.name(remote.into());
        self.stale = u64::from(checked);
    }
}

#[cold]
fn no_such_process(pid: Pid, nprocs: Pid) -> Refusal {
    Cause::NoSuchProcess { pid, last: nprocs - 1 }.into()
}

#[cold]
fn out_of_range(slots: &SlotTable, slot: Slot, offset: usize, bytes: usize) -> Refusal {
    slots.out_of_range(slot, offset, bytes).into()
}

#[cold]
fn used_up(queue: &Requests) -> Refusal {
    queue.used_up().into()
}
