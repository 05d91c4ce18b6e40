//! The full sync: the four phases on shared memory.
//!
//! 1. *Meeting and meta-data.* Every process completes its request lists, grouped by target, shows
//!    where each begins (a [`Aimed`](lpf_core::runtime::Aimed) per target), and meets the others.
//! 2. *Conflicts.* Each destination executes what is aimed at its memory one request after another,
//!    its own gets among them, so any overlap gets the outcome of a serial order: nothing to
//!    resolve.
//! 3. *Data.* The destination copies.
//! 4. *Meeting.* Sources may be rewritten and rows reused after it.
//!
//! Two shortcuts, all agreed by the bits that the first meeting combines. If no process has
//! anything that others must read from its memory, the second meeting is left out. A few small
//! puts travel in the process's own line of the first meeting ([`small_puts`]).

mod announce;
mod execute;
mod small_puts;

use lpf_core::runtime::{Announced, LocalState, Purpose, Tables, mismatch};
use lpf_core::{Error, Pid, Result};

use crate::barrier::Watch;
use crate::bits;
use crate::long_wait::InMeeting;
use crate::threads::ThreadEngine;

impl ThreadEngine {
    /// The meeting that opens a full sync, a rehook or the end of a section. Everybody came for
    /// the same, or the section fails.
    #[inline]
    pub(crate) fn meet_for(&mut self, tables: &mut Tables, purpose: Purpose) -> Result<Announced> {
        let mine = match purpose {
            Purpose::Sync => self.announce(&mut tables.local),
            Purpose::Count | Purpose::Close => bits::CLOSE,
            Purpose::Rehook => bits::REHOOK,
        };
        self.mine = mine;
        self.all = self.meet_with(tables, mine)?;
        Ok(Announced(self.all & !bits::KINDS))
    }

    /// A first meeting, for which this process announces `mine`; returns what all announced.
    #[inline]
    pub(crate) fn meet_with(&mut self, tables: &Tables, mine: u32) -> Result<u32> {
        self.epoch = self.epoch.wrapping_add(1);
        self.first_epoch = self.epoch;
        self.meeting += 1;
        let (comm, seat) = (&*self.comm, self.comm.node.seat(tables.local.pid));
        let watch = Watch::Meeting(&comm.failure, self.meeting);
        let mut long = InMeeting::new(self, tables, mine);
        let met = comm.barrier.meet(seat, self.epoch, mine, watch, &mut || long.look());
        match met {
            Ok(all) if !long.was_given_up() => {
                long.end();
                if (all & bits::KINDS).is_power_of_two() {
                    return Ok(all);
                }
                comm.check_process(&tables.local)?;
                Err(self.mismatch(&tables.local))
            }
            _ => Err(comm.report(&tables.local)),
        }
    }

    /// A barrier of a node between the meeting of its processes and what follows it. The process that has carried out the
    /// exchange between nodes for them arrives last, or declares a failure of this meeting and does not arrive.
    ///
    /// # Errors
    /// *Fatal*: the failure of the section.
    pub fn meet_within(&mut self, tables: &Tables) -> Result<()> {
        self.epoch = self.epoch.wrapping_add(1);
        let (comm, seat) = (&*self.comm, self.comm.node.seat(tables.local.pid));
        let watch = Watch::Meeting(&comm.failure, self.meeting);
        let mut long = InMeeting::new(self, tables, self.mine);
        let met = comm.barrier.meet(seat, self.epoch, 0, watch, &mut || long.show());
        match met {
            Ok(_) => {
                long.end();
                Ok(())
            }
            Err(_) => Err(comm.report(&tables.local)),
        }
    }

    /// Shows that this process has arrived at the meeting under way, before it carries out the exchange between nodes.
    pub fn show_arrival(&self, tables: &Tables) {
        InMeeting::new(self, tables, self.mine).publish();
    }

    /// Makes it known in this node that the meeting under way fails.
    #[cold]
    pub fn fail_meeting(&self, error: Error) {
        self.declare_for(self.meeting, error);
    }

    /// The second meeting of a sync. Nobody can be missing: all are inside it.
    fn meet_again(&mut self, local: &LocalState, mine: u32) -> u32 {
        // Behind a meeting within: the lines of the first one are still read, and that one's are not.
        let step = if self.comm.others.is_some() { 2 } else { 1 };
        self.epoch = self.epoch.wrapping_add(step);
        let (comm, seat) = (&*self.comm, self.comm.node.seat(local.pid));
        let met = comm.barrier.meet(seat, self.epoch, mine, Watch::Bound, &mut || {});
        met.unwrap_or(bits::FAILED)
    }

    /// Not all processes called the same.
    #[cold]
    fn mismatch(&self, local: &LocalState) -> Error {
        let kind = |who: Pid| self.comm.line(who, self.first_epoch).bits() & bits::KINDS;
        mismatch(local, |purpose| {
            let bits = match purpose {
                Purpose::Sync => bits::SYNC,
                Purpose::Rehook => bits::REHOOK,
                Purpose::Close => bits::CLOSE,
                Purpose::Count => return None,
            };
            self.comm.node.pids().find(|&who| kind(who) == bits)
        })
    }

    /// Phases 2 to 4 after the first meeting.
    #[inline]
    pub(crate) fn phases(&mut self, tables: &mut Tables, found: Result<()>) -> Result<()> {
        let all = self.all;
        let result = found.and_then(|()| self.execute(&mut tables.local));
        if all & bits::SECOND == 0 {
            return result;
        }
        let failed = match &result {
            Ok(()) => 0,
            Err(error) => {
                // Of the next meeting: this one is complete, and whoever still waits to hear so
                // must not give it up, for others copy from its memory already.
                self.comm.declare(self.meeting + 1, error.clone());
                bits::FAILED
            }
        };
        match self.meet_again(&tables.local, failed) & bits::FAILED {
            0 => Ok(()),
            _ => Err(self.comm.report(&tables.local)),
        }
    }
}
