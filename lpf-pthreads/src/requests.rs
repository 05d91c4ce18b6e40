//! put and get.

use lpf_core::error::AtCaller;
use lpf_core::request::{Asked, Refusal, Way};
use lpf_core::{Error, GlobalSlot, Pid, Result, Slot};

use crate::threads::Threads;

impl Threads {
    /// The common part of put and get, inlined into both.
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
        let here = (&self.slots, &mut self.queue, self.nprocs);
        let address = match self.recent.queue(
            here,
            way,
            local,
            local_offset,
            other,
            remote,
            remote_offset,
            bytes,
        ) {
            Ok(address) => address,
            Err(refusal) => return Err(self.refusal(refusal)).at_caller(),
        };
        if self.recent.is_new() {
            self.recent.name_slots(&mut self.slots, local, remote, self.checked);
            if self.checked {
                let asked = Asked { way, local, local_offset, other, remote, remote_offset, bytes };
                self.track(asked, address);
            }
        }
        Ok(())
    }

    #[cold]
    fn refusal(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Unknown(slot) => self.unknown(slot),
            Refusal::Because(cause) => self.misuse(cause),
        }
    }
}
