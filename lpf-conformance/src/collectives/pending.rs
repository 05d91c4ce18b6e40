//! Collectives beside what else a program does: requests, registrations, rehooks, and thousands in a row.

use std::time::Duration;

use lpf_collectives::{Collectives, Sum};
use lpf_core::{Cause, Error, InboxShape, Kind};

use super::calls::{Call, What};
use super::vectors::{Room, SLOTS};
use super::world;
use crate::verdict::assert_fatal_naming;

/// Call `salt` of everything in turn.
fn call(salt: usize) -> Call {
    let what = What::ALL[salt % What::ALL.len()];
    let (way, local) = (salt / 2 % what.ways(), [salt & 1 == 0, salt & 2 == 0]);
    Call { what, way, root: salt, len: 5, at: [0, 1], local, salt }
}

case! {
    /// What is put and got before a collective is done at the next full sync, and not before; no collective
    /// and no split is one.
    pub fn requests_stay_pending_across_collectives both_ways [2, 4] |ctx| {
        let mut c = world(ctx, SLOTS + 3, 4)?;
        let mut room = Room::<u64>::new(ctx, 40)?;
        let (mut x, y) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
        let z = ctx.local::<usize>(1)?;
        ctx.sync()?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        for round in 1..20 {
            ctx.write(&mut x)[0] = 100 * round + me;
            let before = (ctx.read(&y)[0], ctx.read(&z)[0]);
            ctx.put(&x, .., next, &y, 0)?;
            ctx.get(next, &x, .., &z, 0)?;
            let superstep = ctx.superstep();
            for nth in 0..3 {
                call(4 * (3 * round + nth)).make(ctx, &mut c, &mut room)?;
                assert_eq!((ctx.read(&y)[0], ctx.read(&z)[0]), before, "done too early");
            }
            if round % 5 == 0 {
                drop(c.split(ctx, Some(me % 2))?);
                assert_eq!((ctx.read(&y)[0], ctx.read(&z)[0]), before, "done too early");
            }
            let strict = ctx.raw().strict();
            assert!(strict || ctx.superstep() == superstep, "a collective was a full sync");
            ctx.sync()?;
            assert_eq!(ctx.read(&y)[0], 100 * round + left);
            assert_eq!(ctx.read(&z)[0], 100 * round + next);
            ctx.sync()?;
        }
    }
}

case! {
    /// A library that has suspended its caller's requests may call collectives, which suspend its own in full mode:
    /// every request waits for the sync of its level.
    pub fn requests_stay_pending_when_a_library_calls_collectives both_ways [2, 3] |ctx| {
        let mut c = world(ctx, SLOTS + 3, 4)?;
        let mut room = Room::<u64>::new(ctx, 40)?;
        let (mut x, y, z) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
        ctx.sync()?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let (next, left) = ((me + 1) % p, (me + p - 1) % p);
        for round in 1..10 {
            ctx.write(&mut x)[0] = 100 * round + me;
            let before = (ctx.read(&y)[0], ctx.read(&z)[0]);
            ctx.put(&x, .., next, &y, 0)?;
            ctx.suspended(|ctx| {
                ctx.put(&x, .., next, &z, 0)?;
                for nth in 0..3 {
                    call(4 * (3 * round + nth)).make(ctx, &mut c, &mut room)?;
                    assert_eq!((ctx.read(&y)[0], ctx.read(&z)[0]), before, "done too early");
                }
                ctx.sync()?;
                assert_eq!((ctx.read(&y)[0], ctx.read(&z)[0]), (before.0, 100 * round + left));
                Ok(())
            })?;
            ctx.sync()?;
            assert_eq!(ctx.read(&y)[0], 100 * round + left);
        }
    }
}

/// Whether an error says that a slot is not in force yet.
fn is_inactive(error: &Error) -> bool {
    error.kind() == Kind::Misuse && matches!(error.cause(), Cause::InactiveSlot { .. })
}

case! {
    /// What is registered or resized before a collective is in force after the next full sync.
    pub fn registrations_and_resizes_stay_pending_across_collectives both_ways [2, 3] |ctx| {
        let mut c = world(ctx, SLOTS + 2, 2)?;
        let mut room = Room::<u64>::new(ctx, 40)?;
        let mut x = ctx.local::<u64>(1)?;
        let late = ctx.area::<u64>(1)?;
        let inbox = ctx.inbox(InboxShape { rings: 1, window: 1, cell_bytes: 8 })?;
        ctx.resize(SLOTS + 3, 40)?;
        let (me, p) = (ctx.pid(), ctx.nprocs());
        let next = (me + 1) % p;
        for salt in 0..20 {
            call(salt).make(ctx, &mut c, &mut room)?;
            let put = ctx.put(&x, .., next, &late, 0).expect_err("not in force");
            assert!(is_inactive(&put), "{put}");
            assert!(ctx.local::<u8>(1).expect_err("no slot is left").is_misuse());
            assert!(ctx.open::<u8>(inbox, 0, next, 0).expect_err("not in force").is_misuse());
        }
        ctx.sync()?;
        ctx.write(&mut x)[0] = me as u64;
        let _one_more = ctx.local::<u8>(1)?;
        for _ in 0..15 {
            ctx.put(&x, .., next, &late, 0)?;
        }
        call(7).make(ctx, &mut c, &mut room)?;
        ctx.sync()?;
        assert_eq!(ctx.read(&late), [((me + p - 1) % p) as u64]);
    }
}

