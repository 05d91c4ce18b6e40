//! The bare copies of an exchange between two barriers: nothing is queued, both sides know what
//! moves.

use super::barrier::Barrier;
use super::memory::Memory;
use super::streaming;
use super::team::{Team, Timed};
use crate::bench::patterns::Layout;

/// `n` blocks of `b` bytes from every other thread, each copied by its destination.
pub(crate) fn copies(team: &Team, batches: usize, n: usize, b: usize) -> Vec<f64> {
    let layout = Layout::new(team.threads(), n, b);
    let (barrier, memory) =
        (Barrier::new(team), Memory::new(team.threads(), layout.bytes(), layout.step()));
    team.time(batches, Timed::Step, |me| {
        let (memory, mut member) = (&memory, barrier.member(me));
        memory.settle(me);
        let mut value = 0u8;
        move || {
            value = value.wrapping_add(1);
            memory.touch(me, value);
            member.wait();
            for distance in 1..layout.threads {
                let from = (me + layout.threads - distance) % layout.threads;
                for i in 0..n {
                    let at = layout.place(distance, i);
                    let (from, to) = (memory.sources(from), memory.destinations(me));
                    // SAFETY: the layout lies in both areas; between the barriers nobody writes a
                    // source and only this thread its destinations.
                    unsafe { std::ptr::copy_nonoverlapping(from.add(at), to.add(at), b) };
                }
            }
            member.wait();
            0.0
        }
    })
}

/// One block of `bytes` from the thread before, all at once, by memcpy or by non-temporal stores.
pub(crate) fn bulk(team: &Team, batches: usize, bytes: usize, stream: bool) -> Vec<f64> {
    let (barrier, memory) = (Barrier::new(team), Memory::new(team.threads(), bytes, 64));
    team.time(batches, Timed::Step, |me| {
        let (memory, mut member) = (&memory, barrier.member(me));
        let last = (me + team.threads() - 1) % team.threads();
        memory.settle(me);
        let mut value = 0u8;
        move || {
            value = value.wrapping_add(1);
            memory.touch(me, value);
            member.wait();
            let (from, to) = (memory.sources(last), memory.destinations(me));
            // SAFETY: areas of that size, aligned to 128; between the barriers nobody writes a
            // source and only this thread its destinations.
            unsafe {
                if stream {
                    streaming::copy(from, to, bytes);
                } else {
                    std::ptr::copy_nonoverlapping(from, to, bytes);
                }
            }
            member.wait();
            0.0
        }
    })
}
