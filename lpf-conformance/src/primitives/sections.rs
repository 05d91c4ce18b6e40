//! How sections start and what goes into and out of them: exec, hook, rehook, arguments.

use lpf_core::{Args, Context, Lpf, MAX_P, Pid, Result, Symbol};

use crate::memory::{Buffer, bury};
use crate::primitives::errors::fine;
use crate::runner::{beside_others, everywhere, expect_success, watched};
use crate::verdict::{refused, room};
use crate::{Harness, Mode};

/// Bytes of a number of processes in an output.
const COUNT: usize = size_of::<Pid>();

fn modes() -> [Mode; 2] {
    [Mode::default(), Mode { check: true, ..Mode::default() }]
}

/// Process 0 answers its input reversed, and its number of processes; the others check that
/// they have nothing.
fn answers<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    if ctx.pid() > 0 {
        assert!(args.input.is_empty(), "process {} has input", ctx.pid());
        assert!(args.output.is_empty(), "process {} has output", ctx.pid());
        return Ok(());
    }
    let input: Vec<u8> = args.input.iter().rev().copied().collect();
    args.output[..input.len()].copy_from_slice(&input);
    args.output[input.len()..][..COUNT].copy_from_slice(&ctx.nprocs().to_le_bytes());
    Ok(())
}

/// exec gives process 0 the input bytes and returns its output; the other processes get empty ones.
pub fn exec_hands_input_to_process_0_and_returns_its_output<H: Harness>(harness: &H) {
    let case = "exec_hands_input_to_process_0_and_returns_its_output";
    for mode in modes() {
        for (procs, len) in [(1, 0), (1, 5), (2, 1000), (4, 100_000), (8, 3)] {
            let input: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
            let mut output = vec![0xcc; len + COUNT + 2];
            let args = Args::in_out(&input, &mut output);
            let result =
                beside_others(|| watched(case, || harness.exec(mode, procs, answers, args)));
            expect_success(case, mode, procs, result);
            let mut expected: Vec<u8> = input.iter().rev().copied().collect();
            expected.extend(procs.to_le_bytes());
            expected.extend([0xcc; 2]);
            assert!(output == expected, "{case}: the output differs, {procs} processes");
        }
    }
}

/// An exec of more processes than there are, or of `MAX_P`, gets all of them.
pub fn exec_gives_at_most_what_is_available<H: Harness>(harness: &H) {
    let case = "exec_gives_at_most_what_is_available";
    for procs in [MAX_P, harness.procs() + 1, harness.procs()] {
        let mut output = [0; COUNT];
        let args = Args::in_out(&[], &mut output);
        let mode = Mode::default();
        let result = beside_others(|| watched(case, || harness.exec(mode, procs, answers, args)));
        expect_success(case, mode, procs, result);
        assert_eq!(Pid::from_le_bytes(output), harness.procs(), "exec({procs})");
    }
}

/// Checks its input against its number, communicates, and answers.
fn hooked<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    bury();
    let me = ctx.pid() as u8;
    assert_eq!(args.input, vec![me; 3 + me as usize]);
    refused!(Buffer::zeroed(1).local(ctx), Misuse, SlotsUsedUp { reserved: 0, .. });
    room(ctx, 2, 4)?;
    let (mut x, y) = (ctx.local::<u8>(1)?, ctx.area::<u8>(1)?);
    ctx.sync()?;
    ctx.write(&mut x)[0] = 50 + me;
    let next = (ctx.pid() + 1) % ctx.nprocs();
    ctx.put(&x, .., next, &y, 0)?;
    ctx.sync()?;
    args.output[0] = ctx.read(&y)[0];
    args.output[1] = me;
    Ok(())
}

/// hook runs on processes that exist already, with each one's own arguments, and again and again.
pub fn hook_passes_each_process_its_own_arguments<H: Harness>(harness: &H) {
    let case = "hook_passes_each_process_its_own_arguments";
    for mode in modes() {
        for procs in [1u8, 2, 3, 5, 1, 4] {
            let inputs: Vec<Vec<u8>> = (0..procs).map(|i| vec![i; 3 + i as usize]).collect();
            let hooked = beside_others(|| watched(case, || harness.hook(mode, &inputs, 2, hooked)));
            let Some(hooked) = hooked else { return };
            assert_eq!(hooked.len(), procs as usize);
            for (pid, process) in hooked.iter().enumerate() {
                let pid = pid as u8;
                if let Err(text) = &process.result {
                    panic!("{case}, process {pid} of {procs}: {text}");
                }
                let left = (pid + procs - 1) % procs;
                assert_eq!(process.output, [50 + left, pid], "process {pid} of {procs}");
            }
        }
    }
}

