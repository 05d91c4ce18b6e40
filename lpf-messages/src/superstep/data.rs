//! Phases 2 and 3: conflicts, answers, data.
//!
//! The long requests between two processes are listed at both, in the same order. The *incoming* list (the other's puts,
//! then this process's gets) has the addresses here that the bytes are written to. The *outgoing* list (this process's
//! puts, then the other's gets) has the addresses that they are read from. The process with the incoming list shortens
//! requests whose writes conflict, posts its receive, and answers with the lengths. The process with the outgoing list
//! shortens its requests to these lengths and sends.

use std::ops::Range;

use super::super::meeting::{InMeeting, Meeting, Room};
use super::super::protocol::Protocol;
use super::super::tags;
use super::super::transport::{Piece, Rank, Transport};
use super::super::watch::Stop;
use super::super::wire::{Reader, Unit, nonsense};
use super::answers::Answers;
use super::compose::copy_in;
use super::long::{Long, Pair, keep_last};
use super::runs::{self, Places};
use super::scratch::{Lists, Told};
use lpf_core::Pid;
use lpf_core::error::{Error, Result};
use lpf_core::request::{Request, Run};
use lpf_core::runtime::{LocalState, Purpose, Tables};
use lpf_core::slot::Entry;

/// The requests of a list with the flags that their units have.
///
/// # Safety
/// The list was finished for this superstep.
unsafe fn own_runs(units: &[u8], lists: Lists, mut each: impl FnMut(&Unit<'_>, &Run)) {
    let mut reader = Reader(units);
    let mut pair = |run: Run| -> std::result::Result<(), ()> {
        if let Some(unit) = reader.unit() {
            each(&unit, &run);
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    let _ = unsafe {
        lists.puts.for_each_run(&mut pair).and_then(|()| lists.gets.for_each_run(&mut pair))
    };
}

/// Checks the memory here that the requests of another process name.
struct Named<'a> {
    local: &'a LocalState,
    told: &'a [Told],
    from: Pid,
}

impl Named<'_> {
    /// The entry that holds all requests of a run.
    fn entry(&self, unit: &Unit<'_>) -> Result<&Entry> {
        let entry = self.local.named(unit.slot);
        if let (Some(entry), Some((start, end))) = (entry, unit.range())
            && entry.range(start, end - start).is_some()
        {
            return Ok(entry);
        }
        Err(self.out_of_range(entry, unit))
    }

    /// Applies the puts that arrived with their bytes.
    fn apply(&self, units: &[u8]) -> Result<()> {
        let mut reader = Reader(units);
        while let Some(unit) = reader.unit() {
            if unit.is_get() || !unit.is_inline() {
                continue;
            }
            let entry = self.entry(&unit)?;
            let from = Places::dense(unit.payload.as_ptr().cast_mut(), unit.bytes);
            // SAFETY: the payload is as long as all requests, and their range was checked. No other thread touches memory
            // that is named as a target before the sync returns.
            unsafe { runs::copy(from, places(entry, &unit), unit.bytes, unit.count) };
        }
        if reader.0.is_empty() { Ok(()) } else { Err(self.invalid()) }
    }

    #[cold]
    fn invalid(&self) -> Error {
        nonsense(self.local.known_as(self.from), self.local.superstep)
    }

    #[cold]
    fn out_of_range(&self, entry: Option<&Entry>, unit: &Unit<'_>) -> Error {
        let inside = |&nth: &usize| {
            entry.is_some_and(|entry| entry.range(unit.offset_of(nth), unit.bytes).is_some())
        };
        let offset = unit.offset_of((0..unit.count).find(|nth| !inside(nth)).unwrap_or(0));
        let (origin, remote) = self.local.remote(self.from, unit.slot, offset, unit.bytes);
        let cause = remote.out_of_range(origin, entry, self.local);
        let error = Error::fatal(origin, self.local.superstep, cause);
        let told = self.told.get(origin);
        let tracked =
            told.and_then(|told| told.requests.iter().rfind(|tracked| remote.is_of(tracked)));
        error.at_known(tracked.map(|tracked| tracked.place.clone()))
    }
}

impl Protocol {
    /// Everything between the barrier and the end of a superstep that has requests. `resolve` is true if writes may
    /// conflict.
    pub(super) fn exchange<T: Transport>(
        &mut self,
        net: &mut T,
        tables: &mut Tables,
        resolve: bool,
    ) -> Result<()> {
        self.list_long_messages(&tables.local, resolve)?;
        let Protocol { rings, meeting, scratch, watch, context, traffic, .. } = self;
        let mut what = InMeeting::new(tables, rings, Purpose::Sync);
        let local = what.local;
        let (room, answers, long) = (&scratch.room, &mut scratch.answers, &mut scratch.long);
        let told = &scratch.told[..];
        let pairs = Pairs { local, meeting, room, told, resolve, context: *context };
        let superstep = local.superstep;
        answers.begin();
        for step in 1..local.nprocs {
            let other = (local.pid + step) % local.nprocs;
            let rank = watch.members[other];
            if let Err(stop) = pairs.begin(net, other, rank, answers, long) {
                return Err(watch.stopped(net.control(), superstep, stop));
            }
        }
        pairs.copy_own(long);
        watch.wait(net, &mut what, |what, net| {
            what.links.progress(net, what.local)?;
            while let Some(from) = answers.next(net)? {
                pairs.shorten(from, answers, long)?;
            }
            let begun = pairs.send(net, what.links.members(), long)?;
            let answered = answers.have_come() && answers.have_left(net)?;
            let have_ended = long.receiving.have_ended(net)? && long.sending.have_left(net)?;
            let is_done = begun & answered & have_ended;
            if !is_done {
                let missing = answers.missing().or(long.receiving.last());
                what.missing = missing.or(long.sending.leaves_to()).unwrap_or(what.missing);
            }
            Ok(is_done)
        })?;
        traffic.meta += answers.sent;
        traffic.data += long.sent;
        pairs.apply_short(&scratch.lists, answers, long)
    }

    /// The whole of phases 2 and 3 if all requests of all processes are short puts.
    pub(super) fn apply_short_puts(&self, local: &LocalState) -> Result<()> {
        let Protocol { meeting, scratch, .. } = self;
        (0..local.nprocs).try_for_each(|other| {
            let units = meeting.units(other, &scratch.room);
            if local.residents.is_some() {
                let mut reader = Reader(units);
                while let Some(unit) = reader.unit() {
                    local.count_named(other, unit.slot, unit.count);
                }
            }
            Named { local, told: &scratch.told, from: other }.apply(units)
        })
    }

    /// Checks the ranges here that other processes name, and lists the long requests.
    fn list_long_messages(&mut self, local: &LocalState, resolve: bool) -> Result<()> {
        let Protocol { meeting, scratch, .. } = self;
        let (room, long) = (&scratch.room, &mut scratch.long);
        long.incoming.clear();
        long.outgoing.clear();
        long.pairs.clear();
        long.sent = 0;
        for other in 0..local.nprocs {
            let lists = scratch.lists[other];
            let (incoming, outgoing) = (long.incoming.len(), long.outgoing.len());
            let mut pair = Pair::default();
            let named = Named { local, told: &scratch.told, from: other };
            let mut reader = Reader(meeting.units(other, room));
            let mut asks_long = false;
            while let Some(unit) = reader.unit() {
                let entry = named.entry(&unit)?;
                local.count_named(other, unit.slot, unit.count);
                match (unit.is_get(), unit.is_inline()) {
                    (true, true) => pair.short_out += unit.bytes * unit.count,
                    (true, false) => asks_long = true,
                    (false, true) => pair.short_puts = true,
                    (false, false) => push_unit(&mut long.incoming, entry, &unit),
                }
            }
            if !reader.0.is_empty() {
                return Err(named.invalid());
            }
            pair.short_in = lists.short_in;
            if lists.is_long {
                // SAFETY: composed and finished for this superstep.
                unsafe {
                    own_runs(room.units(other), lists, |unit, run| {
                        match (unit.is_get(), unit.is_inline()) {
                            (_, true) => {}
                            (true, false) => push_run(&mut long.incoming, run),
                            (false, false) => push_run(&mut long.outgoing, run),
                        }
                    });
                }
            }
            let mut reader = Reader(if asks_long { meeting.units(other, room) } else { &[] });
            while let Some(unit) = reader.unit() {
                if unit.is_get() && !unit.is_inline() {
                    push_unit(&mut long.outgoing, named.entry(&unit)?, &unit);
                }
            }
            pair.incoming = incoming..long.incoming.len();
            pair.outgoing = outgoing..long.outgoing.len();
            long.pairs.push(pair);
        }
        if resolve && long.incoming.len() > 1 {
            long.conflicts.clear();
            for piece in &long.incoming {
                long.conflicts.push(piece.base as usize, piece.bytes);
            }
            for (piece, &bytes) in long.incoming.iter_mut().zip(long.conflicts.resolve()) {
                keep_last(piece, bytes);
            }
        }
        Ok(())
    }
}

/// Where the requests of a unit lie, in the entry that holds them all.
fn places(entry: &Entry, unit: &Unit<'_>) -> Places {
    Places { first: entry.base().wrapping_add(unit.offset), stride: unit.stride }
}

/// Room for as many pieces was reserved with the requests.
fn push_unit(list: &mut Vec<Piece>, entry: &Entry, unit: &Unit<'_>) {
    for nth in 0..unit.count {
        let base = entry.base().wrapping_add(unit.offset_of(nth));
        list.push(Piece { base, bytes: unit.bytes });
    }
}

fn push_run(list: &mut Vec<Piece>, run: &Run) {
    for nth in 0..run.count {
        let Request { address, bytes, .. } = run.request(nth);
        list.push(Piece { base: address, bytes });
    }
}

/// The pairs of a superstep, and the requests that they were made of.
struct Pairs<'a> {
    local: &'a LocalState,
    meeting: &'a Meeting,
    room: &'a Room,
    told: &'a [Told],
    /// Whether answers have lengths.
    resolve: bool,
    context: u32,
}

