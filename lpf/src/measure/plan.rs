//! What is measured: word sizes, the largest h, and how long.

use std::time::Duration;

use lpf_core::Pid;
use lpf_core::machine::Growth;
use serde::{Deserialize, Serialize};

use crate::host::Host;

use super::exchange::TotalExchange;

/// The word sizes of the paper's Table 3, bytes.
pub const WORDS: [usize; 4] = [8, 64, 1024, 1 << 20];

/// The bound on the largest h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// Four times the last cache, as the method requires.
    Cache,
    /// An eighth of the memory, areas and request queues of all processes together.
    Memory,
    /// A quick measurement: a sixteenth of the former, but enough words to determine g. It holds the full
    /// method's largest h, bytes.
    Quick(usize),
}

/// One word size and its largest h-relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// Bytes of a message.
    pub bytes: usize,
    /// n_max: bytes that each process sends and receives in the largest exchange.
    pub largest: usize,
    /// Why it is not larger.
    pub bound: Bound,
}

/// A measurement of g and l.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Processes.
    pub p: Pid,
    /// The time after which no further round begins.
    pub time: Duration,
    /// Whether fewer bytes are moved than the method requires, because `quick` was set or the time is short.
    pub quick: bool,
    /// The word sizes: those of [`WORDS`] of which p² times a few fit the memory.
    pub words: Vec<Word>,
    /// Whether a superstep costs messages, whose number depends on its requests. More exchanges count for l then.
    pub by_messages: bool,
    /// Further sizes of h per word between the smallest and the largest: only for a plot.
    pub points: usize,
}

/// What a reserved request takes of a process's memory, bytes: up to 52 in the queue
/// (`lpf_core::request`); between processes also its part of the messages about it, which the book's page
/// on a superstep between processes counts: 408, and twice 88 in a Bruck exchange.
fn request_bytes(growth: Growth) -> usize {
    match growth {
        Growth::SharedMemory => 52,
        Growth::MessagePassing | Growth::Rdma | Growth::Hybrid { .. } => 52 + 408 + 2 * 88,
    }
}

/// In less time the full method's largest exchanges would be timed once or twice, and take longer
/// than that.
const SHORT: Duration = Duration::from_secs(10);

impl Plan {
    /// The plan for `p` processes of this machine, whose costs and queues grow by `growth`.
    pub fn new(p: Pid, growth: Growth, time: Duration, quick: bool) -> Self {
        Self::for_host(&Host::this(), p, growth, time, quick)
    }

    /// The plan for `p` processes of a machine.
    pub fn for_host(host: &Host, p: Pid, growth: Growth, time: Duration, quick: bool) -> Self {
        let quick = quick || time < SHORT;
        let words =
            WORDS.iter().filter_map(|&word| Word::new(host, p, growth, word, quick)).collect();
        let by_messages = growth != Growth::SharedMemory;
        Plan { p, time, quick, words, by_messages, points: 0 }
    }
}

impl Word {
    /// Words of `word` bytes between `p` processes of a machine; `None` if four for each pair would take more than
    /// half of the memory.
    pub fn new(host: &Host, p: Pid, growth: Growth, word: usize, quick: bool) -> Option<Self> {
        let cache = 4 * host.last_cache_bytes;
        // Sources and destinations, and a request at the origin and one at the target per word.
        let per_byte = 2.0 + 2.0 * request_bytes(growth) as f64 / word as f64;
        let own = host.memory_bytes as f64 / f64::from(p);
        let memory = (own / 8.0 / per_byte) as usize;
        let (full, bound) =
            if cache <= memory { (cache, Bound::Cache) } else { (memory, Bound::Memory) };
        // g needs more than the 2p words of the smaller exchange, l is better off with more.
        let round = word * p as usize;
        let enough = |largest: usize| largest.max((16 * round).min(memory)).max(4 * round);
        let h_bytes = |largest| TotalExchange::new(p, word, largest).h_bytes();
        let (largest, bound) = match quick {
            true => (enough(full / 16), Bound::Quick(h_bytes(enough(full)))),
            false => (enough(full), bound),
        };
        let fits = (largest as f64) * per_byte <= own / 2.0;
        fits.then_some(Word { bytes: word, largest: h_bytes(largest), bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: Growth = Growth::SharedMemory;

    fn host(memory_bytes: usize, last_cache_bytes: usize) -> Host {
        Host { name: "a".into(), cpu: "b".into(), memory_bytes, last_cache_bytes }
    }

    #[test]
    fn the_largest_exchange_is_four_caches_or_an_eighth_of_the_memory() {
        let plan = |host| Plan::for_host(&host, 2, THREADS, SHORT, false);
        let small_cache = plan(host(64 << 30, 1 << 20));
        assert!(small_cache.words.iter().all(|w| w.bound == Bound::Cache));
        assert_eq!(small_cache.words[3].largest, 32 << 20, "16 words for each of two processes");
        assert_eq!(small_cache.words[0].largest, 4 << 20);

        let huge_cache = plan(host(16 << 30, 500 << 20));
        let between =
            Plan::for_host(&host(16 << 30, 500 << 20), 2, Growth::MessagePassing, SHORT, false);
        for (plan, request) in [(huge_cache, 52), (between, 636)] {
            assert!(plan.words.iter().all(|w| w.bound == Bound::Memory));
            for word in plan.words {
                let queues = word.largest / word.bytes * 2 * request;
                assert!(2 * (2 * word.largest + queues) <= 2 << 30);
            }
        }
    }

    #[test]
    fn in_a_short_time_less_is_moved() {
        let plan = |time, quick| Plan::for_host(&host(64 << 30, 1 << 20), 2, THREADS, time, quick);
        assert!(!plan(SHORT, false).quick);
        let short = plan(SHORT / 2, false);
        assert!(short.quick);
        assert_eq!(short.words, plan(SHORT, true).words);
        let full = plan(SHORT, false).words.into_iter().map(|word| Bound::Quick(word.largest));
        assert!(short.words.iter().map(|word| word.bound).eq(full), "{:?}", short.words);
    }

    #[test]
    fn words_that_do_not_fit_the_memory_are_left_out() {
        let words = |memory, p| {
            let plan = Plan::for_host(&host(memory, 1 << 20), p, THREADS, Duration::ZERO, true);
            assert!(plan.words.iter().all(|w| w.largest > 2 * p as usize * w.bytes));
            plan.words.iter().map(|w| w.bytes).collect::<Vec<_>>()
        };
        assert_eq!(words(24 << 30, 2), WORDS);
        assert_eq!(words(24 << 30, 16), WORDS);
        assert_eq!(words(24 << 30, 256), WORDS[..3]);
    }
}
