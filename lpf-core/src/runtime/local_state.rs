//! The part of a process that needs no other: its queue, its slots, its capacities, and every check that can be
//! made at the call.

use super::agreement::Registrations;
use super::engine::Announced;
use super::from_afar::FromAfar;
use super::residents::Residents;
use crate::Pid;
use crate::arrivals::InboxShape;
use crate::check::{
    Checker, Checks, Place, Registration, SharedChecks, Tracked, difference, report, report_lost,
};
use crate::error::{AtCaller, Cause, Error, Result, registered_differently};
use crate::lpf::Leaving;
use crate::request::{Asked, Capacities, Changes, Recent, Refusal, Requests, Reserved, Way};
use crate::slot::{Entry, GlobalSlot, LocalSlot, Registrant, Slot, SlotTable};
use crate::waits::Stream;

/// What a backend needs beside the tables of [`LocalState`] for a larger capacity.
pub trait Room {
    /// Room for `slots` slots. `reserve` gets that of the table, which it may move even if it fails.
    ///
    /// # Errors
    /// Those of `reserve`; *mitigable* if the backend's part is refused. Refused memory leaves no trace.
    fn for_slots(
        &mut self,
        local: &mut LocalState,
        _slots: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        reserve(local)
    }

    /// Room for `requests` requests, made or aimed at this process, from the end of the next full sync on.
    /// `reserve` gets that of the queue.
    ///
    /// # Errors
    /// As [`for_slots`](Self::for_slots).
    fn for_requests(
        &mut self,
        local: &mut LocalState,
        _requests: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        reserve(local)
    }
}

/// The room of an engine that needs nothing beside the tables.
#[derive(Clone, Copy, Debug)]
pub struct TablesOnly;

impl Room for TablesOnly {}

/// One process's requests, slots and capacities, with what it has asked for and the next full sync will bring.
#[derive(Debug)]
pub struct LocalState {
    /// This process.
    pub pid: Pid,
    /// The processes of the section.
    pub nprocs: Pid,
    /// Full syncs completed.
    pub superstep: u64,
    /// The requests of this superstep.
    pub queue: Requests,
    recent: Recent,
    /// Registered memory.
    pub slots: SlotTable,
    /// What libraries asked for, on top of the user's.
    libraries: Capacities,
    /// A larger pool, for the next full sync.
    reserved: Option<Reserved>,
    /// Registrations and resizes since the last full sync.
    pub changes: Changes,
    /// Inboxes registered or deregistered, and their hash.
    inbox_calls: u64,
    inbox_hash: u64,
    /// Present in checked mode.
    checks: Option<SharedChecks>,
    /// Requests of processes of other nodes for this one in this superstep, and the process that made the latest.
    from_afar: FromAfar,
    /// The processes that this one stands for, if it is a node.
    pub residents: Option<Box<Residents>>,
}

impl LocalState {
    /// Process `pid` of `nprocs`, without room; `checks` in checked mode. O(1) memory.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused.
    pub fn new(pid: Pid, nprocs: Pid, checks: Option<SharedChecks>) -> Result<Self> {
        Ok(Self::of(Requests::new(pid, nprocs)?, checks))
    }

    /// The process that `queue` was made for, as [`new`](Self::new) gives it. Gets no memory.
    pub fn of(queue: Requests, checks: Option<SharedChecks>) -> Self {
        let (pid, nprocs) = queue.process();
        LocalState {
            pid,
            nprocs,
            superstep: 0,
            queue,
            recent: Recent::NONE,
            slots: SlotTable::new(pid),
            libraries: Capacities::default(),
            reserved: None,
            changes: Changes::default(),
            inbox_calls: 0,
            inbox_hash: 0,
            checks,
            from_afar: FromAfar::default(),
            residents: None,
        }
    }

    /// Whether checked mode is on.
    #[inline]
    pub fn is_checked(&self) -> bool {
        self.checks.is_some()
    }

    /// What checked mode keeps of this process.
    pub fn checks(&self) -> Option<&SharedChecks> {
        self.checks.as_ref()
    }

