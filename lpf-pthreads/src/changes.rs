//! Registrations and resizes: asked for at any time, in force at the end of the next full sync.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::runtime::{LocalState, Purpose, Room, Summary};
use lpf_core::{Error, Pid, Result};

use crate::bits;
use crate::comm::{Comm, Peer, Rows};
use crate::memory;
use crate::sync::Padded;
use crate::threads::ThreadEngine;

/// The most that a reserved slot takes.
const BYTES_PER_SLOT: usize = 64;

impl ThreadEngine {
    /// What the first meeting has to know about registrations and resizes.
    pub(crate) fn announce_changes(&self, local: &LocalState) -> u32 {
        let peer = self.peer(local);
        let mut bits = bits::SECOND;
        if local.changes.resized {
            peer.wanted_requests.store(local.wanted_requests(), Relaxed);
            bits |= bits::RESIZED;
        }
        if local.changes.registered {
            *peer.registrations.lock() = local.registrations();
            bits |= bits::REGISTERED;
        }
        bits
    }

    /// Shows a word for the slots that this process has abandoned. It is compared in this sync, and in each later one
    /// in which any process shows another word.
    #[cold]
    pub(crate) fn announce_abandoned(&self, local: &mut LocalState) -> u32 {
        self.peer(local).abandoned.store(local.abandoned(), Relaxed);
        local.slots.announced();
        bits::SECOND | bits::ABANDONED
    }
}

impl Comm {
    /// What all show, between the two meetings of a sync: after it, others may already show something else.
    #[cold]
    pub(crate) fn agreed(&self, local: &LocalState) -> Summary {
        let shown = |(pid, peer): (Pid, &Padded<Peer>)| {
            let mut registrations = *peer.registrations.lock();
            if local.residents.is_none() {
                // One that has not registered yet has shown no number.
                registrations.iter_mut().for_each(|one| one.pid = pid);
            }
            let [lowest, highest] = registrations;
            Summary {
                requests: peer.wanted_requests.load(Relaxed) as u64,
                lowest,
                highest,
                abandoned: [peer.abandoned.load(Relaxed); 2],
                ..Summary::of(local, Purpose::Sync)
            }
        };
        let pids = self.node.pids();
        let mut all = shown((pids.start, &self.peers[0]));
        pids.zip(&self.peers).map(shown).for_each(|one| all.merge(&one));
        if local.abandoned() == 0 {
            // A library works in this process: requests that it suspended may name the slots.
            all.abandoned = [0; 2];
        }
        all
    }
}

/// A capacity, as a process that shares memory gets it.
pub(crate) struct Larger<'a> {
    pub(crate) comm: &'a Comm,
    pub(crate) rows: &'a mut Rows,
}

impl Larger<'_> {
    /// Refuses what does not fit the machine if all processes ask for it, as they do.
    fn check_memory(
        &self,
        local: &LocalState,
        what: &str,
        count: usize,
        each: usize,
    ) -> Result<()> {
        let reserved = &self.comm.reserved;
        let processes = self.comm.node.processes;
        let all = each.saturating_mul(processes);
        // Some have it already, and so it is no longer available.
        let missing = all.saturating_sub(reserved.load(Relaxed));
        let room = || format!("room for {count} {what} at each of {processes} processes");
        memory::check(missing, room)
            .map_err(|error| Error::mitigable(local.pid, local.superstep, error.cause().clone()))?;
        // Not before: others that ask at the same time would take what is refused here for memory that is had.
        reserved.fetch_add(each, Relaxed);
        Ok(())
    }
}

impl Room for Larger<'_> {
    fn for_slots(
        &mut self,
        local: &mut LocalState,
        slots: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        self.check_memory(local, "slots", slots, slots.saturating_mul(BYTES_PER_SLOT))?;
        let reserved = reserve(local);
        // The table may have moved, even where more was refused. Nobody looks into it now: this
        // process is not inside a sync.
        self.comm.peer(local.pid).show_table(local.slots.global_place());
        reserved
    }

    fn for_requests(
        &mut self,
        local: &mut LocalState,
        requests: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        let processes = self.comm.node.processes;
        let rows = Rows::bytes_for(processes, requests);
        let each = local.queue.bytes_for(requests).saturating_add(rows);
        self.check_memory(local, "requests", requests, each)?;
        let moved = self.rows.reserve(processes, requests);
        if moved.map_err(|bytes| local.refused("request lists", bytes))? {
            // As the table of slots: nobody looks into them now.
            self.comm.peer(local.pid).show_rows(self.rows);
        }
        reserve(local)
    }
}
