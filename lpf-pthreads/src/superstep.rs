//! The full sync: the four phases on shared memory.
//!
//! 1. *Meeting and meta-data.* Every process completes its request lists, grouped by target, shows
//!    where each begins (a [`Row`](crate::comm::Row) per target), and meets the others.
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

mod announce;
mod execute;

use lpf_core::request::Recent;
use lpf_core::{Cause, Error, Pid, Result};

use crate::barrier::Watch;
use crate::long_wait::LongWait;
use crate::threads::Threads;

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
    /// A word for abandoned slots changes.
    pub(crate) const ABANDONED: u32 = 1 << 9;
    /// In a second meeting: this process found an error in phase 2 or 3.
    pub(crate) const FAILED: u32 = 1 << 7;
}

/// How a process came to call what it called, for the text of a mismatch.
fn kind_name(bits: u32) -> &'static str {
    match bits & bits::KINDS {
        bits::CLOSE => "the end of its function",
        bits::REHOOK => "rehook",
        _ => "sync",
    }
}

/// Ends the program if it is dropped, which only a panic of [`guarded`]'s function does.
struct AbortIfDropped;

impl Drop for AbortIfDropped {
    fn drop(&mut self) {
        // loom ends a model that fails by a panic, and shows its message.
        #[cfg(not(loom))]
        std::process::abort();
    }
}

/// Runs what must not unwind. While processes meet, and between the two meetings of a sync, others
/// count on this one: a panic from there would free memory that they are copying from. Nothing
/// there panics but by a mistake of ours. (A user's panic that is under way already is none: a sync
/// may be called by what it drops.)
fn guarded<R>(f: impl FnOnce() -> R) -> R {
    let guard = AbortIfDropped;
    let result = f();
    std::mem::forget(guard);
    result
}

impl Threads {
    /// A full sync.
    pub(crate) fn full_sync(&mut self) -> Result<()> {
        if self.has_links() {
            self.settle_links()?;
        }
        let is_silent = !self.changes.any() && !self.slots.has_abandoned() && !self.checked;
        if self.queue.used() == 0 && is_silent {
            let all = self.meet(bits::SYNC)?;
            if all == bits::SYNC {
                self.recent.forget();
                self.slots.end_superstep();
                self.superstep += 1;
                return Ok(());
            }
            return guarded(|| self.phases(all, false));
        }
        let mine = self.announce();
        let all = self.meet(mine)?;
        guarded(|| self.phases(all, mine & bits::PAYLOAD != 0))
    }

    /// The meeting that opens a full sync, a rehook or the end of a section. Everybody came for
    /// the same, or the section fails.
    pub(crate) fn meet(&mut self, mine: u32) -> Result<u32> {
        if let Some(dead) = &self.dead {
            return Err(dead.clone());
        }
        // The others may have arrived before this process was forked: the meeting would seem complete.
        self.check_process()?;
        guarded(|| self.meet_alive(mine))
    }

    #[inline]
    fn meet_alive(&mut self, mine: u32) -> Result<u32> {
        self.epoch = self.epoch.wrapping_add(1);
        self.meeting += 1;
        let comm = &*self.comm;
        let watch = Watch::Meeting(&comm.failure, self.meeting);
        let mut long = LongWait::new(self, mine);
        let met =
            comm.barrier.meet(self.pid as usize, self.epoch, mine, watch, &mut || long.look());
        match met {
            Ok(all) if !long.was_given_up() => {
                long.end();
                if (all & bits::KINDS).is_power_of_two() {
                    return Ok(all);
                }
                self.check_process()?;
                let mismatch = self.mismatch();
                Err(self.fail_before(self.meeting, mismatch))
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

    /// Phases 1 to 4 after the first meeting.
    fn phases(&mut self, all: u32, sent_payload: bool) -> Result<()> {
        // Checked mode knows the places in the source, so it speaks first.
        let mut result = if self.checked { self.check_superstep() } else { Ok(()) };
        if result.is_ok() && all & (bits::REGISTERED | bits::RESIZED) != 0 {
            result = self.compare_changes(all);
        }
        let has_agreed = all & bits::ABANDONED != 0 && self.agrees_on_abandoned();
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
            return Err(self.fail_before(self.meeting + 1, error));
        }
        self.queue.reset();
        self.slots.end_superstep();
        self.recent = Recent::NONE;
        if self.checked {
            self.settle_checks();
        }
        if self.changes.any() || all & (bits::REGISTERED | bits::RESIZED) != 0 {
            self.apply_changes(all);
            self.let_go_of_removed()?;
        }
        if has_agreed {
            self.forget_abandoned();
        }
        self.superstep += 1;
        Ok(())
    }
}