    /// What checked mode keeps of each process that this one stands for.
    pub fn all_checks(&self) -> &[SharedChecks] {
        match &self.residents {
            None => self.checks.as_slice(),
            Some(residents) => &residents.checks,
        }
    }

    /// Checked mode keeps its notes in `checks` from now on. Nothing has been noted yet.
    pub fn keep_checks_in(&mut self, checks: Option<SharedChecks>) {
        self.checks = checks;
    }

    /// A misuse at this process, now.
    #[cold]
    pub fn misuse(&self, cause: Cause) -> Error {
        Error::misuse(self.pid, self.superstep, cause)
    }

    /// A misuse of links.
    #[cold]
    pub fn link_misuse(&self, text: String) -> Error {
        self.misuse(Cause::Link(text))
    }

    /// Refused memory: the bytes, and what they were for.
    #[cold]
    pub fn refused(&self, what: &'static str, bytes: usize) -> Error {
        let cause = Cause::OutOfMemory { what: what.into(), bytes };
        Error::mitigable(self.pid, self.superstep, cause)
    }

    /// A process beyond the last.
    #[cold]
    pub fn no_such_process(&self, pid: Pid) -> Error {
        self.misuse(Cause::NoSuchProcess { pid, last: self.nprocs - 1 })
    }

    /// A range that is not inside the slot.
    #[cold]
    pub fn out_of_range(&self, slot: Slot, offset: usize, bytes: usize) -> Error {
        self.misuse(self.slots.out_of_range(slot, offset, bytes))
    }

    /// The address of a range of a slot, as the local side of a put on a link or of an offer.
    ///
    /// # Errors
    /// *Misuse* for an unknown slot or a range outside it.
    #[inline]
    pub fn range(&self, slot: Slot, offset: usize, bytes: usize) -> Result<*mut u8> {
        let Some(entry) = self.slots.local_side(slot) else { return Err(self.unknown(slot)) };
        entry.range(offset, bytes).ok_or_else(|| self.out_of_range(slot, offset, bytes))
    }

    /// Counts requests of other nodes for this process.
    pub fn count_from_afar(&mut self, requests: FromAfar) {
        self.from_afar = requests;
    }

    /// What was counted so in this superstep.
    #[inline]
    pub(super) fn take_from_afar(&mut self) -> FromAfar {
        std::mem::take(&mut self.from_afar)
    }

    /// The active entry that requests of other processes name by `number`.
    #[inline]
    pub fn named(&self, number: usize) -> Option<&Entry> {
        match &self.residents {
            None => self.slots.global_entries().get(number).filter(|entry| entry.is_active()),
            Some(residents) => residents.entry(number),
        }
    }

    /// Counts requests of process `from` that name `number`, for the process that they concern if it is one of several.
    #[inline]
    pub fn count_named(&self, from: Pid, number: usize, requests: usize) {
        if let Some(residents) = &self.residents {
            residents.count(from, number, requests);
        }
    }

    /// The process that made a request of process `from` for this one, and what the request names: as users know them.
    #[cold]
    pub fn remote(&self, from: Pid, number: usize, offset: usize, bytes: usize) -> (Pid, Remote) {
        let (origin, target, slot) = match &self.residents {
            None => (from, self.pid, number),
            Some(residents) => residents.names(from, number),
        };
        (origin, Remote { target, slot, offset, bytes })
    }

    /// The number of a process as users know it: the lowest process of a node.
    pub fn known_as(&self, pid: Pid) -> Pid {
        match &self.residents {
            Some(residents) if pid < residents.nodes().count() => residents.nodes().node(pid).first,
            _ => pid,
        }
    }

    /// Whether a process is this one, or one that it stands for.
    pub fn is_here(&self, pid: Pid) -> bool {
        match &self.residents {
            None => pid == self.pid,
            Some(residents) => residents.pids().contains(&pid),
        }
    }

    /// The ring here in which the messages of a stream end.
    pub fn ring_here(&self, stream: &Stream, shape: InboxShape) -> usize {
        match &self.residents {
            None => stream.ring,
            Some(residents) => residents.ring(stream, shape),
        }
    }

