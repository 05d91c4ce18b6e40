//! What the network allocates: nothing in a steady state.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use lpf_messages::{Piece, Transport};

use crate::support::*;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

/// Counts for the calling thread; one that is ending has nothing to count.
fn count(bytes: isize) {
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
    let now = BYTES.try_with(|sum| {
        sum.set(sum.get() + bytes);
        sum.get()
    });
    let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.unwrap_or(0))));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // Both may exist for a moment.
        count(bytes as isize);
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, bytes) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls of the allocator by this thread.
fn calls() -> u64 {
    CALLS.with(Cell::get)
}

/// The most bytes that this thread has had beyond those of now while `act` ran.
pub(crate) fn peak_of(act: impl FnOnce()) -> isize {
    let before = BYTES.with(Cell::get);
    PEAK.with(|peak| peak.set(before));
    act();
    PEAK.with(Cell::get) - before
}

/// Rounds of everything that a superstep does, all processes in one thread. The contexts change,
/// as those of sections do.
fn round(nets: &mut [Net], number: u32, sources: &[Vec<u8>], targets: &mut [Vec<u8>]) {
    let tag = |channel| lpf_messages::Tag { context: number, channel };
    let p = nets.len();
    let mut tickets = [const { None }; 64];
    let mut free = tickets.iter_mut();
    for at in 0..p {
        for other in 0..p {
            let target = &mut targets[at * p + other];
            let (low, high) = target.split_at_mut(100);
            let pieces = [Piece::of_mut(low), Piece::of_mut(high)];
            // SAFETY: sources and targets live, and are left alone until the end of the round.
            let ticket = unsafe { nets[at].receive(other, tag(1), &pieces) }.unwrap();
            *free.next().unwrap() = Some((at, ticket));
        }
    }
    for at in 0..p {
        for other in 0..p {
            let pieces = [Piece::of(&sources[at])];
            // SAFETY: as above.
            let ticket = unsafe { nets[at].send(other, tag(1), &pieces) }.unwrap();
            *free.next().unwrap() = Some((at, ticket));
            // Comes before its receive.
            nets[at].send_copy(other, tag(2), &sources[at][..50]).unwrap();
        }
    }
    for entry in &mut tickets {
        let Some((at, ticket)) = entry else { break };
        while nets[*at].test(ticket).unwrap().is_none() {
            nets.iter_mut().for_each(|net| net.progress().unwrap());
        }
    }
    for net in nets {
        for other in 0..p {
            let mut bytes = [0; 50];
            let ticket = receive(net, other, tag(2), &mut bytes);
            while net.test(&ticket).unwrap().is_none() {}
        }
        net.forget(number);
    }
}

#[test]
fn a_steady_state_allocates_nothing() {
    for p in [1, 2, 4] {
        let mut nets = networks(p);
        let sources: Vec<Vec<u8>> = (0..p).map(|at| pattern(at, 300_000)).collect();
        let mut targets = vec![vec![0; 300_000]; p * p];
        for number in 0..300 {
            let before = calls();
            round(&mut nets, number, &sources, &mut targets);
            let during = calls() - before;
            assert!(number < 100 || during == 0, "{during} calls in round {number} of {p}");
        }
        for (nth, target) in targets.iter().enumerate() {
            assert!(target == &sources[nth % p]);
        }
    }
}
