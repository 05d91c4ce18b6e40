//! Random programs: many supersteps of puts and gets that overlap, touch, repeat, go to oneself,
//! are empty, or reach gigabytes into sparse slots, checked byte by byte.
//!
//! A program is plain data, so that it travels as bytes and a failing one shrinks to a small one,
//! which is printed. No program reads and writes the same byte in one superstep: that is illegal.

use lpf_core::Args;

use crate::random::run_all;
use crate::{Harness, Mode};

mod carry;
mod exchange;
mod execute;
mod oracle;
mod program;
mod strategy;

fn programs<H: Harness>(harness: &H, case: &str, mode: Mode) {
    let drawn = strategy::programs(harness.registers_sparse_memory());
    run_all(harness, case, mode, drawn, |program| {
        let input = program.to_bytes();
        harness.exec(mode, program.procs, execute::random_program, Args::input(&input))
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
        harness.exec(mode, exchange.procs, carry::random_exchange, Args::input(&input))
    });
}