    /// Why a slot cannot be used now; checked mode knows what became of it.
    #[cold]
    pub fn unknown(&self, slot: Slot) -> Error {
        match self.checks.as_ref().and_then(|checks| checks.lock().registry.explain(slot)) {
            Some(cause) => self.misuse(cause),
            None => self.slots.explain(slot, self.superstep),
        }
    }

    /// The common part of put and get, inlined into both. Θ(1).
    ///
    /// # Errors
    /// *Misuse*, as [`put`](crate::Lpf::put).
    #[inline(always)]
    #[track_caller]
    #[allow(clippy::too_many_arguments)]
    pub fn request(
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
            self.recent.name_slots(&mut self.slots, local, remote, self.checks.is_some());
            if let Some(checks) = &self.checks {
                let asked = Asked { way, local, local_offset, other, remote, remote_offset, bytes };
                track(checks, asked, address);
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

    /// As [`Lpf::register_local`](crate::Lpf::register_local), where no memory is pinned.
    ///
    /// # Errors
    /// *Misuse* if no slot is left.
    #[track_caller]
    pub fn register_local(
        &mut self,
        base: *mut u8,
        bytes: usize,
        registrant: Registrant,
    ) -> Result<LocalSlot> {
        let slot =
            self.slots.register_local(base, bytes, registrant, self.superstep).at_caller()?;
        if let Some(checks) = &self.checks {
            let place = Place::caller();
            checks.lock().registry.registered(slot, bytes, 0, registrant, place, self.superstep);
        }
        Ok(slot)
    }

    /// As [`Lpf::register_global`](crate::Lpf::register_global), where no memory is pinned.
    ///
    /// # Errors
    /// *Misuse* if no slot is left.
    #[track_caller]
    pub fn register_global(
        &mut self,
        base: *mut u8,
        bytes: usize,
        element: usize,
    ) -> Result<GlobalSlot> {
        let slot = self.slots.register_global(base, bytes, element, self.superstep).at_caller()?;
        self.changes.registered = true;
        if let Some(checks) = &self.checks {
            // Only the areas of the typed layer have elements.
            let registrant = if element == 0 { Registrant::Caller } else { Registrant::Runtime };
            let place = Place::caller();
            checks.lock().registry.registered(
                slot,
                bytes,
                element,
                registrant,
                place,
                self.superstep,
            );
        }
        Ok(slot)
    }

    /// As [`Lpf::deregister`](crate::Lpf::deregister), for a slot that no link needs.
    ///
    /// # Errors
    /// *Misuse* if it is unknown or busy.
    #[track_caller]
    pub fn deregister(&mut self, slot: Slot) -> Result<()> {
        self.slots.deregister(slot, self.superstep).at_caller()?;
        self.recent = Recent::NONE;
        if let Some(checks) = &self.checks {
            checks.lock().registry.deregistered(slot, Place::caller(), self.superstep);
        }
        self.changes.registered |= slot.is_global();
        Ok(())
    }

    /// All processes have abandoned the same slots, and the requests of this superstep are executed.
    #[cold]
    pub fn forget_abandoned(&mut self) {
        let LocalState { slots, checks, superstep, .. } = self;
        slots.forget_abandoned(|slot| {
            if let Some(checks) = checks {
                checks.lock().registry.dropped(slot, *superstep);
            }
        });
    }

    /// Notes a collective call about inboxes.
    pub fn note_inbox(&mut self, what: u64) {
        self.inbox_calls += 1;
        let hash = self.inbox_hash.rotate_left(9) ^ what;
        self.inbox_hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.changes.registered = true;
    }

    /// Collective registrations so far: the lowest and the highest of the processes that this one stands for, which are its
    /// own if it stands for none.
    pub fn registrations(&self) -> [Registrations; 2] {
        if let Some(residents) = &self.residents {
            return residents.announced.registrations;
        }
        let (calls, hash, area) = self.slots.registrations();
        let (hash, calls) = (hash ^ self.inbox_hash, calls + self.inbox_calls);
        [Registrations { area, hash, calls, pid: self.pid }; 2]
    }

    /// Whether two processes have registered the same, as a full sync requires.
    ///
    /// # Errors
    /// *Fatal*, naming the higher one of them.
    pub fn compare_registrations(&self, a: Registrations, b: Registrations) -> Result<()> {
        if a.agree(&b) {
            return Ok(());
        }
        let (a, b) = if a.pid < b.pid { (a, b) } else { (b, a) };
        let (processes, counts) = ([a.pid, b.pid], [a.calls, b.calls]);
        let cause = if self.is_checked() {
            // The slots and their places were compared before.
            let what = "inboxes (of collectives or links)";
            Cause::Checked(registered_differently(what, processes, counts, ""))
        } else {
            Cause::RegistrationsDiffer { a: a.pid, b: b.pid, counts, areas: [a.area, b.area] }
        };
        Err(Error::fatal(b.pid, self.superstep, cause))
    }

    /// How the function of this process has ended, as an error that names this process; `None` if it is done. What a
    /// [`Leaving::Failed`] has is handed on.
    pub fn failure_of(&self, how: Leaving) -> Option<Error> {
        let cause = match how {
            Leaving::Done => return None,
            Leaving::Failed(error) => return Some(error),
            // Its own error needs no second mention of the process and the superstep.
            Leaving::Returned(error) if error.process() == Some(self.pid) => {
                Cause::Returned { message: error.reason() }
            }
            Leaving::Returned(error) => Cause::Returned { message: error.to_string() },
            Leaving::Panicked(message) => Cause::Panicked { message },
        };
        Some(Error::fatal(self.pid, self.superstep, cause))
    }

    /// Requests that this process wants room for.
    pub fn wanted_requests(&self) -> usize {
        if let Some(residents) = &self.residents {
            return residents.announced.requests as usize;
        }
        self.changes.wanted.requests.saturating_add(self.libraries.requests)
    }

    /// As [`Lpf::resize_memory_register`](crate::Lpf::resize_memory_register).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, without any trace.
    #[track_caller]
    pub fn resize_slots(&mut self, room: &mut impl Room, slots: usize) -> Result<()> {
        let all = slots.saturating_add(self.libraries.slots);
        self.reserve_slots(room, all).at_caller()?;
        self.changes.wanted.slots = slots;
        Ok(())
    }

    /// As [`Lpf::resize_message_queue`](crate::Lpf::resize_message_queue).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, without any trace.
    #[track_caller]
    pub fn resize_requests(&mut self, room: &mut impl Room, requests: usize) -> Result<()> {
        let all = requests.saturating_add(self.libraries.requests);
        self.reserve_requests(room, all).at_caller()?;
        self.changes.wanted.requests = requests;
        Ok(())
    }

    /// As [`Runtime::reserve`](crate::Runtime::reserve).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, without any trace.
    #[track_caller]
    pub fn reserve(&mut self, room: &mut impl Room, slots: usize, requests: usize) -> Result<()> {
        let (user, libraries) = (self.changes.most(), self.libraries);
        let all = user.slots.saturating_add(libraries.slots).saturating_add(slots);
        self.reserve_slots(room, all).at_caller()?;
        let all = user.requests.saturating_add(libraries.requests).saturating_add(requests);
        self.reserve_requests(room, all).at_caller()?;
        self.libraries.slots += slots;
        self.libraries.requests += requests;
        Ok(())
    }

    fn reserve_slots(&mut self, room: &mut impl Room, slots: usize) -> Result<()> {
        room.for_slots(self, slots, |local| local.slots.reserve(slots, local.superstep))?;
        self.changes.resized = true;
        Ok(())
    }

    fn reserve_requests(&mut self, room: &mut impl Room, requests: usize) -> Result<()> {
        room.for_requests(self, requests, |local| {
            let larger = local.queue.reserve(requests, local.superstep)?;
            if larger.is_some() {
                local.reserved = larger;
            }
            Ok(())
        })?;
        self.changes.resized = true;
        Ok(())
    }

    /// In checked mode, after the first barrier of a full sync: reads and writes of the same bytes here, and
    /// registrations that differ. `all` has the requests and collective calls of each process.
    ///
    /// # Errors
    /// *Fatal*, with the places of both.
    pub fn check_superstep<'a>(
        &self,
        all: impl Iterator<Item = (&'a [Tracked], &'a [Registration])> + Clone,
    ) -> Result<()> {
        let fatal = |pid, cause| Err(Error::fatal(pid, self.superstep, cause));
        if let Some((pid, cause)) = difference(all.clone().map(|(_, calls)| calls)) {
            return fatal(pid, cause);
        }
        let here = self.residents.as_ref().map_or(self.pid..self.pid + 1, |here| here.pids());
        for pid in here {
            let base = |slot: GlobalSlot| match &self.residents {
                None => self.slots.area(slot.into()).map(|(base, _)| base as usize),
                Some(residents) => residents.base(pid, slot.index()),
            };
            let mut checker = Checker::new(pid);
            for (origin, (requests, _)) in (0..).zip(all.clone()) {
                if origin == pid {
                    checker.own(requests);
                }
                checker.from(origin, requests, base);
            }
            checker.overlap().map_or(Ok(()), |cause| fatal(pid, cause))?;
        }
        Ok(())
    }

    /// As [`check_superstep`](Self::check_superstep), if the notes of all processes lie in this process's memory: between
    /// the two barriers of a sync, when no process queues or registers.
    ///
    /// # Errors
    /// As there.
    pub fn check_shared<'a>(&self, all: impl Iterator<Item = &'a SharedChecks>) -> Result<()> {
        let all: Vec<_> = all.map(SharedChecks::lock).collect();
        let all = all.iter().map(|checks| (checks.pending.requests(), checks.registry.calls()));
        self.check_superstep(all)
    }

