//! Inboxes, and links made and given up.

use super::super::memory::Memory;
use super::super::process::Process;
use super::super::tags;
use super::super::transport::{Piece, Rank, Transport};
use super::super::watch::Stop;
use super::near::NearRing;
use super::{Arrived, Links, OpenLink, Place};
use crate::Pid;
use crate::arrivals::{
    Call, InboxShape, InboxSlot, Incoming, Link, MAX_WINDOW, Outgoing, Queue, not_awaited,
};
use crate::error::{Error, Result};
use crate::runtime::LocalState;
use crate::waits::Stream;
use std::collections::VecDeque;

/// The words before a message: its length, and its stamp.
pub(super) const HEAD: usize = 16;
/// Cells begin on a line, and their bytes on the next.
const LINE: usize = 64;

/// Where the cells of a ring are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) window: u32,
    /// From one cell to the next, and from one ring to the next.
    stride: usize,
    pub(super) ring: usize,
}

impl Layout {
    /// From a cell's line to its bytes.
    pub(super) const DATA: usize = LINE;
    /// The owner's line, and one that processors fetch with it.
    const OWNER: usize = 2 * LINE;

    /// None where a ring is longer than memory.
    pub(super) fn of(shape: InboxShape) -> Option<Self> {
        let stride = shape.cell_bytes.checked_next_multiple_of(LINE)?.checked_add(Self::DATA)?;
        let ring = stride.checked_mul(shape.window as usize)?.checked_add(Self::OWNER)?;
        Some(Layout { window: shape.window, stride, ring })
    }

    /// Where a message's cell is in its ring.
    #[inline]
    pub(super) fn cell(&self, message: u64) -> usize {
        Self::OWNER + (message % u64::from(self.window)) as usize * self.stride
    }
}

#[derive(Debug)]
pub(super) struct Inbox {
    shape: InboxShape,
    memory: Memory,
    layout: Layout,
    /// The number of its ring 0 among those of the context.
    pub(super) first_ring: u32,
    /// By ring, who was given it last, and for which of its links.
    pub(super) senders: Vec<Option<(Pid, u64)>>,
}

impl Inbox {
    /// Rings without messages, where others reach them if they can, or the bytes that were refused.
    fn new<T: Transport>(
        net: &mut T,
        shape: InboxShape,
        first_ring: u32,
    ) -> std::result::Result<Self, usize> {
        let layout = Layout::of(shape).ok_or(usize::MAX)?;
        let bytes = layout.ring.checked_mul(shape.rings as usize).ok_or(usize::MAX)?;
        let memory = match net.share(bytes).and_then(Memory::shared) {
            Some(memory) => memory,
            None => Memory::new(bytes)?,
        };
        let senders = vec![None; shape.rings as usize];
        Ok(Inbox { shape, memory, layout, first_ring, senders })
    }

    fn ring_at(&self, ring: u32) -> usize {
        ring as usize * self.layout.ring
    }

    fn cell_at(&self, ring: u32, message: u64) -> usize {
        self.ring_at(ring) + self.layout.cell(message)
    }

    /// A ring here that its sender reaches by the place returned with it, if it is so near.
    pub(super) fn near<T: Transport>(
        &self,
        net: &T,
        ring: u32,
        sender: Rank,
    ) -> Option<(NearRing, u64)> {
        let at = self.ring_at(ring);
        let base = self.memory.piece(at..at + self.layout.ring).base;
        let place = self.memory.place()? + at as u64;
        net.reach(sender, 0, 0)?;
        // SAFETY: the inbox lives until its links are closed, or kept for ever; a ring has one sender at a
        // time, which is told the place in a grant.
        Some((unsafe { NearRing::new(base, self.layout) }, place))
    }

    /// The ring that another process has at a place: its inboxes are like those here.
    pub(super) fn at<T: Transport>(&self, net: &T, owner: Rank, place: u64) -> Option<NearRing> {
        let base = net.reach(owner, place, self.layout.ring)?;
        // SAFETY: its owner has granted it to one sender, and keeps it until that has closed its link.
        Some(unsafe { NearRing::new(base, self.layout) })
    }

    /// Whether others may write to it without the network.
    pub(super) fn is_shared(&self) -> bool {
        self.memory.place().is_some()
    }

