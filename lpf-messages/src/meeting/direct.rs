//! The direct exchange: each process sends a message to each other one.
//!
//! A process that leaves a meeting has posted receives for the first [`eager`](Direct::eager) bytes of each message of the
//! next one, so that a short message is received at once. No process is more than one meeting ahead of another, because no
//! process leaves a meeting before all have arrived. The rest of a longer message is received after all first parts have
//! arrived and the room reserved for units is known to suffice. A long rest is not sent before all processes have
//! arrived, so that it does not occupy the network while a process is late.

use std::ops::Range;

use super::super::control::Control;
use super::super::memory::Memory;
use super::super::tags;
use super::super::tickets::Tickets;
use super::super::transport::{Broken, Piece, Rank, Ticket, Transport};
use super::super::turns::Turns;
use super::super::watch::{Stop, Watch};
use super::super::wire::{Head, News, Opening, Reader, Summary};
use super::room::{Allowed, COPIED, Refused, Room};
use super::unread::find_unread;
use super::waiting::InMeeting;
use lpf_core::Pid;
use lpf_core::error::{Error, Result};
use lpf_core::runtime::Waiting;

/// Bytes of the first parts of messages in all, divided among the processes.
const EAGER_IN_ALL: usize = 64 << 10;
const EAGER: Range<usize> = 1 << 10..16 << 10;

/// A rest longer than this waits until all processes have arrived.
const LONG_REST: usize = 256 << 10;

#[derive(Debug)]
pub(in super::super) struct Direct {
    context: u32,
    pid: Pid,
    /// The longest first part of a message.
    pub(super) eager: usize,
    /// The first parts of two meetings, for each process.
    inbox: Memory,
    posted: Vec<[Option<Ticket>; 2]>,
    /// Meetings so far.
    number: u64,
    /// Messages so far.
    pub(super) sent: u64,
    sending: Tickets,
    receiving: Tickets,
    /// Long rests.
    turns: Turns,
    heads: Vec<Head>,
    /// The position of the units of each process.
    units: Vec<Place>,
    /// The part of the summary that seldom changes: what this process last sent of it, and what it last received from each other.
    told: Option<News>,
    heard: Vec<Option<News>>,
    /// Of the meeting under way: the processes whose first parts have arrived, the number of their requests, and the number
    /// of first parts that are not the whole message.
    come: Vec<bool>,
    requests: usize,
    parts: usize,
    /// Long rests that wait until all processes have arrived.
    rests: usize,
}

#[derive(Clone, Debug)]
enum Place {
    /// In the message that this process composed for itself.
    Own,
    Inbox(Range<usize>),
    Rest(Range<usize>),
}

impl Direct {
    pub(super) fn new(watch: &Watch, context: u32) -> std::result::Result<Self, Refused> {
        let nprocs = watch.members.len();
        let eager = (EAGER_IN_ALL / nprocs).clamp(EAGER.start, EAGER.end);
        let bytes = nprocs.saturating_mul(2 * eager);
        Ok(Direct {
            context,
            pid: watch.pid,
            eager,
            inbox: Memory::new(if nprocs > 1 { bytes } else { 0 }).map_err(Refused::Memory)?,
            posted: (0..nprocs).map(|_| [None, None]).collect(),
            number: 0,
            sent: 0,
            sending: Tickets::with_capacity(2 * nprocs),
            receiving: Tickets::with_capacity(nprocs),
            turns: Turns::new(nprocs),
            heads: vec![Head::default(); nprocs],
            units: vec![Place::Own; nprocs],
            told: None,
            heard: vec![None; nprocs],
            come: vec![false; nprocs],
            requests: 0,
            parts: 0,
            rests: 0,
        })
    }

    fn first_part(&self, from: usize, parity: usize) -> Range<usize> {
        let at = (2 * from + parity) * self.eager;
        at..at + self.eager
    }

    /// Posts those receives for first parts of one parity that are not posted.
    pub(super) fn post<T: Transport>(
        &mut self,
        net: &mut T,
        members: &[Rank],
        parity: usize,
    ) -> std::result::Result<(), Broken> {
        let tag = tags::meeting(self.context, parity);
        for (from, &rank) in members.iter().enumerate() {
            if from == self.pid || self.posted[from][parity].is_some() {
                continue;
            }
            let piece = self.inbox.piece(self.first_part(from, parity));
            // SAFETY: the inbox lives until the meeting is closed, and this process reads this part of it after the receive is
            // finished.
            let ticket = unsafe { net.receive(rank, tag, &[piece]) }?;
            self.posted[from][parity] = Some(ticket);
        }
        Ok(())
    }