    /// Reports the requests that are lost at the end of a section; in checked mode each of them, and the slots that the
    /// section leaves registered.
    pub fn report_leaks(&self) {
        match &self.checks {
            Some(checks) => {
                let checks = checks.lock();
                report(checks.pending.lost(self.pid));
                report(checks.registry.leaks(self.pid));
            }
            None if self.queue.used() > 0 => report_lost(self.pid),
            None => {}
        }
    }

    /// The end of a section, with the place of the latest of this process's requests for a process that received
    /// too many; only checked mode knows it.
    #[cold]
    pub fn with_place(&self, error: Error) -> Error {
        let (Cause::TargetOverrun { target, .. }, Some(checks)) = (error.cause(), &self.checks)
        else {
            return error;
        };
        if error.process() != Some(self.pid) {
            return error;
        }
        let is_it = |tracked: &Tracked| tracked.asked.other == *target;
        let pending = &checks.lock().pending;
        let place = match error.superstep() {
            // Another process has found it when this one had left the superstep.
            Some(superstep) if superstep < self.superstep => pending.latest_before(is_it),
            _ => pending.latest(is_it),
        };
        match place {
            Some(place) => error.at(place),
            None => error,
        }
    }

    /// Whether there is a new word for abandoned slots to announce.
    #[inline]
    pub fn has_abandoned(&self) -> bool {
        match &self.residents {
            None => self.slots.has_abandoned(),
            Some(residents) => residents.announced.kinds.has(Announced::ABANDONED),
        }
    }

