//! How inboxes and links are opened and given up.

use std::collections::VecDeque;

use super::super::memory::Memory;
use super::super::tags;
use super::super::transport::Transport;
use super::inbox::Inbox;
use super::layout::HEAD;
use super::rings::{Arrived, End, Rings};
use lpf_core::arrivals::{InboxShape, InboxSlot, Link};
use lpf_core::error::Result;
use lpf_core::runtime::links::Opening;
use lpf_core::runtime::{LocalState, Tables};

impl Rings {
    pub(in super::super) fn add<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        shape: InboxShape,
    ) -> Result<()> {
        let count = self.count.saturating_add(shape.rings);
        // The rings that the network can tell apart.
        let room = tags::RINGS.min(net.channels() as usize);
        if count > room {
            let text =
                format!("the inboxes of a context have at most {room} rings on this network");
            return Err(local.link_misuse(text));
        }
        let made = self.postbox.prepare().and_then(|()| self.prepare_count());
        let made = made.and_then(|()| Inbox::new(net, shape, self.count));
        let inbox = made.map_err(|bytes| local.refused("an inbox", bytes))?;
        self.count = count;
        self.inboxes.push(Some(inbox));
        Ok(())
    }

    pub(in super::super) fn open<T: Transport>(
        &mut self,
        net: &mut T,
        tables: &mut Tables,
        opening: Opening,
    ) -> Result<Link> {
        let Tables { local, links: table } = &mut *tables;
        let Opening { shape, peer, .. } = opening;
        let window = shape.window as usize;
        let heads = Memory::new(window * HEAD);
        let heads = heads.map_err(|bytes| local.refused("a link", bytes))?;
        let is_near = net.reach(self.members[peer], 0, 0).is_some();
        let (link, open) = table.add(opening, false);
        open.in_flight.reserve(window);
        let end = End {
            grant: None,
            is_near,
            there: None,
            here: None,
            in_flight: VecDeque::with_capacity(window),
            heads,
            peer_offers: VecDeque::with_capacity(window),
            cells: VecDeque::with_capacity(window),
            head_came: false,
            posted: 0,
            arrived: vec![Arrived { bytes: 0, landing: None }; window],
            offers: VecDeque::with_capacity(window),
        };
        self.ends.add(open, end);
        self.take_early(open);
        Ok(link)
    }

    /// Keeps the memory of a deregistered inbox until no process writes to it.
    pub(in super::super) fn remove(&mut self, inbox: InboxSlot, is_quiet: bool) {
        let removed = self.inboxes[inbox.number()].take();
        if !is_quiet {
            // The network may still write a message that was not awaited into one of its cells.
            lpf_core::leaked::leak(removed);
        } else if removed.as_ref().is_some_and(Inbox::is_shared) {
            // So may a process that has not closed its link yet: all have closed theirs before the next full sync.
            self.removed.extend(removed);
        }
    }
}
