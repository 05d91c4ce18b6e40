//! Areas that are dropped: they are given back when all processes have dropped the same, and not before.

use lpf_core::{Area, Cause, Context, Local, Lpf, Result, SyncAttr};

use crate::primitives::arrivals::channels;
use crate::verdict::{refused, room};

/// Elements of an area: 64 KiB.
const LEN: usize = 1 << 13;
const BYTES: usize = LEN * size_of::<u64>();

case! {
    /// Slots and memory of areas that all processes drop in the same superstep are there again after the sync that
    /// ends it; those of local areas after the next one.
    pub fn dropped_areas_are_given_back everywhere [1, 2, 3, 5] |ctx| {
        room(ctx, 4, 4)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        for round in 0..200u64 {
            let (mut x, y) = (ctx.local::<u64>(LEN)?, ctx.area::<u64>(LEN)?);
            ctx.sync()?;
            ctx.write(&mut x).fill(100 * round + me as u64);
            ctx.put(&x, .., (me + 1) % p, &y, 0)?;
            ctx.sync()?;
            assert_eq!(ctx.read(&y)[LEN - 1], 100 * round + ((me + p - 1) % p) as u64);
            assert!(ctx.area_bytes() <= 4 * BYTES, "round {round}: {} bytes", ctx.area_bytes());
        }
        ctx.sync()?;
        assert_eq!(ctx.area_bytes(), 0);
        // No slot is missing.
        let _four = [ctx.area::<u8>(1)?, ctx.area::<u8>(1)?, ctx.area::<u8>(1)?, ctx.area::<u8>(1)?];
        ctx.sync()?;
    }
}

case! {
    /// Processes may drop in any order, and in different supersteps. Until the last of them has dropped, all areas
    /// stay; afterwards the places of slots are the same everywhere.
    pub fn areas_stay_until_all_processes_have_dropped_the_same everywhere [2, 3, 5] |ctx| {
        const AREAS: usize = 7;
        room(ctx, AREAS + 2, 8)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        for round in 0..3u64 {
            let mut areas = Vec::new();
            for _ in 0..AREAS {
                areas.push(ctx.area::<u64>(LEN)?);
            }
            let mut own = ctx.area::<u64>(LEN)?;
            ctx.sync()?;
            // In superstep `turn` process `turn` drops all, in an order of its own.
            areas.rotate_left(me % AREAS);
            for turn in 0..p {
                ctx.write(&mut own).fill(round + 10 * turn as u64);
                let target = areas.iter().find(|area| area.global_slot().index() == 0);
                if turn == me {
                    areas.clear();
                } else if let (Some(target), true) = (target, me == p - 1) {
                    // Process 0 dropped its handles first. Its memory is still there.
                    ctx.put(&own, .., 0, target, 0)?;
                }
                ctx.sync()?;
                let all_have_dropped = turn == p - 1;
                let expected = if all_have_dropped { BYTES } else { (AREAS + 1) * BYTES };
                assert_eq!(ctx.area_bytes(), expected, "round {round}, turn {turn}");
            }
        }
        // Each process numbers new areas as the others do.
        ctx.sync()?;
        let (mut x, y) = (ctx.area::<u64>(1)?, ctx.area::<u64>(1)?);
        ctx.sync()?;
        ctx.write(&mut x)[0] = 1 + me as u64;
        ctx.put(&x, .., (me + 1) % p, &y, 0)?;
        ctx.sync()?;
        assert_eq!(ctx.read(&y)[0], 1 + ((me + p - 1) % p) as u64);
    }
}

case! {
    /// An area that one process keeps is nobody's loss but memory: areas dropped by the others stay, and nothing fails.
    pub fn an_area_that_one_process_keeps_stays everywhere [2, 4] |ctx| {
        room(ctx, 6, 8)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (kept, other) = (ctx.area::<u64>(LEN)?, ctx.area::<u64>(LEN)?);
        ctx.sync()?;
        let kept = Some(kept).filter(|_| me == 0);
        drop(other);
        for round in 0..5u64 {
            ctx.sync()?;
            assert_eq!(ctx.area_bytes(), 2 * BYTES);
            if let Some(kept) = &kept {
                ctx.put(kept, .., p - 1, kept, 0)?;
            }
            if round == 3 {
                // Beside this, areas are deregistered as ever.
                let area = ctx.area::<u64>(1)?;
                ctx.deregister(area)?;
            }
        }
        ctx.sync()?;
        drop(kept);
        ctx.sync()?;
        assert_eq!(ctx.area_bytes(), 0);
    }
}

