//! Phases 2 and 3 of a full sync in shared memory: each process carries out what is aimed at its memory, one request
//! after another. So any overlap has the outcome of a serial order, and no conflict is left to resolve.

use std::fmt;
use std::sync::Arc;

use super::from_afar::FromAfar;
use super::local_state::{LocalState, Remote};
use super::node::Node;
use super::residents::Residents;
use crate::Pid;
use crate::check::{SharedChecks, Tracked};
use crate::copy::copy;
use crate::error::{Cause, Error, Result};
use crate::request::{List, Request, Way};
use crate::slot::Entry;

/// The requests of one process for one other, in one superstep.
#[derive(Clone, Copy, Debug)]
pub struct Aimed {
    /// Puts for it.
    pub puts: List,
    /// Gets that name it.
    pub gets: u32,
}

impl Aimed {
    /// No request.
    pub const EMPTY: Aimed = Aimed { puts: List::EMPTY, gets: 0 };
}

/// The global slots of a process, or of those that it stands for.
#[derive(Clone, Copy, Debug)]
pub enum GlobalSlots<'e> {
    /// Its own.
    Own(&'e [Entry]),
    /// Those of the processes of a node.
    OfNode(&'e Residents),
}

impl<'e> GlobalSlots<'e> {
    /// The active entry that a request names.
    #[inline]
    fn named(self, number: usize) -> Option<&'e Entry> {
        match self {
            GlobalSlots::Own(entries) => entries.get(number).filter(|entry| entry.is_active()),
            GlobalSlots::OfNode(residents) => residents.entry(number),
        }
    }
}

/// What a process shows the others, from its arrival at the first barrier of a full sync to the end of the second one:
/// its requests and its global slots. O(p) memory.
#[derive(Debug)]
pub struct Shown {
    aimed: Vec<Aimed>,
    slots: (*const Entry, usize),
}

// SAFETY: addresses, which only unsafe functions follow.
unsafe impl Send for Shown {}
// SAFETY: as above.
unsafe impl Sync for Shown {}

impl Shown {
    /// Of one process, which has queued all its requests.
    pub fn of(local: &mut LocalState) -> Self {
        let LocalState { queue, slots, nprocs, .. } = local;
        let aimed = (0..*nprocs).map(|other| Aimed {
            puts: queue.finish(Way::Put, other),
            gets: queue.count(Way::Get, other),
        });
        Shown { aimed: aimed.collect(), slots: slots.global_place() }
    }

    /// Carries out what is aimed at one process: phases 2 and 3 of an engine whose processes show `all` this to each
    /// other. `checks` are what checked mode keeps of them.
    ///
    /// # Errors
    /// *Fatal* for a range outside its slot, and more requests than the process has reserved.
    ///
    /// # Safety
    /// Between the two barriers of the full sync for which they are shown.
    pub unsafe fn carry_out(
        all: &[Arc<Shown>],
        local: &mut LocalState,
        checks: &[SharedChecks],
    ) -> Result<()> {
        let (pid, made) = (local.pid, local.queue.used());
        let checks = |origin: Pid| Some(checks[origin].clone());
        let node = Node::of_all(local.nprocs);
        let mut destination = Destination::new(local, node, made, &checks);
        let slots = |of: Pid| match all[of].slots {
            (_, 0) => GlobalSlots::Own(&[]),
            // SAFETY: a table that is not empty lies there, and does not change before the second barrier.
            (entries, len) => GlobalSlots::Own(unsafe { std::slice::from_raw_parts(entries, len) }),
        };
        // SAFETY: the caller's promise. Each process had finished its lists when they were shown.
        unsafe { destination.carry_out(|_, from| all[from].aimed[pid], slots) }?;
        destination.check_load()
    }
}

/// A process that carries out requests, with the requests that it makes or is subject to in this superstep.
pub struct Destination<'a> {
    local: &'a mut LocalState,
    /// The processes whose requests it carries out.
    node: Node,
    /// What checked mode keeps of a process.
    checks: &'a dyn Fn(Pid) -> Option<SharedChecks>,
    total: usize,
    /// The process with most requests for this one, and how many.
    heaviest: Pid,
    most: u32,
}

impl fmt::Debug for Destination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}, subject to {} requests", self.local.pid, self.total)
    }
}

impl<'a> Destination<'a> {
    /// The number of this process, and those whose requests it carries out.
    #[inline]
    pub fn processes(&self) -> (Pid, Node) {
        (self.local.pid, self.node)
    }

    /// A process of `node` that has made `made` requests itself, for itself and for others. `checks` gives what checked mode keeps
    /// of a process.
    #[inline]
    pub fn new(
        local: &'a mut LocalState,
        node: Node,
        made: usize,
        checks: &'a dyn Fn(Pid) -> Option<SharedChecks>,
    ) -> Self {
        let FromAfar { all, most, heaviest } = local.take_from_afar();
        let heaviest = if most == 0 { local.pid } else { heaviest };
        Destination { heaviest, local, node, checks, total: made + all, most }
    }

    /// Counts `requests` requests of process `from` for this one.
    #[inline]
    pub fn count(&mut self, from: Pid, requests: u32) {
        self.total += requests as usize;
        if requests > self.most {
            (self.most, self.heaviest) = (requests, from);
        }
    }

