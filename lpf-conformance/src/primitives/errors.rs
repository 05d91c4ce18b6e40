//! Misuse, fatal, and what stays usable.

use std::io::Write;
use std::time::{Duration, Instant};

use lpf_core::{Args, Cause, Context, Error, Lpf, Result};

use crate::memory::{Buffer, bury};
use crate::primitives::arrivals::{Mesh, expect};
use crate::runner::{alone, beside_others, section, watched};
use crate::verdict::{
    assert_fatal_naming, assert_in_time, failing_rehook, refused, room, sync_until_fatal,
};
use crate::{Harness, Mode};

case! {
    /// Local ranges are checked at the call, by arithmetic that does not wrap.
    pub fn a_local_range_outside_its_slot_is_misuse everywhere [1, 2] |ctx| {
        room(ctx, 2, 8)?;
        let (a, b) = (Buffer::filled(8, 1), Buffer::filled(16, 2));
        let (global, local) = (a.global(ctx)?, b.local(ctx)?);
        ctx.sync()?;
        for (offset, bytes) in
            [(0, 17), (16, 1), (9, 8), (usize::MAX, 1), (usize::MAX - 3, 8), (8, usize::MAX)]
        {
            let put = ctx.raw().put(local, offset, 0, global, 0, bytes);
            refused!(put, Misuse, OutOfRange { .. });
            let get = ctx.raw().get(0, global, 0, local, offset, bytes);
            refused!(get, Misuse, OutOfRange { .. });
        }
        ctx.sync()?;
        assert_eq!((a.to_vec(), b.to_vec()), (vec![1; 8], vec![2; 16]));
        let me = ctx.pid();
        ctx.raw().put(local, 12, me, global, 4, 4)?;
        ctx.sync()?;
        assert_eq!(a.to_vec(), [1, 1, 1, 1, 2, 2, 2, 2]);
    }
}

/// Checks what a process saw of a request of process 1 for memory that process 0 does not have.
fn assert_out_of_range(seen: Option<Error>, outer: &Error, pid: lpf_core::Pid) {
    let error = seen.expect("every process sees it at a sync");
    for error in [&error, outer] {
        assert_fatal_naming(error, &[0, 1]);
        let names_both =
            matches!(error.cause(), Cause::RemoteOutOfRange { origin: 1, target: 0, .. });
        assert!(names_both, "process {pid} saw: {error}");
    }
}

case! {
    /// Remote ranges are checked by the destination: fatal, naming the origin.
    pub fn a_remote_range_outside_its_slot_is_fatal_and_names_the_origin everywhere [2, 4] |ctx| {
        for (offset, bytes) in [(5, 4), (9, 1), (usize::MAX - 1, 4), (0, 12)] {
            let (seen, outer) = failing_rehook(ctx, |inner| {
                room(inner, 2, 8)?;
                // Process 0 has 8 bytes, the others 16: only the target can know.
                let buffer = Buffer::zeroed(if inner.pid() == 0 { 8 } else { 16 });
                let slot = buffer.global(inner)?;
                inner.sync()?;
                if inner.pid() == 1 {
                    inner.raw().put(slot, 0, 0, slot, offset, bytes)?;
                }
                Ok(sync_until_fatal(inner))
            });
            assert_out_of_range(seen, &outer, ctx.pid());
        }
    }
}

case! {
    /// The same for the remote side of a get.
    pub fn a_get_outside_its_remote_slot_is_fatal_and_names_the_origin everywhere [2, 4] |ctx| {
        for (offset, bytes) in [(5, 4), (9, 1), (usize::MAX - 1, 4), (0, 12)] {
            let (seen, outer) = failing_rehook(ctx, |inner| {
                room(inner, 2, 8)?;
                let buffer = Buffer::zeroed(if inner.pid() == 0 { 8 } else { 16 });
                let slot = buffer.global(inner)?;
                inner.sync()?;
                if inner.pid() == 1 {
                    inner.raw().get(0, slot, offset, slot, 0, bytes)?;
                }
                Ok(sync_until_fatal(inner))
            });
            assert_out_of_range(seen, &outer, ctx.pid());
        }
    }
}

