//! The full sync between processes: the four phases on messages.
//!
//! 1. *Barrier and meta-data.* Every process packs its requests, grouped by target, and exchanges them with the
//!    others ([`Meeting`](super::meeting::Meeting)). Short puts travel with their bytes.
//! 2. *Conflicts.* Each process resolves the long writes to its memory: the puts of other processes and its own gets.
//!    Then it answers the processes that have the bytes. An answer says how many bytes of each request to send, and
//!    contains the bytes of short gets. If all processes promised that no writes conflict, only short gets are answered.
//! 3. *Data.* Long messages go from user memory to user memory: one message of many pieces per pair of processes. The
//!    receiver has posted its receive before it answered.
//! 4. There is no second barrier. No other process writes to this process's memory, so its writes are complete when its
//!    receives are, and its sources are free when its sends are complete.
//!
//! Short writes are applied when all long ones have arrived: in the serial order they are the last.

mod answers;
mod checked;
mod compose;
mod data;
mod runs;

use super::contexts::Contexts;
use super::job::Shared;
use super::links::{Links, Rings};
use super::meeting::{Allowed, Meeting, Room};
use super::process::Protocol;
use super::transport::{Piece, Transport};
use super::wire::{Summary, flags};
use answers::Answers;
use checked::Told;
use data::Long;
use lpf_core::arrivals::left_unread;
use lpf_core::attr::SyncAttr;
use lpf_core::error::{Error, Result};
use lpf_core::request::List;
use lpf_core::runtime::{Announced, LocalState, Medium, Purpose, Tables, Waiting, status_at};
use lpf_core::waits::Status;
use lpf_core::{Call, Pid};

/// The memory of a superstep, all of which was reserved before.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) room: Room,
    answers: Answers,
    long: Long,
    /// By target, the requests of this superstep.
    lists: Vec<Lists>,
    /// In checked mode, by process, the lists that it has sent in this superstep.
    told: Vec<Told>,
    /// Larger rooms, which are used from the end of the next full sync on.
    next: Option<(Room, Answers, Long)>,
}

/// The requests for one target.
#[derive(Clone, Copy, Debug)]
struct Lists {
    puts: List,
    gets: List,
    /// Bytes of the gets that arrive with an answer.
    short_in: usize,
    /// Whether the bytes of any request travel in a message of their own.
    is_long: bool,
}

// SAFETY: the lists point into the queue of the same process, which is sent together with them.
unsafe impl Send for Lists {}

impl Lists {
    const EMPTY: Lists =
        Lists { puts: List::EMPTY, gets: List::EMPTY, short_in: 0, is_long: false };
}

impl Scratch {
    /// Without room for requests.
    ///
    /// # Errors
    /// The bytes that were refused.
    pub(super) fn new(local: &LocalState, meeting: &Meeting) -> std::result::Result<Self, usize> {
        let nprocs = local.nprocs;
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
        let (nprocs, eager) = (local.nprocs, meeting.eager());
        let room = Room::new(meeting.way(), nprocs, eager, requests)?;
        Ok((room, Answers::new(nprocs, eager, requests)?, Long::new(nprocs, requests)?))
    }

    pub(super) fn apply(&mut self) {
        if let Some((room, answers, long)) = self.next.take() {
            (self.room, self.answers, self.long) = (room, answers, long);
        }
    }

    /// Cancels everything in flight. Returns false if the network may still touch users' memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        self.answers.close(net) & self.long.close(net)
    }

    /// Leaks its memory.
    pub(super) fn keep(&mut self) {
        lpf_core::leaked::leak(std::mem::take(&mut self.room));
        lpf_core::leaked::leak(std::mem::take(&mut self.answers));
    }
}

/// A larger capacity for requests, whose rooms are reserved first.
pub(super) struct Larger<'a> {
    pub(super) meeting: &'a Meeting,
    pub(super) scratch: &'a mut Scratch,
}

impl lpf_core::runtime::Room for Larger<'_> {
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

/// A process in a full sync, in a rehook or at the end of its section, as its waits see it.
pub(super) struct InMeeting<'a> {
    pub(super) local: &'a LocalState,
    pub(super) links: Links<'a>,
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

    /// This process has not awaited all messages that were sent to it.
    #[cold]
    pub(super) fn left_unread(&self, left: u16, from: Option<Pid>, call: Option<Call>) -> Error {
        let cause = left_unread(left.into(), from, call);
        Error::fatal(self.local.pid, self.local.superstep, cause)
    }
}