case! {
    /// Collectives of a rehooked section and of its parent know nothing of each other, also where the section
    /// ends between two collectives of the parent, or fails.
    pub fn collectives_live_in_sections_of_their_own both_ways [1, 2, 5] |ctx| {
        let mut outer = world(ctx, SLOTS, 0)?;
        let mut room = Room::<u64>::new(ctx, 40)?;
        for round in 0..4 {
            call(round).make(ctx, &mut outer, &mut room)?;
            let ended = ctx.rehook(|inner| {
                let mut c = world(inner, SLOTS, 0)?;
                let mut room = Room::<u64>::new(inner, 40)?;
                for salt in 0..10 {
                    call(10 * round + salt).make(inner, &mut c, &mut room)?;
                }
                if round == 2 && inner.pid() == 0 {
                    return Err(Error::program("done on purpose"));
                }
                c.allreduce_value(inner, &Sum, 1u8).map(|_| ())?;
                inner.sync()
            });
            if round != 2 {
                ended?;
            } else if ctx.pid() > 0 {
                assert_fatal_naming(&ended.expect_err("process 0 ended it"), &[0]);
            }
        }
        call(5).make(ctx, &mut outer, &mut room)?;
        ctx.sync()?;
    }
}

case! {
    /// Back to back, with a member that lags behind: who is ahead is stopped by what it has sent, and no
    /// message is taken for another call's.
    pub fn thousands_back_to_back_with_a_slow_member both_ways [2, 4, 8] |ctx| {
        let mut c = world(ctx, 1, 0)?;
        let (p, q) = (ctx.nprocs() as u64, c.len());
        let calls: u64 = match p { 8 => 200, 4 => 1000, _ => 3000 };
        let mut x = ctx.local::<u64>(3)?;
        for call in 0..calls {
            if call % 64 == 9 && ctx.pid() == 1 {
                std::thread::sleep(Duration::from_micros(500));
            }
            let own = call * call + ctx.pid() as u64;
            let sum = c.allreduce_value(ctx, &Sum, own)?;
            assert_eq!(sum, p * call * call + p * (p - 1) / 2, "call {call}");
            let root = (call % p) as usize;
            ctx.write(&mut x).fill(own);
            c.broadcast(ctx, root, &mut x)?;
            assert_eq!(ctx.read(&x), [call * call + call % p; 3], "call {call}");
            // From one side to the other alone: nobody waits for who is behind it.
            let last = c.broadcast_value(ctx, 0, call)?;
            assert_eq!(last, call);
        }
        assert_eq!(q as u64, p);
        ctx.sync()?;
    }
}

/// Resident bytes of this operating-system process.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok().map(|kib| kib << 10)
}

case! {
    /// A root that broadcasts to a slow member again and again, and a group that is made and dropped each
    /// time: what is held does not grow with the number of calls.
    pub fn memory_does_not_grow timed [3] |ctx| {
        const LEN: usize = 128;
        let mut c = world(ctx, 1, 0)?;
        let mut x = ctx.local::<u64>(LEN)?;
        let mut before = None;
        for call in 0..3000u64 {
            if call == 1000 {
                before = resident();
            }
            if call % 50 == 0 && ctx.pid() == 2 {
                std::thread::sleep(Duration::from_millis(1));
            }
            if ctx.pid() == 0 {
                ctx.write(&mut x).fill(call);
            }
            c.broadcast(ctx, 0, &mut x)?;
            assert_eq!(ctx.read(&x), [call; LEN]);
            if call % 4 == 0 {
                let mut group: Collectives = c.split(ctx, Some(0))?.expect("a colour");
                assert_eq!(group.allreduce_value(ctx, &Sum, call)?, 3 * call);
            }
        }
        // The address sanitizer keeps what was freed.
        if let (Some(before), Some(after)) = (before, resident().filter(|_| cfg!(not(asan)))) {
            let grown = after.saturating_sub(before);
            // A kibibyte of each of 2000 calls would be as much.
            assert!(grown < 2 << 20, "{grown} bytes more than after 1000 calls");
        }
        ctx.sync()?;
    }
}
