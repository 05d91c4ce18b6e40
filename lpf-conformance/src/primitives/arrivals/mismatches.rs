//! Waits for what never comes: cycles, other roots, other sizes, skipped calls. Nobody has failed,
//! and yet nobody would go on: fatal on both sides, naming both, within a second.

use std::time::{Duration, Instant};

use lpf_core::{Call, Context, Error, Lpf, Pid, Result, SyncAttr};

use super::{Mesh, bodies, body, expect, latest, send};
use crate::verdict::{
    BOUND, assert_fatal_naming, assert_in_time, failing_rehook, sync_until_fatal,
};

fn call(number: usize, stamp: usize) -> Call {
    Call { number: number as u32, stamp: stamp as u32, ..Call::default() }
}

/// Runs `wait` in a section of its own, which fails; checks that this process learned of it in
/// time, that it and the section's start name `parties`, and leaves the context usable.
fn fails_naming<L: Lpf>(
    ctx: &mut Context<'_, L>,
    parties: &[Pid],
    wait: impl for<'r> FnOnce(&mut Context<'r, L>, &Mesh) -> Result<()>,
) {
    let (seen, outer) = failing_rehook(ctx, |inner| {
        let mesh = Mesh::open(inner, 1, 4, 2, 64)?;
        inner.sync()?;
        let start = Instant::now();
        let error = wait(inner, &mesh).err().unwrap_or_else(|| sync_until_fatal(inner));
        Ok((error, start.elapsed()))
    });
    let (error, waited): (Error, Duration) = seen.expect("every process comes to its wait");
    assert_fatal_naming(&error, parties);
    assert_fatal_naming(&outer, parties);
    assert_in_time(waited, BOUND);
}

case! {
    /// Each waits for the next and nobody sends.
    pub fn a_cycle_of_waits_is_fatal_for_all timed [2, 3, 5] |ctx| {
        let p = ctx.nprocs();
        // Which two of a cycle are named is the backend's choice; of two processes it is both.
        let parties: &[Pid] = if p == 2 { &[0, 1] } else { &[] };
        for stamp in [0, 9] {
            fails_naming(ctx, parties, |inner, mesh| {
                if stamp != 0 {
                    inner.raw().enter(call(1, stamp));
                }
                let next = (inner.pid() + 1) % p;
                expect(inner, &[(mesh.with(next), 1)])
            });
        }
        // A cycle of some, while the others wait in a full sync.
        fails_naming(ctx, &[0, 1], |inner, mesh| match inner.pid() {
            0 => expect(inner, &[(mesh.with(1), 1)]),
            1 => expect(inner, &[(mesh.with(0), 1)]),
            _ => inner.sync(),
        });
    }
}

case! {
    /// Two processes believe in different roots for one call, so that each waits for the other; in
    /// a second form one of them sends what the other does not take for its call.
    pub fn two_roots_for_one_call_are_fatal_on_both_sides timed [2, 3] |ctx| {
        fails_naming(ctx, &[0, 1], |inner, mesh| {
            if inner.pid() > 1 {
                return inner.sync();
            }
            let stamp = 10 + inner.pid();
            inner.raw().enter(call(1, stamp));
            expect(inner, &[(mesh.with(1 - inner.pid()), 1)])
        });
        fails_naming(ctx, &[0, 1], |inner, mesh| {
            if inner.pid() > 1 {
                return inner.sync();
            }
            let (_kept, source) = bodies(inner, 1, 8)?;
            let stamp = 10 + inner.pid();
            inner.raw().enter(call(1, stamp));
            if inner.pid() == 0 {
                send(inner, source, 0..8, mesh.with(1))?;
            }
            expect(inner, &[(mesh.with(1 - inner.pid()), 1)])
        });
    }
}

