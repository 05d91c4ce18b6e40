//! Which of the two ways to exchange meta-data costs less here (`LPF_EXCHANGE`): an empty superstep is
//! timed both ways, in turns, and programs use the faster one from then on.

use std::time::{Duration, Instant};

use lpf::Pid;
use lpf::measure::stats::Samples;
use lpf::settings::Exchange;
use lpf::settings::Settings;

use crate::bench::empty_supersteps;
use crate::failure::Result;
use crate::interrupt;
use crate::output::time;
use crate::place::{Place, way_name};

/// Batches of a turn.
const BATCHES: usize = 10;
/// Turns, so that what else the machine does falls on both.
const TURNS: usize = 2;

/// Both ways, as measured.
#[derive(Debug)]
pub(super) struct Exchanges {
    pub(super) cheaper: Exchange,
    /// Nanoseconds.
    direct: f64,
    bruck: f64,
}

impl Exchanges {
    /// Times both, for about `time`, and stays with the cheaper one. Nothing where there is nothing to be
    /// chosen: by threads, in a job that was started by others, where the user has said which, and where
    /// Bruck's takes no fewer messages.
    pub(super) fn measure(place: &mut Place, p: Pid, time: Duration) -> Result<Option<Self>> {
        let asked = Settings::from_environment()?.exchange.value.is_some();
        if asked || !has_fewer(p) || !place.exchange_by(Exchange::Direct) {
            return Ok(None);
        }
        let (mut samples, start) = ([Samples::default(), Samples::default()], Instant::now());
        let mut turn = 0;
        while turn < TURNS || start.elapsed() < time && !interrupt::came() {
            for (way, samples) in [Exchange::Direct, Exchange::Bruck].into_iter().zip(&mut samples)
            {
                place.exchange_by(way);
                samples.extend(empty_supersteps(place, p, BATCHES)?);
            }
            turn += 1;
        }
        let [direct, bruck] = samples.map(|samples| samples.median());
        let cheaper = if bruck < direct { Exchange::Bruck } else { Exchange::Direct };
        place.settle_exchange(Some(cheaper));
        Ok(Some(Exchanges { cheaper, direct, bruck }))
    }

    /// For people.
    pub(super) fn sentence(&self) -> String {
        format!(
            "an empty superstep takes {} by direct messages and {} by a Bruck exchange; programs will use {}",
            time(self.direct),
            time(self.bruck),
            way_name(self.cheaper)
        )
    }
}

/// Whether 2 ceil(log2 p) messages are fewer than p - 1.
fn has_fewer(p: Pid) -> bool {
    2 * (p.next_power_of_two().trailing_zeros() as usize) < p.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_processes_have_nothing_to_choose() {
        let few: Vec<Pid> = (1..=16).filter(|&p| !has_fewer(p)).collect();
        assert_eq!(few, [1, 2, 3, 4, 5, 6, 7, 9]);
    }
}