    /// Where the head and the bytes of message `message` of a ring go.
    pub(super) fn cell(&self, ring: u32, message: u64) -> [Piece; 2] {
        let at = self.cell_at(ring, message);
        let data = at + Layout::DATA;
        [self.memory.piece(at..at + HEAD), self.memory.piece(data..data + self.shape.cell_bytes)]
    }

    /// The head of a message that has come.
    pub(super) fn head(&self, ring: u32, message: u64) -> &[u8] {
        let at = self.cell_at(ring, message);
        // SAFETY: its receive is finished, and posted again only when it is released.
        unsafe { self.memory.bytes(at..at + HEAD) }
    }
}

impl<T: Transport> Process<T> {
    pub(in super::super) fn add_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot> {
        let local = &mut self.local;
        if shape.window == 0 || shape.window > MAX_WINDOW {
            let window = shape.window;
            let text = format!("an inbox's window is 1 to {MAX_WINDOW} cells, not {window}");
            return Err(local.arrivals_misuse(text));
        }
        let links = &mut self.links;
        let rings = links.rings.saturating_add(shape.rings);
        let room = tags::RINGS.min(self.ring_limit);
        if rings > room {
            let text =
                format!("the inboxes of a context have at most {room} rings on this network");
            return Err(local.arrivals_misuse(text));
        }
        let net = &mut self.network.lock().net;
        let made = links.postbox.prepare().and_then(|()| links.prepare_count());
        let made = made.and_then(|()| Inbox::new(net, shape, links.rings));
        let inbox = made.map_err(|bytes| local.refused("an inbox", bytes))?;
        links.rings = rings;
        links.inboxes.push(Some(inbox));
        local.note_inbox(shape.fingerprint() ^ 1);
        Ok(InboxSlot::new(links.inboxes.len() as u32 - 1))
    }

    pub(in super::super) fn remove_inbox(&mut self, inbox: InboxSlot) -> Result<()> {
        let (local, links) = (&mut self.local, &mut self.links);
        let number = inbox.number();
        if links.inboxes.get(number).is_none_or(Option::is_none) {
            return Err(local.arrivals_misuse(format!("inbox {number} is not registered")));
        }
        if links.open_links().any(|link| link.inbox == number) {
            let text = format!("inbox {number} has open links; close them first");
            return Err(local.arrivals_misuse(text));
        }
        let removed = links.inboxes[number].take();
        if !self.quiet {
            // The network may still write into a cell of it: of a message that nobody awaited.
            crate::leaked::leak(removed);
        } else if removed.as_ref().is_some_and(Inbox::is_shared) {
            // So may a process that has not closed its link yet: all have before the next full sync.
            links.removed.extend(removed);
        }
        local.note_inbox(number as u64 ^ 2 << 32);
        Ok(())
    }

    pub(in super::super) fn open_link(
        &mut self,
        inbox: InboxSlot,
        ring: u32,
        peer: Pid,
        peer_ring: u32,
    ) -> Result<Link> {
        self.alive()?;
        let (local, links) = (&mut self.local, &mut self.links);
        if peer >= local.nprocs {
            return Err(local.no_such_process(peer));
        }
        let number = inbox.number();
        if number >= links.active {
            let text = format!("inbox {number} is not active; register it and sync first");
            return Err(local.arrivals_misuse(text));
        }
        let Some(shape) = links.inboxes[number].as_ref().map(|inbox| inbox.shape) else {
            return Err(local.arrivals_misuse(format!("inbox {number} was deregistered")));
        };
        if ring >= shape.rings || peer_ring >= shape.rings {
            let last = shape.rings.saturating_sub(1);
            return Err(local.arrivals_misuse(format!("inbox {number} has rings 0 to {last}")));
        }
        if links.open_links().any(|link| link.inbox == number && link.ring == ring) {
            let text = format!("ring {ring} of inbox {number} carries a link already");
            return Err(local.arrivals_misuse(text));
        }
        let window = shape.window as usize;
        let heads = Memory::new(window * HEAD);
        let heads = heads.map_err(|bytes| local.refused("a link", bytes))?;
        let out = Stream::new(links.pid, peer, inbox, peer_ring);
        let sent = &mut links.known.on_mut(out).sent;
        sent.opened += 1;
        let sent_before = *sent;
        let received = &mut links.known.on_mut(Stream::new(peer, links.pid, inbox, ring)).received;
        received.opened += 1;
        let received_before = *received;
        let is_near = self.network.lock().net.reach(links.members[peer as usize], 0, 0).is_some();
        let nothing = Arrived { bytes: 0, landing: None };
        let mut link = OpenLink {
            peer,
            inbox: number,
            ring,
            peer_ring,
            shape,
            out_opening: sent_before.opened,
            in_opening: received_before.opened,
            granted: None,
            has_granted: false,
            is_near,
            there: None,
            here: None,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            queue: Queue::with_capacity(2 * window),
            in_flight: VecDeque::with_capacity(window),
            heads,
            peer_offers: VecDeque::with_capacity(window),
            landed: 0,
            cells: VecDeque::with_capacity(window),
            head_came: false,
            posted: 0,
            arrived: vec![nothing; window],
            offers: VecDeque::with_capacity(window),
            offered: 0,
            offers_used: 0,
            sent_before,
            received_before,
            call: Call::default(),
        };
        links.take_early(&mut link);
        let is_free = |place: &Place| place.link.is_none() && place.generation < u32::MAX;
        let at = links.places.iter().position(is_free).unwrap_or_else(|| {
            links.places.push(Place { generation: 0, link: None });
            links.places.len() - 1
        });
        let place = &mut links.places[at];
        place.generation += 1;
        place.link = Some(Box::new(link));
        let link = Link::new(at as u32, place.generation);
        links.open += 1;
        self.poke()?;
        Ok(link)
    }