case! {
    /// Both exchange, but of different sizes: the stamp of the first message tells.
    pub fn a_wrong_size_is_fatal_on_both_sides timed [2, 3] |ctx| {
        fails_naming(ctx, &[0, 1], |inner, mesh| {
            if inner.pid() > 1 {
                return inner.sync();
            }
            let (_kept, source) = bodies(inner, 1, 64)?;
            let bytes = 8 << inner.pid();
            inner.raw().enter(call(7, bytes));
            let peer = 1 - inner.pid();
            send(inner, source, 0..bytes, mesh.with(peer))?;
            expect(inner, &[(mesh.with(peer), 1)])?;
            inner.sync()
        });
    }
}

case! {
    /// One process skipped the call: it is in the next one, or in a full sync.
    pub fn a_skipped_call_is_fatal_on_both_sides timed [2, 3] |ctx| {
        // Process 1 goes on to a full sync.
        fails_naming(ctx, &[0, 1], |inner, mesh| {
            if inner.pid() > 0 {
                return inner.sync();
            }
            inner.raw().enter(call(3, 5));
            expect(inner, &[(mesh.with(1), 1)])
        });
        // Process 1 is in call 4, where it waits for process 0.
        fails_naming(ctx, &[0, 1], |inner, mesh| {
            if inner.pid() > 1 {
                return inner.sync();
            }
            let number = 3 + inner.pid();
            inner.raw().enter(call(number, 5));
            expect(inner, &[(mesh.with(1 - inner.pid()), 1)])
        });
        // Process 1 sends what belongs to call 4.
        fails_naming(ctx, &[0, 1], |inner, mesh| {
            if inner.pid() > 1 {
                return inner.sync();
            }
            let (_kept, source) = bodies(inner, 1, 8)?;
            let number = 3 + inner.pid();
            inner.raw().enter(call(number, 5));
            if inner.pid() == 1 {
                send(inner, source, 0..8, mesh.with(0))?;
                inner.sync_with(SyncAttr::Flush)?;
                return inner.sync();
            }
            expect(inner, &[(mesh.with(1), 1)])
        });
    }
}

case! {
    /// The awaited process has returned: who waits gets fatal, and so does its own start.
    pub fn a_process_that_left_is_fatal_for_who_waits timed [2, 4] |ctx| {
        let (waited, outer) = failing_rehook(ctx, |inner| {
            let mesh = Mesh::open(inner, 1, 4, 2, 64)?;
            inner.sync()?;
            let start = Instant::now();
            if inner.pid() == 0 {
                inner.raw().enter(call(1, 1));
                let error = expect(inner, &[(mesh.with(1), 1)]).expect_err("it has returned");
                assert_fatal_naming(&error, &[1]);
            }
            Ok(start.elapsed())
        });
        assert_fatal_naming(&outer, &[1]);
        assert_in_time(waited.expect("nobody panics"), BOUND);
    }
}

case! {
    /// Long computation never counts as failure, neither for those who wait for the slow process
    /// nor for those who wait for them.
    pub fn a_slow_process_is_not_taken_for_a_missing_one timed [4] |ctx| {
        let mesh = Mesh::open(ctx, 1, 4, 2, 64)?;
        let (_kept, source) = bodies(ctx, 1, 64)?;
        let me = ctx.pid();
        for round in 1..3 {
            if me < 3 {
                ctx.raw().enter(call(round, 1));
            }
            if me == 2 {
                std::thread::sleep(Duration::from_millis(900));
                send(ctx, source, 0..64, mesh.with(1))?;
            } else if me == 1 {
                expect(ctx, &[(mesh.with(2), 1)])?;
                assert_eq!(latest(ctx, mesh.with(2))?, body(0, 64));
                send(ctx, source, 0..64, mesh.with(0))?;
            } else if me == 0 {
                expect(ctx, &[(mesh.with(1), 1)])?;
                assert_eq!(latest(ctx, mesh.with(1))?, body(0, 64));
            }
            ctx.sync_with(SyncAttr::Flush)?;
            ctx.sync()?;
        }
    }
}