impl Waiting for InMeeting<'_> {
    fn status(&self, medium: &impl Medium) -> Status {
        status_at(self.local, self.links.table, self.kind, medium)
    }

    fn missing(&self, _medium: &impl Medium) -> Pid {
        self.missing
    }

    fn superstep(&self) -> u64 {
        self.local.superstep
    }
}

impl<'a> InMeeting<'a> {
    pub(super) fn new(tables: &'a mut Tables, rings: &'a mut Rings, kind: Purpose) -> Self {
        let Tables { local, links: table } = tables;
        let missing = local.pid;
        InMeeting { local, links: Links { table, rings }, kind, missing }
    }
}

impl Protocol {
    /// Phases 2 to 4, after the barrier.
    pub(super) fn phases<T: Transport>(&mut self, net: &mut T, tables: &mut Tables) -> Result<()> {
        let flags = self.all.common.kinds.0;
        if flags & flags::MORE != 0 {
            self.exchange(net, tables, flags & flags::CONFLICTS != 0)?;
        } else if flags & flags::REQUESTS != 0 {
            self.apply_short_puts(&tables.local)?;
        }
        self.send_off(net, tables)?;
        self.scratch.told.clear();
        self.finish(net, &tables.local)
    }

    /// Waits until this process's messages have left.
    pub(super) fn send_off<T: Transport>(
        &mut self,
        net: &mut T,
        tables: &mut Tables,
    ) -> Result<()> {
        let Protocol { rings, meeting, watch, .. } = self;
        let mut what = InMeeting::new(tables, rings, Purpose::Sync);
        watch.wait(net, &mut what, |what, net| {
            let left = meeting.have_left(net)?;
            if !left {
                what.missing = meeting.leaves_to().unwrap_or(what.missing);
                what.links.progress(net, what.local)?;
            }
            Ok(left)
        })
    }

    /// Ends a barrier, and posts the receives of the one after the next.
    pub(super) fn finish<T: Transport>(&mut self, net: &mut T, local: &LocalState) -> Result<()> {
        self.meeting.finish(net, &self.watch, local.superstep)
    }

    /// The barrier: all processes have arrived for the same purpose, or the section fails.
    pub(super) fn meet<T: Transport>(
        &mut self,
        shared: &mut Shared<T>,
        tables: &mut Tables,
        kind: Purpose,
        attr: SyncAttr<'_>,
    ) -> Result<Announced> {
        let Shared { net, contexts } = shared;
        let is_all = self.compose(&mut tables.local, kind);
        let Protocol { rings, meeting, scratch, watch, traffic, all, .. } = self;
        let local = &tables.local;
        *all = Summary::of(local, kind);
        if kind == Purpose::Rehook && local.pid == 0 {
            all.context = contexts.give().unwrap_or(Contexts::NONE);
        }
        let flag = |is_so, flag| if is_so { flag } else { 0 };
        all.common.kinds.0 |=
            flag(kind == Purpose::Sync && local.queue.used() > 0, flags::REQUESTS)
                | flag(!is_all, flags::MORE)
                | flag(!matches!(attr, SyncAttr::NoConflict), flags::CONFLICTS);
        let free = local.queue.capacity().saturating_sub(local.queue.used());
        let mut what = InMeeting::new(tables, rings, kind);
        let awaited;
        let allowed = match kind {
            Purpose::Count => {
                awaited = what.links.count(&mut scratch.room.requests);
                Allowed::Messages(&awaited)
            }
            _ => Allowed::Requests(free),
        };
        if kind == Purpose::Close {
            what.links.rings.end();
        }
        what.missing = 0;
        let before = meeting.sent();
        meeting.meet(net, watch, &mut what, &mut scratch.room, all, allowed)?;
        let sent = meeting.sent() - before;
        match kind {
            Purpose::Sync => traffic.meta += sent,
            _ => traffic.barrier += sent,
        }
        let local = &tables.local;
        all.common.agree_on_purpose(local.superstep)?;
        let has_requests =
            all.common.kinds.has(flags::REQUESTS | flags::MORE) || local.is_checked();
        Ok(Announced(all.common.announced().0 | flag(has_requests, Announced::ENGINE)))
    }
}
