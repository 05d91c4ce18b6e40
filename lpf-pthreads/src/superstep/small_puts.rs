//! Small puts, which travel in lines: a source may not change before the sync, so an early copy is legal, and needs no
//! second meeting.

use lpf_core::Result;
use lpf_core::request::Way;
use lpf_core::runtime::{Destination, LocalState};

use super::bits;
use super::line::{Words, described, words_for};
use crate::threads::ThreadEngine;

impl ThreadEngine {
    /// Writes all puts into this process's line, if they are small enough.
    pub(super) fn write_puts(&self, local: &mut LocalState) -> bool {
        let words = Words::of(local, Way::Put, |words, to, put| {
            words.describe(to, put)?;
            let room = words.take(words_for(put.bytes))?;
            // SAFETY: the request's local range was checked when it was queued; the words have room.
            unsafe { lpf_core::copy::copy(put.address, room.as_mut_ptr().cast(), put.bytes) };
            Ok(())
        });
        let Ok(words) = words else { return false };
        words.write(self.comm.barrier.line(local.pid, self.epoch.wrapping_add(1)));
        true
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
            for put in described(line, true) {
                if put.to == pid {
                    // A put to oneself counts at both sides.
                    requests += 1 + u32::from(from == put.to);
                    // SAFETY: the bytes lie in the origin's line, which does not change before the next meeting.
                    unsafe { destination.put(from, put.request) }?;
                } else if from == pid {
                    destination.count_own();
                }
            }
            destination.count(from, requests);
        }
        Ok(())
    }
}
