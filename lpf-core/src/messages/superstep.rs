//! The full sync between processes: the four phases on messages.
//!
//! 1. *Meeting and meta-data.* Every process packs its requests, grouped by target, and meets the
//!    others ([`Meeting`](super::meeting::Meeting)). Short puts travel with their bytes.
//! 2. *Conflicts.* Each process resolves the long writes aimed at its memory, others' puts and its own
//!    gets among them, and answers those who have the bytes: how much of each to send, and what they
//!    asked for with short gets. Where everybody promised that there are none, only the answers to
//!    short gets go.
//! 3. *Data.* Long messages go from user memory to user memory; one message per pair, of many pieces.
//!    Whoever writes has posted its receive before it answered.
//! 4. There is no second meeting: only this process writes to its memory, so its part is complete when
//!    its receives are, and its sources are free when its sends are.
//!
//! Short writes are applied when all long ones are there: a serial order in which they come last.

mod answers;
mod checked;
mod compose;
mod data;
mod runs;

use std::sync::atomic::Ordering;

use super::contexts::Contexts;
use super::control::Control;
use super::links::Links;
use super::meeting::{Allowed, Meeting, Room};
use super::process::{Process, Shared};
use super::transport::{Piece, Transport};
use super::watch::Waiting;
use super::wire::{Summary, flags};
use crate::Pid;
use crate::arrivals::left_unread;
use crate::attr::SyncAttr;
use crate::error::{Error, Result};
use crate::request::List;
use crate::runtime::{self, LocalState, Purpose, mismatch};
use crate::waits::{Doing, Status};
use answers::Answers;
use checked::Told;
use data::Long;

/// What a superstep works with; all of it reserved beforehand.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) room: Room,
    answers: Answers,
    long: Long,
    /// By target, the requests of this superstep.
    lists: Vec<Lists>,
    /// In checked mode, by process, what it told in the superstep under way.
    told: Vec<Told>,
    /// Larger ones, from the end of the next full sync on.
    next: Option<(Room, Answers, Long)>,
}

/// The requests for one target.
#[derive(Clone, Copy, Debug)]
struct Lists {
    puts: List,
    gets: List,
    /// Bytes of the gets that come with an answer.
    short_in: usize,
    /// Whether the bytes of any travel apart.
    is_long: bool,
}

// SAFETY: the lists lead into the queue, which is the same process's.
unsafe impl Send for Lists {}

impl Lists {
    const EMPTY: Lists =
        Lists { puts: List::EMPTY, gets: List::EMPTY, short_in: 0, is_long: false };
}

impl Scratch {
    /// Without room for requests, or the bytes that were refused.
    pub(super) fn new(local: &LocalState, meeting: &Meeting) -> std::result::Result<Self, usize> {
        let nprocs = local.nprocs as usize;
        let mut lists = Vec::new();
        let bytes = nprocs.saturating_mul(size_of::<Lists>());
        lists.try_reserve_exact(nprocs).map_err(|_| bytes)?;
        lists.resize(nprocs, Lists::EMPTY);
        let (room, answers, long) = Self::rooms(local, meeting, 0)?;
        Ok(Scratch { room, answers, long, lists, told: Vec::new(), next: None })
    }

    fn rooms(
        local: &LocalState,
        meeting: &Meeting,
        requests: usize,
    ) -> std::result::Result<(Room, Answers, Long), usize> {
        let (nprocs, eager) = (local.nprocs as usize, meeting.eager());
        let room = Room::new(meeting.way(), nprocs, eager, requests)?;
        Ok((room, Answers::new(nprocs, eager, requests)?, Long::new(nprocs, requests)?))
    }

    fn apply(&mut self) {
        if let Some((room, answers, long)) = self.next.take() {
            (self.room, self.answers, self.long) = (room, answers, long);
        }
    }

    /// Gives up what is under way. False where the network may still touch users' memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        self.answers.close(net) & self.long.close(net)
    }

    /// Keeps its memory for ever.
    pub(super) fn keep(&mut self) {
        crate::leaked::leak(std::mem::take(&mut self.room));
        crate::leaked::leak(std::mem::take(&mut self.answers));
    }
}

/// A capacity for requests, as a process between processes gets it.
pub(super) struct Larger<'a> {
    pub(super) meeting: &'a Meeting,
    pub(super) scratch: &'a mut Scratch,
}

impl runtime::Room for Larger<'_> {
    fn for_requests(
        &mut self,
        local: &mut LocalState,
        requests: usize,
        reserve: impl FnOnce(&mut LocalState) -> Result<()>,
    ) -> Result<()> {
        let rooms = Scratch::rooms(local, self.meeting, requests);
        let rooms = rooms.map_err(|bytes| local.refused("messages", bytes))?;
        reserve(local)?;
        self.scratch.next = Some(rooms);
        Ok(())
    }
}

/// A process in a full sync, a rehook or at its end, as its waits see it.
pub(super) struct InMeeting<'a> {
    pub(super) local: &'a LocalState,
    pub(super) links: &'a mut Links,
    pub(super) kind: Purpose,
    pub(super) missing: Pid,
}

impl InMeeting<'_> {
    /// A process is subject to more requests than it has room for.
    pub(super) fn overrun(&self, origin: Pid, count: usize) -> Error {
        let LocalState { pid: target, queue, .. } = self.local;
        let cause = queue.overrun(*target, origin, count + queue.used());
        let error = Error::fatal(origin, self.local.superstep, cause);
        // Only the origin knows where it made its requests: see `LocalState::with_place`.
        if self.local.is_checked() { error.in_checked_mode() } else { error }
    }

    /// This process has not awaited all that was sent to it.
    #[cold]
    pub(super) fn left_unread(&self, left: u16, from: Option<Pid>) -> Error {
        let cause = left_unread(left.into(), from);
        Error::fatal(self.local.pid, self.local.superstep, cause)
    }
}

