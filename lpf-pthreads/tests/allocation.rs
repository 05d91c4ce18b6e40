//! No allocation in put, in get, and in a steady superstep: an allocator that counts.
//!
//! "Steady" is after one superstep of the same kind: the thread that runs is a process of a section,
//! and only what it allocates between two points of its own program is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};

use lpf_core::{Args, Context, InboxShape, LocalSlot, Lpf, MAX_P, Pid, Result, SyncAttr};
use lpf_pthreads::Config;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

/// Counts for the calling thread; one that is ending has nothing to count.
fn count() {
    let _ = ALLOCATIONS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, bytes) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// Runs `superstep` a few times as every process of sections of 1 to 4 and asserts that this
/// thread neither allocates nor frees in it once the first rounds are over.
fn steady<S>(
    what: &str,
    prepare: impl for<'s> Fn(&mut Context<'s, lpf_pthreads::Threads>) -> Result<S> + Sync,
    superstep: impl for<'s> Fn(&mut Context<'s, lpf_pthreads::Threads>, &mut S) -> Result<()> + Sync,
) {
    for procs in [1, 2, 4] {
        Config::new()
            .procs(procs)
            .exec(MAX_P, Args::none(), |ctx, _args| {
                ctx.resize(8, 4_000)?;
                ctx.sync()?;
                let mut state = prepare(ctx)?;
                ctx.sync()?;
                for round in 0..12 {
                    let before = allocations();
                    superstep(ctx, &mut state)?;
                    let during = allocations() - before;
                    assert!(
                        round < 2 || during == 0,
                        "{what}: process {} of {procs} called the allocator {during} times in round {round}",
                        ctx.pid()
                    );
                }
                Ok(())
            })
            .unwrap();
    }
}

