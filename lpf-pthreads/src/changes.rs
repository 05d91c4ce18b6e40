//! Registrations and resizes: asked for at any time, in force at the end of the next full sync.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::request::Reserved;
use lpf_core::{Cause, Error, Pid, Result};

use crate::comm::Rows;
use crate::memory;
use crate::superstep::bits;
use crate::threads::Threads;

/// Capacities asked for: the user's and, on top, the libraries'.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    pub(crate) user_slots: usize,
    pub(crate) user_requests: usize,
    pub(crate) library_slots: usize,
    pub(crate) library_requests: usize,
    /// The least that any process asked for, as the sync under way found it.
    pub(crate) agreed_requests: usize,
    /// A larger pool, for the next full sync.
    pub(crate) reserved: Option<Reserved>,
    /// Inboxes registered or deregistered, for the comparison of registrations.
    pub(crate) inbox_calls: u64,
    pub(crate) inbox_hash: u64,
    /// Inboxes below this number are active.
    pub(crate) active_inboxes: usize,
    pub(crate) inboxes: usize,
}

impl Capacity {
    pub(crate) fn slots(&self) -> usize {
        self.user_slots.saturating_add(self.library_slots)
    }

    pub(crate) fn requests(&self) -> usize {
        self.user_requests.saturating_add(self.library_requests)
    }
}

/// The most that a reserved slot takes.
const BYTES_PER_SLOT: usize = 64;

impl Threads {
    /// What the first meeting has to know about registrations and resizes.
    pub(crate) fn announce_changes(&mut self) -> u32 {
        let peer = &self.comm.peers[self.pid as usize];
        let mut bits = bits::SECOND;
        if self.changes.resized {
            peer.wanted_slots.store(self.capacity.slots(), Relaxed);
            peer.wanted_requests.store(self.capacity.requests(), Relaxed);
            bits |= bits::RESIZED;
        }
        if self.changes.registered {
            let (calls, hash) = self.slots.registrations();
            peer.registrations.store(calls + self.capacity.inbox_calls, Relaxed);
            peer.registration_hash.store(hash ^ self.capacity.inbox_hash, Relaxed);
            bits |= bits::REGISTERED;
        }
        bits
    }

    /// Whether all processes registered the same; and the capacity that they agree on. Between the
    /// two meetings of a sync: after it, others may already ask for another.
    pub(crate) fn compare_changes(&mut self, all: u32) -> Result<()> {
        let wanted = self.comm.peers.iter().map(|peer| peer.wanted_requests.load(Relaxed));
        self.capacity.agreed_requests = wanted.min().unwrap_or(0);
        if all & bits::REGISTERED == 0 {
            return Ok(());
        }
        let shown = |who: usize| {
            let peer = &self.comm.peers[who];
            (peer.registrations.load(Relaxed), peer.registration_hash.load(Relaxed))
        };
        let first = shown(0);
        match (1..self.nprocs as usize).find(|&who| shown(who) != first) {
            None => Ok(()),
            Some(who) => {
                let (a_count, b_count) = (first.0, shown(who).0);
                let (a, b) = (0, who as Pid);
                let cause = match self.checked {
                    false => Cause::RegistrationsDiffer { a, b, a_count, b_count },
                    // It has compared the slots and their places before.
                    true => Cause::Checked(format!(
                        "process {a} and process {b} registered or deregistered inboxes differently since the last sync"
                    )),
                };
                Err(Error::fatal(who as Pid, self.superstep, cause))
            }
        }
    }

    /// Shows a word for the slots that this process has abandoned. It is compared in this sync, and in each later one
    /// in which any process shows another word.
    #[cold]
    pub(crate) fn announce_abandoned(&mut self) -> u32 {
        let peer = &self.comm.peers[self.pid as usize];
        peer.abandoned.store(self.slots.abandoned(), Relaxed);
        self.slots.announced();
        bits::SECOND | bits::ABANDONED
    }

