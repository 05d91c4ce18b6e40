//! Randomised Bruck: 2⌈log₂ p⌉ steps for any pattern of requests. In each step a process sends one message, or two if it
//! has more than 4 KiB to send.
//!
//! The units of one process for another are cut into *chunks*. A chunk travels in two phases of ⌈log₂ p⌉ steps. In step k
//! every process sends one message to the process 2^k further on, with every chunk whose remaining distance has bit k. So
//! each chunk is at the target of a phase when the phase ends. Phase A takes it to a process chosen at random, phase B
//! from there to its destination. So the chunks for a hot spot arrive from all processes, and no process forwards much
//! more than it sends (the paper, Section 3; two-phase routing after Valiant).
//!
//! The messages of phase A carry two more things:
//! - the [`Summary`]: after ⌈log₂ p⌉ steps every process has the summary of all (a dissemination), which makes the exchange
//!   a barrier;
//! - for each process, how much is in transit to it ([`Due`]), summed up at each step (a reduce-scatter). So a process knows
//!   after phase A how much will arrive, and compares it with its room before phase B.
//!
//! # Bounded memory
//! A message takes at most half of the room for transit. That room is twice the length of all units that a process may
//! have, plus O(p). A chunk that finds no room in its step stays at its process: in phase A it starts phase B from there.
//! A chunk that is left after phase B goes directly to its destination, which knows how much is missing and has room for
//! it. This is rare, because targets are random. By chance more chunks can meet at one process than its room holds; then
//! it allocates more memory, and a refusal is fatal.

use std::ops::Range;

use super::super::control::Control;
use super::super::memory::Memory;
use super::super::tags;
use super::super::transport::{Broken, Piece, Rank, Ticket, Transport};
use super::super::watch::{Stop, Watch};
use super::super::wire::{Head, Reader, Summary};
use super::chunks::{CHUNK, CHUNK_HEAD, Chunk, Due, Transit};
use super::room::{Allowed, COPIED, Refused, Room};
use super::unread::find_unread;
use super::waiting::InMeeting;
use lpf_core::Pid;
use lpf_core::error::{Cause, Error, Result};
use lpf_core::runtime::Waiting;

/// First parts of messages.
const EAGER: usize = 4 << 10;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// To a process chosen at random.
    A,
    /// To the destination.
    B,
}

#[derive(Debug)]
pub(in super::super) struct Bruck {
    context: u32,
    pid: Pid,
    nprocs: Pid,
    steps: u32,
    /// First parts, by parity, phase and step.
    inbox: Memory,
    posted: Vec<Option<Ticket>>,
    number: u64,
    /// Messages so far.
    pub(super) sent: u64,
    sending: Option<Ticket>,
    resting: Option<Ticket>,
    /// The receives of leftover chunks, by process.
    late: Vec<Option<Ticket>>,
    late_memory: Option<Memory>,
    due: Vec<Due>,
    /// By origin, the range in which its units are gathered; empty if it has none.
    places: Vec<Range<usize>>,
    gathered: u64,
    gathered_end: usize,
    chance: u64,
}

impl Bruck {
    pub(super) fn new(watch: &Watch, context: u32) -> std::result::Result<Self, Refused> {
        let nprocs = watch.members.len();
        let steps = nprocs.next_power_of_two().trailing_zeros();
        let parts = 4 * steps as usize;
        Ok(Bruck {
            context,
            pid: watch.pid,
            nprocs,
            steps,
            inbox: Memory::new(parts * EAGER).map_err(Refused::Memory)?,
            posted: (0..parts).map(|_| None).collect(),
            number: 0,
            sent: 0,
            sending: None,
            resting: None,
            late: (0..nprocs).map(|_| None).collect(),
            late_memory: None,
            due: vec![Due::default(); nprocs],
            places: vec![0..0; nprocs],
            gathered: 0,
            gathered_end: 0,
            chance: (watch.pid as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        })
    }

    fn part(&self, parity: usize, phase: Phase, step: u32) -> usize {
        (2 * parity + phase as usize) * self.steps as usize + step as usize
    }

    /// The processes that this one sends to and receives from in a step.
    fn neighbours(&self, step: u32) -> (usize, usize) {
        let (p, pid, hop) = (self.nprocs, self.pid, 1 << step);
        ((pid + hop) % p, (pid + p - hop % p) % p)
    }

    /// Posts the receives for first parts of one parity that are not posted.
    pub(super) fn post<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &Watch,
        parity: usize,
    ) -> std::result::Result<(), Broken> {
        for phase in [Phase::A, Phase::B] {
            for step in 0..self.steps {
                let part = self.part(parity, phase, step);
                if self.posted[part].is_some() {
                    continue;
                }
                let piece = self.inbox.piece(part * EAGER..(part + 1) * EAGER);
                let (_, from) = self.neighbours(step);
                let tag = tags::step(self.context, part, false);
                // SAFETY: the inbox lives until `close` has cancelled the receive, or is leaked; it is read only after the
                // receive is finished.
                let ticket = unsafe { net.receive(watch.members[from], tag, &[piece]) }?;
                self.posted[part] = Some(ticket);
            }
        }
        Ok(())
    }