/// Puts half of each area to the next process, with values of this round, and drops both.
fn put_and_drop<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    mut x: Area<'s, u64>,
    mut y: Local<'s, u64>,
    round: u64,
    result: &Area<'s, u64>,
) -> Result<()> {
    let me = ctx.pid();
    ctx.write(&mut x).fill(round + me as u64);
    ctx.write(&mut y).fill(1000 + round + me as u64);
    let next = (me + 1) % ctx.nprocs();
    ctx.put(&x, ..LEN / 2, next, result, 0)?;
    ctx.put(&y, LEN / 2.., next, result, LEN / 2)
}

case! {
    /// A request that is pending when its areas are dropped is carried out.
    pub fn requests_on_dropped_areas_are_carried_out everywhere [1, 2, 4] |ctx| {
        room(ctx, 5, 8)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let result = ctx.area::<u64>(LEN)?;
        ctx.sync()?;
        for round in 0..20u64 {
            let (x, y) = (ctx.area::<u64>(LEN)?, ctx.local::<u64>(LEN)?);
            ctx.sync()?;
            put_and_drop(ctx, x, y, round, &result)?;
            ctx.sync()?;
            let left = ((me + p - 1) % p) as u64;
            assert_eq!(ctx.read(&result)[LEN / 2 - 1], round + left);
            assert_eq!(ctx.read(&result)[LEN / 2], 1000 + round + left);
            assert!(ctx.area_bytes() <= 4 * BYTES);
        }
        ctx.sync()?;
        ctx.sync()?;
        assert_eq!(ctx.area_bytes(), BYTES);
    }
}

case! {
    /// A library's full syncs free nothing: its caller's suspended requests may name what was dropped.
    pub fn suspended_requests_keep_what_was_dropped everywhere [1, 2, 3] |ctx| {
        room(ctx, 4, 4)?;
        ctx.raw().reserve(0, 2)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let result = ctx.area::<u64>(LEN)?;
        ctx.sync()?;
        for round in 0..5u64 {
            let (x, y) = (ctx.area::<u64>(LEN)?, ctx.local::<u64>(LEN)?);
            let unused = ctx.area::<u64>(LEN)?;
            ctx.sync()?;
            put_and_drop(ctx, x, y, round, &result)?;
            ctx.suspended(|ctx| {
                drop(unused);
                for _ in 0..3 {
                    ctx.sync()?;
                    assert_eq!(ctx.area_bytes(), 4 * BYTES);
                }
                ctx.raw().suspended(|raw| raw.sync(SyncAttr::Default))
            })?;
            ctx.sync()?;
            let left = ((me + p - 1) % p) as u64;
            assert_eq!(ctx.read(&result)[LEN / 2 - 1], round + left);
            assert_eq!(ctx.read(&result)[LEN / 2], 1000 + round + left);
            ctx.sync()?;
            assert_eq!(ctx.area_bytes(), BYTES);
        }
    }
}

/// Makes areas that it returns and areas that it drops.
fn library<'s, L: Lpf>(ctx: &mut Context<'s, L>) -> Result<Area<'s, u64>> {
    room(ctx, 3, 2)?;
    let areas = [ctx.area::<u64>(LEN)?, ctx.area::<u64>(LEN)?];
    ctx.sync()?;
    let [first, second] = areas;
    drop(second);
    ctx.sync()?;
    assert_eq!(ctx.area_bytes(), BYTES);
    Ok(first)
}

