//! A queue of 16-byte descriptors: filled through a real call with the checks of a put, prefetched
//! for writing, and read and executed by the other side with prefetch. `exchange-n x 8` and
//! `put-call` are held against it.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::time::Instant;

use lpf::measure::superstep::nanoseconds;

use super::barrier::Barrier;
use super::memory::Memory;
use super::team::{Team, Timed};
use crate::bench::patterns::Layout;

/// Length (16 bits) and address here (48); slot (24 bits) and offset there (40).
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Record(u64, u64);

/// The requests of one thread for one other.
#[repr(align(128))]
struct Queue(UnsafeCell<Vec<Record>>);

// SAFETY: a queue is filled by its owner before a barrier and read by one other thread after it.
unsafe impl Sync for Queue {}

/// A registered area.
#[derive(Clone, Copy, Debug)]
struct Slot {
    base: *mut u8,
    bytes: usize,
}

/// How many records ahead the queue is fetched for writing, and its sources for reading.
const AHEAD: usize = 8;

/// A put, as a library has to do it: look the slot up, check the range and the room, store.
type Put = fn(&mut Vec<Record>, &[Slot], usize, usize, usize, usize, usize) -> bool;

fn put(
    queue: &mut Vec<Record>,
    slots: &[Slot],
    source: usize,
    from: usize,
    target: usize,
    to: usize,
    bytes: usize,
) -> bool {
    let Some(slot) = slots.get(source) else { return false };
    let inside = from.checked_add(bytes).is_some_and(|end| end <= slot.bytes);
    if !inside || bytes >= 1 << 16 || queue.len() == queue.capacity() {
        return false;
    }
    let address = slot.base as u64 + from as u64;
    let record = Record(address | (bytes as u64) << 48, to as u64 | (target as u64) << 40);
    prefetch_for_writing(queue.as_ptr().wrapping_add(queue.len() + AHEAD).cast());
    queue.push(record);
    true
}

/// Executes a queue at its destination: looks the slot up, checks the range, copies.
///
/// # Safety
/// The sources named lie in memory that nobody writes, the slots are this thread's.
unsafe fn execute(queue: &[Record], slots: &[Slot]) -> bool {
    for (nth, &Record(first, second)) in queue.iter().enumerate() {
        if let Some(ahead) = queue.get(nth + AHEAD) {
            prefetch((ahead.0 & ((1 << 48) - 1)) as *const u8);
        }
        let (bytes, from) = ((first >> 48) as usize, (first & ((1 << 48) - 1)) as *const u8);
        let (slot, to) = ((second >> 40) as usize, (second & ((1 << 40) - 1)) as usize);
        let Some(slot) = slots.get(slot) else { return false };
        if to + bytes > slot.bytes {
            return false;
        }
        // SAFETY: the range was checked against the slot; the source is the caller's promise.
        unsafe {
            if bytes == 8 {
                let word = from.cast::<u64>().read_unaligned();
                slot.base.add(to).cast::<u64>().write_unaligned(word);
            } else {
                std::ptr::copy(from, slot.base.add(to), bytes);
            }
        }
    }
    true
}

/// `n` words of `b` bytes to every other thread.
pub(crate) fn exchange(team: &Team, batches: usize, n: usize, b: usize) -> Vec<f64> {
    let layout = Layout::new(team.threads(), n, b);
    let (barrier, memory) =
        (Barrier::new(team), Memory::new(team.threads(), layout.bytes(), layout.step()));
    let queues = queues(team.threads(), n);
    let call: Put = black_box(put);
    team.time(batches, Timed::Step, |me| {
        let (memory, queues, mut member) = (&memory, &queues, barrier.member(me));
        let bytes = layout.bytes();
        let slots = [memory.sources(me), memory.destinations(me)].map(|base| Slot { base, bytes });
        memory.settle(me);
        let mut value = 0u8;
        move || {
            value = value.wrapping_add(1);
            memory.touch(me, value);
            for distance in 1..layout.threads {
                // SAFETY: this thread's queue; the other reads it after the barrier only.
                let queue = unsafe { &mut *queues[me * layout.threads + distance].0.get() };
                queue.clear();
                for i in 0..n {
                    let at = layout.place(distance, i);
                    assert!(call(queue, &slots, 0, at, 1, at, b));
                }
            }
            member.wait();
            for distance in 1..layout.threads {
                let from = (me + layout.threads - distance) % layout.threads;
                // SAFETY: filled before the barrier, and not touched by its owner before the next.
                let queue = unsafe { &*queues[from * layout.threads + distance].0.get() };
                // SAFETY: sources are not written between the barriers, the slots are ours.
                assert!(unsafe { execute(queue, &slots) });
            }
            member.wait();
            0.0
        }
    })
}

fn queues(threads: usize, n: usize) -> Vec<Queue> {
    let queue = |_| Queue(UnsafeCell::new(Vec::with_capacity(n)));
    (0..threads * threads).map(queue).collect()
}

/// An inlined loop that stores 16 bytes a time into a queue that another core has just read: the
/// time of one store, nanoseconds.
pub(crate) fn stores(team: &Team, batches: usize, n: usize) -> Vec<f64> {
    let barrier = Barrier::new(team);
    let queues = queues(team.threads(), n);
    let all = team.time(batches, Timed::Inside, |me| {
        let (queues, mut member) = (&queues, barrier.member(me));
        // Half a team away: on another core, also where neighbours share one.
        let other = (me + team.threads() / 2) % team.threads();
        let mut value = 0;
        move || {
            value += 1;
            // SAFETY: this thread's queue; the other reads it between the barriers only.
            let queue = unsafe { &mut *queues[me].0.get() };
            queue.clear();
            let start = Instant::now();
            for i in 0..n as u64 {
                // Volatile, so that each is a store of its own.
                // SAFETY: the queue has room for n records.
                unsafe { queue.as_mut_ptr().add(i as usize).write_volatile(Record(value, i)) };
            }
            let inside = nanoseconds(start);
            // SAFETY: all n records were written.
            unsafe { queue.set_len(n) };
            member.wait();
            // SAFETY: written before the barrier, and not again before the next.
            let read = unsafe { &*queues[other].0.get() };
            black_box(read.iter().map(|record| record.0 ^ record.1).fold(0, u64::wrapping_add));
            member.wait();
            inside
        }
    });
    all.into_iter().map(|ns| ns / n as f64).collect()
}

#[inline]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect on memory and accepts any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[inline]
fn prefetch_for_writing(at: *const u8) {
    // The intrinsic becomes a prefetch for reading unless the build is told of a processor that has
    // this one; processors without it take it for no instruction.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect on memory and accepts any address.
    unsafe {
        std::arch::asm!("prefetchw [{at}]", at = in(reg) at, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