impl Waiting for InMeeting<'_> {
    fn status(&self) -> Status {
        let mut status = self.links.table.status(self.local);
        status.doing = match self.kind {
            Purpose::Count | Purpose::Close => Doing::Left,
            _ => Doing::FullSync(self.local.superstep),
        };
        status
    }

    fn missing(&self) -> Pid {
        self.missing
    }

    fn superstep(&self) -> u64 {
        self.local.superstep
    }
}

impl<T: Transport> Process<T> {
    /// A full sync.
    pub(super) fn full_sync(&mut self, attr: SyncAttr<'_>) -> Result<()> {
        self.alive()?;
        self.settle_links()?;
        let network = self.network.clone();
        let mut shared = network.lock();
        let result = self.phases(&mut shared, attr);
        result.map_err(|error| self.die(&mut shared.net, error))
    }

    fn phases(&mut self, shared: &mut Shared<T>, attr: SyncAttr<'_>) -> Result<()> {
        self.meet(shared, Purpose::Sync, attr)?;
        let net = &mut shared.net;
        if self.local.is_checked() {
            self.check_superstep(net)?;
        }
        let flags = self.all.flags;
        if flags & flags::REGISTERED != 0 {
            self.compare_registrations(net)?;
        }
        if flags & flags::MORE != 0 {
            self.exchange(net, flags & flags::CONFLICTS != 0)?;
        } else if flags & flags::REQUESTS != 0 {
            self.apply_short_puts(net)?;
        }
        self.end_meeting(net)?;
        self.local.settle();
        self.scratch.told.clear();
        if flags & (flags::REGISTERED | flags::RESIZED) != 0 {
            let resized = flags & flags::RESIZED != 0;
            self.local.apply(resized, usize::try_from(self.all.requests).unwrap_or(usize::MAX));
            if resized {
                self.scratch.apply();
            }
            self.links.activate();
        }
        if self.all.agrees_on_abandoned() {
            self.local.forget_abandoned();
        }
        self.local.superstep += 1;
        self.watch.supersteps.store(self.local.superstep, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until this process's messages have left.
    pub(super) fn send_off(&mut self, net: &mut T) -> Result<()> {
        let Process { local, links, meeting, watch, .. } = self;
        let mut what = InMeeting { local, links, kind: Purpose::Sync, missing: local.pid };
        watch.wait(net, &mut what, |what, net| {
            let left = meeting.have_left(net)?;
            if !left {
                what.missing = meeting.leaves_to().unwrap_or(what.missing);
                what.links.progress(net, what.local)?;
            }
            Ok(left)
        })
    }

    /// Ends a meeting, and gets ready for the one after the next.
    pub(super) fn end_meeting(&mut self, net: &mut T) -> Result<()> {
        self.send_off(net)?;
        self.meeting.finish(net, &self.watch, self.local.superstep)
    }

    /// Meets the others: everybody came for the same, or the section fails.
    pub(super) fn meet(
        &mut self,
        shared: &mut Shared<T>,
        kind: Purpose,
        attr: SyncAttr<'_>,
    ) -> Result<()> {
        let is_all = self.compose(kind);
        let registrations = self.local.registrations();
        let mine = &mut self.all;
        *mine = Summary::of(self.local.pid, kind);
        if kind == Purpose::Rehook && self.local.pid == 0 {
            mine.context = shared.contexts.give().unwrap_or(Contexts::NONE);
        }
        mine.requests = self.local.wanted_requests() as u64;
        (mine.lowest, mine.highest) = (registrations, registrations);
        mine.abandoned = [self.local.slots.abandoned(); 2];
        let flag = |is_so, flag| if is_so { flag } else { 0 };
        mine.flags = flag(kind == Purpose::Sync && self.local.queue.used() > 0, flags::REQUESTS)
            | flag(!is_all, flags::MORE)
            | flag(self.local.changes.registered, flags::REGISTERED)
            | flag(self.local.changes.resized, flags::RESIZED)
            | flag(!matches!(attr, SyncAttr::NoConflict), flags::CONFLICTS);
        let Process { local, links, meeting, scratch, watch, traffic, all, .. } = self;
        let free = local.queue.capacity().saturating_sub(local.queue.used());
        let awaited;
        let allowed = match kind {
            Purpose::Count => {
                awaited = links.count(&mut scratch.room.requests);
                Allowed::Messages(&awaited)
            }
            _ => Allowed::Requests(free),
        };
        let mut what = InMeeting { local, links, kind, missing: 0 };
        let before = meeting.sent();
        meeting.meet(&mut shared.net, watch, &mut what, &mut scratch.room, all, allowed)?;
        let sent = meeting.sent() - before;
        match kind {
            Purpose::Sync => traffic.meta += sent,
            _ => traffic.barrier += sent,
        }
        if all.kinds.iter().filter(|&&pid| pid != Pid::MAX).count() > 1 {
            let kinds = self.all.kinds;
            let first = |kind| Some(kinds[kind as usize]).filter(|&pid| pid != Pid::MAX);
            let error = mismatch(self.local.superstep, first);
            return Err(shared.net.control().declare(self.watch.section, error));
        }
        Ok(())
    }

    /// Whether all processes registered the same.
    fn compare_registrations(&self, net: &T) -> Result<()> {
        let (lowest, highest) = (self.all.lowest, self.all.highest);
        self.local
            .compare_registrations(lowest, highest)
            .map_err(|error| net.control().declare(self.watch.section, error))
    }
}
