//! Small puts, which travel in the line of the first barrier: a source may not change before the sync, so an early copy is
//! legal, and needs no second barrier.
//!
//! Word 0 of a line is the number of puts. Each put is a head word (target, length), its place at the target, and its bytes.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::copy::copy;
use lpf_core::request::{Request, Way};
use lpf_core::runtime::{Destination, LocalState};
use lpf_core::{Pid, Result};

use crate::barrier::{Line, PAYLOAD};
use crate::bits;
use crate::threads::ThreadEngine;

/// The most puts that a line has room for.
pub(super) const MOST: usize = (PAYLOAD - 1) / HEAD;
const HEAD: usize = 2;

/// The puts do not all fit into a line.
struct TooLarge;

type Fits<T> = std::result::Result<T, TooLarge>;

/// The line of this process, whose words before `at` hold puts. They are written there and nowhere else before: a copy of
/// words that were just stored one by one would wait for them.
struct Written<'a> {
    line: &'a Line,
    at: usize,
}

impl Written<'_> {
    /// Writes all puts of a process that has no gets, if they fit.
    #[inline]
    fn all(&mut self, local: &mut LocalState) -> Fits<()> {
        let mut puts = 0;
        for place in 0..local.queue.places() {
            let Some((way, to)) = local.queue.list_at(place) else { continue };
            debug_assert_eq!(way, Way::Put);
            let requests = local.queue.count(way, to);
            let list = local.queue.finish(way, to);
            let mut moved = 0;
            // SAFETY: this thread has just finished the list, and does not change the queue meanwhile.
            unsafe {
                list.for_each(|put| {
                    moved += 1;
                    self.append(to, put)
                })
            }?;
            // Puts that move nothing count at their target too.
            for _ in moved..requests {
                let address = std::ptr::dangling_mut();
                self.append(to, Request { address, bytes: 0, slot: 0, offset: 0 })?;
            }
            puts += u64::from(requests);
        }
        self.line.payload[0].store(puts, Relaxed);
        Ok(())
    }

    #[inline(always)]
    fn append(&mut self, to: Pid, put: Request) -> Fits<()> {
        let Request { address, bytes, slot, offset } = put;
        // Under loom a word is an object of the model, and bytes must not be copied over it.
        let is_large = bytes > size_of_val(&self.line.payload) || cfg!(loom);
        if is_large || slot >= 1 << 24 || offset >= 1 << 40 {
            return Err(TooLarge);
        }
        let words = HEAD + words_for(bytes);
        let Some([head, place, room @ ..]) = self.line.payload.get(self.at..self.at + words) else {
            return Err(TooLarge);
        };
        head.store((to as u64) << 32 | bytes as u64, Relaxed);
        place.store(offset as u64 | (slot as u64) << 40, Relaxed);
        self.at += words;
        // SAFETY: the source was checked when the put was queued and stays valid and unchanged until the sync returns; a put
        // that moves nothing reads nothing. The words have room for these bytes, and no other process reads them before this
        // one has arrived.
        unsafe { copy(address, room.as_ptr().cast_mut().cast(), bytes) };
        Ok(())
    }
}

impl ThreadEngine {
    /// Writes all puts into this process's line, if they are small enough. If not, the line has some of them, and its bits
    /// tell no process to look there.
    pub(super) fn write_puts(&self, local: &mut LocalState) -> bool {
        let line = self.comm.barrier.line(local.pid, self.epoch.wrapping_add(1));
        Written { line, at: 1 }.all(local).is_ok()
    }

    /// Executes the puts in lines that are aimed at this process.
    pub(super) fn execute_small_puts(&self, destination: &mut Destination<'_>) -> Result<()> {
        let (pid, nprocs) = destination.process();
        for from in 0..nprocs {
            let line = self.comm.barrier.line(from, self.epoch);
            if line.bits() & bits::PUTS == 0 {
                continue;
            }
            let mut requests = 0;
            for (to, put) in puts(line) {
                if to == pid {
                    // A put to oneself counts at both sides.
                    requests += 1 + u32::from(from == to);
                    // SAFETY: the bytes lie in the origin's line, which does not change before the next meeting.
                    unsafe { destination.put(from, put) }?;
                } else if from == pid {
                    destination.count_own();
                }
            }
            destination.count(from, requests);
        }
        Ok(())
    }
}

/// The words that hold `bytes` bytes.
fn words_for(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u64>())
}

/// The puts in a line, each with its target; their addresses are in the line.
fn puts(line: &Line) -> impl Iterator<Item = (Pid, Request)> {
    let mut at = 1;
    (0..line.payload[0].load(Relaxed)).map(move |_| {
        let head = line.payload[at].load(Relaxed);
        let place = line.payload[at + 1].load(Relaxed);
        let (to, bytes) = ((head >> 32) as Pid, head as u32 as usize);
        let data = &line.payload[at + HEAD..];
        at += HEAD + words_for(bytes);
        let put = Request {
            address: data.as_ptr().cast_mut().cast(),
            bytes,
            slot: (place >> 40) as usize,
            offset: (place & ((1 << 40) - 1)) as usize,
        };
        (to, put)
    })
}
