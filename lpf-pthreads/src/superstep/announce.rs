//! Phase 1: the request lists are completed and shown, or travel in the line.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::Pid;
use lpf_core::request::{List, Request, Way};
use lpf_core::runtime::LocalState;

use super::bits;
use crate::barrier::PAYLOAD;
use crate::comm::{ROWS_IN_LINE, Row};
use crate::threads::ThreadEngine;

/// Puts in a line: word 0 is the number of puts; each is a head word (target, length), the place
/// at the target, and its bytes.
pub(super) const FIRST_PUT: usize = 1;
pub(super) const HEAD_WORDS: usize = 2;
/// More puts than this are never worth looking whether they fit.
const MOST_INLINE: usize = 6;

impl ThreadEngine {
    /// Completes the request lists and shows them; returns what the first meeting has to know.
    #[inline]
    pub(super) fn announce(&mut self, local: &mut LocalState) -> u32 {
        if local.queue.used() == 0 && local.is_silent() {
            return bits::SYNC;
        }
        self.announce_all(local)
    }

    #[inline]
    fn announce_all(&mut self, local: &mut LocalState) -> u32 {
        let mut mine = bits::SYNC;
        if local.changes.any() {
            mine |= self.announce_changes(local);
        }
        if local.slots.has_abandoned() {
            mine |= self.announce_abandoned(local);
        }
        if local.is_checked() {
            mine |= bits::SECOND;
        }
        if local.queue.used() == 0 {
            return mine;
        }
        if local.queue.used() <= MOST_INLINE
            && !local.queue.has_gets()
            && !local.is_checked()
            && self.write_payload(local)
        {
            local.queue.reset();
            return mine | bits::PAYLOAD;
        }
        if local.nprocs <= ROWS_IN_LINE {
            self.write_rows_in_line(local);
        } else {
            self.write_rows(local);
        }
        mine | bits::ROWS
    }

    fn write_rows_in_line(&self, local: &mut LocalState) {
        let epoch = self.epoch.wrapping_add(1);
        for other in 0..local.nprocs {
            let gets = local.queue.count(Way::Get, other);
            let row = Row { puts: local.queue.finish(Way::Put, other), gets };
            let line = self.comm.barrier.line(local.pid, epoch);
            let at = 2 * other;
            for (place, word) in line.payload[at..at + 2].iter().zip(row.to_words()) {
                place.store(word, Relaxed);
            }
        }
    }

    fn write_rows(&self, local: &mut LocalState) {
        for place in 0..local.queue.places() {
            let Some((way, other)) = local.queue.list_at(place) else { continue };
            let gets = local.queue.count(Way::Get, other);
            let puts = match way {
                Way::Put => local.queue.finish(Way::Put, other),
                // Its row is written with its puts.
                Way::Get if local.queue.count(Way::Put, other) > 0 => continue,
                Way::Get => List::EMPTY,
            };
            // SAFETY: before this process's arrival at the first meeting.
            unsafe { self.rows.write(other, Row { puts, gets }, self.meeting + 1) };
        }
    }

    /// What process `from` has for this one, in the meeting that opened this sync.
    pub(super) fn read_row(&self, local: &LocalState, from: Pid) -> Row {
        let line = self.comm.barrier.line(from, self.epoch);
        if line.bits() & bits::ROWS != bits::ROWS {
            return Row::EMPTY;
        }
        if local.nprocs > ROWS_IN_LINE {
            // SAFETY: between the two meetings.
            return unsafe { self.comm.peers[from].row(local.pid, self.meeting) };
        }
        let at = 2 * local.pid;
        Row::from_words([0, 1].map(|word| line.payload[at + word].load(Relaxed)))
    }

    /// Writes all puts into this process's line, if they are small enough.
    fn write_payload(&self, local: &mut LocalState) -> bool {
        let epoch = self.epoch.wrapping_add(1);
        let mut words = [0u64; PAYLOAD];
        let mut at = FIRST_PUT;
        for place in 0..local.queue.places() {
            let Some((Way::Put, other)) = local.queue.list_at(place) else { continue };
            let requests = local.queue.count(Way::Put, other);
            let list = local.queue.finish(Way::Put, other);
            let mut moved = 0;
            // SAFETY: the list was just finished by this thread.
            let fits = unsafe {
                list.for_each(|put| {
                    moved += 1;
                    append(&mut words, &mut at, other, put)
                })
            };
            if fits.is_err() {
                return false;
            }
            // Puts that move nothing count at their target too.
            for _ in moved..requests {
                let nothing =
                    Request { address: std::ptr::null_mut(), bytes: 0, slot: 0, offset: 0 };
                if append(&mut words, &mut at, other, nothing).is_err() {
                    return false;
                }
            }
            words[0] += u64::from(requests);
        }
        let line = self.comm.barrier.line(local.pid, epoch);
        for (place, &word) in line.payload.iter().zip(&words[..at]) {
            place.store(word, Relaxed);
        }
        true
    }
}

/// Appends a put to a line's payload, or fails if there is no room.
fn append(
    words: &mut [u64; PAYLOAD],
    at: &mut usize,
    to: Pid,
    put: Request,
) -> std::result::Result<(), ()> {
    let data = put.bytes.div_ceil(size_of::<u64>());
    if put.bytes > size_of_val(words) || *at + HEAD_WORDS + data > PAYLOAD {
        return Err(());
    }
    if put.slot >= 1 << 24 || put.offset >= 1 << 40 {
        return Err(());
    }
    words[*at] = (to as u64) << 32 | put.bytes as u64;
    words[*at + 1] = put.offset as u64 | (put.slot as u64) << 40;
    let room = &mut words[*at + HEAD_WORDS..][..data];
    // SAFETY: the request's local range was checked when it was queued; the words have room.
    unsafe { lpf_core::copy::copy(put.address, room.as_mut_ptr().cast(), put.bytes) };
    *at += HEAD_WORDS + data;
    Ok(())
}
