//! Links: the rings of all inboxes, how messages get into and out of them, and the waits.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use lpf_core::arrivals::{Arrival, Queued, left_unread, never_awaited};
use lpf_core::copy::copy;
use lpf_core::runtime::links::{Ends, FormerSenders, OpenLink};
use lpf_core::runtime::{Carrier, Head, LinkMedium, LocalState, Medium, Tables};
use lpf_core::wait::{Patience, Step};
use lpf_core::waits::Status;
use lpf_core::{Error, Pid, Result, Travel, settings};

use crate::section::{self, Shared, State};

// ANCHOR: ring
/// The owner of a ring, its inbox, and its number there.
pub(crate) type RingName = (Pid, usize, usize);

/// A link that sends into a ring: the process, and which of its links into this ring it is. Both ends count alike.
pub(crate) type Sender = (Pid, u64);

/// The ring in which a link ends here, and the link that sends into it.
pub(crate) fn here(pid: Pid, link: &OpenLink) -> (RingName, Sender) {
    ((pid, link.inbox, link.ring), (link.peer, link.received_before.opened))
}

/// The ring in which a link ends at its peer, and this process's link into it.
fn there(pid: Pid, link: &OpenLink) -> (RingName, Sender) {
    ((link.peer, link.inbox, link.peer_ring), (pid, link.sent_before.opened))
}

/// The end of a channel.
#[derive(Default)]
pub(crate) struct Ring {
    /// The link for which its owner has opened it, and the one that sends into it.
    pub(crate) opened_for: Option<Sender>,
    sender: Option<Sender>,
    /// Messages that were sent and not taken; the lengths of offers that were shown and not used.
    messages: VecDeque<Message>,
    offers: VecDeque<usize>,
    /// How many messages of the link its owner has released.
    pub(crate) released: u64,
}

struct Message {
    from: Sender,
    stamp: u64,
    bytes: usize,
    is_landing: bool,
    cell: Vec<Aligned>,
}

/// Cells are aligned to 32 bytes.
#[derive(Clone)]
#[repr(align(32))]
pub(crate) struct Aligned {
    _bytes: [u8; 32],
}

/// What a process has taken of a link, from message `first` on, and its open offers.
#[derive(Default)]
pub(crate) struct End {
    pub(crate) first: u64,
    pub(crate) taken: VecDeque<(Arrival, Vec<Aligned>)>,
    offers: VecDeque<Arrival>,
}

// SAFETY: addresses of its cells, and of offers in slots of the process that has it.
unsafe impl Send for End {}

impl State {
    pub(crate) fn ring(&mut self, name: RingName) -> &mut Ring {
        self.rings.entry(name).or_default()
    }

    /// Everything that was sent to a process on links that it has closed was awaited; at its end, on all links.
    pub(crate) fn check_read(&self, tables: &Tables, is_end: bool) -> Result<()> {
        let LocalState { pid, superstep, .. } = tables.local;
        for (&name, ring) in self.rings.iter().filter(|(name, _)| name.0 == pid) {
            let Some(&Message { from, stamp, .. }) = ring.messages.front() else { continue };
            let link = tables.links.iter().find(|link| here(pid, link) == (name, from));
            let awaited = link.map_or(0, |link| link.incoming.awaited - link.incoming.seen);
            let left = (ring.messages.len() as u64).saturating_sub(awaited);
            if left > 0 && (is_end || ring.opened_for.is_none()) {
                let call = tables.links.call_of(stamp);
                return Err(Error::fatal(pid, superstep, left_unread(left, Some(from.0), call)));
            }
        }
        Ok(())
    }
}
// ANCHOR_END: ring

/// A process that uses its links, or waits.
pub(crate) struct Links<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) ends: &'a mut Ends<End>,
    pub(crate) pid: Pid,
    /// Changes before the last look, and whether the wait has become long.
    pub(crate) seen: u64,
    pub(crate) is_long: bool,
}

