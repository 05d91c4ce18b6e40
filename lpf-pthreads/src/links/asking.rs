//! A wait that takes long asks whom it waits for: `lpf_core::waits` on shared memory.

use std::time::{Duration, Instant};

use lpf_core::waits::{
    ASK_AFTER, Counts, Doing, QueuedLanding, Status, Stream, Suspicion, Want, What,
};
use lpf_core::{Awaited, Cause, Error, InboxSlot, Link, Pid, Result};

use super::OpenLink;
use crate::long_wait::PUBLISH_AFTER;
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
    pub(super) fn look(&mut self, process: &mut Threads, awaited: Awaited<'_>) -> Result<()> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited >= PUBLISH_AFTER && !self.published {
            process.publish(Doing::Waiting(process.wants(awaited)));
            self.published = true;
        }
        if process.comm.environment.timeout.is_some_and(|limit| waited >= limit) {
            return Err(process.late(awaited, waited));
        }
        if waited < self.asked + ASK_AFTER {
            return Ok(());
        }
        self.asked = waited;
        // What came meanwhile is no longer wanted.
        process.publish(Doing::Waiting(process.wants(awaited)));
        let comm = process.comm.clone();
        let own = comm.peers[process.pid as usize].lock_status().clone();
        let fetch = |pid: Pid| Some(comm.peers[pid as usize].lock_status().clone());
        match self.suspicion.diagnose(process.pid, &own, fetch) {
            None => Ok(()),
            Some(fault) => {
                let error = Error::fatal(fault.process, process.superstep, fault.cause);
                Err(process.fail(process.meeting + 1, error))
            }
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

    fn counts(&self, pid: Pid) -> [(Stream, Counts); 2] {
        let first_landing = self.queue.iter().position(|put| put.landing);
        let sent = Counts {
            made: self.outgoing.made,
            queued: first_landing.map(|at| QueuedLanding {
                message: self.outgoing.sent + at as u64 + 1,
                landing: self.landed + 1,
            }),
            ..Counts::default()
        };
        let received =
            Counts { released: self.incoming.released, offered: self.offered, ..Counts::default() };
        [(self.to_peer(pid), sent), (self.to_me(pid), received)]
    }

    /// What the queue of this link waits for: credit, or an offer.
    fn wants_to_send(&self, pid: Pid) -> Option<Want> {
        let next = self.queue.front()?;
        let stream = self.to_peer(pid);
        let window = u64::from(self.window());
        let need = (self.outgoing.sent + 1).saturating_sub(window);
        let have = self.outgoing.released;
        if have < need {
            return Some(Want { what: What::Releases, stream, have, need });
        }
        next.landing.then(|| {
            let (have, need) = (self.landed, self.landed + 1);
            Want { what: What::Offers, stream, have, need }
        })
    }
}

impl Threads {
    fn open_links(&self) -> impl Iterator<Item = &OpenLink> {
        self.links.places.iter().filter_map(|place| place.link.as_ref())
    }

    /// What a wait needs that is not there.
    fn wants(&self, awaited: Awaited<'_>) -> Vec<Want> {
        let pid = self.pid;
        match awaited {
            Awaited::Flushed => self.open_links().filter_map(|l| l.wants_to_send(pid)).collect(),
            Awaited::Messages(messages) => messages
                .iter()
                .filter_map(|expect| {
                    let link = self.link(expect.link).ok()?;
                    let (have, need) = (link.incoming.seen, link.incoming.awaited);
                    let stream = link.to_me(pid);
                    (have < need).then_some(Want { what: What::Messages, stream, have, need })
                })
                .collect(),
        }
    }

    /// The wait has taken longer than `LPF_TIMEOUT`.
    #[cold]
    fn late(&mut self, awaited: Awaited<'_>, waited: Duration) -> Error {
        let missing = self.wants(awaited).first().map_or(self.pid, Want::awaited);
        let state = format!("awaited by process {} and computing", self.pid);
        let cause = Cause::Late { seconds: waited.as_secs(), state };
        self.fail(self.meeting + 1, Error::fatal(missing, self.superstep, cause))
    }

    /// Says what this process is in, for those who ask.
    #[cold]
    pub(crate) fn publish(&self, doing: Doing) {
        let mut status = self.comm.peers[self.pid as usize].lock_status();
        // Who reads the status must not find a wait with the counts of an earlier time.
        for link in self.open_links() {
            link.counts(self.pid).into_iter().for_each(|counts| put_counts(&mut status, counts));
        }
        status.superstep = self.superstep;
        status.call = self.links.call;
        status.group = self.links.call.group;
        status.doing = doing;
    }

    /// Keeps what a link that is about to be closed has counted.
    pub(super) fn keep_counts(&self, link: Link) {
        if let Ok(open) = self.link(link) {
            let mut status = self.comm.peers[self.pid as usize].lock_status();
            open.counts(self.pid).into_iter().for_each(|counts| put_counts(&mut status, counts));
        }
    }
}

fn put_counts(status: &mut Status, (stream, counts): (Stream, Counts)) {
    match status.counts.iter_mut().find(|(known, _)| *known == stream) {
        Some((_, known)) => *known = counts,
        None => status.counts.push((stream, counts)),
    }
}
