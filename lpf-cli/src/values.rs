//! Values of options: numbers of processes, bytes, elements and seconds, and names of collectives.

use std::time::Duration;

use lpf::Pid;
use lpf::collectives::Collective;
use lpf::settings::MAX_PROCS;

use crate::failure::{Failure, Result};
use crate::misspelt;

/// The number of processes of a measurement.
pub(crate) fn processes(text: &str) -> std::result::Result<Pid, String> {
    let most = most_processes();
    let wanted = format!(
        "it has to be a number of processes from 1 to {most} ({PER_CORE} for each core: more cannot be measured in useful time)"
    );
    text.parse().ok().filter(|p| (1..=most).contains(p)).ok_or(wanted)
}

/// The number of processes of a job.
pub(crate) fn size(text: &str) -> std::result::Result<Pid, String> {
    let wanted = format!("it has to be a number of processes from 1 to {MAX_PROCS}");
    let n = number(text).and_then(|n| Pid::try_from(n).ok());
    n.filter(|n| (1..=MAX_PROCS).contains(n)).ok_or(wanted)
}

/// A whole number, as 1000000, 1_000_000 or 1e6.
fn number(text: &str) -> Option<usize> {
    /// Up to here a float has every whole number.
    const MOST: f64 = (1u64 << 53) as f64;
    let digits = text.replace('_', "");
    digits.parse().ok().or_else(|| {
        let value = digits.parse::<f64>().ok()?;
        (value.fract() == 0.0 && (0.0..=MOST).contains(&value)).then_some(value as usize)
    })
}

pub(crate) fn bytes(text: &str) -> std::result::Result<usize, String> {
    const MOST: usize = 1 << 30;
    let wanted = format!("it has to be a number of bytes from 1 to {MOST}");
    number(text).filter(|n| (1..=MOST).contains(n)).ok_or(wanted)
}

pub(crate) fn elements(text: &str) -> std::result::Result<usize, String> {
    const MOST: usize = 1 << 40;
    let wanted = format!("it has to be a number of elements from 0 to {MOST} (2^40)");
    number(text).filter(|&n| n <= MOST).ok_or(wanted)
}

/// The largest number of processes that share a core in a measurement: each pair of them exchanges
/// messages.
const PER_CORE: Pid = 64;

fn most_processes() -> Pid {
    (PER_CORE * lpf::settings::cores()).min(MAX_PROCS)
}

pub(crate) fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let wanted = "it has to be a number of seconds above 0, as 2.5, and at most 10000000";
    let seconds = text.parse::<f64>().ok().filter(|&s| s > 0.0 && s <= 1e7);
    seconds.map(Duration::from_secs_f64).ok_or(wanted.into())
}

/// The collective of a name.
pub(crate) fn collective(name: &str) -> Result<Collective> {
    let all = Collective::ALL;
    let of = |name: &str| all.into_iter().find(|one| one.name() == name);
    let even = name.strip_suffix("_v").or(name.strip_suffix("-v")).and_then(of);
    of(name).ok_or_else(|| {
        Failure::Usage(match even {
            Some(even) => format!("{name} counts as its even form here: name {}", even.name()),
            None => misspelt::one_of("collective", name, &all.map(Collective::name)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_be_written_in_several_ways() {
        for text in ["1000000", "1_000_000", "1e6", "0.5e6", "2.5e5"] {
            let expected = match text {
                "0.5e6" => 500_000,
                "2.5e5" => 250_000,
                _ => 1_000_000,
            };
            assert_eq!(number(text), Some(expected), "{text}");
        }
        for text in ["", "_", "1.5", "-1", "1e300", "inf", "nan", "1k", "1 000"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