    fn random(&mut self) -> Pid {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (((self.chance >> 32) * self.nprocs as u64) >> 32) as Pid
    }

    pub(super) fn meet<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &mut Watch,
        what: &mut InMeeting<'_>,
        room: &mut Room,
        all: &mut Summary,
        allowed: Allowed<'_>,
    ) -> Result<()> {
        self.cut(room);
        for step in 0..self.steps {
            self.step(net, watch, what, room, all, Phase::A, step)?;
        }
        let due = self.due[0];
        match allowed {
            Allowed::Requests(free) if due.requests as usize > free => {
                let error = what.overrun(due.origin, due.requests as usize);
                return Err(net.control().declare(watch.section, error));
            }
            Allowed::Requests(_) => {}
            Allowed::Messages(awaited) => {
                let sent = u64::from(due.requests) + u64::from(room.requests[self.pid]);
                let awaited = awaited.iter().map(|&n| u64::from(n)).sum::<u64>();
                if sent != awaited {
                    let left = sent.wrapping_sub(awaited) as u16;
                    let found = find_unread(net, watch, what)?;
                    let error = what.left_unread(left, None, found);
                    return Err(net.control().declare(watch.section, error));
                }
            }
        }
        if usize::try_from(due.bytes).map_or(true, |bytes| bytes > room.rest.len()) {
            return Err(watch.invalid(net.control(), what.superstep(), due.origin));
        }
        for step in 0..self.steps {
            self.step(net, watch, what, room, all, Phase::B, step)?;
        }
        let gathered = self.gather(room);
        gathered.map_err(|from| watch.invalid(net.control(), what.superstep(), from))?;
        self.send_leftovers(net, watch, what, room)?;
        if self.gathered < due.bytes {
            self.receive_leftovers(net, watch, what, room, due.bytes)?;
        }
        self.number += 1;
        Ok(())
    }

    /// Cuts this process's units into chunks, each with a random intermediate process.
    fn cut(&mut self, room: &mut Room) {
        self.due.fill(Due::default());
        self.places.fill(0..0);
        (self.gathered, self.gathered_end) = (0, 0);
        room.transit.here.clear();
        for distance in 1..self.nprocs {
            let to = (self.pid + distance) % self.nprocs;
            let Head { requests, units: total } = room.head(to);
            self.due[distance] = Due { bytes: total, requests, origin: self.pid, most: requests };
            let units = room.places[to].clone();
            for (nth, bytes) in room.out[units].chunks(CHUNK).enumerate() {
                let via = self.random();
                let offset = (nth * CHUNK) as u64;
                Chunk::write(&mut room.transit.here, [to, via, self.pid], offset, total, bytes);
            }
        }
    }

    /// Sends a message to one process and receives one of another, each in up to two parts.
    #[allow(clippy::too_many_arguments)]
    fn step<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &mut Watch,
        what: &mut InMeeting<'_>,
        room: &mut Room,
        all: &mut Summary,
        phase: Phase,
        step: u32,
    ) -> Result<()> {
        let (to, from) = self.neighbours(step);
        let part = self.part((self.number % 2) as usize, phase, step);
        // The message of the previous step is in the same memory.
        let (previous, _) = self.neighbours((step + self.steps - 1) % self.steps);
        what.missing = previous;
        watch.wait(net, what, |what, net| {
            let left = self.have_left(net)?;
            if !left {
                what.links.progress(net, what.local)?;
            }
            Ok(left)
        })?;
        self.pack(&mut room.transit, all, phase, step);
        let sent = self.send(net, watch.members[to], &room.transit.out, part);
        sent.map_err(|broken| watch.broken(net.control(), what.superstep(), broken))?;
        let mut first = 0;
        what.missing = from;
        watch.wait(net, what, |what, net| {
            let Some(ticket) = &self.posted[part] else { return Ok(true) };
            match net.test(ticket)? {
                None => {
                    what.links.progress(net, what.local)?;
                    Ok(false)
                }
                Some(bytes) => {
                    self.posted[part] = None;
                    first = bytes.min(EAGER);
                    Ok(true)
                }
            }
        })?;
        // SAFETY: its receive is finished, and posted again by `finish`.
        let message = unsafe { self.inbox.bytes(part * EAGER..part * EAGER + first) };
        let length = Reader(message).u64().and_then(|length| usize::try_from(length).ok());
        let superstep = what.superstep();
        let bad = |watch: &Watch, net: &T| watch.invalid(net.control(), superstep, from);
        let Some(length) = length.filter(|&n| n >= first && n - first <= room.transit.limit) else {
            return Err(bad(watch, net));
        };
        let rest = length - first;
        if rest > 0 {
            let piece = room.transit.rest.piece(0..rest);
            let tag = tags::step(self.context, part, true);
            // SAFETY: the room lives until `close` has cancelled the receive, or is leaked; it is read only after the
            // receive is finished.
            match unsafe { net.receive(watch.members[from], tag, &[piece]) } {
                Ok(ticket) => self.resting = Some(ticket),
                Err(broken) => {
                    return Err(watch.broken(net.control(), what.superstep(), broken));
                }
            }
            watch.wait(net, what, |what, net| {
                let Some(ticket) = &self.resting else { return Ok(true) };
                let done = net.test(ticket)?.is_some();
                match done {
                    true => self.resting = None,
                    false => what.links.progress(net, what.local)?,
                }
                Ok(done)
            })?;
        }
        // SAFETY: as above.
        let message = unsafe { self.inbox.bytes(part * EAGER..part * EAGER + first) };
        let mut reader = Reader(&message[8..]);
        let (Some(_), Some(summary)) = (reader.u64(), Summary::read(&mut reader)) else {
            return Err(watch.invalid(net.control(), what.superstep(), from));
        };
        all.merge(&summary);
        let transit = &mut room.transit;
        let (at, bytes) = (transit.here.len(), reader.0.len() + rest);
        // As a rule there is room: see the module above.
        if transit.here.try_reserve(bytes).is_err() {
            let cause = Cause::OutOfMemory { what: "the first exchange".into(), bytes };
            let error = Error::fatal(watch.known_as(self.pid), what.superstep(), cause);
            return Err(net.control().declare(watch.section, error));
        }
        transit.here.extend_from_slice(reader.0);
        // SAFETY: its receive is finished.
        transit.here.extend_from_slice(unsafe { transit.rest.bytes(0..rest) });
        if phase == Phase::A && !self.take_due(transit, at, step) {
            return Err(watch.invalid(net.control(), what.superstep(), from));
        }
        Ok(())
    }

    /// The distances whose `Due` travels in this step.
    fn halved(&self, step: u32) -> impl Iterator<Item = usize> + use<> {
        let hop = 1usize << step;
        (hop..self.nprocs).step_by(2 * hop)
    }

    /// Moves the chunks that travel in this step into the message.
    fn pack(&mut self, transit: &mut Transit, all: &Summary, phase: Phase, step: u32) {
        let Transit { here, out, limit, .. } = transit;
        out.clear();
        out.extend_from_slice(&[0; 16]);
        all.write(out);
        if phase == Phase::A {
            for distance in self.halved(step) {
                std::mem::take(&mut self.due[distance]).write(out);
            }
        }
        let (mut read, mut kept) = (0, 0);
        while let Some((chunk, _)) = Chunk::split(&here[read..]) {
            let target = if phase == Phase::A { chunk.via } else { chunk.to };
            let distance = (target + self.nprocs - self.pid) % self.nprocs;
            let bytes = chunk.whole.len();
            if distance >> step & 1 == 1 && out.len() + bytes <= *limit {
                out.extend_from_slice(chunk.whole);
            } else {
                here.copy_within(read..read + bytes, kept);
                kept += bytes;
            }
            read += bytes;
        }
        here.truncate(kept);
        let length = (out.len() as u64).to_le_bytes();
        out[..8].copy_from_slice(&length);
    }

    /// Adds the `Due`s that arrived at `at` to those of this process, and removes them. False if the message is too short.
    fn take_due(&mut self, transit: &mut Transit, at: usize, step: u32) -> bool {
        let hop = 1usize << step;
        let mut reader = Reader(&transit.here[at..]);
        let mut bytes = 0;
        for distance in self.halved(step) {
            let Some(due) = Due::read(&mut reader) else { return false };
            self.due[distance - hop].add(due);
            bytes += Due::BYTES;
        }
        transit.here.drain(at..at + bytes);
        true
    }

    fn send<T: Transport>(
        &mut self,
        net: &mut T,
        rank: Rank,
        message: &[u8],
        part: usize,
    ) -> std::result::Result<(), Broken> {
        let (first, rest) = message.split_at(message.len().min(EAGER));
        self.sent += 1 + u64::from(!rest.is_empty());
        let tag = tags::step(self.context, part, false);
        if message.len() <= COPIED {
            return net.send_copy(rank, tag, message);
        }
        if rest.is_empty() {
            // SAFETY: `out` is not written before `have_left` has found the send complete.
            self.sending = Some(unsafe { net.send(rank, tag, &[Piece::of(first)]) }?);
            return Ok(());
        }
        net.send_copy(rank, tag, first)?;
        let tag = tags::step(self.context, part, true);
        // SAFETY: as above.
        self.sending = Some(unsafe { net.send(rank, tag, &[Piece::of(rest)]) }?);
        Ok(())
    }

    /// Copies the chunks for this process to the units of their origins.
    ///
    /// # Errors
    /// The origin of an invalid chunk.
    fn gather(&mut self, room: &mut Room) -> std::result::Result<(), Pid> {
        let Room { rest, transit, .. } = room;
        let here = &mut transit.here;
        let (mut read, mut kept) = (0, 0);
        while let Some((chunk, _)) = Chunk::split(&here[read..]) {
            let bytes = chunk.whole.len();
            if chunk.to == self.pid {
                if !self.place(rest, &chunk) {
                    return Err(chunk.origin);
                }
            } else {
                here.copy_within(read..read + bytes, kept);
                kept += bytes;
            }
            read += bytes;
        }
        here.truncate(kept);
        Ok(())
    }

    fn place(&mut self, rest: &Memory, chunk: &Chunk<'_>) -> bool {
        let Some(place) = self.places.get_mut(chunk.origin) else { return false };
        let (Ok(total), Ok(offset)) = (usize::try_from(chunk.total), usize::try_from(chunk.offset))
        else {
            return false;
        };
        if place.start == place.end {
            let end = self.gathered_end.saturating_add(total);
            if end > rest.len() {
                return false;
            }
            *place = self.gathered_end..end;
            self.gathered_end = end;
        }
        let fits = offset.checked_add(chunk.bytes.len()).is_some_and(|end| end <= place.len());
        if !fits || place.len() != total {
            return false;
        }
        let at = place.start + offset;
        let to = rest.piece(at..at + chunk.bytes.len());
        // SAFETY: the range is inside the block, as checked above. No receive is posted into the block, and no reference into
        // it is alive.
        unsafe { std::ptr::copy_nonoverlapping(chunk.bytes.as_ptr(), to.base, to.bytes) };
        self.gathered += to.bytes as u64;
        true
    }

    /// Sends the chunks that found no room in a message directly to their destinations.
    fn send_leftovers<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &Watch,
        what: &InMeeting<'_>,
        room: &mut Room,
    ) -> Result<()> {
        let mut rest = &room.transit.here[..];
        while let Some((chunk, behind)) = Chunk::split(rest) {
            let Some(&rank) = watch.members.get(chunk.to) else { break };
            self.sent += 1;
            let sent = net.send_copy(rank, tags::leftover(self.context), chunk.whole);
            sent.map_err(|broken| watch.broken(net.control(), what.superstep(), broken))?;
            rest = behind;
        }
        room.transit.here.clear();
        Ok(())
    }

    /// Waits for the chunks that other processes send directly.
    fn receive_leftovers<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &mut Watch,
        what: &mut InMeeting<'_>,
        room: &mut Room,
        due: u64,
    ) -> Result<()> {
        const ROOM: usize = CHUNK_HEAD + CHUNK;
        let members = watch.members.clone();
        if self.late_memory.is_none() {
            let memory = Memory::new(members.len() * ROOM);
            let memory = memory.map_err(|bytes| {
                let error = what.local.refused("the first exchange", bytes);
                let cause = lpf_core::Cause::Returned { message: error.to_string() };
                let error =
                    lpf_core::Error::fatal(watch.known_as(self.pid), what.superstep(), cause);
                net.control().declare(watch.section, error)
            })?;
            self.late_memory = Some(memory);
        }
        watch.wait(net, what, |what, net| {
            what.links.progress(net, what.local)?;
            let own = self.pid;
            for from in (0..members.len()).filter(|&from| from != own) {
                let Some(memory) = &self.late_memory else { return Ok(true) };
                let Some(ticket) = &self.late[from] else {
                    let piece = memory.piece(from * ROOM..(from + 1) * ROOM);
                    let tag = tags::leftover(self.context);
                    // SAFETY: the memory lives until `close` has cancelled the receive, or is leaked; this part of it is read
                    // only after its receive is finished.
                    self.late[from] = Some(unsafe { net.receive(members[from], tag, &[piece]) }?);
                    continue;
                };
                let Some(bytes) = net.test(ticket)? else { continue };
                self.late[from] = None;
                let range = from * ROOM..from * ROOM + bytes.min(ROOM);
                // SAFETY: its receive is finished. The copy is apart from what `place` changes.
                let chunk = unsafe { memory.bytes(range) }.to_vec();
                let placed = Chunk::split(&chunk).is_some_and(|(chunk, _)| {
                    chunk.to == self.pid && self.place(&room.rest, &chunk)
                });
                if !placed {
                    return Err(Stop::Invalid(from));
                }
            }
            Ok(self.gathered >= due)
        })?;
        // A process without chunks for this one sends nothing: its receive stays posted for the next time.
        Ok(())
    }

    pub(super) fn units<'a>(&'a self, from: Pid, room: &'a Room) -> &'a [u8] {
        if from == self.pid {
            return room.units(from);
        }
        // SAFETY: nothing is received into it; chunks are placed in `meet` alone.
        unsafe { room.rest.bytes(self.places[from].clone()) }
    }

    /// The message of the last step is the last one to leave.
    pub(super) fn leaves_to(&self) -> Option<Pid> {
        let step = self.steps.checked_sub(1)?;
        self.sending.is_some().then(|| self.neighbours(step).0)
    }

    pub(super) fn have_left<T: Transport>(
        &mut self,
        net: &mut T,
    ) -> std::result::Result<bool, Stop> {
        let Some(ticket) = &self.sending else { return Ok(true) };
        let left = net.test(ticket)?.is_some();
        if left {
            self.sending = None;
        }
        Ok(left)
    }

    pub(super) fn finish<T: Transport>(
        &mut self,
        net: &mut T,
        watch: &Watch,
    ) -> std::result::Result<(), Broken> {
        self.post(net, watch, (self.number as usize).wrapping_sub(1) % 2)
    }

    /// Leaks its memory.
    pub(super) fn keep(&mut self) {
        lpf_core::leaked::leak(std::mem::take(&mut self.inbox));
        lpf_core::leaked::leak(self.late_memory.take());
    }

    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        let tickets = self.posted.iter_mut().chain(&mut self.late).filter_map(Option::take);
        let tickets = tickets.chain(self.sending.take()).chain(self.resting.take());
        tickets.fold(true, |quiet, ticket| net.cancel(ticket) & quiet)
    }
}