case! {
    /// A process number that does not exist is found at the call.
    pub fn a_process_that_does_not_exist_is_misuse everywhere [1, 3] |ctx| {
        room(ctx, 1, 4)?;
        let buffer = Buffer::zeroed(8);
        let slot = buffer.global(ctx)?;
        ctx.sync()?;
        for pid in [ctx.nprocs(), ctx.nprocs() + 1, lpf_core::Pid::MAX] {
            refused!(
                ctx.raw().put(slot, 0, pid, slot, 4, 1),
                Misuse, NoSuchProcess { .. }
            );
            refused!(
                ctx.raw().get(pid, slot, 0, slot, 4, 1),
                Misuse, NoSuchProcess { .. }
            );
        }
        ctx.sync()?;
    }
}

case! {
    /// Over capacity at the target is found in phase 1: fatal, naming both.
    pub fn too_many_requests_at_a_target_are_fatal_and_name_both everywhere [3, 5] |ctx| {
        for by_get in [false, true] {
            let (seen, outer) = failing_rehook(ctx, |inner| {
                room(inner, 1, 3)?;
                let buffer = Buffer::zeroed(64);
                let slot = buffer.global(inner)?;
                inner.sync()?;
                // Within the capacity of every origin, but 5 at process 0.
                let requests = [0, 3, 2].get(inner.pid()).copied().unwrap_or(0);
                for i in 0..requests {
                    let at = 8 * i + 2 * inner.pid();
                    if by_get {
                        inner.raw().get(0, slot, 0, slot, at + 8, 1)?;
                    } else {
                        inner.raw().put(slot, 0, 0, slot, at + 8, 1)?;
                    }
                }
                Ok(sync_until_fatal(inner))
            });
            for error in [&seen.expect("every process sees it at a sync"), &outer] {
                assert_fatal_naming(error, &[0, 1]);
                let overrun =
                    matches!(error.cause(), Cause::TargetOverrun { target: 0, origin: 1, .. });
                assert!(overrun, "{error}");
            }
        }
    }
}

/// Processes 1 and 2 put more to process 0 than that has room for.
fn overrun<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    bury();
    let (seen, _) = failing_rehook(ctx, |inner| {
        room(inner, 1, 3)?;
        let buffer = Buffer::zeroed(64);
        let slot = buffer.global(inner)?;
        inner.sync()?;
        for nth in 0..if inner.pid() == 0 { 0 } else { 3 } {
            inner.raw().put(slot, 0, 0, slot, 8 + nth, 1)?;
        }
        Ok(sync_until_fatal(inner))
    });
    let error = seen.expect("every process sees it at a sync");
    let text = error.to_string();
    assert!(matches!(error.cause(), Cause::TargetOverrun { target: 0, .. }), "{text}");
    assert!(!text.contains("LPF_CHECK"), "{text}");
    let is_placed = text.contains(&format!("(called at {}:", file!()));
    assert!(is_placed || error.process() != Some(ctx.pid()), "{text}");
    Ok(())
}

/// Checked mode does not advise to turn it on. The process that made one request too many for another learns where
/// it made it.
pub fn checked_mode_names_the_place_of_too_many_requests<H: Harness>(harness: &H) {
    let case = "checked_mode_names_the_place_of_too_many_requests";
    let mode = Mode { check: true, ..Mode::default() };
    beside_others(|| section(harness, case, mode, 3, overrun, Args::none()));
}

case! {
    /// After fatal, every later sync, exec and rehook on that context returns fatal, and so does
    /// what started the section, whatever its functions return.
    pub fn after_fatal_everything_is_fatal everywhere [1, 2, 4] |ctx| {
        let mut first = None;
        let result = ctx.rehook(|inner| {
            room(inner, 1, 8)?;
            let buffer = Buffer::zeroed(8);
            let slot = buffer.global(inner)?;
            inner.sync()?;
            if inner.pid() == 0 {
                inner.raw().put(slot, 0, 0, slot, 6, 4)?;
            }
            let error = sync_until_fatal(inner);
            for _ in 0..3 {
                let again = inner.sync().expect_err("sync after fatal");
                assert!(again.is_fatal(), "{again}");
            }
            let flush = inner.sync_with(lpf_core::SyncAttr::Flush).expect_err("flush after fatal");
            assert!(flush.is_fatal(), "{flush}");
            let rehook = inner.rehook(|_| Ok(()));
            let rehook = rehook.expect_err("rehook after fatal");
            assert!(rehook.is_fatal(), "{rehook}");
            let exec = inner.exec(1, Args::none(), fine).expect_err("exec after fatal");
            assert!(exec.is_fatal(), "{exec}");
            first = Some(error);
            Ok(())
        });
        let first = first.expect("every process gets as far as its fatal sync");
        let result = result.expect_err("the rehook of a failed section");
        assert!(result.is_fatal(), "{result}");
        assert_eq!(first.cause(), result.cause());
        ctx.sync()?;
    }
}

