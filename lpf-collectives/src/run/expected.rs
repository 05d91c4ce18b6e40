//! With expected arrivals: no barrier; a member is done when what it needs is there and what it sent has
//! left.
//!
//! Short messages go through cells, in one piece. Long ones that are kept go straight to their place, which
//! their receiver offers when it comes to their round, where that pays ([`Links::landing_pays_from`](lpf_core::Links::landing_pays_from)). Other
//! long ones come in parts, one or more, each combined or copied from where it lies, a cell or, on threads, its
//! sender's memory. Sends never wait; a receive waits for its message alone.
//!
//! Nothing is written that may still have to leave: a place is compared with what was sent since the last
//! flush, and if they meet, there is a flush first. An algorithm sends and writes the same bytes in one
//! round only where their message is one part, and goes through a cell: else two members would wait for each other's
//! credit, or for each other to have read.

use lpf_core::arrivals::Arrival;
use lpf_core::{Expect, Link, Lpf, Result, SyncAttr, Travel};

use super::call::{Call, Done};
use crate::schedule::{Numbering, Region, Schedule, Step, Steps, Then};

/// In a round with a longer message than this, or than a cell, places are made ready before anything is sent.
const LONG: usize = 4096;

/// Carries out the steps of a schedule.
///
/// # Safety
/// The buffers are registered memory of this process, as long as the schedule's regions reach, which
/// nobody else touches until it returns.
pub(crate) unsafe fn expected<L: Lpf>(call: &mut Call<'_, '_, L>, schedule: &Schedule) -> Done {
    call.shared.unflushed.clear();
    for steps in schedule.rounds() {
        let window = call.shared.window;
        if steps.most > window {
            // SAFETY: the caller's promise.
            unsafe { call.in_waves(steps, window)? };
            continue;
        }
        if steps.longest > LONG.min(call.shared.cell) {
            for step in steps.all() {
                call.make_ready(step)?;
            }
        }
        for step in steps.before {
            // SAFETY: the caller's promise.
            unsafe { call.step(step)? };
        }
        if call.group.has_barriers() {
            call.group.barrier(call.raw, call.shared, call.values)?;
        }
        for step in steps.after {
            // SAFETY: the caller's promise.
            unsafe { call.step(step)? };
        }
    }
    for step in schedule.rest() {
        // SAFETY: the caller's promise.
        unsafe { call.step(step)? };
    }
    call.flush()
}

/// The steps of a round, and which message of its link each is.
fn numbered(steps: Steps<'_>) -> impl Iterator<Item = (&Step, usize)> {
    let mut numbering = Numbering::default();
    steps.all().map(move |step| (step, numbering.next(step)))
}

impl<L: Lpf> Call<'_, '_, L> {
    /// Whether a message that is kept lands, as both ends of its link know.
    #[inline]
    fn lands(&self, link: Link, bytes: usize) -> Result<bool> {
        Ok(bytes > LONG.min(self.shared.cell) && bytes >= self.raw.landing_pays_from(link)?)
    }

    /// How long a part of a message is: all of it, or what fits a cell; in whole elements, where it is combined.
    #[inline]
    fn part_of(&self, link: Link, bytes: usize, kept: bool) -> Result<usize> {
        let part = if kept { self.shared.cell } else { self.part };
        let is_whole = bytes <= part || bytes <= self.raw.longest_part(link)?;
        Ok(if is_whole { bytes.max(1) } else { part })
    }

    #[inline]
    fn flush(&mut self) -> Done {
        // A barrier's messages are in no list, and a link that one waits on cannot be closed.
        if self.shared.unflushed.is_empty() && !self.group.has_barriers() {
            return Ok(());
        }
        self.shared.unflushed.clear();
        self.shared.flushes += 1;
        self.raw.sync_in_call(SyncAttr::Flush, self.values)
    }

    /// A round with more messages on a link than its window: so many at a time. Members that send each other
    /// more would all wait for credit.
    ///
    /// # Safety
    /// As [`expected`].
    #[cold]
    unsafe fn in_waves(&mut self, steps: Steps<'_>, window: usize) -> Done {
        let waves = steps.most.div_ceil(window);
        let mut is_before = self.group.has_barriers();
        for wave in 0..waves {
            let now = || numbered(steps).filter(|(_, nth)| nth / window == wave);
            for (step, _) in now() {
                self.make_ready(step)?;
            }
            for (step, _) in now() {
                if is_before && matches!(step, Step::Receive { .. }) {
                    is_before = false;
                    self.group.barrier(self.raw, self.shared, self.values)?;
                }
                // SAFETY: the caller's promise.
                unsafe { self.step(step)? };
            }
        }
        if is_before {
            self.group.barrier(self.raw, self.shared, self.values)?;
        }
        Ok(())
    }

    /// What is written now has left.
    #[inline]
    fn may_write(&mut self, region: Region) -> Done {
        let start = self.address(region) as usize;
        let end = start + region.span.bytes;
        let meets = |&(from, to): &(usize, usize)| from < end && start < to;
        if self.shared.unflushed.iter().any(meets) {
            return self.flush();
        }
        Ok(())
    }