thread_local! {
    static KEPT: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Raw memory that lives as long as this thread, which outlives its sections.
fn kept(bytes: usize) -> *mut u8 {
    KEPT.with_borrow_mut(|kept| {
        kept.push(vec![0; bytes].into_boxed_slice());
        kept.last_mut().map_or(std::ptr::null_mut(), |block| block.as_mut_ptr())
    })
}

struct Areas {
    local: LocalSlot,
    from: lpf_core::GlobalSlot,
    to: lpf_core::GlobalSlot,
}

const BYTES: usize = 1 << 20;

fn raw_areas(ctx: &mut Context<'_, lpf_pthreads::Threads>) -> Result<Areas> {
    let [local, from, to] = [0; 3].map(|_| kept(BYTES));
    let mut raw = ctx.raw();
    // SAFETY: the memory lives as long as the thread, and nobody looks at it.
    unsafe {
        Ok(Areas {
            local: raw.register_local(local, BYTES)?,
            from: raw.register_global(from, BYTES)?,
            to: raw.register_global(to, BYTES)?,
        })
    }
}

/// `count` requests of `bytes` bytes at a stride, to or from every process, oneself included.
fn requests<L: Lpf>(
    ctx: &mut Context<'_, L>,
    areas: &Areas,
    (count, bytes, stride): (usize, usize, usize),
    puts: bool,
    gets: bool,
) -> Result<()> {
    let own = ctx.pid();
    let procs = ctx.nprocs();
    let mut raw = ctx.raw();
    for other in 0..procs {
        for i in 0..count {
            // An odd step now and then breaks the run.
            let at = i * stride + if i % 7 == 3 { 1 } else { 0 };
            let to = at + own * count * stride;
            if puts {
                raw.put(areas.local, at, other, areas.to, to, bytes)?;
            }
            if gets {
                raw.get(other, areas.from, at, areas.to, to, bytes)?;
            }
        }
    }
    Ok(())
}

fn steady_requests(what: &str, shape: (usize, usize, usize), puts: bool, gets: bool) {
    for attr in [SyncAttr::Default, SyncAttr::NoConflict] {
        steady(what, raw_areas, |ctx, areas| {
            requests(ctx, areas, shape, puts, gets)?;
            ctx.sync_with(attr)
        });
    }
}

#[test]
fn an_empty_superstep_allocates_nothing() {
    steady("empty", |_| Ok(()), |ctx, ()| ctx.sync());
}

#[test]
fn small_puts_that_travel_in_the_line_allocate_nothing() {
    steady_requests("put 8", (1, 8, 64), true, false);
}

#[test]
fn many_small_puts_allocate_nothing() {
    steady_requests("200 puts of 8", (200, 8, 64), true, false);
}

#[test]
fn many_small_gets_allocate_nothing() {
    steady_requests("200 gets of 8", (200, 8, 64), false, true);
}

#[test]
fn puts_and_gets_of_every_size_allocate_nothing() {
    steady_requests("empty requests", (3, 0, 8), true, true);
    steady_requests("puts and gets of 4 KiB", (16, 4096, 5000), true, true);
    steady_requests("puts and gets of 128 KiB", (1, 1 << 17, 1), true, true);
}

#[test]
fn the_typed_layer_allocates_nothing() {
    steady(
        "typed",
        |ctx| {
            // Areas of the section, used in each round by their slots.
            let (own, theirs) = (ctx.area::<u64>(256)?, ctx.area::<u64>(256)?);
            let slots = (own.global_slot(), theirs.global_slot());
            Ok((slots, [own, theirs].map(|area| area.into_registration())))
        },
        |ctx, &mut ((own, theirs), _)| {
            let right = (ctx.pid() + 1) % ctx.nprocs();
            ctx.raw().put(own, 0, right, theirs, 0, 2048)?;
            ctx.sync()
        },
    );
    // Handles carry the section's lifetime, so that their loop is inside one program.
    Config::new()
        .procs(2)
        .exec(MAX_P, Args::none(), |ctx, _args| {
            ctx.resize(8, 1_000)?;
            ctx.sync()?;
            let (mut own, theirs) = (ctx.area::<u64>(256)?, ctx.area::<u64>(256)?);
            let mine = ctx.local::<u64>(256)?;
            ctx.sync()?;
            for round in 0..12u64 {
                let before = allocations();
                ctx.write(&mut own)[0] = round;
                let other = 1 - ctx.pid();
                for i in 0..100 {
                    ctx.put(&own, i..i + 1, other, &theirs, i)?;
                }
                ctx.get(other, &own, 100..200, &mine, 0)?;
                ctx.sync()?;
                assert_eq!(ctx.read(&theirs)[0], round);
                ctx.sync()?;
                let during = allocations() - before;
                assert!(round < 2 || during == 0, "{during} calls in round {round}");
            }
            Ok(())
        })
        .unwrap();
}

/// Messages through cells in the header and behind it, landings, credits that run out, and the
/// flush: two processes, typed.
#[test]
fn expected_supersteps_allocate_nothing() {
    Config::new()
        .procs(2)
        .exec(MAX_P, Args::none(), |ctx, _args| {
            ctx.resize(8, 0)?;
            let inbox = ctx.inbox(InboxShape { rings: 1, window: 4, cell_bytes: 1024 })?;
            ctx.sync()?;
            let peer: Pid = 1 - ctx.pid();
            let mut channel = ctx.open::<u64>(inbox, 0, peer, 0)?;
            let mut part = ctx.outbox::<u64>(1, 4096)?.remove(0);
            let mut area = ctx.local::<u64>(4096)?;
            for round in 0..40u64 {
                let before = allocations();
                let sends = |len: usize| len as u64 + round;
                for len in [0, 1, 4, 5, 128] {
                    part.iter_mut().for_each(|x| *x = sends(len));
                    let sent = ctx.send(&mut channel, part, ..len)?;
                    let [message] = ctx.expect([&mut channel])?;
                    assert_eq!(message.len(), len);
                    assert!(message.iter().all(|&x| x == sends(len)));
                    drop(message);
                    let flushed = ctx.flush()?;
                    part = sent.part(&flushed).map_err(|_| "flushed").unwrap();
                }
                let landing = ctx.offer(&mut channel, area)?;
                part.iter_mut().for_each(|x| *x = round);
                let sent = ctx.send_landing(&mut channel, part, ..)?;
                let (landed, elements) = ctx.land(&mut channel, landing)?;
                area = landed;
                assert_eq!((elements, ctx.read(&area)[4095]), (4096, round));
                let flushed = ctx.flush()?;
                part = sent.part(&flushed).map_err(|_| "flushed").unwrap();
                if round % 5 == 4 {
                    ctx.sync()?;
                }
                let during = allocations() - before;
                assert!(round < 5 || during == 0, "{during} calls in round {round}");
            }
            ctx.sync()
        })
        .unwrap();
}

/// The test itself would pass with a counter that does not count.
#[test]
fn the_counter_counts() {
    let before = allocations();
    drop(std::hint::black_box(vec![1u8; 10]));
    assert_eq!(allocations() - before, 2);
}
