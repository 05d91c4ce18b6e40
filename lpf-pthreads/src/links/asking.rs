//! A wait that takes long asks whom it waits for: `lpf_core::waits` on shared memory.

use std::time::{Duration, Instant};

use lpf_core::waits::{
    ASK_AFTER, Doing, QueuedLanding, ReceiverCounts, SenderCounts, Status, Stream, Suspicion, Want,
    What, last_of_chain, publish_after,
};
use lpf_core::{Awaited, Error, InboxSlot, Link, Pid, Result};

use super::OpenLink;
use super::ring::{FREE, end, process_of};
use crate::long_wait::is_over;
use crate::sync::Ordering;
use crate::threads::Threads;

/// What one wait remembers of its questions.
#[derive(Debug, Default)]
pub(super) struct Asking {
    since: Option<Instant>,
    asked: Duration,
    published: bool,
    suspicion: Suspicion,
}

impl Asking {
    /// Called after each sleep of the wait.
    pub(super) fn look(
        &mut self,
        process: &mut Threads,
        wants: &dyn Fn(&Threads) -> Vec<Want>,
    ) -> Result<()> {
        process.check_process()?;
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let limit = process.comm.environment.timeout;
        if waited >= publish_after(limit) && !self.published {
            process.publish(Doing::Waiting(wants(process)));
            self.published = true;
        }
        if let Some(limit) = limit.filter(|&limit| is_over(waited, limit)) {
            process.publish(Doing::Waiting(wants(process)));
            return Err(process.late(&wants(process), limit));
        }
        if waited < self.asked + ASK_AFTER {
            return Ok(());
        }
        self.asked = waited;
        // What came meanwhile is no longer wanted.
        process.publish(Doing::Waiting(wants(process)));
        let comm = process.comm.clone();
        let own = comm.peers[process.local.pid as usize].lock_status().clone();
        let fetch = |pid: Pid| Some(comm.peers[pid as usize].lock_status().clone());
        match self.suspicion.diagnose(process.local.pid, &own, fetch) {
            None => Ok(()),
            Some(fault) => {
                let error = Error::fatal(fault.process, process.local.superstep, fault.cause);
                Err(process.fail_before(process.meeting + 1, error))
            }
        }
    }
}

impl Asking {
    /// The wait is over, and what was published of it.
    #[inline]
    pub(super) fn end(&self, process: &Threads) {
        if self.published {
            process.publish(Doing::Computing);
        }
    }
}

impl OpenLink {
    fn to_peer(&self, pid: Pid) -> Stream {
        Stream::new(pid, self.peer, InboxSlot::new(self.inbox), self.peer_ring)
    }

    fn to_me(&self, pid: Pid) -> Stream {
        Stream::new(self.peer, pid, InboxSlot::new(self.inbox), self.ring)
    }

    /// Writes what this link has done to its process's status.
    fn note(&self, pid: Pid, status: &mut Status) {
        let (sent, received) = (&self.sent_before, &self.received_before);
        let made_before_queue = sent.made + self.outgoing.sent - self.first_sent;
        let landed = sent.landed + self.landed - self.first_landed;
        let before_landing = self.queue.before_landing();
        status.on_mut(self.to_peer(pid)).sent = SenderCounts {
            made: sent.made + self.outgoing.made - self.first_sent,
            landed,
            queued: before_landing.map(|before| QueuedLanding {
                message: made_before_queue + before + 1,
                landing: landed + 1,
            }),
            barred: (!self.granted && !self.queue.is_empty()).then_some(made_before_queue + 1),
            ..*sent
        };
        status.on_mut(self.to_me(pid)).received = ReceiverCounts {
            released: received.released + self.incoming.released - self.incoming.first,
            offered: received.offered + self.offered - self.first_offer,
            held_by: self.former_sender(),
            ..*received
        };
    }

    /// Who has the ring that ends here and was opened for another: its link before this one.
    fn former_sender(&self) -> Option<(Pid, u64)> {
        let holder = self.own.sender(self.ring).claim.load(Ordering::Relaxed);
        let is_former = holder != FREE && holder != end(self.peer, self.received_before.opened);
        is_former.then(|| process_of(holder))
    }

