//! What a wait needs of threads, and what a process does about a meeting that takes long.

use std::time::Duration;

use lpf_core::runtime::links::{FormerSenders, OpenLink};
use lpf_core::runtime::{
    Carrier, ForBarrier, LinkMedium, LocalState, LongWait, Medium, Purpose, Tables, Waiting,
};
use lpf_core::wait::{Patience, Step};
use lpf_core::waits::Status;
use lpf_core::{Error, Pid};

use crate::bits;
use crate::comm::{Bell, Comm, Others};
use crate::futex;
use crate::links::Links;
use crate::links::ring::{self, FREE, process_of};
use crate::sync::{Ordering, now, yield_now};
use crate::threads::ThreadEngine;

/// A process that waits, for what is carried by its links, or in a meeting.
#[derive(Debug)]
pub(crate) struct OnThread<C: AsRef<Comm>> {
    carrier: C,
    pid: Pid,
    /// In a meeting, its epoch and the status of the processes that have arrived at it: the barrier knows better than
    /// what they have published.
    arrived: Option<(u32, Status)>,
    /// Whether others ring when the awaited arrives: they do not for a record of the board.
    is_announced: bool,
    /// Looks without a pause between them.
    at_once: u32,
    /// Whether others are sure to ring, once they have been asked to; and how often they have before this look.
    is_rung: Option<bool>,
    rings: u32,
}

/// Looks that follow each other without a pause. A pause takes up to 40 ns, as long as a message. A look alone takes long
/// enough not to disturb the sender (AMD EPYC: a broadcast of 8 bytes takes 118 ns with pauses, 100 without).
const AT_ONCE: u32 = 64;

impl<C: AsRef<Comm>> OnThread<C> {
    #[inline]
    pub(crate) fn new(carrier: C, pid: Pid) -> Self {
        let (arrived, is_announced, is_rung) = (None, true, None);
        OnThread { carrier, pid, arrived, is_announced, at_once: 0, is_rung, rings: 0 }
    }

    /// Whether it is about to sleep.
    fn is_sleepy(&self) -> bool {
        self.is_rung.is_some()
    }

    fn comm(&self) -> &Comm {
        self.carrier.as_ref()
    }

    fn bell(&self) -> &Bell {
        &self.comm().peer(self.pid).bell
    }
}

impl<C: AsRef<Comm>> Medium for OnThread<C> {
    const ASKS: bool = true;

    fn process(&self) -> (Pid, Pid) {
        (self.pid, self.comm().node.pids().end)
    }

    fn patience(&self) -> Patience {
        self.comm().patience()
    }

    fn limit(&self) -> Option<Duration> {
        self.comm().environment.timeout
    }

    fn now(&self) -> Duration {
        now()
    }

    #[inline]
    fn look_again(&mut self) {
        if self.is_sleepy() {
            self.rings = self.bell().rings.load(Ordering::Acquire);
        }
    }

    #[inline]
    fn failure(&mut self) -> Option<Error> {
        let failure = &self.comm().failure;
        if failure.is_set() { failure.report() } else { None }
    }

    fn is_node(&self) -> bool {
        self.comm().peer(self.pid).residents().is_some()
    }

    fn status_at_node(&self, pid: Pid) -> Option<Status> {
        let own = self.comm().peer(self.pid).residents()?;
        let of = own.nodes().of(pid);
        self.comm().peer(of).residents()?.status(pid)
    }

    fn publish(&mut self, status: Status) {
        // Models of loom do not look at it.
        if cfg!(loom) {
            return;
        }
        *self.comm().peer(self.pid).lock_status() = status;
        if let Some(outside) = self.comm().others.as_ref().and_then(Others::outside) {
            outside.published();
        }
    }

    fn statuses(&self) -> impl FnMut(Pid) -> Option<Status> {
        |of| match &self.arrived {
            _ if self.is_node() => self.status_at_node(of),
            _ if cfg!(loom) || !self.comm().node.has(of) => None,
            Some((epoch, arrived)) if self.comm().has_arrived(of, *epoch) => Some(arrived.clone()),
            _ => Some(self.comm().peer(of).lock_status().clone()),
        }
    }

    /// As the two rings say, if the peer is of this node.
    fn former_senders(&self, link: &OpenLink) -> FormerSenders {
        let inbox = |owner: Pid| {
            let peer = self.comm().node.has(owner).then(|| self.comm().peer(owner));
            peer.and_then(|peer| peer.inbox(link.inbox))
        };
        let sender_of = |claim: u64| (claim != FREE).then(|| process_of(claim));
        let here = inbox(self.pid).and_then(|own| {
            let claim = own.sender(link.ring).claim.load(Ordering::Relaxed);
            let is_peer = claim == ring::end(link.to_me.from, link.received_before.opened);
            sender_of(claim).filter(|_| !is_peer)
        });
        let there = inbox(link.peer).and_then(|theirs| {
            let claim = theirs.sender(link.peer_ring).claim.load(Ordering::Relaxed);
            let granted = theirs.owner(link.peer_ring).granted.load(Ordering::Relaxed);
            let is_open = granted == ring::end(link.to_peer.from, link.sent_before.opened);
            sender_of(claim).filter(|_| is_open)
        });
        FormerSenders { here: here.or(link.former_sender), there }
    }

