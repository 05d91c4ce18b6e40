//! Eight bytes to or from the next thread.

use std::cell::UnsafeCell;

use super::barrier::Barrier;
use super::memory::Memory;
use super::team::{Team, Timed};

/// What the destination has to know.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
}

#[repr(align(128))]
struct Line(UnsafeCell<Descriptor>);

// SAFETY: a line is written by its owner before a barrier and read by its neighbour after it.
unsafe impl Sync for Line {}

/// Descriptor, barrier, copy, barrier: the destination copies.
pub(crate) fn put8(team: &Team, batches: usize) -> Vec<f64> {
    let (barrier, memory) = (Barrier::new(team), Memory::new(team.threads(), 8, 8));
    let nothing = Descriptor { from: std::ptr::null(), to: std::ptr::null_mut(), bytes: 0 };
    let lines: Vec<Line> = (0..team.threads()).map(|_| Line(UnsafeCell::new(nothing))).collect();
    team.time(batches, Timed::Step, |me| {
        let (memory, lines, mut member) = (&memory, &lines, barrier.member(me));
        let (next, last) = ((me + 1) % team.threads(), (me + team.threads() - 1) % team.threads());
        memory.settle(me);
        let mut value = 0u8;
        move || {
            value = value.wrapping_add(1);
            memory.touch(me, value);
            let (from, to) = (memory.sources(me), memory.destinations(next));
            // SAFETY: this thread's line, which the neighbour reads after the barrier only.
            unsafe { *lines[me].0.get() = Descriptor { from, to, bytes: 8 } };
            member.wait();
            // SAFETY: written before the barrier and not again before the next one; its pointers
            // lead to areas of that many bytes, of which only this thread touches the target now.
            unsafe {
                let Descriptor { from, to, bytes } = *lines[last].0.get();
                copy(from, to, bytes);
            }
            member.wait();
            0.0
        }
    })
}

/// Two barriers and a copy: no descriptor crosses.
pub(crate) fn get8(team: &Team, batches: usize) -> Vec<f64> {
    let (barrier, memory) = (Barrier::new(team), Memory::new(team.threads(), 8, 8));
    team.time(batches, Timed::Step, |me| {
        let (memory, mut member) = (&memory, barrier.member(me));
        let next = (me + 1) % team.threads();
        memory.settle(me);
        let mut value = 0u8;
        move || {
            value = value.wrapping_add(1);
            memory.touch(me, value);
            member.wait();
            // SAFETY: 8 bytes of areas of that size; between the barriers nobody writes a source
            // and only this thread touches its destinations.
            unsafe { copy(memory.sources(next), memory.destinations(me), 8) };
            member.wait();
            0.0
        }
    })
}

/// A move of 8 bytes, else memcpy.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `bytes` bytes, apart from each other.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if bytes == 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else {
            std::ptr::copy_nonoverlapping(from, to, bytes);
        }
    }
}