    /// What the flush of this link waits for: the ring, credit, an offer, or who reads here.
    fn wants_to_send(&self, pid: Pid) -> Option<Want> {
        let stream = self.to_peer(pid);
        let before = |n| self.sent_before.made + n - self.first_sent;
        let have = before(self.outgoing.released);
        let Some(next) = self.queue.next() else {
            let need = before(self.lent.max(self.first_sent));
            return (have < need).then_some(Want { what: What::Releases, stream, have, need });
        };
        if !self.granted {
            return Some(self.wants_ring(stream));
        }
        let need = (before(self.outgoing.sent) + 1).saturating_sub(u64::from(self.window()));
        if have < need {
            return Some(Want { what: What::Releases, stream, have, need });
        }
        next.is_landing().then(|| {
            let have = self.sent_before.landed + self.landed - self.first_landed;
            Want { what: What::Offers, stream, have, need: have + 1 }
        })
    }

    /// The peer opens its end, or the ring's former sender closes.
    fn wants_ring(&self, stream: Stream) -> Want {
        let owner = self.theirs.owner(self.peer_ring);
        let holder = self.theirs.sender(self.peer_ring).claim.load(Ordering::Relaxed);
        let is_open = owner.granted.load(Ordering::Relaxed) == self.end;
        let (what, stream, need) = if is_open && holder != FREE {
            let (from, opened) = process_of(holder);
            (What::Closing, Stream { from, ..stream }, opened)
        } else {
            (What::Opening, stream, self.sent_before.opened)
        };
        Want { what, stream, have: need - 1, need }
    }
}

impl Threads {
    pub(super) fn open_links(&self) -> impl Iterator<Item = &OpenLink> {
        self.links.places.iter().filter_map(|place| place.link.as_ref())
    }

    /// What a wait needs that is not there.
    pub(super) fn wants(&self, awaited: Awaited<'_>) -> Vec<Want> {
        let pid = self.local.pid;
        match awaited {
            Awaited::Flushed => self.open_links().filter_map(|l| l.wants_to_send(pid)).collect(),
            Awaited::FlushedOn(links) => {
                links.iter().filter_map(|&link| self.link(link).ok()?.wants_to_send(pid)).collect()
            }
            Awaited::Messages(messages) => messages
                .iter()
                .filter_map(|expect| {
                    let link = self.link(expect.link).ok()?;
                    let before = |n| link.received_before.released + n - link.incoming.first;
                    let (have, need) = (before(link.incoming.seen), before(link.incoming.awaited));
                    let stream = link.to_me(pid);
                    (have < need).then_some(Want { what: What::Messages, stream, have, need })
                })
                .collect(),
        }
    }

    /// The wait has taken longer than `LPF_TIMEOUT`.
    #[cold]
    fn late(&mut self, wants: &[Want], limit: Duration) -> Error {
        let missing = wants.first().map_or(self.local.pid, Want::awaited);
        let status = |of: Pid| Some(self.comm.peers[of as usize].lock_status().clone());
        let own = status(self.local.pid).unwrap_or_default();
        let last =
            last_of_chain(self.local.pid, &own, self.local.nprocs, status).unwrap_or(missing);
        self.declare_late(self.meeting + 1, last, limit);
        self.die()
    }

    /// Says what this process is in, for those who ask.
    #[cold]
    pub(crate) fn publish(&self, doing: Doing) {
        let mut status = self.own_peer().lock_status();
        // Who reads the status must not find a wait with the counts of an earlier time.
        for link in self.open_links() {
            link.note(self.local.pid, &mut status);
        }
        status.superstep = self.local.superstep;
        status.enter(self.links.call);
        status.doing = doing;
    }

    /// Keeps what a link that is about to be closed has counted.
    pub(super) fn keep_counts(&self, link: Link) {
        if let Ok(open) = self.link(link) {
            let mut status = self.own_peer().lock_status();
            open.note(self.local.pid, &mut status);
            status.on_mut(open.to_peer(self.local.pid)).sent.closed = open.sent_before.opened;
            status.on_mut(open.to_me(self.local.pid)).received.closed = open.received_before.opened;
        }
    }
}