case! {
    /// A rehooked function captures what its process has, and returns a value to it.
    pub fn rehook_returns_each_process_its_own_value everywhere [1, 2, 4] |ctx| {
        let me = ctx.pid();
        let mut captured = vec![me];
        let value = ctx.rehook(|inner| {
            captured.push(inner.pid());
            Ok([inner.pid(), inner.nprocs()])
        })?;
        assert_eq!(captured, [me, me]);
        assert_eq!(value, [me, ctx.nprocs()]);
    }
}

case! {
    /// A rehooked context is pristine: no room, nothing registered, superstep 0; its own resizes
    /// and registrations end with it.
    pub fn rehook_gives_a_pristine_context everywhere [1, 2, 4] |ctx| {
        room(ctx, 1, 4)?;
        let buffer = Buffer::zeroed(8);
        let slot = buffer.global(ctx)?;
        ctx.sync()?;
        ctx.rehook(|inner| {
            assert_eq!(inner.superstep(), 0);
            let own = Buffer::zeroed(8);
            refused!(own.local(inner), Misuse, SlotsUsedUp { reserved: 0, .. });
            refused!(
                inner.raw().put(slot, 0, 0, slot, 4, 1),
                Misuse, UnknownSlot { .. }
            );
            room(inner, 5, 100)?;
            for _ in 0..5 {
                own.global(inner)?;
            }
            inner.sync()
        })?;
        refused!(Buffer::zeroed(8).local(ctx), Misuse, SlotsUsedUp { reserved: 1, .. });
        let me = ctx.pid();
        for _ in 0..2 {
            ctx.raw().put(slot, 0, me, slot, 4, 1)?;
        }
        let third = ctx.raw().put(slot, 0, me, slot, 4, 1);
        refused!(third, Misuse, RequestsUsedUp { .. });
        ctx.sync()?;
    }
}

case! {
    /// What the parent queued before a rehook is still pending after it.
    pub fn requests_of_the_parent_stay_pending_across_rehook everywhere [1, 2, 4] |ctx| {
        room(ctx, 3, 8)?;
        let (mut x, y) = (ctx.area::<usize>(1)?, ctx.area::<usize>(1)?);
        let z = ctx.local::<usize>(1)?;
        ctx.sync()?;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        let left = (ctx.pid() + ctx.nprocs() - 1) % ctx.nprocs();
        for round in 1..4 {
            ctx.write(&mut x)[0] = 100 * round + ctx.pid();
            let before = ctx.read(&y)[0];
            ctx.put(&x, .., next, &y, 0)?;
            ctx.get(next, &x, .., &z, 0)?;
            let superstep = ctx.superstep();
            ctx.rehook(|inner| {
                room(inner, 2, 8)?;
                let (mut a, b) = (inner.area::<u64>(3)?, inner.area::<u64>(3)?);
                inner.sync()?;
                let me = inner.pid() as u64;
                inner.write(&mut a).fill(me);
                inner.put(&a, .., next, &b, 0)?;
                inner.sync()?;
                assert_eq!(inner.read(&b), [left as u64; 3]);
                inner.sync()
            })?;
            assert_eq!(ctx.superstep(), superstep, "the child's supersteps are its own");
            assert_eq!(ctx.read(&y)[0], before, "the parent's put was executed in the child");
            ctx.sync()?;
            assert_eq!(ctx.read(&y)[0], 100 * round + left);
            assert_eq!(ctx.read(&z)[0], 100 * round + next);
            ctx.sync()?;
        }
    }
}

case! {
    /// A rehooked context may be rehooked; each level has its own slots and requests.
    pub fn rehooks_nest everywhere [1, 3] |ctx| {
        let mut depth = 0;
        ctx.rehook(|one| {
            room(one, 1, 4)?;
            let area = one.area::<u8>(1)?;
            one.sync()?;
            one.rehook(|two| {
                two.rehook(|three| {
                    room(three, 2, 2)?;
                    depth = 3;
                    three.sync()
                })?;
                room(two, 1, 2)
            })?;
            assert_eq!(one.read(&area), [0]);
            one.sync()
        })?;
        assert_eq!(depth, 3);
        ctx.sync()?;
    }
}

fn triple(x: u64) -> u64 {
    3 * x
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&b| u64::from(b)).sum()
}

