//! The options of `lpf bench collectives`.

use clap::Args;
use lpf::collectives::Collective;

use crate::failure::Result;
use crate::measuring::Measuring;
use crate::values::{bytes, collective};

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchCollectives {
    #[command(flatten)]
    pub(crate) measuring: Measuring,

    /// Only this collective; may be repeated, and have several names with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    collective: Vec<String>,

    /// Bytes that one process contributes in all, or several (default: 8 bytes to 64 MiB)
    ///
    /// Rounded up to whole elements of 8 bytes. If each process gets another part, to one element for each.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = bytes)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) size: Vec<usize>,
}

impl BenchCollectives {
    /// The collectives named; all if none is.
    pub(crate) fn collectives(&self) -> Result<Vec<Collective>> {
        let named: Result<Vec<_>> = self.collective.iter().map(|name| collective(name)).collect();
        let named = named?;
        let has = |one: &Collective| named.is_empty() || named.contains(one);
        Ok(Collective::ALL.into_iter().filter(has).collect())
    }
}
