//! Control words about links: a few words each, in order, on a channel of their own for each pair of processes.

use super::super::meeting::nonsense;
use super::super::memory::Memory;
use super::super::tags;
use super::super::transport::{Ticket, Transport};
use super::super::watch::Stop;
use super::super::wire::Reader;
use super::{Closed, End, OnNet, Rings};
use lpf_core::Pid;
use lpf_core::arrivals::never_awaited;
use lpf_core::error::Error;
use lpf_core::runtime::LocalState;
use lpf_core::runtime::links::{LinkTable, OpenLink};
use lpf_core::waits::{Status, Stream};

const BYTES: usize = 24;

/// A control word. All but `Closed` are about a stream on which the receiver of the word sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// The receiver of the word has the ring now. The offset of the ring in shared memory, plus one; zero if only the
    /// network reaches it.
    Granted,
    /// The number of messages released. In shared memory the ring itself has it.
    Released,
    /// An offer of this number of bytes for a landing.
    Offered,
    /// The sender has closed its link, on whose stream it has made this number of messages.
    Closed,
}

impl Word {
    const ALL: [Word; 4] = [Word::Granted, Word::Released, Word::Offered, Word::Closed];
}

/// Words to a link that is not open yet: a grant, and the offers of at most a window.
#[derive(Debug)]
pub(super) struct Early {
    stream: Stream,
    opening: u32,
    kind: Word,
    number: u64,
}

fn take_word(link: &mut OpenLink, end: &mut End, kind: Word, number: u64) {
    match kind {
        Word::Granted => end.grant = Some(number),
        Word::Released => link.outgoing.released = link.outgoing.released.max(number),
        Word::Offered => end.peer_offers.push_back(number as usize),
        Word::Closed => {}
    }
}

/// Receives for control words: one for every process, posted again when it is complete. Words that arrive meanwhile wait
/// in the network: at most two windows and two words for each link.
#[derive(Debug)]
pub(super) struct Postbox {
    memory: Option<Memory>,
    posted: Vec<Option<Ticket>>,
}

impl Postbox {
    pub(super) fn new(processes: usize) -> Self {
        Postbox { memory: None, posted: (0..processes).map(|_| None).collect() }
    }

    /// Reserves its memory, before the first inbox is active.
    ///
    /// # Errors
    /// The bytes that were refused.
    pub(super) fn prepare(&mut self) -> Result<(), usize> {
        if self.memory.is_none() {
            self.memory = Some(Memory::new(self.posted.len() * BYTES)?);
        }
        Ok(())
    }

    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        let tickets = self.posted.iter_mut().filter_map(Option::take);
        tickets.fold(true, |quiet, ticket| net.cancel(ticket) & quiet)
    }

    pub(super) fn keep(&mut self) {
        lpf_core::leaked::leak(self.memory.take());
    }
}

impl<T: Transport> OnNet<'_, T> {
    /// Receives the control words that have arrived.
    pub(super) fn hear_all(&mut self, table: &mut LinkTable) -> Result<(), Stop> {
        let net = &mut *self.net;
        for from in 0..self.rings.members.len() {
            loop {
                let Rings { members, context, postbox, is_last, .. } = &mut *self.rings;
                let Some(memory) = &postbox.memory else { return Ok(()) };
                let place = from * BYTES..(from + 1) * BYTES;
                let Some(ticket) = &postbox.posted[from] else {
                    let (rank, tag) = (members[from], tags::link_control(*context));
                    // SAFETY: the memory lives until the links are closed; this part of it is read only after the receive is
                    // finished.
                    match unsafe { net.receive(rank, tag, &[memory.piece(place)]) } {
                        Ok(ticket) => postbox.posted[from] = Some(ticket),
                        Err(_) if *is_last => break,
                        Err(broken) => return Err(broken.into()),
                    }
                    continue;
                };
                match net.test(ticket) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) if *is_last => break,
                    Err(broken) => return Err(broken.into()),
                }
                postbox.posted[from] = None;
                // SAFETY: its receive is finished.
                let mut reader = Reader(unsafe { memory.bytes(place) });
                let mut word = || {
                    let kind = Word::ALL.get(reader.u32()? as usize).copied()?;
                    let (inbox, ring) = (reader.u32()? as usize, reader.u32()? as usize);
                    Some((kind, inbox, ring, reader.u32()?, reader.u64()?))
                };
                let Some((kind, inbox, ring, opening, number)) = word() else {
                    return Err(Stop::Fatal(nonsense(from)));
                };
                self.rings.take_word(table, from, kind, inbox, ring, opening, number);
            }
        }
        Ok(())
    }
}

