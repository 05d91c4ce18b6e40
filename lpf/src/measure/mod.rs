//! Measuring r, g and l: the paper's method (Suijlen and Yzelman, 4.1), generic over the backend.
//!
//! The total exchange is timed for h of 0, p, 2p, 4p and 8p words, and for larger h, each twice the one before. The
//! largest is n_max: there is no reason, memory or time for a larger one. Then
//!
//! ```text
//! g = (T(n_max) - T(2p)) / (n_max - 2p)        l = max{ T(0), 2T(kp) - T(2kp) for k = 1, 2, 4 }
//! ```
//!
//! for messages of each size; between processes l is the largest for k up to 16, and of total exchanges by
//! gets too.
//!
//! Batches are taken in random order until the 95 % intervals are narrow or the time is up.
//!
//! Differences from the paper:
//! - n_max is so large that a superstep touches four times the last cache, its requests included. If that takes more
//!   than an eighth of the memory, or too long for enough samples, n_max is smaller: the caches of one core are left
//!   much earlier, and g grows little from there on.
//! - For l, k is 2 and 4 too, because the first words may travel with the barrier. Only T(2kp) of up to 16 T(0)
//!   counts: above, 2T(kp) - T(2kp) is noise. (Between processes: up to 64 T(0), and beyond its interval.)
//! - Between processes a get is answered, and long data travels apart from its announcement. Either costs
//!   a message more than T(0) includes, so these exchanges count for l, too.
//! - T is a median of batches and not a mean of days (see [`stats`]);
//! - if noise makes T(n_max) no larger than T(2p), g is T(n_max) / n_max and its interval 100 %;
//! - words are read and written without a stride (see [`exchange`]);
//! - each superstep of a batch works in memory that its owner rewrote before the batch, so that no
//!   copier finds the words in its own cache (see [`superstep`]).
//!
//! `lpf probe`, `lpf comply` and `LPF_PROBE` all use this.

pub mod batch;
pub mod conduct;
pub mod exchange;
pub mod memcpy;
pub mod plan;
pub mod schedule;
pub mod share;
pub mod stats;
pub mod superstep;
pub mod task;

mod alone;
mod now;
mod random;
mod rounds;

use std::sync::Mutex;

use lpf_core::machine::{Growth, Origin, Parameters};
use lpf_core::{Args, Context, Lpf, Pid, Result};
use lpf_pthreads::Config;
use serde::{Deserialize, Serialize};

use self::conduct::conduct;
use self::exchange::TotalExchange;
use self::rounds::Size;
use self::superstep::{Empty, Pattern, Timing};

pub use self::alone::Alone;
pub use self::now::{Now, measured_here, measured_now};
pub use self::plan::{Plan, Word};
pub use self::random::Random;
pub use self::rounds::{Point, Progress};

/// The result of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// g and l by word size.
    pub parameters: Parameters,
    /// T(h) by word size, as measured: for a plot.
    pub points: Vec<Vec<Point>>,
    /// h at which g was measured, by word size, bytes.
    pub largest: Vec<usize>,
    /// Whether every interval was narrow before the time was up.
    pub narrow: bool,
}

/// A configuration to measure under: checked mode is off, even if the environment sets it. In checked mode every
/// byte costs several times as much, and such a table would mislead every program that runs without it.
pub fn unchecked(config: Config) -> Config {
    config.check(false)
}

/// Measures r, g and l of the threads backend as it is configured, on `plan.p` processes, but never
/// in checked mode. `watch` is shown the progress between batches.
///
/// # Errors
/// *Mitigable* if memory or threads are refused, *fatal* if the section failed.
pub fn measure_threads(
    config: &Config,
    plan: &Plan,
    watch: &(dyn Fn(&Progress) + Sync),
) -> Result<Measured> {
    let alone = Alone::measure(plan, &|| false);
    let found = Mutex::new(None);
    let config = unchecked(config.clone().procs(plan.p));
    config.exec(plan.p, Args::none(), |ctx, _args| {
        let measured = measure(ctx, plan, &alone, Growth::SharedMemory, watch, &|| false)?;
        if ctx.pid() == 0 {
            *found.lock().expect("only process 0 locks") = Some(measured);
        }
        Ok(())
    })?;
    let found = found.into_inner().expect("only process 0 locks");
    Ok(found.expect("the section ended well, so process 0 stored what it measured"))
}

/// Measures g and l inside a section. Collective. Process 0 gets the result, the others a guess.
///
/// Process 0 asks `stop` before each batch. If it is true, the measurement ends with the samples it has; a word size
/// without samples has g = 0.
///
/// # Errors
/// *Mitigable* if memory is refused, *fatal* if the section failed.
pub fn measure<L: Lpf>(
    ctx: &mut Context<'_, L>,
    plan: &Plan,
    alone: &Alone,
    growth: Growth,
    watch: &dyn Fn(&Progress),
    stop: &dyn Fn() -> bool,
) -> Result<Measured> {
    let h = rounds::sizes(plan);
    let patterns: Vec<Box<dyn Pattern<L>>> =
        h.iter().map(|size| exchange(plan.p, plan.words[size.word].bytes, size)).collect();
    let mut rounds = rounds::Rounds::new(plan, &h, &alone.memcpy, watch, stop);
    conduct(ctx, &patterns, Timing::Fresh, &mut rounds)?;
    let rows = rounds.rows();
    if ctx.pid() != 0 {
        let parameters = Parameters::guess(growth);
        let (points, largest) = (Vec::new(), Vec::new());
        return Ok(Measured { parameters, points, largest, narrow: false });
    }
    let (p, combine_ns_per_byte) = (plan.p, alone.combine_ns_per_byte);
    let parameters = Parameters { p, growth, origin: Origin::Measured, rows, combine_ns_per_byte };
    let (points, largest) = (rounds.points(), rounds.largest());
    Ok(Measured { parameters, points, largest, narrow: rounds.all_narrow() })
}

fn exchange<L: Lpf>(p: Pid, word: usize, size: &Size) -> Box<dyn Pattern<L>> {
    let puts = TotalExchange::new(p, word, size.bytes);
    match size {
        Size { bytes: 0, .. } => Box::new(Empty),
        Size { by_get: true, .. } => Box::new(puts.by_get()),
        Size { by_get: false, .. } => Box::new(puts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_never_checked() {
        let checked = Config::new().check(true);
        assert_ne!(format!("{checked:?}"), format!("{:?}", Config::new()));
        let unchecked = format!("{:?}", unchecked(checked));
        assert!(unchecked.contains("check: false"), "{unchecked}");
    }
}
