//! How many messages a superstep takes.

use lpf_conformance::{Harness, Mode, PROCS};
use lpf_core::runtime::Process;
use lpf_core::settings::Exchange;
use lpf_core::{Args, Context, Result};
use lpf_messages::Messages;

use super::harness::InMemory;
use super::network::MemoryTransport;

/// Empty supersteps, then one with a long put to the next process.
fn counted(
    ctx: &mut Context<'_, Process<Messages<MemoryTransport>>>,
    _args: Args<'_>,
) -> Result<()> {
    ctx.resize(2, 2)?;
    ctx.sync()?;
    let p = ctx.nprocs() as u64;
    let begin = ctx.raw().engine().traffic();
    let rounds = u64::from(ctx.nprocs().next_power_of_two().trailing_zeros());
    let meeting = if begin.exchange == Exchange::Direct { p - 1 } else { 2 * rounds };
    for nth in 1..=3 {
        ctx.sync()?;
        let now = ctx.raw().engine().traffic();
        assert_eq!((now.meta - begin.meta, now.data, now.barrier), (nth * meeting, 0, 0));
    }
    let (from, to) = (ctx.local::<u8>(100_000)?, ctx.area::<u8>(100_000)?);
    ctx.sync()?;
    let begin = ctx.raw().engine().traffic();
    let next = (ctx.pid() + 1) % ctx.nprocs();
    ctx.put(&from, .., next, &to, 0)?;
    ctx.sync()?;
    let end = ctx.raw().engine().traffic();
    // One answer, and one message of data; to itself a process sends none.
    let others = u64::from(p > 1);
    assert_eq!((end.meta - begin.meta, end.data, end.barrier), (meeting + others, others, 0));
    Ok(())
}

#[test]
fn a_sync_takes_a_message_to_each_or_two_for_each_round_of_a_bruck_exchange() {
    let mode = Mode::default();
    for way in [Exchange::Direct, Exchange::Bruck] {
        for procs in [1, 2, 3, 5, PROCS] {
            InMemory::of(way).exec(mode, procs, counted, Args::none()).unwrap();
        }
    }
}