// ANCHOR: carrier
impl Carrier for &mut Links<'_> {
    type Stop = Error;

    fn error(&self, _local: &LocalState, stop: Error) -> Error {
        stop
    }

    fn take_ring(&mut self, link: &OpenLink) -> Result<Option<u64>> {
        let (name, me) = there(self.pid, link);
        let mut state = self.shared.lock();
        let ring = state.ring(name);
        if ring.opened_for != Some(me) || ring.sender.is_some() {
            return Ok(None);
        }
        ring.sender = Some(me);
        Ok(Some(ring.messages.len() as u64))
    }

    fn learn_credit(&mut self, link: &mut OpenLink) {
        let released = self.shared.lock().ring(there(self.pid, link).0).released;
        link.outgoing.released = link.outgoing.released.max(released);
    }

    fn offered(&mut self, link: &OpenLink) -> Option<usize> {
        let (name, me) = there(self.pid, link);
        let mut state = self.shared.lock();
        let ring = state.ring(name);
        // Else its owner has closed the link, and the offers are for the next one.
        let is_open = ring.opened_for == Some(me);
        ring.offers.front().copied().filter(|_| is_open)
    }

    unsafe fn send(&mut self, link: &mut OpenLink, message: &Queued) -> Result<bool> {
        let &Queued { address, bytes, travel, stamp, .. } = message;
        let (name, from) = there(self.pid, link);
        let mut state = self.shared.lock();
        let ring = state.ring(name);
        let is_landing = travel == Travel::Landing;
        if is_landing {
            ring.offers.pop_front();
        }
        let mut cell = vec![Aligned { _bytes: [0; 32] }; bytes.div_ceil(32)];
        // SAFETY: the caller promises the source; the cell is as long.
        unsafe { copy(address, cell.as_mut_ptr().cast(), bytes) };
        ring.messages.push_back(Message { from, stamp, bytes, is_landing, cell });
        Ok(true)
    }

    fn has_sent(&mut self, _link: &OpenLink) {
        self.shared.change(|_| ());
    }

    fn report(&mut self, link: &mut OpenLink) -> Result<()> {
        let released = link.incoming.released;
        self.shared.change(|state| state.ring(here(self.pid, link).0).released = released);
        link.incoming.reported = released;
        Ok(())
    }

    fn has_arrived(&mut self, link: &OpenLink) -> Result<bool> {
        let (name, sender) = here(self.pid, link);
        let mut state = self.shared.lock();
        Ok(state.ring(name).messages.front().is_some_and(|message| message.from == sender))
    }

    fn take(&mut self, local: &LocalState, link: &mut OpenLink) -> Result<Option<Head>> {
        let (name, sender) = here(self.pid, link);
        let mut state = self.shared.lock();
        let messages = &mut state.ring(name).messages;
        let left = messages.iter().take_while(|message| message.from != sender).count() as u64;
        if left > 0 {
            let cause = never_awaited(left, link.inbox, link.ring, link.peer);
            return Err(Error::fatal(local.pid, local.superstep, cause));
        }
        let Some(message) = messages.pop_front() else { return Ok(None) };
        let Message { stamp, bytes, is_landing, cell, .. } = message;
        let end = self.ends.of_mut(link);
        let data = cell.as_ptr().cast();
        let mut arrival = Arrival { data, bytes, landed: false, offer: 0 };
        if is_landing {
            let offer = end.offers.pop_front().expect("its sender has seen an offer");
            // SAFETY: the cell is as long. So is the offer, as its sender has seen; and it is this process's memory.
            unsafe { copy(data, offer.data.cast_mut(), bytes) };
            arrival = Arrival { bytes, ..offer };
        }
        end.taken.drain(..(link.incoming.released - end.first) as usize);
        end.first = link.incoming.released;
        end.taken.push_back((arrival, cell));
        Ok(Some(Head { stamp, is_landing }))
    }

    unsafe fn offer(
        &mut self,
        link: &OpenLink,
        number: u64,
        address: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let offer = Arrival { data: address, bytes, landed: true, offer: number };
        self.ends.of_mut(link).offers.push_back(offer);
        self.shared.change(|state| state.ring(here(self.pid, link).0).offers.push_back(bytes));
        Ok(())
    }

    fn close(&mut self, link: OpenLink) -> Result<()> {
        self.ends.remove(&link);
        self.shared.change(|state| {
            state.ring(here(self.pid, &link).0).opened_for = None;
            if link.is_granted {
                state.ring(there(self.pid, &link).0).sender = None;
            }
        });
        Ok(())
    }
}
// ANCHOR_END: carrier

// ANCHOR: medium
impl Medium for Links<'_> {
    const ASKS: bool = true;

    fn process(&self) -> (Pid, Pid) {
        (self.pid, self.shared.checks.len())
    }

    fn patience(&self) -> Patience {
        Patience::for_processes(self.shared.checks.len(), settings::cores())
    }

    fn limit(&self) -> Option<Duration> {
        self.shared.mode.timeout
    }

    fn now(&self) -> Duration {
        section::now()
    }

    fn look_again(&mut self) {
        self.seen = self.shared.lock().changes;
    }

    fn failure(&mut self) -> Option<Error> {
        self.shared.lock().failure.clone()
    }

    fn publish(&mut self, status: Status) {
        self.shared.lock().statuses[self.pid] = status;
    }

    fn statuses(&self) -> impl FnMut(Pid) -> Option<Status> {
        |of| Some(self.shared.lock().statuses[of].clone())
    }

    fn former_senders(&self, link: &OpenLink) -> FormerSenders {
        let ((own, sender), (theirs, me)) = (here(self.pid, link), there(self.pid, link));
        let mut state = self.shared.lock();
        let here = state.ring(own).sender.filter(|&former| former != sender);
        let there = state.ring(theirs);
        let is_open = there.opened_for == Some(me);
        FormerSenders { here, there: there.sender.filter(|_| is_open) }
    }

    fn pause(&mut self, step: Step) {
        match step {
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => thread::yield_now(),
            // One more look, which reports all releases.
            Step::Sleep(_) if !self.is_long => self.is_long = true,
            Step::Sleep(time) => self.shared.sleep(self.seen, time),
        }
    }
}

impl LinkMedium for Links<'_> {
    fn carrier(&mut self) -> impl Carrier + '_ {
        self
    }

    fn is_long(&self) -> bool {
        self.is_long
    }
}
// ANCHOR_END: medium