case! {
    /// Misuse is found at the call and has no effect; the section goes on.
    pub fn misuse_has_no_effect_and_the_section_goes_on everywhere [1, 2, 4] |ctx| {
        room(ctx, 2, 6)?;
        let mut buffer = Buffer::zeroed(16);
        let slot = buffer.global(ctx)?;
        ctx.sync()?;
        let (p, next) = (ctx.nprocs(), (ctx.pid() + 1) % ctx.nprocs());
        for round in 1..20u8 {
            buffer.write(0, &[round; 4]);
            ctx.sync()?;
            let mut raw = ctx.raw();
            raw.put(slot, 0, next, slot, 8, 4)?;
            assert!(raw.put(slot, 14, next, slot, 8, 4).is_err());
            assert!(raw.put(slot, 0, p, slot, 8, 4).is_err());
            assert!(raw.get(p, slot, 0, slot, 12, 4).is_err());
            // SAFETY: it names no slot.
            let unknown = unsafe { lpf_core::GlobalSlot::from_bits(u64::from(round) << 33 | 77) };
            assert!(raw.put(slot, 0, next, unknown, 8, 4).is_err());
            assert!(raw.deregister(unknown).is_err());
            raw.get(next, slot, 0, slot, 12, 4)?;
            ctx.sync()?;
            assert_eq!(buffer.read(8, 8), [round; 8]);
        }
    }
}

/// Every process puts its number to every other and checks what it got: a section that works.
pub(super) fn fine<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    let p = ctx.nprocs();
    room(ctx, 2, 2 * p)?;
    let (mut x, y) = (ctx.local::<usize>(1)?, ctx.area::<usize>(p)?);
    ctx.sync()?;
    ctx.write(&mut x)[0] = 100 + ctx.pid();
    for to in 0..p {
        ctx.put(&x, .., to, &y, ctx.pid())?;
    }
    ctx.sync()?;
    assert!(ctx.read(&y).iter().copied().eq(100..100 + p));
    Ok(())
}

/// The last process names memory that process 0 does not have.
fn out_of_range<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    room(ctx, 1, 8)?;
    let buffer = Buffer::zeroed(8);
    let slot = buffer.global(ctx)?;
    ctx.sync()?;
    if ctx.pid() == ctx.nprocs() - 1 {
        ctx.raw().put(slot, 0, 0, slot, 6, 4)?;
    }
    sync_until_fatal(ctx);
    Ok(())
}

case! {
    /// A fatal section takes nothing with it: the context that started it starts the next.
    pub fn the_next_exec_works_after_a_fatal_one everywhere [1] |ctx| {
        let p = ctx.probe().free_p();
        for procs in [1, 2, p, p - 1] {
            let error = ctx.exec(procs, Args::none(), out_of_range);
            let error = refused!(error, Fatal, RemoteOutOfRange { target: 0, .. });
            assert_fatal_naming(&error, &[0, procs - 1]);
            ctx.exec(procs, Args::none(), fine)?;
        }
    }
}

/// Each process begins as many sections as its number, then the last one gives up.
fn nests_and_fails<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    ctx.sync()?;
    for _ in 0..ctx.pid() {
        ctx.exec(1, Args::none(), fine)?;
    }
    if ctx.pid() == ctx.nprocs() - 1 {
        return Err(Error::program("enough"));
    }
    sync_until_fatal(ctx);
    Ok(())
}

case! {
    /// What a section left behind when it failed is not taken for anything of the next ones, however
    /// many sections each process had begun in it.
    pub fn a_failed_section_is_not_mistaken_for_a_later_one everywhere [1] |ctx| {
        let p = ctx.probe().free_p();
        for _ in 0..3 {
            let error = ctx.exec(p, Args::none(), nests_and_fails);
            refused!(error, Fatal, Returned { .. });
            for _ in 0..2 * p {
                ctx.exec(p, Args::none(), fine)?;
            }
        }
    }
}

/// The time limit of [`dawdles`].
const LIMIT: Duration = Duration::from_millis(300);