    /// Progress on the links, as after every call that others may wait for.
    fn poke(&mut self) -> Result<()> {
        let network = self.network.clone();
        let mut shared = network.lock();
        let Process { local, links, .. } = self;
        let stop = match links.progress(&mut shared.net, local) {
            Ok(()) => return Ok(()),
            Err(stop) => stop,
        };
        let report = self.watch.stopped(shared.net.control(), self.local.superstep, stop);
        Err(self.die(&mut shared.net, report))
    }

    pub(in super::super) fn close_link(&mut self, link: Link) -> Result<()> {
        self.poke()?;
        let network = self.network.clone();
        let mut shared = network.lock();
        let net = &mut shared.net;
        let (local, links) = (&self.local, &mut self.links);
        let open = links.link_mut(local, link)?;
        open.incoming.release_unheld();
        let unsent = open.queue.len();
        if open.incoming.unreleased() > 0 || !open.is_flushed() || !open.offers.is_empty() {
            let text = format!(
                "{link} has {} unreleased messages, {unsent} puts that have not left and {} open offers",
                open.incoming.unreleased(),
                open.offers.len()
            );
            return Err(local.arrivals_misuse(text));
        }
        let Some(mut open) = links.places[link.number()].link.take() else { return Ok(()) };
        let message = open.incoming.seen;
        let more = match links.head(net, &mut open, message) {
            Ok(None) => Ok(()),
            Ok(Some(_)) => {
                let cause = not_awaited(open.peer);
                Err(Stop::Fatal(Error::fatal(local.pid, local.superstep, cause)))
            }
            Err(stop) => Err(stop),
        };
        links.open -= 1;
        let told = more
            .and_then(|()| links.report(net, &mut open))
            .and_then(|()| links.tell_closed(net, &open));
        open.note(links.pid, None, &mut links.known);
        links.known.on_mut(open.to_peer(links.pid)).sent.closed = open.out_opening;
        links.known.on_mut(open.to_me(links.pid)).received.closed = open.in_opening;
        let superstep = local.superstep;
        let kept = open.give_up(net);
        self.quiet &= kept;
        told.map_err(|stop| {
            let report = self.watch.stopped(net.control(), superstep, stop);
            self.die(net, report)
        })
    }
}

impl Links {
    pub(super) fn link(&self, local: &LocalState, link: Link) -> Result<&OpenLink> {
        self.find(link).ok_or_else(|| no_such_link(local, link))
    }

    pub(super) fn link_mut(&mut self, local: &LocalState, link: Link) -> Result<&mut OpenLink> {
        self.find_mut(link).ok_or_else(|| no_such_link(local, link))
    }
}

#[cold]
fn no_such_link(local: &LocalState, link: Link) -> crate::Error {
    local.arrivals_misuse(format!("{link} is not open (never was, or was closed)"))
}