fn calls<L: Lpf>(_ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    assert_eq!(args.symbols.len(), 2);
    let triple = args.symbols[0].get::<fn(u64) -> u64>().expect("its own signature");
    let sum = args.symbols[1].get::<for<'x> fn(&'x [u8]) -> u64>().expect("its own signature");
    assert_eq!((triple(14), sum(&[40, 2])), (42, 42));
    assert!(args.symbols[0].get::<fn()>().is_none(), "another signature");
    Ok(())
}

/// The function table reaches every process, where its functions can be called.
pub fn functions_can_be_called_on_every_process<H: Harness>(harness: &H) {
    let case = "functions_can_be_called_on_every_process";
    let symbols =
        [Symbol::new(triple as fn(u64) -> u64), Symbol::new(sum as for<'x> fn(&'x [u8]) -> u64)];
    for mode in modes() {
        for procs in [1, 2, 5] {
            let args = Args { symbols: &symbols, ..Args::none() };
            let result = beside_others(|| watched(case, || harness.exec(mode, procs, calls, args)));
            expect_success(case, mode, procs, result);
        }
    }
}

case! {
    /// Requests that no sync follows are dropped at the end without error.
    pub fn messages_not_sent_at_the_end_are_dropped everywhere [1, 2, 4] |ctx| {
        room(ctx, 2, 8)?;
        let (x, y) = (ctx.area::<u8>(4)?, ctx.area::<u8>(4)?);
        ctx.sync()?;
        let next = (ctx.pid() + 1) % ctx.nprocs();
        ctx.rehook(|inner| {
            room(inner, 1, 4)?;
            let area = inner.area::<u8>(4)?;
            inner.sync()?;
            inner.put(&area, 0..2, next, &area, 2)
        })?;
        ctx.put(&x, .., next, &y, 0)?;
        if ctx.pid() == 0 {
            ctx.get(next, &x, .., &y, 0)?;
        }
    }
}

/// Leaves its number of processes in the output.
fn counts<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    if let Some(count) = args.output.get_mut(..COUNT) {
        count.copy_from_slice(&ctx.nprocs().to_le_bytes());
    }
    room(ctx, 1, 4)?;
    ctx.sync()
}

/// An exec from here gets the processors that probe says, and together all processes have those of the machine.
fn shares_of_all<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    room(ctx, 2, 2 * ctx.nprocs() + 2)?;
    let (shares, mut own) = (ctx.area::<usize>(ctx.nprocs())?, ctx.area::<usize>(1)?);
    ctx.sync()?;
    let (machine, me) = (ctx.probe(), ctx.pid());
    let share = machine.free_p();
    ctx.write(&mut own)[0] = share;
    for to in 0..ctx.nprocs() {
        ctx.put(&own, .., to, &shares, me)?;
    }
    ctx.sync()?;
    assert_eq!(ctx.read(&shares).iter().sum::<Pid>(), machine.p(), "{:?}", ctx.read(&shares));
    for _ in 0..2 {
        let mut output = [0; COUNT];
        ctx.exec(MAX_P, Args::in_out(&[], &mut output), counts)?;
        assert_eq!(Pid::from_le_bytes(output), share, "process {me}");
    }
    ctx.exec(1, Args::none(), counts)?;
    ctx.sync()
}

/// The shares are even, the remainder goes to low numbers.
fn shares_are_even<L: Lpf>(ctx: &mut Context<'_, L>, _args: Args<'_>) -> Result<()> {
    let machine = ctx.probe();
    let (p, n) = (machine.p(), ctx.nprocs());
    let share = p / n + usize::from(ctx.pid() < p % n);
    assert_eq!(machine.free_p(), share, "probe's free_p at process {}", ctx.pid());
    Ok(())
}

/// Nested execs share the machine, own processor included: evenly, unless its processors are on nodes.
pub fn nested_execs_share_the_processors<H: Harness>(harness: &H) {
    let (case, procs) = ("nested_execs_share_the_processors", [1, 2, 3, 5, 8]);
    everywhere(harness, case, &procs, shares_of_all);
    if !harness.spreads_over_nodes() {
        everywhere(harness, case, &procs, shares_are_even);
    }
}

case! {
    /// An exec from inside a section returns its output there, and the section goes on.
    pub fn an_exec_in_a_section_returns_its_output everywhere [1, 2] |ctx| {
        let input = [1, 2, 3, ctx.pid() as u8];
        let mut output = [0; 4 + COUNT];
        ctx.exec(2, Args::in_out(&input, &mut output), answers)?;
        assert_eq!(output[..4], [ctx.pid() as u8, 3, 2, 1]);
        assert_eq!(output[4..], 2_usize.to_le_bytes());
        ctx.exec(2, Args::none(), fine)?;
        ctx.sync()?;
    }
}