    /// The word for abandoned slots.
    pub fn abandoned(&self) -> u64 {
        match &self.residents {
            None => self.slots.abandoned(),
            Some(residents) => residents.announced.abandoned,
        }
    }

    /// Whether the next full sync has to announce anything beside requests.
    #[inline]
    pub fn is_silent(&self) -> bool {
        !self.changes.any() && !self.has_abandoned() && self.checks.is_none()
    }

    /// The end of a superstep in which no process had anything to announce.
    #[inline]
    pub fn end_silent_superstep(&mut self) {
        self.recent.forget();
        self.slots.end_superstep();
        self.superstep += 1;
    }

    /// The requests of a superstep are executed.
    #[inline]
    pub fn settle(&mut self) {
        self.queue.reset();
        self.slots.end_superstep();
        self.recent = Recent::NONE;
        if let Some(checks) = &self.checks {
            let Checks { pending, registry } = &mut *checks.lock();
            pending.clear();
            if !pending.is_suspended() {
                registry.settle();
            }
        }
    }

    /// As [`Runtime::suspend`](crate::Runtime::suspend).
    ///
    /// # Errors
    /// *Mitigable* if memory is refused. Nothing is suspended then.
    pub fn suspend(&mut self) -> Result<()> {
        let LocalState { changes, queue, slots, recent, .. } = self;
        let suspended = changes.suspend(queue, slots, recent);
        suspended.map_err(|bytes| self.refused("request lists", bytes))?;
        if let Some(checks) = &self.checks {
            checks.lock().pending.suspend();
        }
        Ok(())
    }

