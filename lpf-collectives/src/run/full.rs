//! In full supersteps: a round is its puts and a full sync, and costs h g + l.
//!
//! Messages wait in the receivers' scratch, behind what the algorithm keeps there, until the sync has
//! returned: no two processes have to agree on where the user's memory is. What the caller has pending is
//! suspended meanwhile. In the first superstep everybody tells the next one which call it is in.

use lpf_core::error::Cause;
use lpf_core::{Error, GlobalSlot, Lpf, SyncAttr};

use super::call::{Call, Done};
use crate::schedule::{Region, Schedule, Step, Then};
use crate::shared::LINE;

/// Carries out the steps of a schedule whose messages wait behind `kept` bytes of scratch. All processes of
/// the context are members.
///
/// # Safety
/// As [`expected`](super::expected()), and what waits fits into scratch.
pub(crate) unsafe fn full<L: Lpf>(
    call: &mut Call<'_, '_, L>,
    schedule: &Schedule,
    kept: usize,
) -> Done {
    let waiting = kept.next_multiple_of(LINE);
    let Call { raw, which, values, group, shared, buffers, combine, part, lends } = call;
    raw.suspended(|raw| {
        let (which, values, buffers, part, lends) = (*which, *values, *buffers, *part, *lends);
        let mut call = Call { raw, which, values, group, shared, buffers, combine, part, lends };
        // SAFETY: the caller's promise.
        unsafe { call.rounds(schedule, waiting) }
    })
}

impl<L: Lpf> Call<'_, '_, L> {
    /// # Safety
    /// As [`full`].
    unsafe fn rounds(&mut self, schedule: &Schedule, waiting: usize) -> Done {
        for (round, steps) in schedule.rounds().enumerate() {
            for step in steps.before {
                // SAFETY: the caller's promise.
                unsafe { self.begin(step, waiting)? };
            }
            if round == 0 {
                self.tell(self.which.word())?;
            }
            // What waits has a place of its own.
            self.raw.sync(SyncAttr::NoConflict)?;
            if round == 0 {
                self.compare()?;
            }
            for step in steps.after {
                // SAFETY: the caller's promise.
                unsafe { self.end(step, waiting) };
            }
        }
        for step in schedule.rest() {
            // SAFETY: the caller's promise.
            unsafe { self.end(step, waiting) };
        }
        Ok(())
    }

    /// # Safety
    /// As [`full`].
    unsafe fn begin(&mut self, step: &Step, waiting: usize) -> Done {
        match *step {
            Step::Send { to, from, stage, .. } => {
                let (source, scratch) = (self.place(from.buffer), self.global_scratch());
                let (offset, bytes) = (source.offset + from.span.start, from.span.bytes);
                let to = self.group.pid(to);
                let there = waiting + stage;
                self.raw.put(source.slot, offset, to, scratch, there, bytes)
            }
            // SAFETY: the caller's promise.
            _ => unsafe {
                self.end(step, waiting);
                Ok(())
            },
        }
    }

    /// # Safety
    /// As [`full`], after the sync.
    unsafe fn end(&mut self, step: &Step, waiting: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match *step {
                Step::Receive { bytes, stage, then, .. } => {
                    let came = self.shared.scratch.data.add(waiting + stage).cast_const();
                    match then {
                        Then::Keep(to) => std::ptr::copy(came, self.address(to), bytes),
                        Then::Combine { with, into, left } => {
                            let (own, to) = (self.address(with).cast_const(), self.address(into));
                            match left {
                                true => (self.combine)(came, own, to, bytes),
                                false => (self.combine)(own, came, to, bytes),
                            }
                        }
                    }
                }
                Step::Copy { from, to, .. } => self.copy(from, to),
                Step::Send { .. } => debug_assert!(false, "sends come before receives"),
            }
        }
    }

    /// # Safety
    /// As [`full`].
    unsafe fn copy(&mut self, from: Region, to: Region) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(self.address(from), self.address(to), to.span.bytes) };
    }

    fn global_scratch(&self) -> GlobalSlot {
        // SAFETY: the slot's number, registered by the collectives object for all processes.
        unsafe { GlobalSlot::from_bits(self.shared.scratch.slot.to_bits()) }
    }

    /// Puts the word of this call to the next process.
    fn tell(&mut self, word: u64) -> Done {
        let member = self.group.member();
        if member.members == 1 {
            return Ok(());
        }
        let next = self.group.pid((member.me + 1) % member.members);
        let (own, other) = self.shared.stamp_places();
        // SAFETY: a word of scratch that nothing else uses; no request names the first one.
        unsafe { self.shared.scratch.data.add(own).cast::<u64>().write(word) };
        let (slot, scratch) = (self.shared.scratch.slot, self.global_scratch());
        self.raw.put(slot, own, next, scratch, other, size_of::<u64>())
    }

    /// The process before is in the same call.
    fn compare(&mut self) -> Done {
        let member = self.group.member();
        if member.members == 1 {
            return Ok(());
        }
        let (_, other) = self.shared.stamp_places();
        // SAFETY: the sync has returned.
        let theirs = unsafe { self.shared.scratch.data.add(other).cast::<u64>().read() };
        if theirs == self.which.word() {
            return Ok(());
        }
        let before = self.group.pid((member.me + member.members - 1) % member.members);
        let text = self.which.differs(self.raw.pid(), before, theirs, self.values);
        let error = Error::fatal(before, self.raw.superstep(), Cause::Disagreement(text));
        Err(self.raw.fail(error))
    }
}
