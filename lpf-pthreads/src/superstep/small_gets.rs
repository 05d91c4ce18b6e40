//! Small gets, which travel in lines: what is asked in the first meeting, the bytes in the second.
//!
//! A get that reads at the source fetches three cache lines one after the other: the line of the first meeting, the
//! source, and the line of the second. The owner of the source has it at hand, and its second line goes to all anyway.
//! Word `k` for process `r` is word `k * p + r` of that line: every process has the same share, and the first words are
//! in the line's first half.
//!
//! If any process has lists of requests, each reads its gets at their sources as all do then.

use std::convert::Infallible;
use std::sync::atomic::Ordering::Relaxed;

use lpf_core::copy::copy;
use lpf_core::request::Way;
use lpf_core::runtime::{Destination, LocalState};
use lpf_core::{Pid, Result};

use super::bits;
use super::line::{TooLarge, Words, described, words_for};
use crate::barrier::{Line, PAYLOAD};
use crate::sync::AtomicU64;
use crate::threads::ThreadEngine;

impl ThreadEngine {
    /// Describes all gets in this process's line, if their bytes fit into the lines of their sources.
    pub(super) fn write_gets(&self, local: &mut LocalState) -> bool {
        let share = PAYLOAD / local.nprocs;
        let (mut source, mut used) = (local.pid, 0);
        let words = Words::of(local, Way::Get, |words, from, get| {
            // The gets from a process follow each other.
            used = words_for(get.bytes) + if from == source { used } else { 0 };
            source = from;
            if used > share { Err(TooLarge) } else { words.describe(from, get) }
        });
        let Ok(words) = words else { return false };
        words.write(self.comm.barrier.line(local.pid, self.epoch.wrapping_add(1)));
        true
    }

    /// Writes what others get from this process into its line of the second meeting.
    pub(super) fn answer_gets(&self, destination: &mut Destination<'_>) -> Result<()> {
        let (pid, nprocs) = destination.process();
        let answers = self.comm.barrier.line(pid, self.epoch.wrapping_add(1));
        for from in 0..nprocs {
            let line = self.comm.barrier.line(from, self.epoch);
            if !bits::have(line.bits(), bits::GETS) {
                continue;
            }
            let mut share = Share::of(from, nprocs, answers);
            let mut requests = 0;
            for get in described(line, false).filter(|get| get.to == pid) {
                requests += 1;
                let Some(source) = destination.own_range(from, get.request)? else { continue };
                let mut words = [0u64; PAYLOAD];
                let bytes = get.request.bytes;
                // SAFETY: the range is of a slot of this process, which keeps it until its sync returns; the words have
                // room for what a line describes.
                unsafe { copy(source, words.as_mut_ptr().cast(), bytes) };
                words[..words_for(bytes)]
                    .iter()
                    .for_each(|&word| share.next().store(word, Relaxed));
            }
            // Its own it has counted when it made them.
            if from != pid {
                destination.count(from, requests);
            }
        }
        Ok(())
    }

    /// After the second meeting: takes the answers to this process's gets.
    pub(super) fn take_answers(&self, local: &mut LocalState) {
        for place in 0..local.queue.places() {
            let Some((Way::Get, from)) = local.queue.list_at(place) else { continue };
            let gets = local.queue.finish(Way::Get, from);
            let answers = self.comm.barrier.line(from, self.epoch);
            let mut share = Share::of(local.pid, local.nprocs, answers);
            // SAFETY: the list is this process's own, which the meetings have not changed.
            let Ok(()) = unsafe {
                gets.for_each(|get| {
                    let mut words = [0u64; PAYLOAD];
                    words[..words_for(get.bytes)].fill_with(|| share.next().load(Relaxed));
                    // Also: its local range was checked when it was queued, in a slot that is kept until the sync
                    // returns, and the words have as many bytes.
                    copy(words.as_ptr().cast(), get.address, get.bytes);
                    Ok::<_, Infallible>(())
                })
            };
        }
    }
}

/// How many gets in a line name process `of`.
pub(super) fn gets_from(line: &Line, of: Pid) -> u32 {
    described(line, false).filter(|get| get.to == of).count() as u32
}

/// The words of a line that are for one process.
struct Share<'a> {
    line: &'a Line,
    next: usize,
    step: usize,
}

impl<'a> Share<'a> {
    fn of(pid: Pid, nprocs: Pid, line: &'a Line) -> Self {
        Share { line, next: pid, step: nprocs }
    }

    fn next(&mut self) -> &'a AtomicU64 {
        let word = &self.line.payload[self.next];
        self.next += self.step;
        word
    }
}