/// Process 1 computes for longer than a superstep may take; the others wait in a full sync.
/// Process 0's output is how long, in milliseconds: an assertion made after the section has
/// failed would be lost with it.
fn dawdles<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    // Taken before the barrier: another process may begin to wait for process 1, and give up, before this one.
    let start = Instant::now();
    ctx.sync()?;
    if ctx.pid() == 1 {
        std::thread::sleep(4 * LIMIT);
    }
    let result = ctx.sync();
    if ctx.pid() == 0 {
        let waited = start.elapsed().as_millis() as u64;
        args.output.copy_from_slice(&waited.to_le_bytes());
    }
    if result.is_ok() {
        // By now the others have given up. A panic would be lost with the section, and what tests print is captured.
        let text = format!("process {} completed a sync of a section that had failed\n", ctx.pid());
        let _ = std::io::stderr().write_all(text.as_bytes());
        std::process::abort();
    }
    result
}

/// The time limit of [`wait_for_the_last`]: processes that begin take some time, too.
const CHAIN_LIMIT: Duration = Duration::from_secs(1);

/// The last process computes for longer than the time limit, and the one before it waits for its message. The others
/// wait in a full sync, or in a chain each for a message of the next.
fn wait_for_the_last<L: Lpf>(ctx: &mut Context<'_, L>, chain: bool) -> Result<()> {
    let (pid, last) = (ctx.pid(), ctx.nprocs() - 1);
    let mesh = Mesh::open(ctx, 1, 4, 2, 64)?;
    ctx.sync()?;
    if pid == last {
        std::thread::sleep(3 * CHAIN_LIMIT);
    } else if chain || pid == last - 1 {
        expect(ctx, &[(mesh.with(pid + 1), 1)])?;
    }
    ctx.sync()
}

fn waits_in_a_sync<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    wait_for_the_last(ctx, false)
}

fn waits_in_a_chain<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    wait_for_the_last(ctx, true)
}

/// Whatever the processes wait in, the report names the one that computes, and not one that waits for it itself.
pub fn the_time_limit_names_the_process_that_waits_for_none<H: Harness>(harness: &H) {
    let case = "the_time_limit_names_the_process_that_waits_for_none";
    let limited = Mode { timeout: Some(CHAIN_LIMIT), ..Mode::default() };
    for (procs, chain) in [(3, false), (3, true), (5, false), (5, true)] {
        let run = || {
            let result = watched(case, || match chain {
                false => harness.exec(limited, procs, waits_in_a_sync, Args::none()),
                true => harness.exec(limited, procs, waits_in_a_chain, Args::none()),
            });
            refused!(result, Fatal, Late { .. })
        };
        alone(|| {
            // On a busy machine a process may be late when it begins: then it is named.
            let mut errors = std::iter::repeat_with(run).take(5);
            let error = errors.find(|error| error.superstep() >= Some(2));
            let error = error.expect("the processes begin within the limit");
            assert_eq!(error.process(), Some(procs - 1), "{error}");
        });
    }
}

/// Under `LPF_TIMEOUT` a process that does not come to a superstep in time is fatal; without it,
/// long computation never counts as failure.
pub fn a_superstep_over_its_time_limit_is_fatal<H: Harness>(harness: &H) {
    let case = "a_superstep_over_its_time_limit_is_fatal";
    let limited = Mode { timeout: Some(LIMIT), ..Mode::default() };
    alone(|| {
        for procs in [2, 3] {
            let mut output = [0; 8];
            let args = Args::in_out(&[], &mut output);
            let result = watched(case, || harness.exec(limited, procs, dawdles, args));
            let error = refused!(result, Fatal, Late { .. });
            assert_fatal_naming(&error, &[1]);
            // 0 where the output of a failed section does not come back.
            let waited = Duration::from_millis(u64::from_le_bytes(output));
            assert!(waited.is_zero() || waited >= LIMIT, "given up after {waited:?}");
            assert_in_time(waited, 3 * LIMIT);
        }
        // Between processes the late one may still be at it: without a limit it is waited for.
        section(harness, case, Mode::default(), 3, fine, Args::none());
    });
}

case! {
    /// `?` takes an error of the standard library out of a section. The other processes get its text, with the process
    /// and superstep where it began.
    pub fn an_error_of_std_ends_its_section_with_its_text everywhere [2, 3] |ctx| {
        let last = ctx.nprocs() - 1;
        let (_, error) = failing_rehook(ctx, |inner| {
            inner.sync()?;
            if inner.pid() == last {
                std::fs::read("/there/is/no/such/matrix")?;
            }
            Ok(sync_until_fatal(inner))
        });
        assert!(error.to_string().contains("No such file or directory"), "{error}");
        if ctx.pid() != last {
            assert_eq!((error.process(), error.superstep()), (Some(last), Some(1)));
            refused!(Err::<(), _>(error), Fatal, Returned { .. });
        }
    }
}
