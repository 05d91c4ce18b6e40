//! Random programs: many supersteps of puts and gets that overlap, touch, repeat, go to oneself,
//! are empty, or reach gigabytes into sparse slots, checked byte by byte.
//!
//! A program is plain data, so that it travels as bytes and a failing one shrinks to a small one,
//! which is printed. No program reads and writes the same byte in one superstep: that is illegal.

use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::args::Args;
use crate::conformance::runner::{beside_others, watched};
use crate::conformance::{Harness, Mode};
use crate::error::Result;

mod carry;
mod exchange;
pub(super) mod execute;
mod oracle;
mod program;
mod strategy;
pub(super) mod words;

/// Runs programs drawn from `drawn`; one that fails is made smaller and shown.
pub fn run_all<H: Harness, P: Debug>(
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

fn programs<H: Harness>(harness: &H, case: &str, mode: Mode) {
    let drawn = strategy::programs(harness.registers_sparse_memory());
    run_all(harness, case, mode, drawn, |program| {
        let input = program.to_bytes();
        harness.exec(mode, program.procs, execute::RandomProgram, Args::input(&input))
    });
}

/// Random programs on one to eight processes.
pub fn random_programs_keep_the_contract<H: Harness>(harness: &H) {
    programs(harness, "random_programs_keep_the_contract", Mode::default());
}

/// The same in the checked mode, which finds nothing to report.
pub fn random_programs_keep_the_contract_in_checked_mode<H: Harness>(harness: &H) {
    let mode = Mode { check: true, ..Mode::default() };
    programs(harness, "random_programs_keep_the_contract_in_checked_mode", mode);
}

/// Random exchanges on links between two to five processes.
pub fn random_exchanges_on_links_arrive_in_order<H: Harness>(harness: &H) {
    let case = "random_exchanges_on_links_arrive_in_order";
    let mode = Mode::default();
    run_all(harness, case, mode, exchange::exchanges(), |exchange| {
        let input = exchange.to_bytes();
        harness.exec(mode, exchange.procs, carry::RandomExchange, Args::input(&input))
    });
}