    /// As [`Runtime::restore`](crate::Runtime::restore).
    ///
    /// # Panics
    /// If nothing is suspended.
    pub fn restore(&mut self) {
        let LocalState { changes, queue, slots, recent, .. } = self;
        changes.restore(queue, slots, recent);
        if let Some(checks) = &self.checks {
            let pending = &mut checks.lock().pending;
            report(pending.lost(self.pid));
            pending.restore();
        }
    }

    /// What a full sync brings into force, where `requests` is what all agreed on.
    pub fn apply(&mut self, resized: bool, requests: usize) {
        // Each process of a node may make as many, and be subject to as many.
        let share = self.residents.as_ref().map_or(1, |residents| residents.processes());
        let requests = requests.saturating_mul(share);
        self.slots.activate();
        self.changes.clear();
        if resized {
            let (libraries, larger) = (self.libraries, self.reserved.take());
            let slots = self.changes.wanted.slots.saturating_add(libraries.slots);
            self.slots.set_capacity(slots, libraries.slots);
            // What is not in force yet waits for a sync of the caller.
            self.changes.resized = !self.queue.set_capacity(requests, libraries.requests, larger);
        }
    }
}

/// What a request names at the other process.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// The process.
    pub target: Pid,
    /// The number of the global slot.
    pub slot: usize,
    /// The offset in it, in bytes.
    pub offset: usize,
    /// How many bytes.
    pub bytes: usize,
}

impl Remote {
    /// Whether this is what the request names that checked mode has noted.
    pub fn is_of(&self, tracked: &Tracked) -> bool {
        let Asked { other, remote, remote_offset, bytes, .. } = tracked.asked;
        (other, remote.index(), remote_offset, bytes)
            == (self.target, self.slot, self.offset, self.bytes)
    }

    /// The cause of a request of `origin` that names bytes outside the slot, of which `entry` is the target's if it
    /// has registered it. The process that finds it has the slots of `local`: areas have the same elements at all processes.
    #[cold]
    pub fn out_of_range(&self, origin: Pid, entry: Option<&Entry>, local: &LocalState) -> Cause {
        let &Remote { target, slot, offset, bytes } = self;
        let element = match &local.residents {
            None => local.slots.element(slot),
            Some(residents) => residents.element(slot),
        };
        let (slot, len) = (format!("global slot {slot}"), entry.map_or(0, Entry::len));
        Cause::RemoteOutOfRange { origin, target, slot, offset, bytes, len, element }
    }
}

/// Notes a request for checked mode.
#[cold]
#[inline(never)]
#[track_caller]
fn track(checks: &SharedChecks, asked: Asked, address: *mut u8) {
    let (address, place) = (address as usize, Place::caller());
    checks.lock().pending.push(Tracked { asked, address, place });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inboxes_that_differ_are_told_with_their_counts() {
        let of = |pid, inboxes| {
            let mut state = LocalState::new(pid, 2, Some(SharedChecks::default())).unwrap();
            (0..inboxes).for_each(|inbox| state.note_inbox(inbox));
            state
        };
        let (one, none) = (of(0, 1), of(1, 0));
        let differ = one.compare_registrations(none.registrations()[0], one.registrations()[0]);
        let text = differ.unwrap_err().to_string();
        let told = "process 0 and process 1 registered or deregistered inboxes (of collectives or links) differently \
                    since the last sync (1 and 0 calls since the section began)";
        assert!(text.contains(told), "{text}");
    }
}
