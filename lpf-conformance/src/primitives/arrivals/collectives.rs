//! Patterns of collectives: a chain, recursive doubling, a tree.

use std::time::Duration;

use lpf_core::board::{Board, Topic};
use lpf_core::{Args, Channel, Context, Lpf, Part, Pid, Result, Sent};

use super::channels;
use crate::primitives::board::board;
use crate::runner::{beside_others, expect_success, watched};
use crate::{Harness, Mode};

/// The channel with `peer`.
fn with<'a, 's, T>(all: &'a mut [Option<Channel<'s, T>>], peer: Pid) -> &'a mut Channel<'s, T> {
    all[peer].as_mut().expect("a process has no channel with itself")
}

/// Sends one value in a part of an outbox.
fn send_value<'s, L: Lpf, T: bytemuck::Pod>(
    ctx: &mut Context<'s, L>,
    to: &mut Channel<'s, T>,
    mut part: Part<'s, T>,
    value: T,
) -> Result<Sent<'s, T>> {
    part[0] = value;
    ctx.send(to, part, ..1).map_err(|(error, _)| error)
}

case! {
    /// No barrier hides in an expected sync: in a chain whose last process calls nothing for two
    /// seconds, all who exchange nothing with it have returned before it arrives.
    pub fn a_chain_whose_last_process_sleeps_lets_the_others_go timed [4] |ctx| {
        let mut all = channels::<_, u64>(ctx, 1, 2, 1)?;
        let part = ctx.outbox::<u64>(1, 1)?.pop().expect("one part");
        let (me, last) = (ctx.pid(), ctx.nprocs() - 1);
        let board = board(ctx);
        ctx.sync()?;
        if me == last {
            std::thread::sleep(Duration::from_secs(2));
            let left = board.read_all(Topic(1))?;
            let waiting: Vec<usize> =
                (0..last - 1).filter(|&pid| left[pid].is_none()).collect();
            assert!(waiting.is_empty(), "processes {waiting:?} still wait for the last one");
        }
        let mut sum = me as u64 + 1;
        if me > 0 {
            let [message] = ctx.expect([with(&mut all, me - 1)])?;
            sum += message[0];
        }
        if me < last {
            send_value(ctx, with(&mut all, me + 1), part, sum)?;
        }
        ctx.flush()?;
        board.write(Topic(1), &[])?;
        assert_eq!(sum, (me + 1) as u64 * (me + 2) as u64 / 2);
        ctx.sync()?;
    }
}

/// One all-reduce of `value` over 2^k processes by recursive doubling.
fn double<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    all: &mut [Option<Channel<'s, u64>>],
    parts: &mut Vec<Part<'s, u64>>,
    value: u64,
) -> Result<u64> {
    let mut sum = value;
    let mut sent = Vec::new();
    for round in 0..ctx.nprocs().ilog2() {
        let partner = with(all, ctx.pid() ^ 1 << round);
        let part = parts.pop().expect("one part per round");
        sent.push(send_value(ctx, partner, part, sum)?);
        let [message] = ctx.expect([partner])?;
        sum += message[0];
    }
    let flushed = ctx.flush()?;
    parts.extend(sent.into_iter().map(|sent| sent.part(&flushed).expect("flushed since")));
    Ok(sum)
}

case! {
    /// Thousands of recursive doublings back to back: the partner of a later round is often gone
    /// before a slow process has read what it sent.
    pub fn recursive_doubling_back_to_back_with_a_slow_member both_ways [2, 4, 8] |ctx| {
        let mut all = channels::<_, u64>(ctx, 1, 2, 1)?;
        let mut parts = ctx.outbox::<u64>(3, 1)?;
        let p = ctx.nprocs() as u64;
        let calls: u64 = if p == 8 { 500 } else { 3000 };
        ctx.sync()?;
        for call in 0..calls {
            if call % 64 == 9 && ctx.pid() == 1 {
                std::thread::sleep(Duration::from_micros(300));
            }
            let own = call * call + ctx.pid() as u64;
            let sum = double(ctx, &mut all, &mut parts, own)?;
            assert_eq!(sum, p * call * call + p * (p - 1) / 2, "call {call}");
        }
        ctx.sync()?;
    }
}

/// This process's numbers: sums of them depend on the order of adding.
fn number(pid: Pid, round: usize) -> f64 {
    let sign = if (pid + round).is_multiple_of(2) { 1.0 } else { -1.0 };
    sign * (pid as f64 + 0.1).powi(12) / (1.0 + round as f64) + 1e-9 * round as f64
}

const ROUNDS: usize = 20;

/// Process 0 adds what the others send, in the order of their numbers, and broadcasts the sum;
/// the output is its bits.
fn adds_up<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    let mut all = channels::<_, f64>(ctx, 1, 4, 1)?;
    let mut parts = ctx.outbox::<f64>(ctx.nprocs(), 1)?;
    let (me, p) = (ctx.pid(), ctx.nprocs());
    let mut total = 0.0;
    for round in 0..ROUNDS {
        let mut sum = number(me, round) + total;
        let mut sent = Vec::new();
        let mut part = || parts.pop().expect("one part per process");
        if me > 0 {
            sent.push(send_value(ctx, with(&mut all, 0), part(), sum)?);
            let [message] = ctx.expect([with(&mut all, 0)])?;
            sum = message[0];
        } else {
            for from in 1..p {
                let [message] = ctx.expect([with(&mut all, from)])?;
                sum += message[0];
            }
            for to in 1..p {
                sent.push(send_value(ctx, with(&mut all, to), part(), sum)?);
            }
        }
        total = sum;
        let flushed = ctx.flush()?;
        parts.extend(sent.into_iter().map(|sent| sent.part(&flushed).expect("flushed since")));
    }
    ctx.sync()?;
    if me == 0 {
        args.output.copy_from_slice(&total.to_bits().to_le_bytes());
    }
    Ok(())
}

/// What [`sums`] computes, on one process.
fn sums(p: Pid) -> f64 {
    (0..ROUNDS).fold(0.0, |total, round| {
        (0..p).map(|pid| number(pid, round) + total).reduce(|sum, x| sum + x).expect("p > 0")
    })
}

/// Strict mode gives the same bits as the plain mode, and both those of the schedule's order.
pub fn strict_mode_gives_the_same_bits<H: Harness>(harness: &H) {
    let case = "strict_mode_gives_the_same_bits";
    for procs in [2, 3, 5, 8] {
        for strict in [false, true] {
            let mode = Mode { strict, ..Mode::default() };
            let mut output = [0; 8];
            let args = Args::in_out(&[], &mut output);
            let result =
                beside_others(|| watched(case, || harness.exec(mode, procs, adds_up, args)));
            expect_success(case, mode, procs, result);
            let (got, expected) = (u64::from_le_bytes(output), sums(procs).to_bits());
            assert_eq!(got, expected, "{case}, {procs} processes, {mode:?}");
        }
    }
}