    /// Counts one request of this process for another one.
    #[inline]
    pub fn count_own(&mut self) {
        self.total += 1;
    }

    /// The puts of all processes of the node for this one, and its own gets from them. `aimed` gives what a process has for this one, and `slots`
    /// the global slots of a process.
    ///
    /// # Errors
    /// *Fatal* for a range outside its slot.
    ///
    /// # Safety
    /// Between the two barriers of a full sync. Each process has finished its lists before the first, and changes neither
    /// them nor its slots before the second.
    #[inline]
    pub unsafe fn carry_out<'e>(
        &mut self,
        aimed: impl Fn(&LocalState, Pid) -> Aimed,
        slots: impl Fn(Pid) -> GlobalSlots<'e>,
    ) -> Result<()> {
        let (pid, node) = self.processes();
        // Each begins with itself, so that not all read from the same.
        for from in (pid..node.pids().end).chain(node.first..pid) {
            let Aimed { puts, gets } = aimed(self.local, from);
            if from != pid {
                self.count(from, puts.requests + gets);
            }
            // SAFETY: the lists are complete, and sources and slots unchanged, which the caller promises.
            unsafe {
                puts.for_each(|put| self.put(from, put))?;
                if self.local.queue.has_gets() && self.local.queue.count(Way::Get, from) > 0 {
                    self.gets(from, slots(from))?;
                }
            }
        }
        Ok(())
    }

    /// One put of process `from` for this one.
    ///
    /// # Errors
    /// *Fatal* for a range outside its slot.
    ///
    /// # Safety
    /// The source is valid for reads and does not change during the call.
    #[inline]
    pub unsafe fn put(&self, from: Pid, put: Request) -> Result<()> {
        let Request { address, bytes, slot, offset } = put;
        self.local.count_named(from, slot, 1);
        let entry = self.local.named(slot);
        match entry.and_then(|entry| entry.range(offset, bytes)) {
            // SAFETY: the caller promises the source. The target is a range of an active slot, which is valid for writes
            // until the sync returns, and its owner is inside the sync.
            Some(range) => unsafe { copy(address, range, bytes) },
            None if bytes > 0 => {
                let names = self.local.remote(from, slot, offset, bytes);
                return Err(self.out_of_range(names, entry));
            }
            None => {}
        }
        Ok(())
    }

    /// This process's gets from process `from`, which has these global slots.
    ///
    /// # Safety
    /// Between the two barriers of a full sync, in which `from` takes part.
    #[inline]
    unsafe fn gets(&mut self, from: Pid, slots: GlobalSlots<'_>) -> Result<()> {
        let gets = self.local.queue.finish(Way::Get, from);
        // SAFETY: the list is this process's own. Its targets were checked when they were queued, in slots that it keeps
        // until its sync returns. The sources are ranges of active slots of a process that is inside the sync.
        unsafe {
            gets.for_each(|get| {
                let Request { address, bytes, slot, offset } = get;
                let entry = slots.named(slot);
                let Some(range) = entry.and_then(|entry| entry.range(offset, bytes)) else {
                    return Err(self.out_of_range(self.read_by(from, slots, get), entry));
                };
                if let GlobalSlots::OfNode(residents) = slots {
                    residents.count(self.local.pid, slot, 1);
                }
                copy(range, address, bytes);
                Ok(())
            })
        }
    }

    /// A process may be subject to as many requests as it reserved. Those of a node are counted for its processes, which
    /// check them.
    ///
    /// # Errors
    /// *Fatal* if it was subject to more.
    #[inline]
    pub fn check_load(&self) -> Result<()> {
        if self.total <= self.local.queue.capacity() || self.local.residents.is_some() {
            return Ok(());
        }
        let (origin, target) = (self.heaviest, self.local.pid);
        let cause = self.local.queue.overrun(target, origin, self.total);
        // The latest may be the one too many.
        Err(self.found_late(origin, cause, |tracked| tracked.asked.other == target))
    }

    /// The process that made a get from process `from`, and what the get names.
    #[cold]
    fn read_by(&self, from: Pid, slots: GlobalSlots<'_>, get: Request) -> (Pid, Remote) {
        let Request { slot, offset, bytes, .. } = get;
        let (origin, target, slot) = match slots {
            GlobalSlots::Own(_) => (self.local.pid, from, slot),
            GlobalSlots::OfNode(residents) => residents.names(self.local.pid, slot),
        };
        (origin, Remote { target, slot, offset, bytes })
    }

    #[cold]
    fn out_of_range(&self, (origin, remote): (Pid, Remote), entry: Option<&Entry>) -> Error {
        let cause = remote.out_of_range(origin, entry, self.local);
        self.found_late(origin, cause, |tracked| remote.is_of(tracked))
    }

    /// The error of a request of `origin` that only this sync finds wrong: with the place of the latest that `is_it`
    /// knows, if checked mode keeps them.
    #[cold]
    fn found_late(&self, origin: Pid, cause: Cause, is_it: impl Fn(&Tracked) -> bool) -> Error {
        let error = Error::fatal(origin, self.local.superstep, cause);
        match (self.checks)(origin) {
            Some(checks) => error.at_known(checks.lock().pending.latest(is_it)),
            // Only the origin knows where it made its requests: see `LocalState::with_place`.
            None if self.local.is_checked() => error.in_checked_mode(),
            None => error,
        }
    }
}
