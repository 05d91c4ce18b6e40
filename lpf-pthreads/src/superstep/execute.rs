//! Phases 2 and 3: the destination executes what is aimed at its memory.

use std::sync::atomic::Ordering::Relaxed;

use lpf_core::request::Request;
use lpf_core::runtime::{Destination, LocalState};
use lpf_core::{Pid, Result};

use super::announce::{FIRST_PUT, HEAD_WORDS};
use super::bits;
use crate::threads::ThreadEngine;

impl ThreadEngine {
    /// Phases 2 and 3: everything aimed at this process's memory, one request after another.
    #[inline]
    pub(super) fn execute(&self, local: &mut LocalState) -> Result<()> {
        let made = if self.sent_payload { 0 } else { local.queue.used() };
        let checks = |origin: Pid| self.comm.peers[origin as usize].checks.clone();
        let mut destination = Destination::new(local, made, &checks);
        if self.all & bits::PAYLOAD != 0 {
            self.execute_payloads(&mut destination)?;
        }
        if self.all & bits::SECOND != 0 {
            // SAFETY: between the two meetings. Each process has shown its lists and its table before the first, and changes
            // neither before the second.
            unsafe {
                let slots = |of: Pid| self.comm.peers[of as usize].table();
                destination.carry_out(|local, from| self.read_row(local, from), slots)?;
            }
        }
        destination.check_load()
    }

    fn execute_payloads(&self, destination: &mut Destination<'_>) -> Result<()> {
        let (pid, nprocs) = destination.process();
        for from in 0..nprocs {
            let line = self.comm.barrier.line(from as usize, self.epoch);
            if line.bits() & bits::PAYLOAD == 0 {
                continue;
            }
            let mut at = FIRST_PUT;
            let mut requests = 0;
            for _ in 0..line.payload[0].load(Relaxed) {
                let head = line.payload[at].load(Relaxed);
                let (to, bytes) = ((head >> 32) as Pid, head as u32 as usize);
                let words = bytes.div_ceil(size_of::<u64>());
                if to == pid {
                    // A put to oneself counts at both sides.
                    requests += 1 + u32::from(from == to);
                    let place = line.payload[at + 1].load(Relaxed);
                    let data = at + HEAD_WORDS;
                    let data: &[_] = &line.payload[data..data + words];
                    let put = Request {
                        address: data.as_ptr().cast_mut().cast(),
                        bytes,
                        slot: (place >> 40) as usize,
                        offset: (place & ((1 << 40) - 1)) as usize,
                    };
                    // SAFETY: the bytes lie in the origin's line, which does not change before the next meeting.
                    unsafe { destination.put(from, put) }?;
                } else if from == pid {
                    destination.count_own();
                }
                at += HEAD_WORDS + words;
            }
            destination.count(from, requests);
        }
        Ok(())
    }
}