    /// See [`Meeting::meet`](super::Meeting::meet).
    pub(super) fn meet<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &mut Watch,
        what: &mut InMeeting<'_>,
        room: &mut Room,
        all: &mut Summary,
        allowed: Allowed<'_>,
    ) -> Result<()> {
        let news = Some(News::of(all)).filter(|news| self.told.as_ref() != Some(news));
        let opening = Opening::of(what.kind, all.common.kinds.0, news.as_ref());
        self.told = news.or(self.told);
        let sent = self.send(net, watch, room, &opening).and_then(|()| {
            // Meanwhile the messages of the others travel.
            self.post(net, &watch.members, (self.number + 1) as usize % 2)
        });
        sent.map_err(|broken| watch.broken(net.control(), what.superstep(), broken))?;
        let parity = (self.number % 2) as usize;
        self.come.fill(false);
        self.come[self.pid] = true;
        (self.requests, self.parts) = (0, 0);
        let mut missing = self.come.len() - 1;
        watch.wait_for_all(net, what, |what, net| {
            missing -= self.first_parts(net, parity, all)?;
            if missing > 0 {
                what.missing = self.missing();
                what.links.progress(net, what.local)?;
            }
            Ok(missing == 0)
        })?;
        self.heads[self.pid] = room.head(self.pid);
        match allowed {
            Allowed::Requests(free) if self.requests > free => {
                return Err(self.overrun(watch, net, what));
            }
            Allowed::Requests(_) => {}
            Allowed::Messages(awaited) => {
                let differs = |from: &usize| self.heads[*from].requests as u16 != awaited[*from];
                if let Some(from) = (0..awaited.len()).find(differs) {
                    let left = (self.heads[from].requests as u16).wrapping_sub(awaited[from]);
                    let found = find_unread(net, watch, what)?;
                    let found =
                        found.filter(|(stream, _)| what.links.rings.with(stream.from) == from);
                    let error = what.left_unread(left, Some(from), found);
                    return Err(net.control().declare(watch.section, error));
                }
            }
        }
        if self.rests > 0 || self.parts > 0 {
            self.exchange_rests(watch, net, what, room, &opening)?;
        }
        self.number += 1;
        Ok(())
    }

    fn send<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &Watch,
        room: &mut Room,
        opening: &Opening,
    ) -> std::result::Result<(), Broken> {
        let parity = (self.number % 2) as usize;
        let tag = tags::meeting(self.context, parity);
        let nprocs = watch.members.len();
        self.rests = 0;
        // Each process begins with another receiver, so that not all send to the same one.
        for step in 1..nprocs {
            let to = (self.pid + step) % nprocs;
            let message = room.message(to, opening, self.eager);
            let (first, rest) = message.split_at(message.len().min(self.eager));
            let rank = watch.members[to];
            self.sent += 1 + u64::from(!rest.is_empty());
            if message.len() <= COPIED {
                net.send_copy(rank, tag, first)?;
                continue;
            }
            // SAFETY: `out` is not changed before `have_left` has seen these sends end.
            let ticket = unsafe { net.send(rank, tag, &[Piece::of(first)]) }?;
            self.sending.push(to, ticket);
            match rest.len() {
                0 => {}
                1..=LONG_REST => {
                    let tag = tags::meeting_rest(self.context);
                    // SAFETY: as above.
                    let ticket = unsafe { net.send(rank, tag, &[Piece::of(rest)]) }?;
                    self.sending.push(to, ticket);
                }
                _ => self.rests += 1,
            }
        }
        Ok(())
    }

    /// Looks for first parts, and returns the number of those that have arrived since the last look.
    #[inline]
    fn first_parts<T: Transport>(
        &mut self,
        net: &mut T,
        parity: usize,
        all: &mut Summary,
    ) -> std::result::Result<usize, Stop> {
        let mut more = 0;
        for from in 0..self.posted.len() {
            if self.come[from] {
                continue;
            }
            let Some(ticket) = &self.posted[from][parity] else { continue };
            let Some(bytes) = net.test(ticket)? else { continue };
            self.posted[from][parity] = None;
            let part = self.first_part(from, parity);
            let part = part.start..part.start + bytes.min(self.eager);
            // SAFETY: the receive of this part is finished, and is posted again in the next meeting.
            let mut reader = Reader(unsafe { self.inbox.bytes(part.clone()) });
            let Some(head) = Opening::read(all, from, &mut self.heard[from], &mut reader) else {
                return Err(Stop::Invalid(from));
            };
            let units = part.end - reader.0.len();
            let is_whole = head.units <= reader.0.len() as u64;
            let end = if is_whole { units + head.units as usize } else { part.end };
            self.units[from] = Place::Inbox(units..end);
            self.requests += head.requests as usize;
            self.parts += usize::from(!is_whole);
            self.heads[from] = head;
            self.come[from] = true;
            more += 1;
        }
        Ok(more)
    }

    /// The error of a process for which there are more requests than it has reserved.
    #[cold]
    fn overrun<T: Transport>(&self, watch: &Watch, net: &T, what: &InMeeting<'_>) -> Error {
        let others = (0..self.heads.len()).filter(|&from| from != self.pid);
        let origin = others.max_by_key(|&from| self.heads[from].requests).unwrap_or(0);
        net.control().declare(watch.section, what.overrun(origin, self.requests))
    }

    /// All processes have arrived: sends to each in turn what did not fit the first part.
    fn exchange_rests<T: Transport>(
        &mut self,
        watch: &mut Watch,
        net: &mut T,
        what: &mut InMeeting<'_>,
        room: &Room,
        opening: &Opening,
    ) -> Result<()> {
        self.receive_rests(watch, net, what, room)?;
        let Direct { context, eager, pid, turns, receiving, .. } = self;
        let rest = |to: Pid| {
            let place = room.place(to, opening, *eager);
            &room.out[(place.start + *eager).min(place.end)..place.end]
        };
        let nprocs = watch.members.len();
        for to in (1..nprocs).map(|distance| (*pid + distance) % nprocs) {
            if rest(to).len() > LONG_REST {
                turns.plan(to, rest(to).len());
                turns.is_ready(to, rest(to).len());
            }
        }
        let tag = tags::meeting_rest(*context);
        watch.wait(net, what, |what, net| {
            let members = what.links.members();
            let begun = turns.go_on(net, |net, to| {
                // SAFETY: `out` is not changed before `have_left` has seen these sends end.
                unsafe { net.send(members[to], tag, &[Piece::of(rest(to))]) }
            })?;
            Ok(receiving.have_ended(net)? && begun)
        })
    }

    /// Posts receives for what did not fit the first parts, behind a copy of them.
    fn receive_rests<T: Transport>(
        &mut self,
        watch: &Watch,
        net: &mut T,
        what: &InMeeting<'_>,
        room: &Room,
    ) -> Result<()> {
        let mut at = 0_usize;
        for from in 0..self.units.len() {
            let Place::Inbox(first) = self.units[from].clone() else { continue };
            let here = first.len();
            let Ok(units) = usize::try_from(self.heads[from].units) else {
                return Err(watch.invalid(net.control(), what.superstep(), from));
            };
            if units <= here {
                continue;
            }
            let end = at.checked_add(units).filter(|&end| end <= room.rest.len());
            let Some(end) = end else {
                return Err(watch.invalid(net.control(), what.superstep(), from));
            };
            let (copy, rest) = (room.rest.piece(at..at + here), room.rest.piece(at + here..end));
            // SAFETY: both ranges are initialised and disjoint, and no send or receive uses them now.
            unsafe { std::ptr::copy_nonoverlapping(self.inbox.piece(first).base, copy.base, here) };
            let rank = watch.members[from];
            let tag = tags::meeting_rest(self.context);
            // SAFETY: the room lives until the meeting is closed, and this process reads this part of it after the receive is
            // finished.
            match unsafe { net.receive(rank, tag, &[rest]) } {
                Ok(ticket) => self.receiving.push(from, ticket),
                Err(broken) => {
                    return Err(watch.broken(net.control(), what.superstep(), broken));
                }
            }
            self.units[from] = Place::Rest(at..end);
            at = end;
        }
        Ok(())
    }

    /// The units that process `from` has for this one.
    pub(super) fn units<'a>(&'a self, from: Pid, room: &'a Room) -> &'a [u8] {
        match &self.units[from] {
            Place::Own => room.units(from),
            // SAFETY: the receive of this part is finished, and is posted again in the next meeting.
            Place::Inbox(range) => unsafe { self.inbox.bytes(range.clone()) },
            // SAFETY: as above.
            Place::Rest(range) => unsafe { room.rest.bytes(range.clone()) },
        }
    }

    /// Whether this process's messages have left.
    pub(super) fn have_left<T: Transport>(
        &mut self,
        net: &mut T,
    ) -> std::result::Result<bool, Stop> {
        Ok(self.sending.have_ended(net)? && self.turns.have_left(net)?)
    }

    pub(super) fn leaves_to(&self) -> Option<Pid> {
        self.sending.last().or(self.turns.leaves_to())
    }

    /// A process that has not arrived at the meeting under way.
    fn missing(&self) -> Pid {
        self.come.iter().position(|&come| !come).unwrap_or(self.pid)
    }

    /// Leaks its memory.
    pub(super) fn keep(&mut self) {
        lpf_core::leaked::leak(std::mem::take(&mut self.inbox));
    }

    /// Cancels all sends and receives. False if the network may still write to its memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        let quiet = self.sending.close(net) & self.receiving.close(net) & self.turns.close(net);
        let posted = self.posted.iter_mut().flatten().filter_map(Option::take);
        posted.fold(quiet, |quiet, ticket| net.cancel(ticket) & quiet)
    }
}