case! {
    /// An inner section and its outer one give back what was dropped each for itself; areas of the outer one may be
    /// dropped in the inner one.
    pub fn each_section_gives_back_its_own everywhere [1, 2, 4] |ctx| {
        room(ctx, 3, 2)?;
        for _ in 0..5 {
            let (outer, kept) = (ctx.area::<u64>(LEN)?, ctx.area::<u64>(LEN)?);
            ctx.sync()?;
            ctx.rehook(|inner| {
                drop(outer);
                let own = library(inner)?;
                inner.sync()?;
                drop(own);
                inner.sync()?;
                assert_eq!(inner.area_bytes(), 0);
                Ok(())
            })?;
            assert_eq!(ctx.area_bytes(), 2 * BYTES);
            ctx.sync()?;
            assert_eq!(ctx.area_bytes(), BYTES);
            ctx.deregister(kept)?;
            ctx.sync()?;
            assert_eq!(ctx.area_bytes(), 0);
        }
    }
}

case! {
    /// Slots of dropped areas can still be named until they are gone, and deregistered by all processes; syncs of the
    /// raw interface give areas back, too; and areas may be dropped before they are active.
    pub fn dropped_areas_and_raw_slots_go_together everywhere [1, 2, 3] |ctx| {
        room(ctx, 4, 4)?;
        let me = ctx.pid();
        let (mut x, y) = (ctx.area::<u64>(1)?, ctx.area::<u64>(1)?);
        ctx.sync()?;
        let (source, target) = (x.global_slot(), y.global_slot());
        ctx.write(&mut x)[0] = 7;
        // One handle is dropped by process 0 alone, the other one by all.
        let y = Some(y).filter(|_| me != 0);
        drop(x);
        ctx.raw().put(source, 0, me, target, 0, 8)?;
        ctx.sync()?;
        if let Some(y) = &y {
            assert_eq!(ctx.read(y)[0], 7);
        }
        if ctx.nprocs() > 1 {
            // Dropped here, and deregistered by its number everywhere: now all agree on the other one.
            ctx.raw().deregister(target)?;
            ctx.sync()?;
        }
        refused!(ctx.raw().deregister(source), Misuse, UnknownSlot { .. } | Cause::Checked(_));
        refused!(ctx.raw().deregister(target), Misuse, UnknownSlot { .. } | Cause::Checked(_));
        drop(y);
        ctx.sync()?;

        // Dropped before it is active, and given back by a sync of the raw interface at some processes.
        for _ in 0..10 {
            let area = ctx.area::<u64>(LEN)?;
            let slot = area.global_slot();
            drop(area);
            if me == 0 {
                ctx.raw().sync(SyncAttr::Default)?;
            } else {
                ctx.sync()?;
            }
            refused!(ctx.raw().deregister(slot), Misuse, UnknownSlot { .. } | Cause::Checked(_));
        }
        ctx.sync()?;
        assert!(ctx.area_bytes() < BYTES);
    }
}

case! {
    /// Memory that was offered for a message stays until the message has arrived, although its handle was dropped.
    pub fn a_dropped_landing_stays_until_its_message_has_arrived both_ways [2, 3] |ctx| {
        let mut all = channels::<_, u64>(ctx, 4, 4, 2)?;
        let mut parts = ctx.outbox::<u64>(1, LEN)?;
        let outbox = ctx.area_bytes();
        let (p, me) = (ctx.nprocs(), ctx.pid());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        let area = ctx.local::<u64>(LEN)?;
        let from = all[left].as_mut().expect("a channel");
        let landing = ctx.offer(from, area)?;
        drop(landing);
        for _ in 0..3 {
            ctx.sync()?;
            assert_eq!(ctx.area_bytes(), outbox + BYTES);
        }
        let to = all[next].as_mut().expect("a channel");
        let part = parts.pop().expect("one part");
        let _sent = ctx.send_landing(to, part, ..)?;
        let from = all[left].as_mut().expect("a channel");
        // It did not come into a cell.
        refused!(ctx.expect([from]), Misuse, Link(_));
        for _ in 0..3 {
            ctx.sync()?;
        }
        assert_eq!(ctx.area_bytes(), outbox);
    }
}
