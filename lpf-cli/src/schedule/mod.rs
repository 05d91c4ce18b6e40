//! `lpf schedule`: who sends what to whom, when all know when everybody arrives.

mod bench;
mod chain;
mod clairvoyant;
mod file;
pub(crate) mod options;
mod plot;

use lpf::collectives::arrival_pattern::chain::Chain;

use self::options::{Schedule, ScheduleWhat};
use crate::failure::Result;

pub(crate) fn run(options: &Schedule) -> Result<()> {
    match &options.what {
        ScheduleWhat::Clairvoyant(options) => clairvoyant::run(options),
        ScheduleWhat::Bench(options) => bench::run(options),
        ScheduleWhat::Linear(options) => chain::run(Chain::Linear, options),
        ScheduleWhat::Ring(options) => chain::run(Chain::Ring, options),
        ScheduleWhat::Slt(options) => chain::run(Chain::SortedLinearTree, options),
        ScheduleWhat::Prr(options) => chain::run(Chain::PreReducedRing, options),
    }
}