    /// Whether all processes have abandoned the same slots, and any. Between the two meetings of a sync: after it,
    /// others may already show another word.
    #[cold]
    pub(crate) fn agrees_on_abandoned(&self) -> bool {
        // 0 also if a library works in this process: requests that it suspended may name the slots.
        let own = self.slots.abandoned();
        own != 0 && self.comm.peers.iter().all(|peer| peer.abandoned.load(Relaxed) == own)
    }

    /// Deregisters the slots that all processes have abandoned, at the end of the full sync in which they agreed.
    #[cold]
    pub(crate) fn forget_abandoned(&mut self) {
        let peer = &self.comm.peers[self.pid as usize];
        peer.abandoned.store(0, Relaxed);
        let (checked, superstep) = (self.checked, self.superstep);
        self.slots.forget_abandoned(|slot| {
            if checked {
                peer.lock_checks().registry.dropped(slot, superstep);
            }
        });
    }

    /// Activates registrations and resizes at the end of a full sync.
    #[cold]
    pub(crate) fn apply_changes(&mut self, all: u32) {
        self.changes.clear();
        self.slots.activate();
        self.capacity.active_inboxes = self.capacity.inboxes;
        if all & bits::RESIZED != 0 {
            self.slots.set_capacity(self.capacity.slots(), self.capacity.library_slots);
            let requests = self.capacity.agreed_requests;
            let (libraries, larger) =
                (self.capacity.library_requests, self.capacity.reserved.take());
            let is_in_force = self.queue.set_capacity(requests, libraries, larger);
            // What is not in force yet waits for a sync of the caller.
            self.changes.resized = !is_in_force;
            self.comm.peers[self.pid as usize].show_table(self.slots.global_place());
        }
    }

    /// Refuses what does not fit the machine if all processes ask for it, as they do.
    fn check_memory(&self, what: &str, count: usize, each: usize) -> Result<()> {
        let reserved = &self.comm.reserved;
        let all = each.saturating_mul(self.nprocs as usize);
        // Some have it already, and so it is no longer available.
        let missing = all.saturating_sub(reserved.load(Relaxed));
        let room = || format!("room for {count} {what} at each of {} processes", self.nprocs);
        memory::check(missing, room)
            .map_err(|error| Error::mitigable(self.pid, self.superstep, error.cause().clone()))?;
        // Not before: others that ask at the same time would take what is refused here for memory that is had.
        reserved.fetch_add(each, Relaxed);
        Ok(())
    }

    pub(crate) fn resize_slots(&mut self, slots: usize) -> Result<()> {
        self.check_memory("slots", slots, slots.saturating_mul(BYTES_PER_SLOT))?;
        let reserved = self.slots.reserve(slots, self.superstep);
        // The table may have moved, even where more was refused. Nobody looks into it now: this
        // process is not inside a sync.
        self.comm.peers[self.pid as usize].show_table(self.slots.global_place());
        reserved?;
        self.changes.resized = true;
        Ok(())
    }

    pub(crate) fn resize_requests(&mut self, requests: usize) -> Result<()> {
        let processes = self.nprocs as usize;
        let each =
            self.queue.bytes_for(requests).saturating_add(Rows::bytes_for(processes, requests));
        self.check_memory("requests", requests, each)?;
        let moved = self.rows.reserve(processes, requests).map_err(|bytes| {
            let cause = Cause::OutOfMemory { what: "request lists".into(), bytes };
            Error::mitigable(self.pid, self.superstep, cause)
        })?;
        if moved {
            // As the table of slots: nobody looks into them now.
            self.comm.peers[self.pid as usize].show_rows(&self.rows);
        }
        let larger = self.queue.reserve(requests, self.superstep)?;
        if larger.is_some() {
            self.capacity.reserved = larger;
        }
        self.changes.resized = true;
        Ok(())
    }
}
