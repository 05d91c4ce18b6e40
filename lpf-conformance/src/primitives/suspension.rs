//! Pending requests suspended for a library's supersteps.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use lpf_core::{Area, Context, Lpf, Result, Slot};

use crate::memory::Buffer;
use crate::verdict::{refused, room};

case! {
    /// A library's full syncs complete its own requests and leave the caller's as they are: puts, gets,
    /// registrations and resizes wait for the caller's sync, and slots stay busy.
    pub fn what_is_suspended_waits_for_its_own_sync both_ways [1, 2, 3, 5] |ctx| {
        room(ctx, 6, 4)?;
        ctx.raw().reserve(0, 4)?;
        let (me, p) = (ctx.pid() as u8, ctx.nprocs());
        let next = (ctx.pid() + 1) % p;
        let (source, mut target) = (Buffer::filled(8, me), Buffer::filled(8, 0xee));
        let (mut get, library) = (Buffer::filled(8, 0xdd), Buffer::zeroed(8));
        let (from, to) = (source.global(ctx)?, target.global(ctx)?);
        let (into, theirs) = (get.local(ctx)?, library.global(ctx)?);
        ctx.sync()?;
        for round in 0..3u8 {
            // The caller's: two requests, and half of the reservation.
            ctx.raw().put(from, 0, next, to, 0, 4)?;
            ctx.raw().get(next, from, 4, into, 4, 4)?;
            let fresh = target.global(ctx)?;
            ctx.raw().resize_message_queue(5 + usize::from(round))?;

            ctx.suspended(|ctx| {
                let before = ctx.superstep();
                for step in 0..2 {
                    ctx.raw().put(from, 0, next, theirs, 4 * step, 4)?;
                    ctx.sync()?;
                    let left = ((ctx.pid() + p - 1) % p) as u8;
                    assert_eq!(library.read(4 * step, 4), [left; 4]);
                }
                assert_eq!(ctx.superstep(), before + 2);
                assert_eq!((target.to_vec(), get.to_vec()), (vec![0xee; 8], vec![0xdd; 8]));
                refused!(ctx.raw().put(fresh, 0, next, to, 0, 1), Misuse, InactiveSlot { .. });
                Ok(())
            })?;

            refused!(ctx.raw().deregister(into), Misuse, SlotBusy { .. });
            refused!(ctx.raw().deregister(from), Misuse, SlotBusy { .. });
            ctx.sync()?;
            let left = ((ctx.pid() + p - 1) % p) as u8;
            assert_eq!(target.read(0, 4), [left; 4]);
            assert_eq!(get.read(4, 4), [next as u8; 4]);
            // What was registered and resized holds now.
            ctx.raw().put(from, 0, next, fresh, 4, 4)?;
            ctx.sync()?;
            assert_eq!(target.read(4, 4), [left; 4]);
            ctx.raw().deregister(Slot::from(fresh))?;
            target.fill(0xee);
            get.fill(0xdd);
        }
    }
}

case! {
    /// A library's requests make no slot busy once it is done, and take nothing of what the caller may queue.
    pub fn a_library_leaves_no_trace_but_its_data both_ways [2, 4] |ctx| {
        room(ctx, 3, 2)?;
        ctx.raw().reserve(0, 4)?;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        let (source, target) = (Buffer::filled(8, 7), Buffer::zeroed(8));
        let (from, to) = (source.local(ctx)?, target.global(ctx)?);
        ctx.sync()?;
        ctx.suspended(|ctx| {
            ctx.raw().put(from, 0, next, to, 0, 8)?;
            ctx.sync()
        })?;
        assert_eq!(target.to_vec(), [7; 8]);
        ctx.raw().deregister(from)?;
        // What a library queues and never syncs is gone.
        let again = source.local(ctx)?;
        ctx.suspended(|ctx| ctx.raw().put(again, 0, next, to, 0, 8))?;
        ctx.raw().deregister(again)?;
        ctx.sync()?;
    }
}

/// The levels of libraries in the cases below, the program included.
const LEVELS: usize = 4;

/// Each level puts its number and its process's to the next process, lets the next level work, sees that its own put
/// has waited, and completes it.
fn level<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    areas: &mut [(Area<'s, usize>, Area<'s, usize>)],
    nth: usize,
) -> Result<()> {
    let Some(((from, to), libraries)) = areas.split_first_mut() else { return Ok(()) };
    let (me, p) = (ctx.pid(), ctx.nprocs());
    let word = |pid| 100 * nth + pid + 1;
    let before = ctx.read(to)[0];
    ctx.write(from)[0] = word(me);
    ctx.put(from, .., (me + 1) % p, to, 0)?;
    for _ in 0..2 {
        ctx.suspended(|ctx| level(ctx, libraries, nth + 1))?;
        assert_eq!(ctx.read(to)[0], before, "a library's sync completed its caller's put");
    }
    ctx.sync()?;
    assert_eq!(ctx.read(to)[0], word((me + p - 1) % p));
    Ok(())
}

