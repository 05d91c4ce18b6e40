//! What control words do: grants, credits, offers and closings of links.

use super::super::tags;
use super::super::transport::Transport;
use super::super::watch::Stop;
use super::postbox::{Kind, Word};
use super::rings::{Closed, End, OnNet, Rings};
use lpf_core::Pid;
use lpf_core::arrivals::never_awaited;
use lpf_core::error::Error;
use lpf_core::runtime::LocalState;
use lpf_core::runtime::links::{LinkTable, OpenLink};
use lpf_core::waits::{Status, Stream};

fn take_word(link: &mut OpenLink, end: &mut End, word: &Word) {
    let number = word.number;
    match word.kind {
        Kind::Granted => end.grant = Some(number),
        Kind::Released => link.outgoing.released = link.outgoing.released.max(number),
        Kind::Offered => end.peer_offers.push_back(number as usize),
        Kind::Closed => {}
    }
}

impl<T: Transport> OnNet<'_, T> {
    /// Receives the control words that have arrived.
    pub(super) fn hear_all(&mut self, table: &mut LinkTable) -> Result<(), Stop> {
        let OnNet { rings, net } = self;
        for from in 0..rings.members.len() {
            let rank = rings.members[from];
            while let Some(word) = rings.postbox.next(*net, from, rank)? {
                rings.take_word(table, word);
            }
        }
        Ok(())
    }
}

impl Rings {
    /// A word about a link that is closed has no effect.
    fn take_word(&mut self, table: &mut LinkTable, word: Word) {
        let Word { kind, stream, opening, number } = word;
        if kind == Kind::Closed {
            self.closed.insert(stream, Closed { opening: u64::from(opening), made: number });
            return;
        }
        let opened = table.known.on(stream).sent.opened;
        // The open link that is number `opening` of the links on the stream.
        let is_meant = |link: &&mut OpenLink| {
            link.to_peer == stream && link.sent_before.opened as u32 == opening
        };
        match table.iter_mut().find(is_meant) {
            Some(link) => take_word(link, self.ends.of_mut(link), &word),
            None if u64::from(opening) > opened => self.early.push(word),
            None => {}
        }
    }

    /// Handles the words to a link that arrived before it was opened.
    pub(super) fn take_early(&mut self, link: &mut OpenLink) {
        let (stream, opening) = (link.to_peer, link.sent_before.opened as u32);
        let end = self.ends.of_mut(link);
        self.early.retain(|word| {
            let is_its_own = (word.stream, word.opening) == (stream, opening);
            if is_its_own {
                take_word(link, end, word);
            }
            !is_its_own
        });
    }

    fn tell<T: Transport>(
        &self,
        net: &mut T,
        link: &OpenLink,
        kind: Kind,
        number: u64,
    ) -> Result<(), Stop> {
        let (stream, opening) = match kind {
            Kind::Closed => (link.to_peer, link.sent_before.opened),
            _ => (link.to_me, link.received_before.opened),
        };
        let word = Word { kind, stream, opening: opening as u32, number };
        let rank = self.members[link.peer];
        Ok(net.send_copy(rank, tags::link_control(self.context), &word.bytes())?)
    }

    /// Gives the ring of a link to its peer, when its last sender has closed. That sender's messages must all have been
    /// awaited: the next ones would be taken for the new sender's.
    pub(super) fn grant<T: Transport>(
        &mut self,
        net: &mut T,
        local: &LocalState,
        link: &mut OpenLink,
        known: &Status,
    ) -> Result<(), Stop> {
        match self.last_sender(link.to_me, link.ring, known) {
            Some((from, opening, None)) => {
                link.former_sender = Some((from, opening));
                return Ok(());
            }
            Some((.., Some(left))) if left > 0 => {
                let Stream { from, to, inbox, ring } = link.to_me;
                let cause = never_awaited(left, inbox, ring, from);
                return Err(Stop::Fatal(Error::fatal(to, local.superstep, cause)));
            }
            _ => link.former_sender = None,
        }
        if let Some(inbox) = &mut self.inboxes[link.inbox] {
            inbox.senders[link.ring] = Some((link.to_me.from, link.received_before.opened));
        }
        link.has_granted = true;
        let inbox = self.inboxes[link.inbox].as_ref();
        let sender = self.members[link.peer];
        let Some((ring, place)) = inbox.and_then(|inbox| inbox.near(net, link.ring, sender)) else {
            self.post_cells(net, link)?;
            return self.tell(net, link, Kind::Granted, 0);
        };
        ring.clear();
        self.ends.of_mut(link).here = Some(ring);
        self.tell(net, link, Kind::Granted, place + 1)
    }

    /// The last sender into ring `ring` here, of which `to_me` is the stream of the next link; the number of its link
    /// there; and if it has closed that link, how many of its messages were never awaited.
    pub(super) fn last_sender(
        &self,
        to_me: Stream,
        ring: usize,
        known: &Status,
    ) -> Option<(Pid, u64, Option<u64>)> {
        let inbox = self.inboxes[to_me.inbox].as_ref()?;
        let (from, opening) = inbox.senders[ring]?;
        let stream = Stream { from, ..to_me };
        let closed = self.closed_on(stream);
        let left = closed.made.saturating_sub(known.on(stream).received.released);
        Some((from, opening, (closed.opening >= opening).then_some(left)))
    }

    fn closed_on(&self, stream: Stream) -> Closed {
        self.closed.get(&stream).copied().unwrap_or_default()
    }

    /// Posts receives for all free cells.
    fn post_cells<T: Transport>(&mut self, net: &mut T, link: &mut OpenLink) -> Result<(), Stop> {
        let Some(inbox) = &self.inboxes[link.inbox] else { return Ok(()) };
        let end = self.ends.of_mut(link);
        let rank = self.members[link.peer];
        let tag = tags::cells(self.context, inbox.first_ring + link.ring);
        while end.posted < link.incoming.released + u64::from(link.shape.window) {
            let pieces = inbox.cell(link.ring, end.posted);
            // SAFETY: the cell is not in use: its former message is released. The inbox lives until its links are closed.
            let ticket = unsafe { net.receive(rank, tag, &pieces) }?;
            end.cells.push_back(ticket);
            end.posted += 1;
        }
        Ok(())
    }

    /// Reports to the peer how many messages are released.
    pub(super) fn report<T: Transport>(
        &mut self,
        net: &mut T,
        link: &mut OpenLink,
    ) -> Result<(), Stop> {
        if link.incoming.is_reported() {
            return Ok(());
        }
        link.incoming.reported = link.incoming.released;
        if let Some(ring) = &self.ends.of(link).here {
            ring.release(link.incoming.released);
            net.wake(self.members[link.peer]);
            return Ok(());
        }
        self.post_cells(net, link)?;
        self.tell(net, link, Kind::Released, link.incoming.released)
    }

    pub(super) fn tell_offer<T: Transport>(
        &self,
        net: &mut T,
        link: &OpenLink,
        bytes: usize,
    ) -> Result<(), Stop> {
        self.tell(net, link, Kind::Offered, bytes as u64)
    }

    pub(super) fn tell_closed<T: Transport>(
        &self,
        net: &mut T,
        link: &OpenLink,
    ) -> Result<(), Stop> {
        self.tell(net, link, Kind::Closed, link.sent_before.made + link.outgoing.made)
    }
}