    /// Makes the place of a message ready, in a round with long ones, before anything of the round is sent: to
    /// flush later would be to wait for that as well, and two members for each other. It is offered where
    /// messages land.
    #[inline]
    fn make_ready(&mut self, step: &Step) -> Done {
        let &Step::Receive { from, bytes, then: Then::Keep(to), .. } = step else { return Ok(()) };
        self.may_write(to)?;
        let link = self.group.link(self.raw, self.shared, from)?;
        if !self.lands(link, bytes)? {
            return Ok(());
        }
        let place = self.place(to.buffer);
        // SAFETY: the place is touched by nobody before the message was awaited: of this round's other
        // steps none reads or writes it, and what was sent from it has left.
        unsafe { self.raw.offer(link, place.slot, place.offset + to.span.start, bytes) }.map(|_| ())
    }

    /// # Safety
    /// As [`expected`].
    #[inline]
    unsafe fn step(&mut self, step: &Step) -> Done {
        // SAFETY: the caller's promise.
        unsafe {
            match *step {
                Step::Send { to, from, kept, .. } => self.send(to, from, kept),
                Step::Receive { from, bytes, then: Then::Keep(to), .. } => {
                    self.keep(from, bytes, to)
                }
                Step::Receive { from, bytes, then: Then::Combine { with, into, left }, .. } => {
                    self.fold(from, bytes, with, into, left)
                }
                Step::Copy { from, to, .. } => {
                    self.may_write(to)?;
                    std::ptr::copy(self.address(from), self.address(to), to.span.bytes);
                    Ok(())
                }
            }
        }
    }

    /// # Safety
    /// As [`expected`].
    #[inline]
    unsafe fn send(&mut self, to: usize, from: Region, kept: bool) -> Done {
        let bytes = from.span.bytes;
        let is_full = self.shared.unflushed.len() == self.shared.unflushed.capacity();
        if is_full || self.group.puts_since(to, self.shared.flushes) >= self.shared.window {
            // Nothing is allocated here, and a link takes no more puts than this without a flush.
            self.flush()?;
        }
        self.group.count_put(to, self.shared.flushes);
        let link = self.group.link(self.raw, self.shared, to)?;
        let part = self.part_of(link, bytes, kept)?;
        let travel = match kept {
            true if self.lands(link, bytes)? => Travel::Landing,
            _ if bytes > self.shared.cell || self.lends && !kept && bytes > LONG => {
                Travel::Parts(part)
            }
            _ => Travel::Cell,
        };
        let (place, start) = (self.place(from.buffer), self.address(from) as usize);
        self.shared.unflushed.push((start, start + bytes));
        // SAFETY: before the place is written, there is a flush (`may_write`), and one at the end.
        unsafe { self.raw.send(link, place.slot, place.offset + from.span.start, bytes, travel) }
    }

    /// # Safety
    /// As [`expected`].
    #[inline]
    unsafe fn keep(&mut self, from: usize, bytes: usize, to: Region) -> Done {
        let link = self.group.link(self.raw, self.shared, from)?;
        let part = if self.lands(link, bytes)? {
            bytes
        } else {
            self.may_write(to)?;
            self.part_of(link, bytes, true)?
        };
        let to = self.address(to);
        let mut at = 0;
        while at < bytes {
            let here = part.min(bytes - at);
            let (nth, arrival) = self.awaited(link, from, here)?;
            if !arrival.landed {
                // SAFETY: the message has so many bytes and is readable until it is released, as no call has
                // failed since it was awaited; the place is the caller's promise.
                unsafe {
                    std::ptr::copy_nonoverlapping(arrival.data, to.wrapping_add(at), here);
                }
            }
            self.raw.release(link, nth)?;
            at += here;
        }
        Ok(())
    }

    /// Waits for the next message of a link, of so many bytes: its number, and where it is.
    #[inline]
    fn awaited(&mut self, link: Link, from: usize, bytes: usize) -> Result<(u64, Arrival)> {
        self.raw.sync_in_call(SyncAttr::Expected(&[Expect::one(link)]), self.values)?;
        let nth = self.raw.awaited(link)? - 1;
        let arrival = self.raw.arrival(link, nth)?;
        if arrival.bytes != bytes {
            return Err(self.wrong_length(self.group.pid(from), bytes, arrival.bytes));
        }
        Ok((nth, arrival))
    }

    /// # Safety
    /// As [`expected`].
    #[inline]
    unsafe fn fold(
        &mut self,
        from: usize,
        bytes: usize,
        with: Region,
        into: Region,
        left: bool,
    ) -> Done {
        let link = self.group.link(self.raw, self.shared, from)?;
        // Before the message is awaited: a flush would release it.
        self.may_write(into)?;
        let (with, to) = (self.address(with), self.address(into));
        let part = self.part_of(link, bytes, false)?;
        let mut at = 0;
        while at < bytes {
            let here = part.min(bytes - at);
            let (nth, arrival) = self.awaited(link, from, here)?;
            let (own, to) = (with.wrapping_add(at).cast_const(), to.wrapping_add(at));
            match left {
                true => (self.combine)(arrival.data, own, to, here),
                false => (self.combine)(own, arrival.data, to, here),
            }
            self.raw.release(link, nth)?;
            at += here;
        }
        Ok(())
    }
}