impl Pairs<'_> {
    /// Posts the receive from `other`, answers it, and sends the requests that do not wait for its answer.
    fn begin<T: Transport>(
        &self,
        net: &mut T,
        other: Pid,
        rank: Rank,
        answers: &mut Answers,
        long: &mut Long,
    ) -> std::result::Result<(), Stop> {
        let pair = long.pairs[other].clone();
        let bytes = long.outgoing_to(other);
        long.sending.plan(other, bytes);
        Long::gather(&mut long.message, &long.incoming[pair.incoming.clone()]);
        if !long.message.is_empty() {
            // SAFETY: the pieces lie in memory registered here, checked, and named by requests of
            // this superstep: nobody touches it before the sync returns.
            let ticket = unsafe { net.receive(rank, tags::data(self.context), &long.message) }?;
            long.receiving.push(other, ticket);
        }
        let awaited = pair.answer_in(self.resolve);
        if awaited > 0 {
            answers.post(net, other, rank, tags::answer(self.context), awaited)?;
        }
        if pair.answers(self.resolve) {
            let range = self.write_answer(other, &pair, answers, long);
            answers.send(net, other, rank, tags::answer(self.context), range)?;
        }
        if !self.resolve {
            self.is_ready(other, long);
        }
        Ok(())
    }

    fn write_answer(
        &self,
        other: Pid,
        pair: &Pair,
        answers: &mut Answers,
        long: &Long,
    ) -> Range<usize> {
        let named = Named { local: self.local, told: self.told, from: other };
        let out = &mut answers.out;
        let start = out.len();
        let mut reader = Reader(self.meeting.units(other, self.room));
        while let Some(unit) = reader.unit() {
            if !(unit.is_get() && unit.is_inline()) {
                continue;
            }
            let Ok(entry) = named.entry(&unit) else { continue };
            copy_in(out, places(entry, &unit), unit.bytes, unit.count);
        }
        let padded = start + (out.len() - start).next_multiple_of(8);
        out.resize(padded, 0);
        if self.resolve && !pair.incoming.is_empty() {
            let lengths = &long.incoming[pair.incoming.clone()];
            out.extend(lengths.iter().flat_map(|piece| (piece.bytes as u64).to_le_bytes()));
        }
        start..out.len()
    }

    /// An answer has arrived. If conflicts are resolved, it has the lengths of the requests to its sender.
    fn shorten(
        &self,
        from: Pid,
        answers: &Answers,
        long: &mut Long,
    ) -> std::result::Result<(), Stop> {
        let pair = long.pairs[from].clone();
        let answer = answers.of(from);
        if answer.len() != pair.answer_in(self.resolve) {
            return Err(Stop::Invalid(from));
        }
        if self.resolve {
            let mut lengths = Reader(&answer[pair.short_in.next_multiple_of(8)..]);
            for piece in &mut long.outgoing[pair.outgoing] {
                keep_last(piece, lengths.u64().map_or(0, |bytes| bytes as usize));
            }
            self.is_ready(from, long);
        }
        Ok(())
    }

    /// The lengths of the requests to `other` are known, once in a superstep.
    fn is_ready(&self, other: Pid, long: &mut Long) {
        let bytes = long.outgoing_to(other);
        long.sending.is_ready(other, bytes);
    }

    /// Sends the messages that are ready, in their order. Returns whether all of them have begun.
    fn send<T: Transport>(
        &self,
        net: &mut T,
        members: &[Rank],
        long: &mut Long,
    ) -> std::result::Result<bool, Stop> {
        let Long { outgoing, pairs, message, sending, sent, .. } = long;
        let begun = sending.go_on(net, |net, to| {
            Long::gather(message, &outgoing[pairs[to].outgoing.clone()]);
            *sent += 1;
            // SAFETY: the pieces lie in memory registered here, named by requests of this superstep:
            // nobody writes to it before the sync returns.
            unsafe { net.send(members[to], tags::data(self.context), message) }
        });
        Ok(begun?)
    }

    /// What this process sends to itself.
    fn copy_own(&self, long: &mut Long) {
        let pair = long.pairs[self.local.pid].clone();
        let (incoming, outgoing) =
            (&long.incoming[pair.incoming], &mut long.outgoing[pair.outgoing]);
        for (to, from) in incoming.iter().zip(outgoing) {
            keep_last(from, to.bytes);
            // SAFETY: both are memory registered here and checked, of one length; they may overlap.
            unsafe { lpf_core::copy::copy(from.base, to.base, to.bytes) };
        }
    }

    /// Copies the short gets from this process itself.
    fn apply_own_gets(&self, own: &[u8], lists: Lists) {
        let named = Named { local: self.local, told: self.told, from: self.local.pid };
        // SAFETY: composed and finished for this superstep.
        unsafe {
            own_runs(own, lists, |unit, run| {
                if let (true, true, Ok(entry)) =
                    (unit.is_get(), unit.is_inline(), named.entry(unit))
                {
                    let to = Places { first: run.first.address, stride: run.address_stride };
                    // SAFETY: both were checked, and nobody else touches them.
                    runs::copy(places(entry, unit), to, unit.bytes, unit.count);
                }
            });
        }
    }

    /// Applies short puts, and the bytes of short gets, which arrived with the answers.
    fn apply_short(&self, lists: &[Lists], answers: &Answers, long: &Long) -> Result<()> {
        for (other, &list) in lists.iter().enumerate() {
            let pair = &long.pairs[other];
            if pair.short_puts {
                let named = Named { local: self.local, told: self.told, from: other };
                named.apply(self.meeting.units(other, self.room))?;
            }
            if pair.short_in == 0 {
                continue;
            }
            let own = self.room.units(other);
            if other == self.local.pid {
                self.apply_own_gets(own, list);
                continue;
            }
            let mut bytes = answers.of(other);
            // SAFETY: composed and finished for this superstep.
            unsafe {
                own_runs(own, list, |unit, run| {
                    if !(unit.is_get() && unit.is_inline()) {
                        return;
                    }
                    let Request { address, bytes: len, .. } = run.first;
                    let Some((from, rest)) = bytes.split_at_checked(len * run.count) else {
                        return;
                    };
                    let from = Places::dense(from.as_ptr().cast_mut(), len);
                    let to = Places { first: address, stride: run.address_stride };
                    // SAFETY: the gets checked their targets, which nobody else touches.
                    runs::copy(from, to, len, run.count);
                    bytes = rest;
                });
            }
        }
        Ok(())
    }
}
