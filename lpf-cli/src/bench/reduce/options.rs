//! The options of `lpf bench reduce`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lpf::collectives::Collective;

use super::arrivals::Pattern;
use crate::failure::{Failure, Result};
use crate::measuring::Measuring;
use crate::misspelt;
use crate::values::bytes;

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchReduce {
    #[command(flatten)]
    pub(crate) measuring: Measuring,

    /// Only this call: reduce or allreduce (default: both)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    call: Vec<String>,

    /// Only these algorithms, of the call that has them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) algorithm: Vec<String>,

    /// Patterns: none, one-late, random, ascending, bimodal, trace (default: none, one-late, random)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pattern: Vec<String>,

    /// Largest delay of a process, in milliseconds (default: 2 and 20)
    #[arg(long, value_name = "MS", value_delimiter = ',', value_parser = delay)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) delay: Vec<Duration>,

    /// Bytes that one process contributes (default: 64 KiB and 1 MiB)
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = bytes)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) size: Vec<usize>,

    /// Largest relative error of predicted arrivals, in percent (default: 0)
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', value_parser = percent)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) error: Vec<u32>,

    /// Arrivals of the pattern trace
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

impl BenchReduce {
    /// The calls named; both if none is.
    pub(crate) fn calls(&self) -> Result<Vec<Collective>> {
        let both = [Collective::Reduce, Collective::Allreduce];
        let names = both.map(Collective::name);
        if let Some(name) = self.call.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(Failure::Usage(misspelt::one_of("call", name, &names)));
        }
        let named = |one: &Collective| self.call.iter().any(|name| name == one.name());
        Ok(both.into_iter().filter(|one| self.call.is_empty() || named(one)).collect())
    }

    /// The patterns named.
    pub(crate) fn patterns(&self) -> Result<Vec<Pattern>> {
        let all = Pattern::ALL;
        let names = all.map(Pattern::name);
        if let Some(name) = self.pattern.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(Failure::Usage(misspelt::one_of("pattern", name, &names)));
        }
        let usual = [Pattern::None, Pattern::OneLate, Pattern::Random];
        let named = |one: &Pattern| match self.pattern.is_empty() {
            true if self.trace.is_some() => *one == Pattern::Trace,
            true => usual.contains(one),
            false => self.pattern.iter().any(|name| name == one.name()),
        };
        let patterns: Vec<Pattern> = all.into_iter().filter(named).collect();
        let text = match (patterns.contains(&Pattern::Trace), &self.trace) {
            (true, None) => "the pattern trace needs a file of arrivals: add --trace FILE",
            (false, Some(_)) => {
                "--trace is for the pattern trace: add --pattern trace, or leave --pattern out"
            }
            _ => return Ok(patterns),
        };
        Err(Failure::Usage(text.into()))
    }
}

/// Milliseconds.
fn delay(text: &str) -> std::result::Result<Duration, String> {
    let wanted = "it has to be a number of milliseconds from 0 to 3600000, as 20 or 0.5";
    let ms = text.parse::<f64>().ok().filter(|ms| (0.0..=3.6e6).contains(ms));
    ms.map(|ms| Duration::from_secs_f64(ms / 1e3)).ok_or(wanted.into())
}

fn percent(text: &str) -> std::result::Result<u32, String> {
    let wanted = "it has to be a whole number of percent from 0 to 100";
    text.parse().ok().filter(|percent| (0..=100).contains(percent)).ok_or(wanted.into())
}
