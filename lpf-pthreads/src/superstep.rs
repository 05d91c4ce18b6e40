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

use lpf_core::runtime::{Purpose, mismatch};
use lpf_core::{Error, Pid, Result};

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
        if self.links.are_open() {
            self.settle_links()?;
        }
        if self.local.queue.used() == 0 && self.local.is_silent() {
            let all = self.meet(bits::SYNC)?;
            if all == bits::SYNC {
                self.local.end_silent_superstep();
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
        let met = comm
            .barrier
            .meet(self.local.pid as usize, self.epoch, mine, watch, &mut || long.look());
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
        let met =
            comm.barrier.meet(self.local.pid as usize, self.epoch, mine, Watch::Bound, &mut || {});
        met.unwrap_or(bits::FAILED)
    }

    /// Not all processes called the same.
    #[cold]
    fn mismatch(&self) -> Error {
        let kind = |who: Pid| self.comm.barrier.line(who as usize, self.epoch).bits() & bits::KINDS;
        mismatch(self.local.superstep, |purpose| {
            let bits = match purpose {
                Purpose::Sync => bits::SYNC,
                Purpose::Rehook => bits::REHOOK,
                Purpose::Close => bits::CLOSE,
                Purpose::Count => return None,
            };
            (0..self.local.nprocs).find(|&who| kind(who) == bits)
        })
    }

    /// Phases 1 to 4 after the first meeting.
    fn phases(&mut self, all: u32, sent_payload: bool) -> Result<()> {
        // Checked mode knows the places in the source, so it speaks first.
        let mut result = if self.local.is_checked() { self.check_superstep() } else { Ok(()) };
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
        self.local.settle();
        if self.local.changes.any() || all & (bits::REGISTERED | bits::RESIZED) != 0 {
            self.apply_changes(all);
            self.let_go_of_removed()?;
        }
        if has_agreed {
            self.forget_abandoned();
        }
        self.local.superstep += 1;
        Ok(())
    }
}
