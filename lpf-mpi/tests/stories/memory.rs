//! What the network asks of the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use lpf_messages::{Piece, Transport};

use crate::support::*;

/// The system's allocator, which counts what Rust asks of it.
pub(crate) struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(base, layout) };
    }

    unsafe fn realloc(&self, base: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(base, layout, bytes) }
    }
}

pub(crate) fn a_steady_state_allocates_nothing(net: &mut Net) {
    let (to, from) = neighbours(net);
    let out = pattern(1, 300_000);
    let mut target = vec![0; 300_000];
    // Short, packed, by type, whole.
    let shapes = [(300, 300), (100_000, 50), (300_000, 1_500), (300_000, 300_000)];
    let pieces: Vec<(Vec<Piece>, Vec<Piece>)> = shapes
        .map(|(bytes, piece)| {
            let sources = out[..bytes].chunks(piece).map(Piece::of).collect();
            (sources, target[..bytes].chunks_mut(piece).map(Piece::of_mut).collect())
        })
        .into();
    let mut counted = 0;
    for round in 0..400 {
        if round == 200 {
            counted = ALLOCATIONS.load(Ordering::Relaxed);
        }
        net.send_copy(to, tag(9), &out[..16]).unwrap();
        for (sources, targets) in &pieces {
            // SAFETY: both live until the tickets are finished; what is in the target is not looked at.
            let (sent, received) = unsafe {
                (
                    net.send(to, tag(1), sources).unwrap(),
                    net.receive(from, tag(1), targets).unwrap(),
                )
            };
            finish(net, &received);
            finish(net, &sent);
        }
        let mut word = [0; 16];
        let received = receive(net, from, 9, &mut word);
        finish(net, &received);
    }
    let more = ALLOCATIONS.load(Ordering::Relaxed) - counted;
    // On a busy machine the neighbour may be a message ahead for the first time, which takes places that are
    // new: some allocations each. What every round allocated would be 200 at least.
    assert!(more < 50, "{more} allocations in 200 rounds");
    meet(net);
}
