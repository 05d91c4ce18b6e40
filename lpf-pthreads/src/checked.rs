//! Checked mode on shared memory: `lpf_core::check`, fed between the two meetings of a sync.

use std::io::Write;

use lpf_core::check::{Checker, Place, Tracked, difference};
use lpf_core::request::Way;
use lpf_core::{Error, GlobalSlot, Pid, Registrant, Result, Slot};

use crate::comm::{Checks, Peer};
use crate::threads::Threads;

type Request = (Way, Slot, usize, Pid, GlobalSlot, usize, usize);

impl Threads {
    fn own_peer(&self) -> &Peer {
        &self.comm.peers[self.pid as usize]
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn track(&mut self, request: Request, address: *mut u8) {
        let (way, local, local_offset, other, remote, remote_offset, bytes) = request;
        self.own_peer().lock_checks().requests.push(Tracked {
            way,
            local,
            local_offset,
            address: address as usize,
            other,
            remote,
            remote_offset,
            bytes,
            place: Place::caller(),
        });
    }

    #[cold]
    #[track_caller]
    pub(crate) fn track_registration(
        &mut self,
        slot: Slot,
        bytes: usize,
        shape: u64,
        registrant: Registrant,
    ) {
        let place = Place::caller();
        let superstep = self.superstep;
        let mut checks = self.own_peer().lock_checks();
        checks.registry.registered(slot, bytes, shape, registrant, place, superstep);
    }

    #[cold]
    #[track_caller]
    pub(crate) fn track_deregistration(&mut self, slot: Slot) {
        let place = Place::caller();
        let superstep = self.superstep;
        self.own_peer().lock_checks().registry.deregistered(slot, place, superstep);
    }

    /// Why a slot cannot be used now; checked mode knows what became of it.
    #[cold]
    pub(crate) fn unknown(&self, slot: Slot) -> Error {
        if self.checked
            && let Some(cause) = self.own_peer().lock_checks().registry.explain(slot)
        {
            return self.misuse(cause);
        }
        self.slots.explain(slot, self.superstep)
    }

    /// Reads and writes of the same bytes, and registrations that differ: between the two meetings
    /// of a sync, when nobody queues or registers.
    pub(crate) fn check_superstep(&self) -> Result<()> {
        let all: Vec<_> = self.comm.peers.iter().map(|peer| peer.lock_checks()).collect();
        let fatal = |cause| Error::fatal(self.pid, self.superstep, cause);
        let own = self.pid as usize;
        let next = (own + 1) % all.len();
        let calls = |who: usize| (who as Pid, all[who].registry.calls());
        if let Some(cause) = difference(calls(own.min(next)), calls(own.max(next))) {
            return Err(fatal(cause));
        }
        let base = |slot: GlobalSlot| self.slots.area(slot.into()).map(|(base, _)| base as usize);
        let mut checker = Checker::new(self.pid);
        checker.own(&all[own].requests);
        for (origin, checks) in all.iter().enumerate() {
            checker.from(origin as Pid, &checks.requests, base);
        }
        checker.overlap().map_or(Ok(()), |cause| Err(fatal(cause)))
    }

    /// The sync is complete.
    pub(crate) fn settle_checks(&self) {
        let Checks { requests, registry } = &mut *self.own_peer().lock_checks();
        requests.clear();
        registry.settle();
    }

    /// Says which slots a section leaves registered.
    pub(crate) fn report_leaks(&self) {
        if let Some(report) = self.own_peer().lock_checks().registry.leaks(self.pid) {
            // A report that cannot be written is no reason to fail.
            let _ = writeln!(std::io::stderr(), "checked mode: {report}");
        }
    }
}
