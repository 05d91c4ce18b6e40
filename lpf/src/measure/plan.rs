//! What is measured: word sizes, the largest h, and how long.

use std::time::Duration;

use lpf_core::Pid;

use crate::host::Host;

use super::exchange::TotalExchange;

/// The word sizes of the paper's Table 3, bytes.
pub const WORDS: [usize; 4] = [8, 64, 1024, 1 << 20];

/// What bounds the largest h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Four times the last cache, which is what the method asks for.
    Cache,
    /// An eighth of the memory, areas and request queues of all processes together.
    Memory,
    /// A sixteenth of the former: a quick measurement.
    Quick,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Bound::Cache => "four times the last cache",
            Bound::Memory => "an eighth of the memory, queues included",
            Bound::Quick => "a sixteenth of the full method's",
        })
    }
}

/// One word size and its largest h-relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Bytes of a message.
    pub bytes: usize,
    /// n_max: bytes that each process sends and receives in the largest exchange.
    pub largest: usize,
    /// Why it is not larger.
    pub bound: Bound,
}

/// A measurement of g and l.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Processes.
    pub p: Pid,
    /// The time after which no further round begins.
    pub time: Duration,
    /// Whether less is moved than the method asks for.
    pub quick: bool,
    /// The word sizes: those of [`WORDS`] of which p² times a few fit the memory.
    pub words: Vec<Word>,
    /// Further sizes of h per word between the smallest and the largest: only for a plot.
    pub points: usize,
}

/// A request takes up to this in a queue, bytes (see `lpf_core::request`).
const REQUEST: usize = 52;

impl Plan {
    /// The plan for `p` processes of this machine.
    pub fn new(p: Pid, time: Duration, quick: bool) -> Self {
        Self::for_host(&Host::this(), p, time, quick)
    }

    /// The plan for `p` processes of a machine.
    pub fn for_host(host: &Host, p: Pid, time: Duration, quick: bool) -> Self {
        let words = WORDS.iter().filter_map(|&word| Word::new(host, p, word, quick)).collect();
        Plan { p, time, quick, words, points: 0 }
    }
}

impl Word {
    /// Words of `word` bytes between `p` processes of a machine; `None` where even four for each
    /// pair would take half of the memory.
    pub fn new(host: &Host, p: Pid, word: usize, quick: bool) -> Option<Self> {
        let cache = 4 * host.last_cache_bytes;
        // Sources and destinations, and a request at the origin and one at the target per word.
        let per_byte = 2.0 + 2.0 * REQUEST as f64 / word as f64;
        let own = host.memory_bytes as f64 / f64::from(p);
        let memory = (own / 8.0 / per_byte) as usize;
        let (full, bound) =
            if cache <= memory { (cache, Bound::Cache) } else { (memory, Bound::Memory) };
        let (largest, bound) = if quick { (full / 16, Bound::Quick) } else { (full, bound) };
        // g needs more than the 2p words of the smaller exchange, l is better off with more.
        let round = word * p as usize;
        let largest = largest.max((16 * round).min(memory)).max(4 * round);
        let fits = (largest as f64) * per_byte <= own / 2.0;
        let largest = TotalExchange::new(p, word, largest).h_bytes();
        fits.then_some(Word { bytes: word, largest, bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(memory_bytes: usize, last_cache_bytes: usize) -> Host {
        Host { name: "a".into(), cpu: "b".into(), memory_bytes, last_cache_bytes }
    }

    #[test]
    fn the_largest_exchange_is_four_caches_or_an_eighth_of_the_memory() {
        let plan = |host| Plan::for_host(&host, 2, Duration::from_secs(1), false);
        let small_cache = plan(host(64 << 30, 1 << 20));
        assert!(small_cache.words.iter().all(|w| w.bound == Bound::Cache));
        assert_eq!(small_cache.words[3].largest, 32 << 20, "16 words for each of two processes");
        assert_eq!(small_cache.words[0].largest, 4 << 20);

        let huge_cache = plan(host(16 << 30, 500 << 20));
        assert!(huge_cache.words.iter().all(|w| w.bound == Bound::Memory));
        for word in huge_cache.words {
            let queues = word.largest / word.bytes * 2 * REQUEST;
            assert!(2 * (2 * word.largest + queues) <= 2 << 30);
        }
    }

    #[test]
    fn words_that_do_not_fit_the_memory_are_left_out() {
        let words = |memory, p| {
            let plan = Plan::for_host(&host(memory, 1 << 20), p, Duration::ZERO, true);
            assert!(plan.words.iter().all(|w| w.largest > 2 * p as usize * w.bytes));
            plan.words.iter().map(|w| w.bytes).collect::<Vec<_>>()
        };
        assert_eq!(words(24 << 30, 2), WORDS);
        assert_eq!(words(24 << 30, 16), WORDS);
        assert_eq!(words(24 << 30, 256), WORDS[..3]);
    }
}