    /// Sleeps until another process rings. The word that asks for it is set before the last look, and a barrier on
    /// all threads lies between: a process that sends after the look sees the word. It is set until the wait ends,
    /// because the barrier interrupts all cores.
    #[inline]
    fn pause(&mut self, step: Step) {
        match step {
            Step::Spin if self.at_once < AT_ONCE => self.at_once += 1,
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => yield_now(),
            Step::Sleep(time) => match self.is_rung {
                None if !self.is_announced => self.is_rung = Some(false),
                None => {
                    self.bell().asleep.store(1, Ordering::SeqCst);
                    self.is_rung = Some(futex::barrier_everywhere());
                }
                Some(is_rung) => {
                    let barrier = &self.comm().barrier;
                    // No process rings for what comes from another node.
                    let is_sure = is_rung && self.comm().others.is_none();
                    let time = if is_sure { barrier.longest_sleep() } else { time };
                    futex::sleep(&self.bell().rings, self.rings, time);
                }
            },
        }
    }
}

impl LinkMedium for OnThread<Links<'_>> {
    fn carrier(&mut self) -> impl Carrier + '_ {
        let Links { comm, ends } = &mut self.carrier;
        Links { comm, ends }
    }

    fn is_long(&self) -> bool {
        self.is_sleepy()
    }

    /// No process rings for it: it is looked for again and again.
    fn awaits_record(&mut self) {
        self.is_announced = false;
    }
}

impl<C: AsRef<Comm>> Drop for OnThread<C> {
    #[inline]
    fn drop(&mut self) {
        if self.is_sleepy() {
            self.bell().asleep.store(0, Ordering::Relaxed);
        }
    }
}

/// A process that waits in a meeting.
pub(crate) struct InMeeting<'a> {
    engine: &'a ThreadEngine,
    tables: &'a Tables,
    purpose: Purpose,
    long: LongWait,
}

impl<'a> InMeeting<'a> {
    #[inline]
    pub(crate) fn new(engine: &'a ThreadEngine, tables: &'a Tables, kind: u32) -> Self {
        let purpose = if kind & bits::CLOSE != 0 { Purpose::Close } else { Purpose::Sync };
        InMeeting { engine, tables, purpose, long: LongWait::default() }
    }

    /// What it waits for, and on what.
    fn wait(&self) -> (ForBarrier<'a, impl Fn() -> Option<Pid> + use<'a>>, OnThread<&'a Comm>) {
        let InMeeting { engine, tables, purpose, .. } = *self;
        let (LocalState { pid, .. }, node) = (&tables.local, engine.comm.node);
        let is_absent = move |who: &Pid| who != pid && !engine.comm.has_arrived(*who, engine.epoch);
        let at = ForBarrier { tables, purpose, missing: move || node.pids().find(is_absent) };
        let mut medium = OnThread::new(&*engine.comm, *pid);
        let arrived = Status { counts: Default::default(), ..at.status(&medium) };
        medium.arrived = Some((engine.epoch, arrived));
        (at, medium)
    }

    /// Called whenever the waiter is about to sleep.
    #[cold]
    pub(crate) fn look(&mut self) {
        let (at, mut medium) = self.wait();
        let looked = self.long.look(&mut medium, &at);
        let ThreadEngine { comm, meeting, epoch, .. } = self.engine;
        let outside = comm.others.as_ref().and_then(Others::outside);
        let outside = outside.and_then(|outside| outside.look());
        let looked = outside.map_or(looked, Err);
        // All take one decision about a meeting that may become complete at this very moment.
        if let Err(late) = looked
            && !comm.failure.is_set()
            && !comm.failure.decide(*epoch, false)
        {
            self.engine.declare_for(*meeting, late);
        }
    }

    /// As [`look`](Self::look), while another process of the node waits for all: it looks for what they wait for.
    #[cold]
    pub(crate) fn show(&mut self) {
        let (at, mut medium) = self.wait();
        self.long.show(&mut medium, &at);
    }

    /// Shows at once that this process has arrived.
    #[cold]
    pub(crate) fn publish(&self) {
        let (at, mut medium) = self.wait();
        medium.publish(at.status(&medium));
    }

    /// The wait is over. What was published of a process that has left stays: it has left for good.
    #[inline]
    pub(crate) fn end(&self) {
        if self.long.is_published() && self.purpose != Purpose::Close {
            let (at, mut medium) = self.wait();
            self.long.end(&mut medium, &at);
        }
    }

    /// Whether this meeting, which is complete, was given up by somebody before anybody departed.
    #[inline]
    pub(crate) fn was_given_up(&self) -> bool {
        let ThreadEngine { comm, epoch, .. } = self.engine;
        let may_be = comm.environment.timeout.is_some() || comm.others.is_some();
        if !may_be || comm.failure.decide(*epoch, true) {
            return false;
        }
        // Who gave it up is about to say why.
        while !comm.failure.is_set() {
            yield_now();
        }
        true
    }
}
