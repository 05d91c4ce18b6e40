//! What a context holds: at most 64 bytes per reserved request and 64 per reserved slot, plus O(p),
//! plus inboxes. Shown by an allocator that knows how many bytes are alive.
//!
//! One test, so that nothing else allocates in this program meanwhile.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use lpf_core::{Args, InboxShape, MAX_P, Pid};
use lpf_pthreads::Config;

static ALIVE: AtomicUsize = AtomicUsize::new(0);

struct Weighing;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Weighing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALIVE.fetch_add(layout.size(), SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ALIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Weighing = Weighing;

/// What one context is asked to hold.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    slots: usize,
    requests: usize,
    inbox: Option<InboxShape>,
}

/// Bytes that one process of a section of `procs` holds under a reservation, as an average. The least
/// of a few times: what a worker has not let go of yet, or a lock keeps for two that first met, is not
/// the context's.
fn weigh(procs: Pid, what: Reservation) -> usize {
    (0..3).map(|_| weigh_once(procs, what)).min().unwrap_or(usize::MAX)
}

fn weigh_once(procs: Pid, what: Reservation) -> usize {
    let before = ALIVE.load(SeqCst);
    let during = AtomicUsize::new(0);
    Config::new()
        .procs(procs)
        .exec(MAX_P, Args::none(), |ctx, _args| {
            ctx.resize(what.slots, what.requests)?;
            if let Some(shape) = what.inbox {
                ctx.inbox(shape)?;
            }
            ctx.sync()?;
            // Everybody has put the new reservation to use, and freed what was there before it.
            ctx.sync()?;
            if ctx.pid() == 0 {
                during.store(ALIVE.load(SeqCst), SeqCst);
            }
            ctx.sync()
        })
        .unwrap();
    // A worker lets go of its job just after it has said that it is done, and the locks' table of
    // waiting threads grows when two first meet.
    const TRANSIENT: usize = 8 << 10;
    let after = ALIVE.load(SeqCst);
    assert!(after <= before + TRANSIENT, "a section of {procs} with {what:?} left memory behind");
    (during.load(SeqCst) - before) / procs
}

/// What the step from `less` to `more` costs, which is `units` of something.
fn step(procs: Pid, less: Reservation, more: Reservation, units: usize) -> f64 {
    let (less, more) = (weigh(procs, less), weigh(procs, more));
    // What locks keep for threads that first meet may weigh more than a single slot.
    (more as f64 - less as f64) / units as f64
}

/// Whether `units` of something cost at most 64 bytes each: one process's constant share more or less
/// is not their doing.
fn is_64(each: f64, units: usize) -> bool {
    each * units as f64 <= (64 * units + PER_PROCESS) as f64
}

#[test]
fn a_context_holds_64_bytes_per_request_and_per_slot() {
    const MOST_PROCS: Pid = 16;
    // The pool's threads and what is read from the system once are not a context's.
    for _ in 0..3 {
        weigh_warm(MOST_PROCS);
    }
    let nothing = Reservation::default();

    for procs in [1, 2, 4, MOST_PROCS] {
        // A reservation of a few requests has a chunk for each list on top: O(p), and not of the
        // requests' number.
        let lists = 2 * procs;
        let few = Reservation { requests: 5 * lists, ..nothing };
        for requests in [1_000, 10_000, 200_000] {
            let many = Reservation { requests, ..nothing };
            let each = step(procs, few, many, requests - few.requests);
            println!("p = {procs}: {each:.2} bytes per request, {requests} reserved");
            assert!(is_64(each, requests), "p = {procs}: {each} bytes per request");
        }
        for slots in [1, 100, 10_000, 200_000] {
            let each = step(procs, nothing, Reservation { slots, ..nothing }, slots);
            println!("p = {procs}: {each:.2} bytes per slot, {slots} reserved");
            assert!(is_64(each, slots), "p = {procs}: {each} bytes per slot");
        }
        let both = Reservation { slots: 10_000, requests: 100_000, ..nothing };
        let whole = weigh(procs, both);
        println!("p = {procs}: {whole} bytes for 10,000 slots and 100,000 requests");
        assert!(whole <= 64 * (10_000 + 100_000) + PER_PROCESS * (procs + CONSTANT));

        let shape = InboxShape { rings: 8, window: 4, cell_bytes: 1000 };
        let cells = 8 * 4 * 1000;
        let inbox =
            weigh(procs, Reservation { inbox: Some(shape), ..nothing }) - weigh(procs, nothing);
        println!("p = {procs}: {inbox} bytes for an inbox of {cells} bytes of cells");
        // A header and padding per cell; lines and offers per ring; the entry in the list.
        assert!(inbox <= cells + 8 * 4 * (64 + 128) + 8 * (256 + 4 * 64 + 128) + 256);
    }

    for procs in [1, 2, 4, 8, MOST_PROCS] {
        let bytes = weigh(procs, nothing);
        println!("p = {procs}: {bytes} bytes for a context without any room");
        assert!(bytes <= PER_PROCESS * (procs + CONSTANT), "p = {procs}: {bytes} bytes");
    }

    // A section of many processes is linear in their number: what each holds does not grow with it.
    for procs in [300, 600] {
        weigh_warm(procs);
        for requests in [0, 2, 16] {
            let bytes = weigh(procs, Reservation { slots: 2, requests, inbox: None });
            println!("p = {procs}: {bytes} bytes for room for {requests} requests");
            assert!(bytes <= PER_PROCESS * (CONSTANT + 2 * requests), "p = {procs}: {bytes} bytes");
        }
    }
}

/// What O(p) may be: per process of the section, and how many such shares come on top.
const PER_PROCESS: usize = 512;
const CONSTANT: usize = 9;

/// As `weigh`, without looking.
fn weigh_warm(procs: Pid) {
    let config = Config::new().procs(procs);
    config
        .exec(MAX_P, Args::none(), |ctx, _args| {
            ctx.resize(10, 10)?;
            ctx.sync()
        })
        .unwrap();
}
