//! The part of a process that needs nobody else: its queue, its slots, its capacities, and every
//! check that can be made at the call.

use super::superstep::Told;
use crate::Pid;
use crate::check::{Pending, Place, Registry, Tracked, report};
use crate::conflict::Conflicts;
use crate::error::{AtCaller, Cause, Error, Result};
use crate::request::{Asked, Changes, Recent, Refusal, Requests, Reserved, Way};
use crate::slot::{GlobalSlot, LocalSlot, Registrant, Slot, SlotTable};

/// Capacities asked for: the user's and, on top, the libraries'.
#[derive(Debug, Default)]
struct Wanted {
    user_slots: usize,
    user_requests: usize,
    library_slots: usize,
    library_requests: usize,
}

impl Wanted {
    fn slots(&self) -> usize {
        self.user_slots.saturating_add(self.library_slots)
    }

    fn requests(&self) -> usize {
        self.user_requests.saturating_add(self.library_requests)
    }
}

/// What checked mode keeps.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) pending: Pending,
    pub(super) registry: Registry,
    /// What everybody told in the superstep under way.
    pub(super) others: Vec<Told>,
}

#[derive(Debug)]
pub(super) struct Local {
    pub(super) pid: Pid,
    pub(super) nprocs: Pid,
    /// Full syncs completed.
    pub(super) superstep: u64,
    pub(super) queue: Requests,
    recent: Recent,
    pub(super) slots: SlotTable,
    /// Writes that may overlap, as many as may be aimed at this process.
    pub(super) conflicts: Conflicts,
    wanted: Wanted,
    /// A larger pool, for the next full sync.
    reserved: Option<Reserved>,
    pub(super) changes: Changes,
    /// Inboxes registered or deregistered, and their hash.
    pub(super) inbox_calls: u64,
    pub(super) inbox_hash: u64,
    /// Present in checked mode.
    pub(super) checks: Option<Box<Checks>>,
}

impl Local {
    pub(super) fn new(pid: Pid, nprocs: Pid, checked: bool) -> Result<Self> {
        Ok(Local {
            pid,
            nprocs,
            superstep: 0,
            queue: Requests::new(pid, nprocs)?,
            recent: Recent::NONE,
            slots: SlotTable::new(pid),
            conflicts: Conflicts::default(),
            wanted: Wanted::default(),
            reserved: None,
            changes: Changes::default(),
            inbox_calls: 0,
            inbox_hash: 0,
            checks: checked.then(Box::default),
        })
    }

    #[cold]
    pub(super) fn misuse(&self, cause: Cause) -> Error {
        Error::misuse(self.pid, self.superstep, cause)
    }

    #[cold]
    pub(super) fn arrivals_misuse(&self, text: String) -> Error {
        self.misuse(Cause::Arrivals(text))
    }

    #[cold]
    pub(super) fn refused(&self, what: &'static str, bytes: usize) -> Error {
        let cause = Cause::OutOfMemory { what: what.into(), bytes };
        Error::mitigable(self.pid, self.superstep, cause)
    }

    #[cold]
    pub(super) fn no_such_process(&self, pid: Pid) -> Error {
        self.misuse(Cause::NoSuchProcess { pid, last: self.nprocs - 1 })
    }

    #[cold]
    pub(super) fn out_of_range(&self, slot: Slot, offset: usize, bytes: usize) -> Error {
        self.misuse(self.slots.out_of_range(slot, offset, bytes))
    }

    /// Why a slot cannot be used now; checked mode knows what became of it.
    #[cold]
    pub(super) fn unknown(&self, slot: Slot) -> Error {
        match self.checks.as_ref().and_then(|checks| checks.registry.explain(slot)) {
            Some(cause) => self.misuse(cause),
            None => self.slots.explain(slot, self.superstep),
        }
    }