impl Rings {
    /// Handles a word about link number `opening` of its stream. A word about an earlier link has no effect.
    #[allow(clippy::too_many_arguments)]
    fn take_word(
        &mut self,
        table: &mut LinkTable,
        from: Pid,
        kind: Word,
        inbox: usize,
        ring: usize,
        opening: u32,
        number: u64,
    ) {
        if kind == Word::Closed {
            let closed = Closed { opening: u64::from(opening), made: number };
            self.closed.insert(Stream { from, to: self.pid, inbox, ring }, closed);
            return;
        }
        let stream = Stream { from: self.pid, to: from, inbox, ring };
        let opened = table.known.on(stream).sent.opened;
        // The open link that is number `opening` of the links on the stream.
        let is_meant = |link: &&mut OpenLink| {
            link.to_peer(self.pid) == stream && link.sent_before.opened as u32 == opening
        };
        match table.iter_mut().find(is_meant) {
            Some(link) => take_word(link, self.ends.of_mut(link), kind, number),
            None if u64::from(opening) > opened => {
                self.early.push(Early { stream, opening, kind, number });
            }
            None => {}
        }
    }

    /// Handles the words to a link that arrived before it was opened.
    pub(super) fn take_early(&mut self, link: &mut OpenLink) {
        let (stream, opening) = (link.to_peer(self.pid), link.sent_before.opened as u32);
        let end = self.ends.of_mut(link);
        self.early.retain(|word| {
            let is_its_own = (word.stream, word.opening) == (stream, opening);
            if is_its_own {
                take_word(link, end, word.kind, word.number);
            }
            !is_its_own
        });
    }

    fn tell<T: Transport>(
        &self,
        net: &mut T,
        link: &OpenLink,
        word: Word,
        number: u64,
    ) -> Result<(), Stop> {
        let (ring, opening) = match word {
            Word::Closed => (link.peer_ring, link.sent_before.opened),
            _ => (link.ring, link.received_before.opened),
        };
        let words = [word as u32, link.inbox as u32, ring as u32, opening as u32];
        let mut bytes = [0; BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[16..].copy_from_slice(&number.to_le_bytes());
        let rank = self.members[link.peer];
        Ok(net.send_copy(rank, tags::link_control(self.context), &bytes)?)
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
        link.former_sender = self.former_sender(link);
        if link.former_sender.is_some() {
            return Ok(());
        }
        let left = self.left_over(link, known);
        if left > 0 {
            let cause = never_awaited(left, link.inbox, link.ring, link.peer);
            return Err(Stop::Fatal(Error::fatal(self.pid, local.superstep, cause)));
        }
        if let Some(inbox) = &mut self.inboxes[link.inbox] {
            inbox.senders[link.ring] = Some((link.peer, link.received_before.opened));
        }
        link.has_granted = true;
        let inbox = self.inboxes[link.inbox].as_ref();
        let sender = self.members[link.peer];
        let Some((ring, place)) = inbox.and_then(|inbox| inbox.near(net, link.ring, sender)) else {
            self.post_cells(net, link)?;
            return self.tell(net, link, Word::Granted, 0);
        };
        ring.clear();
        self.ends.of_mut(link).here = Some(ring);
        self.tell(net, link, Word::Granted, place + 1)
    }

    /// The process that still has the ring of a link that is not granted, and the number of its opening.
    fn former_sender(&self, link: &OpenLink) -> Option<(Pid, u64)> {
        let (stream, opening) = self.last_into(link)?;
        (self.closed_on(stream).opening < opening).then_some((stream.from, opening))
    }

    /// How many messages of the last sender into the ring of a link were never awaited.
    fn left_over(&self, link: &OpenLink, known: &Status) -> u64 {
        self.last_into(link).map_or(0, |(stream, _)| {
            let released = known.on(stream).received.released;
            self.closed_on(stream).made.saturating_sub(released)
        })
    }

    /// The stream that had the ring of a link last, and the number of its link there.
    fn last_into(&self, link: &OpenLink) -> Option<(Stream, u64)> {
        let inbox = self.inboxes[link.inbox].as_ref()?;
        let (from, opening) = inbox.senders[link.ring]?;
        Some((Stream { from, to: self.pid, inbox: link.inbox, ring: link.ring }, opening))
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
        self.tell(net, link, Word::Released, link.incoming.released)
    }

    pub(super) fn tell_offer<T: Transport>(
        &self,
        net: &mut T,
        link: &OpenLink,
        bytes: usize,
    ) -> Result<(), Stop> {
        self.tell(net, link, Word::Offered, bytes as u64)
    }

    pub(super) fn tell_closed<T: Transport>(
        &self,
        net: &mut T,
        link: &OpenLink,
    ) -> Result<(), Stop> {
        self.tell(net, link, Word::Closed, link.sent_before.made + link.outgoing.made)
    }
}