case! {
    /// A library that uses a library suspends its own requests beside its caller's: each sync completes those of its
    /// level, and afterwards all room is there again.
    pub fn libraries_suspend_within_libraries both_ways [1, 2, 3, 5] |ctx| {
        // A request to oneself counts twice.
        room(ctx, 2 * LEVELS, 2 * LEVELS)?;
        let mut areas = Vec::new();
        for _ in 0..LEVELS {
            areas.push((ctx.area::<usize>(1)?, ctx.area::<usize>(1)?));
        }
        ctx.sync()?;
        for round in 0..3 {
            level(ctx, &mut areas, 10 * round)?;
            let (from, to) = &areas[0];
            let other = (ctx.pid() + 1) % ctx.nprocs();
            let cost = 1 + usize::from(ctx.nprocs() == 1);
            // As many requests as the room allows for those that this process makes and those that reach it.
            for _ in 0..LEVELS / cost * cost {
                ctx.put(from, .., other, to, 0)?;
            }
            ctx.sync()?;
        }
    }
}

case! {
    /// The memory that a suspended request names is not given back, whatever the libraries within do.
    pub fn memory_of_suspended_requests_stays both_ways [1, 2, 3] |ctx| {
        room(ctx, 4, 8)?;
        let mut source = ctx.local::<u64>(1000)?;
        let (target, library) = (ctx.area::<u64>(1000)?, ctx.area::<u64>(1000)?);
        ctx.sync()?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        ctx.write(&mut source).fill(7 + me as u64);
        ctx.put(&source, .., next, &target, 0)?;
        let source = ctx.suspended(|ctx| {
            let (error, source) = ctx.try_deregister(source).expect_err("its caller's put names it");
            refused!(Err::<(), _>(error), Misuse, SlotBusy { .. });
            // The library reads it, too, which makes it not less busy.
            ctx.put(&source, .., next, &library, 0)?;
            ctx.sync()?;
            assert_eq!(ctx.read(&library)[999], 7 + left as u64);
            let source = ctx.suspended(|ctx| {
                ctx.sync()?;
                let (_, source) = ctx.try_deregister(source).expect_err("its caller's caller names it");
                Ok(source)
            })?;
            ctx.sync()?;
            let (_, source) = ctx.try_deregister(source).expect_err("its caller's put names it");
            Ok(source)
        })?;
        let (_, source) = ctx.try_deregister(source).expect_err("a put names it");
        ctx.sync()?;
        assert_eq!(ctx.read(&target)[..], [7 + left as u64; 1000]);
        assert!(ctx.deregister(source).is_ok());
    }
}

case! {
    /// What is suspended is pending again after a library that fails or panics.
    pub fn errors_and_panics_of_a_library_restore both_ways [1, 2, 3] |ctx| {
        room(ctx, 2, 4)?;
        let (mut from, to) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
        ctx.sync()?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        for (round, panics) in [(1, false), (2, true), (3, false)] {
            ctx.write(&mut from)[0] = 10 * round + me;
            ctx.put(&from, .., next, &to, 0)?;
            let library = catch_unwind(AssertUnwindSafe(|| {
                ctx.suspended(|ctx| {
                    ctx.sync()?;
                    ctx.suspended(|ctx| {
                        ctx.put(&from, .., p, &to, 0).map_err(|error| match panics {
                            // Without the message that a panic prints.
                            true => resume_unwind(Box::new(error)),
                            false => error,
                        })
                    })
                })
            }));
            match library {
                Ok(ended) => drop(refused!(ended, Misuse, NoSuchProcess { .. })),
                Err(_) => assert!(panics),
            }
            ctx.sync()?;
            assert_eq!(ctx.read(&to)[0], 10 * round + left);
        }
    }
}

case! {
    /// A library may reserve room while its caller's requests are suspended. Room that the caller gives up is there
    /// until the caller's own sync.
    pub fn a_library_reserves_while_its_caller_is_suspended both_ways [1, 2, 3] |ctx| {
        const MORE: usize = 2000;
        room(ctx, 4, 8)?;
        let (mut from, to) = (ctx.area::<usize>(4)?, ctx.area::<usize>(4)?);
        let mut many = ctx.area::<usize>(MORE)?;
        ctx.sync()?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        ctx.write(&mut from).copy_from_slice(&[me, me + 10, me + 20, me + 30]);
        for nth in 0..4 {
            // Against the order of the addresses, so that the requests are no run.
            ctx.put(&from, 3 - nth..4 - nth, next, &to, 3 - nth)?;
        }
        ctx.resize(4, 1)?;
        ctx.suspended(|ctx| {
            // Twice for a process that is its own neighbour, and for what its caller has pending but gives up.
            ctx.raw().reserve(0, 2 * MORE + 8)?;
            ctx.sync()?;
            for nth in 0..MORE {
                ctx.put(&from, nth % 4..nth % 4 + 1, next, &many, MORE - 1 - nth)?;
            }
            ctx.sync()?;
            assert_eq!(ctx.read(&many)[MORE - 1], left);
            ctx.write(&mut many).fill(0);
            Ok(())
        })?;
        assert_eq!(ctx.read(&to)[..], [0; 4]);
        ctx.sync()?;
        assert_eq!(ctx.read(&to)[..], [left, left + 10, left + 20, left + 30]);
        // The caller has room for one request now, and for the library's: process 0 uses all of its own, and of its
        // neighbour's.
        let room = 1 + 2 * MORE + 8;
        if me == 0 {
            let cost = 1 + usize::from(p == 1);
            for _ in 0..room / cost {
                ctx.put(&from, .., next, &to, 0)?;
            }
            refused!(ctx.put(&from, .., next, &to, 0), Misuse, RequestsUsedUp { .. });
        }
        ctx.sync()?;
    }
}
