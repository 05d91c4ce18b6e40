//! What `bench collectives` and `bench reduce` have in common.

use std::io::{self, Write};

use lpf::measure::Random;

use super::bound::Bound;
use crate::cost;
use crate::remarks::{self, Remarks};

/// Where the g and l come from that predictions, and the default choices, rest on.
pub(in crate::bench) fn origins(
    out: &mut dyn Write,
    backend: &str,
    of: &[Bound],
) -> io::Result<()> {
    let origin = |bound: &Bound| {
        let remarks = [cost::origin(backend, bound.p())].into_iter().collect();
        (format!("p = {}", bound.p()), remarks)
    };
    let all: Vec<(String, Remarks)> = of.iter().map(origin).collect();
    remarks::print(out, all.iter().map(|(name, remarks)| (name.clone(), remarks)))
}

/// Of one process.
pub(in crate::bench) const ALONE: &str =
    "collectives need at least two processes; give -p 2 or more";

/// What it means to compare with MPICH where processes share cores.
pub(in crate::bench) const SPINS: &str = "a process of MPICH does not yield its core while it waits: with more processes than cores, its times are those of the system for switching between processes";

/// Nanoseconds to the common start, at the least: as long as telling it takes, and no longer, for what is not
/// used meanwhile leaves the caches.
pub(in crate::bench) fn least_window(backend: &str, oversubscribed: bool) -> u64 {
    match (oversubscribed, backend == "tcp") {
        (false, false) => 20_000,
        (false, true) => 200_000,
        (true, false) => 400_000,
        (true, true) => 1_000_000,
    }
}

/// In random order.
pub(in crate::bench) fn shuffle<T>(list: &mut [T], random: &mut Random) {
    for end in (1..list.len()).rev() {
        list.swap(end, random.below(end + 1));
    }
}
