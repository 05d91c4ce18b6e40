//! Phase 1: requests become units, grouped by target.

use super::super::protocol::Protocol;
use super::super::wire::{Opening, SHORT, flags_of, unit, words_of, write_words};
use super::runs::{self, Places};
use super::scratch::Lists;
use lpf_core::request::{List, Request, Run, Way};
use lpf_core::runtime::{LocalState, Purpose};

/// A longer request still travels with the meta-data if it fits the first part of the message.
const MEDIUM: usize = 1 << 10;

impl Protocol {
    /// Packs this process's units for every process, itself included. Returns whether the units are all: after a get, or a
    /// put whose bytes do not travel in its unit, there is more to exchange.
    pub(super) fn compose(&mut self, local: &mut LocalState, kind: Purpose) -> bool {
        let eager = self.meeting.eager();
        let scratch = &mut self.scratch;
        let (room, queue) = (&mut scratch.room, &mut local.queue);
        room.out.clear();
        if kind != Purpose::Sync || queue.used() == 0 {
            room.out.extend_from_slice(&[0; Opening::LONGEST]);
            room.places.fill(Opening::LONGEST..Opening::LONGEST);
            room.requests.fill(0);
            scratch.lists.fill(Lists::EMPTY);
            return true;
        }
        let mut is_all = true;
        for to in 0..local.nprocs {
            let mut finish = |way| match queue.count(way, to) {
                0 => List::EMPTY,
                _ => queue.finish(way, to),
            };
            let (puts, gets) = (finish(Way::Put), finish(Way::Get));
            let start = room.out.len();
            room.out.extend_from_slice(&[0; Opening::LONGEST]);
            let own = to == local.pid;
            let mut packer = Packer {
                out: &mut room.out,
                limit: start + eager,
                replies: eager,
                own,
                short_in: 0,
                is_long: false,
            };
            // SAFETY: the lists were finished just now, and the queue does not change before they are used.
            let packed: Result<(), ()> = unsafe {
                puts.for_each_run(|run| packer.put(&run))
                    .and_then(|()| gets.for_each_run(|run| packer.get(&run)))
            };
            debug_assert!(packed.is_ok());
            let Packer { short_in, is_long, .. } = packer;
            is_all &= gets.requests == 0 && !is_long;
            scratch.lists[to] = Lists { puts, gets, short_in, is_long };
            room.places[to] = start + Opening::LONGEST..room.out.len();
            room.requests[to] = puts.requests + gets.requests;
        }
        is_all
    }
}

struct Packer<'a> {
    out: &'a mut Vec<u8>,
    /// Longer requests than SHORT are packed up to here.
    limit: usize,
    /// Bytes that short answers of longer gets may have.
    replies: usize,
    /// The target is this process, which gives itself no answer.
    own: bool,
    /// Bytes of gets that arrive with an answer.
    short_in: usize,
    /// Becomes true if bytes travel in a message of their own.
    is_long: bool,
}

impl Packer<'_> {
    fn fits(&self, run: &Run, flags: u8) -> bool {
        let Request { bytes, .. } = run.first;
        bytes <= SHORT
            || bytes <= MEDIUM
                && self.out.len() + words_of(flags) + bytes * run.count + 8 <= self.limit
    }

    fn put(&mut self, run: &Run) -> Result<(), ()> {
        let mut flags = flags_of(run, false);
        if !self.fits(run, flags) {
            self.is_long = true;
            write_words(self.out, flags, run);
            return Ok(());
        }
        flags |= unit::INLINE;
        write_words(self.out, flags, run);
        let Request { address, bytes, .. } = run.first;
        copy_in(self.out, Places { first: address, stride: run.address_stride }, bytes, run.count);
        let padded = self.out.len() + (bytes * run.count).wrapping_neg() % 8;
        self.out.resize(padded, 0);
        Ok(())
    }

    fn get(&mut self, run: &Run) -> Result<(), ()> {
        let mut flags = flags_of(run, true);
        let bytes = run.first.bytes.saturating_mul(run.count);
        // A longer request to this process itself is copied directly.
        let fits = run.first.bytes <= MEDIUM && bytes <= self.replies && !self.own;
        if run.first.bytes <= SHORT || fits {
            flags |= unit::INLINE;
            self.short_in += bytes;
            if run.first.bytes > SHORT {
                self.replies -= bytes;
            }
        } else {
            self.is_long = true;
        }
        write_words(self.out, flags, run);
        Ok(())
    }
}

/// Appends the bytes that a run moves.
#[inline]
pub(super) fn copy_in(out: &mut Vec<u8>, from: Places, bytes: usize, count: usize) {
    let at = out.len();
    out.reserve(bytes * count);
    // SAFETY: the request checked the places, which their slot keeps valid until the sync returns and
    // nobody but this process may write; the vector has room behind `at`.
    unsafe {
        let to = Places::dense(out.as_mut_ptr().add(at), bytes);
        runs::copy(from, to, bytes, count);
        out.set_len(at + bytes * count);
    }
}