    /// The common part of put and get.
    #[inline]
    #[track_caller]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn request(
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
            let checked = self.checks.is_some();
            self.recent.name_slots(&mut self.slots, local, remote, checked);
            if let Some(checks) = &mut self.checks {
                let (address, place) = (address as usize, Place::caller());
                let asked = Asked { way, local, local_offset, other, remote, remote_offset, bytes };
                checks.pending.push(Tracked { asked, address, place });
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

    #[track_caller]
    pub(super) fn register_local(
        &mut self,
        base: *mut u8,
        bytes: usize,
        registrant: Registrant,
    ) -> Result<LocalSlot> {
        let slot =
            self.slots.register_local(base, bytes, registrant, self.superstep).at_caller()?;
        if let Some(checks) = &mut self.checks {
            let place = Place::caller();
            checks.registry.registered(slot, bytes, 0, registrant, place, self.superstep);
        }
        Ok(slot)
    }

    #[track_caller]
    pub(super) fn register_global(
        &mut self,
        base: *mut u8,
        bytes: usize,
        shape: u64,
    ) -> Result<GlobalSlot> {
        let slot = self.slots.register_global(base, bytes, shape, self.superstep).at_caller()?;
        self.changes.registered = true;
        if let Some(checks) = &mut self.checks {
            // Only the typed layer says what shape its areas have.
            let registrant = if shape == 0 { Registrant::Caller } else { Registrant::Runtime };
            let place = Place::caller();
            checks.registry.registered(slot, bytes, shape, registrant, place, self.superstep);
        }
        Ok(slot)
    }

    #[track_caller]
    pub(super) fn deregister(&mut self, slot: Slot) -> Result<()> {
        self.slots.deregister(slot, self.superstep).at_caller()?;
        self.recent = Recent::NONE;
        if let Some(checks) = &mut self.checks {
            checks.registry.deregistered(slot, Place::caller(), self.superstep);
        }
        self.changes.registered |= slot.is_global();
        Ok(())
    }

    /// All processes have abandoned the same slots, and the requests of this superstep are executed.
    #[cold]
    pub(super) fn forget_abandoned(&mut self) {
        let Local { slots, checks, superstep, .. } = self;
        slots.forget_abandoned(|slot| {
            if let Some(checks) = checks {
                checks.registry.dropped(slot, *superstep);
            }
        });
    }

    /// Notes a collective call about inboxes.
    pub(super) fn note_inbox(&mut self, what: u64) {
        self.inbox_calls += 1;
        let hash = self.inbox_hash.rotate_left(9) ^ what;
        self.inbox_hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.changes.registered = true;
    }

    /// Collective registrations so far and their hash.
    pub(super) fn registrations(&self) -> (u64, u64) {
        let (calls, hash) = self.slots.registrations();
        (calls + self.inbox_calls, hash ^ self.inbox_hash)
    }

    #[track_caller]
    pub(super) fn resize_slots(&mut self, slots: usize) -> Result<()> {
        self.reserve_slots(slots.saturating_add(self.wanted.library_slots)).at_caller()?;
        self.wanted.user_slots = slots;
        Ok(())
    }

    #[track_caller]
    pub(super) fn resize_requests(&mut self, requests: usize) -> Result<()> {
        self.reserve_requests(requests.saturating_add(self.wanted.library_requests)).at_caller()?;
        self.wanted.user_requests = requests;
        Ok(())
    }

    #[track_caller]
    pub(super) fn reserve(&mut self, slots: usize, requests: usize) -> Result<()> {
        self.reserve_slots(self.wanted.slots().saturating_add(slots)).at_caller()?;
        self.reserve_requests(self.wanted.requests().saturating_add(requests)).at_caller()?;
        self.wanted.library_slots += slots;
        self.wanted.library_requests += requests;
        Ok(())
    }

    fn reserve_slots(&mut self, slots: usize) -> Result<()> {
        self.slots.reserve(slots, self.superstep)?;
        self.changes.resized = true;
        Ok(())
    }

    fn reserve_requests(&mut self, requests: usize) -> Result<()> {
        let larger = self.queue.reserve(requests, self.superstep)?;
        // Own gets and others' puts: together no more than this.
        let conflicts = self.conflicts.reserve(requests);
        conflicts.map_err(|bytes| self.refused("conflicting writes", bytes))?;
        if larger.is_some() {
            self.reserved = larger;
        }
        self.changes.resized = true;
        Ok(())
    }

    /// Requests that this process wants room for.
    pub(super) fn wanted_requests(&self) -> usize {
        self.wanted.requests()
    }

    /// Of these, the libraries'.
    pub(super) fn library_requests(&self) -> usize {
        self.wanted.library_requests
    }

    /// What a process tracked in the superstep under way; nothing but in checked mode.
    pub(super) fn tracked_of(&self, pid: Pid) -> &[Tracked] {
        let told = self.checks.as_ref().and_then(|checks| checks.others.get(pid as usize));
        told.map_or(&[], |told| &told.requests)
    }

    /// The end of a section, with the place of the latest of this process's requests for a process that received
    /// too many; only checked mode knows it.
    #[cold]
    pub(super) fn with_place(&self, error: Error) -> Error {
        let (Cause::TargetOverrun { target, .. }, Some(checks)) = (error.cause(), &self.checks)
        else {
            return error;
        };
        let mut latest = checks.pending.requests().iter().rev();
        match latest.find(|tracked| tracked.asked.other == *target) {
            Some(tracked) if error.process() == Some(self.pid) => error.at(tracked.place.clone()),
            _ => error,
        }
    }

    /// The requests of a superstep are executed.
    pub(super) fn settle(&mut self) {
        self.queue.reset();
        self.slots.end_superstep();
        self.recent = Recent::NONE;
        if let Some(checks) = &mut self.checks {
            checks.pending.clear();
            checks.others.clear();
            if !checks.pending.is_suspended() {
                checks.registry.settle();
            }
        }
    }

    /// Suspends what is pending.
    pub(super) fn suspend(&mut self) -> Result<()> {
        let Local { changes, queue, slots, recent, .. } = self;
        let suspended = changes.suspend(queue, slots, recent);
        suspended.map_err(|bytes| self.refused("request lists", bytes))?;
        if let Some(checks) = &mut self.checks {
            checks.pending.suspend();
        }
        Ok(())
    }

    /// What was suspended last is pending again.
    pub(super) fn restore(&mut self) {
        let Local { changes, queue, slots, recent, .. } = self;
        changes.restore(queue, slots, recent);
        if let Some(checks) = &mut self.checks {
            report(checks.pending.lost(self.pid));
            checks.pending.restore();
        }
    }

    /// What a full sync brings into force, where `requests` is what all agreed on.
    pub(super) fn apply(&mut self, resized: bool, requests: usize) {
        self.slots.activate();
        self.changes.clear();
        if resized {
            self.slots.set_capacity(self.wanted.slots(), self.wanted.library_slots);
            // What is not in force yet waits for a sync of the caller.
            let (libraries, larger) = (self.wanted.library_requests, self.reserved.take());
            self.changes.resized = !self.queue.set_capacity(requests, libraries, larger);
        }
    }
}
