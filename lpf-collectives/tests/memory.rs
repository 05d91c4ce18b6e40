//! What schedulers keep, counted by an allocator of this program's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use lpf_collectives::arrival_pattern::clairvoyant::{Instance, Scheduler};

struct Counts;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's, which is only counted.
unsafe impl GlobalAlloc for Counts {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTS: Counts = Counts;

/// One test, so that nobody else allocates.
#[test]
fn schedulers_keep_what_they_say_and_no_schedule() {
    for (p, n) in [(1, 1), (2, 1), (64, 64), (65, 200), (200, 65), (3, 4000), (4000, 3), (300, 300)]
    {
        let arrivals = (0..p as u64).map(|process| process * 7919 % 1000).collect();
        let instance = Instance::new(n as u32, 0, 100, arrivals).unwrap();
        for scheduler in Scheduler::ALL {
            let before = NOW.load(Relaxed);
            MOST.store(before, Relaxed);
            let mut count = 0;
            scheduler.schedule(&instance, |_| count += 1);
            let kept = MOST.load(Relaxed) - before;
            let said = scheduler.bytes(p, n);
            let name = scheduler.name();
            assert!(kept >= said, "{name}, {p} x {n}: {kept} of {said} bytes");
            // Some words for each process and segment.
            let more = 128 * (p + n) + 512;
            assert!(kept <= said + more, "{name}, {p} x {n}: {kept}, not {said} bytes");
            assert!(count >= (p - 1) * n, "{name}, {p} x {n}: {count} transfers");
        }
    }
    // The paper's claim, where the last word of a column is full.
    for p in (64..=4096).step_by(61) {
        let bits = 8.0 * Scheduler::Tree.bytes(p, 640) as f64 / (p * 640) as f64;
        assert!(bits <= 5.02, "{p} processes: {bits}");
    }
}
