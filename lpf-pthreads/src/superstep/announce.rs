//! Phase 1: the request lists are completed and shown, or travel in lines.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::Pid;
use lpf_core::request::{List, Way};
use lpf_core::runtime::{Aimed, LocalState};

use super::small_puts;
use crate::bits;
use crate::comm::{ROWS_IN_LINE, row_from_words, row_to_words};
use crate::threads::ThreadEngine;

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
        if local.has_abandoned() {
            mine |= self.announce_abandoned(local);
        }
        if local.is_checked() {
            mine |= bits::SECOND;
        }
        if local.queue.used() == 0 {
            return mine;
        }
        let may_fit = local.queue.used() <= small_puts::MOST && !local.queue.has_gets();
        if may_fit && !local.is_checked() && self.write_puts(local) {
            local.queue.reset();
            // The other meetings of a node use the lines again.
            let second = if self.comm.others.is_some() { bits::SECOND } else { 0 };
            return mine | second | bits::PUTS;
        }
        if self.comm.node.processes <= ROWS_IN_LINE {
            self.write_rows_in_line(local);
        } else {
            self.write_rows(local);
        }
        mine | bits::ROWS
    }

    fn write_rows_in_line(&self, local: &mut LocalState) {
        let epoch = self.epoch.wrapping_add(1);
        let line = self.comm.line(local.pid, epoch);
        for (seat, other) in self.comm.node.pids().enumerate() {
            let gets = local.queue.count(Way::Get, other);
            let row = Aimed { puts: local.queue.finish(Way::Put, other), gets };
            let at = 2 * seat;
            for (place, word) in line.payload[at..at + 2].iter().zip(row_to_words(row)) {
                place.store(word, Relaxed);
            }
        }
    }

    fn write_rows(&self, local: &mut LocalState) {
        for place in 0..local.queue.places() {
            let Some((way, other)) = local.queue.list_at(place) else { continue };
            if !self.comm.node.has(other) {
                continue;
            }
            let gets = local.queue.count(Way::Get, other);
            let puts = match way {
                Way::Put => local.queue.finish(Way::Put, other),
                // Its row is written with its puts.
                Way::Get if local.queue.count(Way::Put, other) > 0 => continue,
                Way::Get => List::EMPTY,
            };
            // SAFETY: before this process's arrival at the first meeting.
            unsafe { self.rows.write(other, Aimed { puts, gets }, self.meeting + 1) };
        }
    }

    /// What process `from` has for this one, in the meeting that opened this sync.
    pub(super) fn read_row(&self, local: &LocalState, from: Pid) -> Aimed {
        let line = self.comm.line(from, self.first_epoch);
        if !bits::have(line.bits(), bits::ROWS) {
            return Aimed::EMPTY;
        }
        if self.comm.node.processes > ROWS_IN_LINE {
            // SAFETY: between the two meetings.
            return unsafe { self.comm.peer(from).row(local.pid, self.meeting) };
        }
        let at = 2 * self.comm.node.seat(local.pid);
        row_from_words([0, 1].map(|word| line.payload[at + word].load(Relaxed)))
    }
}
