//! What random cases share: drawing programs, and giving one to every process.

use std::fmt::Debug;

use lpf_core::{Context, Lpf, Result};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::runner::{beside_others, watched};
use crate::verdict::room;
use crate::{Harness, Mode};

pub(crate) mod words;

/// Runs programs drawn from `drawn`; one that fails is made smaller and shown.
pub(crate) fn run_all<H: Harness, P: Debug>(
    harness: &H,
    case: &str,
    mode: Mode,
    drawn: impl Strategy<Value = P>,
    run: impl Fn(&P) -> Result<()>,
) {
    let config = Config {
        cases: harness.pace().random_programs(),
        failure_persistence: None,
        max_shrink_time: 60_000,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&drawn, |program| {
        let ended = beside_others(|| watched(case, || run(&program)));
        ended.map_err(|error| TestCaseError::fail(error.to_string()))
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, program)) => {
            panic!("{case}, {mode:?}: {reason}\nthe smallest program that fails: {program:#?}")
        }
        Err(TestError::Abort(reason)) => panic!("{case}: {reason}"),
    }
}

/// Process 0's bytes, at every process.
pub(crate) fn broadcast<L: Lpf>(ctx: &mut Context<'_, L>, bytes: &[u8]) -> Result<Vec<u8>> {
    room(ctx, 2, 2 * ctx.nprocs())?;
    let mut len = ctx.area::<u64>(1)?;
    ctx.sync()?;
    if ctx.pid() == 0 {
        ctx.write(&mut len)[0] = bytes.len() as u64;
        for to in 1..ctx.nprocs() {
            ctx.put(&len, .., to, &len, 0)?;
        }
    }
    ctx.sync()?;
    let mut all = ctx.area::<u8>(ctx.read(&len)[0] as usize)?;
    ctx.sync()?;
    if ctx.pid() == 0 {
        ctx.write(&mut all).copy_from_slice(bytes);
        for to in 1..ctx.nprocs() {
            ctx.put(&all, .., to, &all, 0)?;
        }
    }
    ctx.sync()?;
    let copy = ctx.read(&all).to_vec();
    ctx.deregister(len)?;
    ctx.deregister(all)?;
    Ok(copy)
}
