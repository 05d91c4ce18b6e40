//! The barrier, and the phases after it.

use super::super::contexts::Contexts;
use super::super::job::Shared;
use super::super::meeting::{Allowed, InMeeting};
use super::super::protocol::Protocol;
use super::super::transport::Transport;
use super::super::wire::{Summary, flags};
use lpf_core::attr::SyncAttr;
use lpf_core::error::Result;
use lpf_core::runtime::{Announced, LocalState, Purpose, Tables};

impl Protocol {
    /// Phases 2 to 4, after the barrier.
    pub(in super::super) fn phases<T: Transport>(
        &mut self,
        net: &mut T,
        tables: &mut Tables,
    ) -> Result<()> {
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
    pub(in super::super) fn send_off<T: Transport>(
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
    pub(in super::super) fn finish<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
    ) -> Result<()> {
        self.meeting.finish(net, &self.watch, local.superstep)
    }

    /// The barrier: all processes have arrived for the same purpose, or the section fails.
    pub(in super::super) fn meet<T: Transport>(
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
        all.common.agree_on_purpose(local)?;
        let has_requests =
            all.common.kinds.has(flags::REQUESTS | flags::MORE) || local.is_checked();
        Ok(Announced(all.common.announced().0 | flag(has_requests, Announced::ENGINE)))
    }
}
