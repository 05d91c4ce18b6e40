//! What schedulers keep, counted by an allocator of this program's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use lpf_collectives::arrival_pattern::clairvoyant::{Digest, Instance, Scheduler, Transfer};

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

/// What something gives, and the most bytes that it has at a time.
fn counted<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let given = f();
    (given, MOST.load(Relaxed) - before)
}

/// Some words for each process and segment are no part of what a scheduler says it keeps.
fn more(p: usize, n: usize) -> usize {
    128 * (p + n) + 512
}

/// One test, so that nobody else allocates.
#[test]
fn schedulers_keep_what_they_say_and_no_schedule() {
    small_ones();
    large_ones();
}

fn small_ones() {
    for (p, n) in [(1, 1), (2, 1), (64, 64), (65, 200), (200, 65), (3, 4000), (4000, 3), (300, 300)]
    {
        let arrivals = (0..p as u64).map(|process| process * 7919 % 1000).collect();
        let instance = Instance::new(n as u32, 0, 100, arrivals).unwrap();
        for scheduler in Scheduler::ALL {
            let mut count = 0;
            let ((), kept) = counted(|| scheduler.schedule(&instance, |_| count += 1));
            let said = scheduler.bytes(p, n);
            let name = scheduler.name();
            assert!(kept >= said, "{name}, {p} x {n}: {kept} of {said} bytes");
            assert!(kept <= said + more(p, n), "{name}, {p} x {n}: {kept}, not {said} bytes");
            assert!(count >= (p - 1) * n, "{name}, {p} x {n}: {count} transfers");
        }
    }
}

/// Very many processes, and very many segments: four million transfers, of which a round at most is kept. The digests
/// are also those of the paper's segment tree.
fn large_ones() {
    if cfg!(asan) {
        // It is the same program, some times as slow.
        return;
    }
    let all = [
        (65_536, 64, 4_194_492, 0xf480_0596_9e2f_e72e),
        (64, 65_536, 4_194_368, 0x26b8_88df_c3e1_e90e),
    ];
    // In four waves; the root comes at the end of the first one, and is the head of the others.
    let (d, root) = (1009, 5);
    let arrival = |rank: u64| {
        let word = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        if rank == root as u64 { d - 1 } else { word / d % 4 * 100 * d + word % d }
    };
    for (p, n, count, fnv1a) in all {
        let arrivals = (0..p as u64).map(arrival).collect();
        let instance = Instance::new(n as u32, root, d, arrivals).unwrap();
        let (digest, kept) = counted(|| Digest::of(&instance, Scheduler::Bits));
        let name = format!("{p} x {n}");
        assert_eq!(digest.count, count, "{name}");
        assert_eq!(digest.combines, (p as u64 - 1) * n as u64, "{name}");
        assert_eq!(digest.fnv1a, fnv1a, "{name}: another schedule");
        let round = p * size_of::<Transfer>();
        let most = Scheduler::Bits.bytes(p, n) + more(p, n) + round;
        assert!(kept <= most, "{name}: {kept}, not {most} bytes");
        // Far from all that there are.
        assert!(kept < digest.count as usize * size_of::<Transfer>() / 5, "{name}: {kept} bytes");
    }
}
