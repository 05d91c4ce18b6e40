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
    /// A superstep touches four times the last cache at each process, as the method requires.
    Cache,
    /// An eighth of the memory, areas and request queues of all processes together.
    Memory,
}

/// One word size and its largest h-relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// Bytes of a message.
    pub bytes: usize,
    /// Bytes that each process sends and receives in the largest exchange for which there is reason and memory.
    /// The time may allow less.
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
    /// Whether the measurement is short, by request or because the time is: its table never replaces one of a longer
    /// measurement.
    pub quick: bool,
    /// The word sizes: those of [`WORDS`] of which p² times a few fit the memory.
    pub words: Vec<Word>,
    /// Whether a superstep costs messages, whose number depends on its requests. More exchanges count for l then.
    pub by_messages: bool,
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

/// A measurement of less time counts as quick.
const SHORT: Duration = Duration::from_secs(10);

impl Plan {
    /// The plan for `p` processes of this machine, whose costs and queues grow by `growth`.
    pub fn new(p: Pid, growth: Growth, time: Duration, quick: bool) -> Self {
        Self::for_host(&Host::this(), p, growth, time, quick)
    }

    /// The plan for `p` processes of a machine.
    pub fn for_host(host: &Host, p: Pid, growth: Growth, time: Duration, quick: bool) -> Self {
        let words = WORDS.iter().filter_map(|&word| Word::new(host, p, growth, word)).collect();
        let by_messages = growth != Growth::SharedMemory;
        Plan { p, time, quick: quick || time < SHORT, words, by_messages }
    }
}

/// What a request takes of the caches, bytes: its record in the queue.
const RECORD: f64 = 16.0;

impl Word {
    /// Words of `word` bytes between `p` processes of a machine; `None` if four for each
    /// pair would take more than half of the memory.
    pub fn new(host: &Host, p: Pid, growth: Growth, word: usize) -> Option<Self> {
        // Sources and destinations, and the requests.
        let touched = 2.0 + RECORD / word as f64;
        let cache = (4.0 * host.last_cache_bytes as f64 / touched) as usize;
        // Each word is a request at the origin and one at the target.
        let reserved = 2.0 + 2.0 * request_bytes(growth) as f64 / word as f64;
        let own = host.memory_bytes as f64 / p as f64;
        let memory = (own / 8.0 / reserved) as usize;
        let (largest, bound) =
            if cache <= memory { (cache, Bound::Cache) } else { (memory, Bound::Memory) };
        // g needs more than the 2p words of the smaller exchange, l is better off with more.
        let round = word * p;
        let largest = largest.max((16 * round).min(memory)).max(4 * round);
        let fits = (largest as f64) * reserved <= own / 2.0;
        let largest = TotalExchange::new(p, word, largest).h_bytes();
        fits.then_some(Word { bytes: word, largest, bound })
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
    fn the_largest_superstep_touches_four_caches_or_takes_an_eighth_of_the_memory() {
        let plan = |host| Plan::for_host(&host, 2, THREADS, SHORT, false);
        let small_cache = plan(host(64 << 30, 1 << 20));
        assert!(small_cache.words.iter().all(|w| w.bound == Bound::Cache));
        assert_eq!(small_cache.words[3].largest, 32 << 20, "16 words for each of two processes");
        // As much again for the destinations, and twice as much for the requests.
        assert_eq!(small_cache.words[0].largest, 1 << 20);

        let huge_cache = plan(host(16 << 30, 4000 << 20));
        let between =
            Plan::for_host(&host(16 << 30, 4000 << 20), 2, Growth::MessagePassing, SHORT, false);
        for (plan, request) in [(huge_cache, 52), (between, 636)] {
            assert!(plan.words.iter().all(|w| w.bound == Bound::Memory));
            for word in plan.words {
                let queues = word.largest / word.bytes * 2 * request;
                assert!(2 * (2 * word.largest + queues) <= 2 << 30);
            }
        }
    }

    #[test]
    fn a_short_measurement_is_a_quick_look() {
        let plan = |time, quick| Plan::for_host(&host(64 << 30, 1 << 20), 2, THREADS, time, quick);
        assert!(!plan(SHORT, false).quick);
        assert!(plan(SHORT / 2, false).quick && plan(SHORT, true).quick);
    }

    #[test]
    fn words_that_do_not_fit_the_memory_are_left_out() {
        let words = |memory, p| {
            let plan = Plan::for_host(&host(memory, 1 << 20), p, THREADS, Duration::ZERO, true);
            assert!(plan.words.iter().all(|w| w.largest > 2 * p * w.bytes));
            plan.words.iter().map(|w| w.bytes).collect::<Vec<_>>()
        };
        assert_eq!(words(24 << 30, 2), WORDS);
        assert_eq!(words(24 << 30, 16), WORDS);
        assert_eq!(words(24 << 30, 256), WORDS[..3]);
    }
}
