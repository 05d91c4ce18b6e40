//! What communication costs: r, g and l of a machine, and the primitive `probe`'s answer.
//!
//! g is seconds per byte and l seconds, for messages of a given size (`papers`: Suijlen and
//! Yzelman, Section 2.2 and 4.1). A [`Parameters`] is measured once (`lpf probe`), saved, and
//! handed to every process of a section from one copy, so that all choose from bitwise equal
//! numbers in Θ(1).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Pid;
use crate::attr::SyncAttr;

/// One measured word size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Size of a message, bytes.
    pub word_bytes: usize,
    /// Time of a local memcpy in words of this size, nanoseconds per byte.
    pub r_ns_per_byte: f64,
    /// The message gap, nanoseconds per byte.
    pub g_ns_per_byte: f64,
    /// Half width of its 95 % interval, same unit.
    pub g_ci95: f64,
    /// The latency, nanoseconds.
    pub l_ns: f64,
    /// Half width of its 95 % interval, nanoseconds.
    pub l_ci95: f64,
    /// Samples behind it.
    pub samples: u64,
}

/// How a backend's g and l grow with the number of processes (the book's contract, the four phases).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// g constant, l linear in p (p request lists) on top of a log p barrier.
    SharedMemory,
    /// g constant, l linear in p.
    Rdma,
    /// g and l grow with log p.
    MessagePassing,
    /// q processes per node: g with q + log(p/q), l with log p.
    Hybrid {
        /// Processes per node.
        per_node: Pid,
    },
}

impl Growth {
    fn log2(p: f64) -> f64 {
        p.max(2.0).log2()
    }

    fn g(self, p: Pid) -> f64 {
        let p = p.max(1) as f64;
        match self {
            Growth::SharedMemory | Growth::Rdma => 1.0,
            Growth::MessagePassing => Self::log2(p),
            Growth::Hybrid { per_node } => {
                let q = (per_node.max(1) as f64).min(p);
                q + Self::log2(p / q)
            }
        }
    }

    fn l(self, p: Pid) -> f64 {
        match self {
            Growth::SharedMemory | Growth::Rdma => p.max(1) as f64,
            Growth::MessagePassing | Growth::Hybrid { .. } => Self::log2(p as f64),
        }
    }
}

/// Where parameters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Measured on this machine with this number of processes.
    Measured,
    /// Measured with another number of processes and extrapolated by the backend's growth.
    Extrapolated,
    /// A stated default; run `lpf probe` for this machine's numbers.
    Guess,
}

/// g and l for one number of processes, by message size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Processes they were measured with.
    pub p: Pid,
    /// How they grow.
    pub growth: Growth,
    /// Where they come from.
    pub origin: Origin,
    /// By increasing word size; never empty.
    pub rows: Vec<Row>,
    /// Time of combining two vectors into one, a sum of f64 in cache, nanoseconds per byte of one of them.
    #[serde(default = "guessed_combining")]
    pub combine_ns_per_byte: f64,
}

/// What combining takes if it was not measured.
fn guessed_combining() -> f64 {
    0.1
}

impl Parameters {
    /// The stated default: what a small machine of about 2020 costs, between processes over its loopback.
    /// Marked as a guess.
    pub fn guess(growth: Growth) -> Self {
        let row = |word_bytes: usize, r, g, l| Row {
            word_bytes,
            r_ns_per_byte: r,
            g_ns_per_byte: g,
            g_ci95: g,
            l_ns: l,
            l_ci95: l,
            samples: 0,
        };
        let rows = match growth {
            Growth::SharedMemory | Growth::Rdma | Growth::Hybrid { .. } => vec![
                row(8, 0.2, 1.0, 500.0),
                row(64, 0.1, 0.3, 500.0),
                row(1024, 0.1, 0.15, 500.0),
                row(1 << 20, 0.1, 0.12, 500.0),
            ],
            Growth::MessagePassing => vec![
                row(8, 0.2, 4.0, 6_000.0),
                row(64, 0.1, 1.0, 6_000.0),
                row(1024, 0.1, 0.5, 6_000.0),
                row(1 << 20, 0.1, 0.4, 6_000.0),
            ],
        };
        let combine_ns_per_byte = guessed_combining();
        Parameters { p: 2, growth, origin: Origin::Guess, rows, combine_ns_per_byte }
    }

    /// The gap for messages of at least `bytes`, nanoseconds per byte; positive for every size.
    ///
    /// Between measured sizes the cost of a message is taken as a fixed part plus a part per byte,
    /// so that g is linear in 1/size. Below the smallest measured size a message costs the same as at that size.
    pub fn g_ns_per_byte(&self, p: Pid, bytes: usize) -> f64 {
        let scale = self.growth.g(p) / self.growth.g(self.p);
        scale * self.between(bytes, |row| row.g_ns_per_byte, true)
    }

    /// The latency for messages of at least `bytes`, nanoseconds; positive for every size.
    pub fn l_ns(&self, p: Pid, bytes: usize) -> f64 {
        let scale = self.growth.l(p) / self.growth.l(self.p);
        scale * self.between(bytes, |row| row.l_ns, false)
    }

    fn between(&self, bytes: usize, value: impl Fn(&Row) -> f64, per_byte: bool) -> f64 {
        let bytes = bytes.max(1);
        let floor = f64::MIN_POSITIVE;
        let above = self.rows.partition_point(|row| row.word_bytes < bytes);
        let Some(high) = self.rows.get(above) else {
            return self.rows.last().map_or(floor, &value).max(floor);
        };
        let Some(low) = above.checked_sub(1).map(|i| &self.rows[i]) else {
            let scale = if per_byte { high.word_bytes as f64 / bytes as f64 } else { 1.0 };
            return (value(high) * scale).max(floor);
        };
        let inverse = |bytes: usize| 1.0 / bytes as f64;
        let share = (inverse(bytes) - inverse(high.word_bytes))
            / (inverse(low.word_bytes) - inverse(high.word_bytes));
        (value(high) + share * (value(low) - value(high))).max(floor)
    }

    /// How wide the widest 95 % interval is, half of it, as a share of its value: 1 says that the
    /// numbers mean nothing.
    pub fn uncertainty(&self) -> f64 {
        let share = |value: f64, half: f64| half / value;
        let widest =
            |row: &Row| share(row.g_ns_per_byte, row.g_ci95).max(share(row.l_ns, row.l_ci95));
        self.rows.iter().map(widest).fold(0.0, f64::max)
    }

    /// Whether a table read from a file can be used.
    pub fn is_sound(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        self.p > 0
            && positive(self.combine_ns_per_byte)
            && !self.rows.is_empty()
            && self.rows.windows(2).all(|w| w[0].word_bytes < w[1].word_bytes)
            && self.rows.iter().all(|row| {
                row.word_bytes > 0
                    && positive(row.r_ns_per_byte)
                    && positive(row.g_ns_per_byte)
                    && positive(row.l_ns)
            })
    }
}

/// The answer of the primitive `probe`: Θ(1) to get and to ask, bitwise equal on all processes.
#[derive(Clone, Debug)]
pub struct Machine {
    p: Pid,
    free_p: Pid,
    nprocs: Pid,
    cores: Option<Pid>,
    parameters: Arc<Parameters>,
}

impl Machine {
    /// A machine of `p` processors, of which `free_p` can be used by an `exec` from this context,
    /// as seen from a context of `nprocs` processes.
    pub fn new(p: Pid, free_p: Pid, nprocs: Pid, parameters: Arc<Parameters>) -> Self {
        Machine { p, free_p, nprocs, cores: None, parameters }
    }

    /// The same, with processes that share `cores` cores.
    pub fn on_cores(self, cores: usize) -> Self {
        Machine { cores: Some(cores.max(1)), ..self }
    }

    /// All processors of the machine.
    pub fn p(&self) -> Pid {
        self.p
    }

    /// Processors that `exec` from this context can use, its own included; at least 1.
    pub fn free_p(&self) -> Pid {
        self.free_p
    }

    /// The cores that its processes share. There may be more processes than cores. `None` if the number is unknown, or
    /// with several hosts.
    pub fn cores(&self) -> Option<Pid> {
        self.cores
    }

    /// The origin of the numbers, for this context's number of processes.
    pub fn origin(&self) -> Origin {
        match self.parameters.origin {
            Origin::Measured if self.parameters.p != self.nprocs => Origin::Extrapolated,
            origin => origin,
        }
    }

    /// The message gap in seconds per byte, for `p` processes and messages of at least
    /// `min_message_bytes`.
    pub fn g(&self, p: Pid, min_message_bytes: usize, _attr: &SyncAttr<'_>) -> f64 {
        1e-9 * self.parameters.g_ns_per_byte(p, min_message_bytes)
    }

    /// The latency in seconds, for `p` processes and messages of at least `min_message_bytes`.
    pub fn l(&self, p: Pid, min_message_bytes: usize, _attr: &SyncAttr<'_>) -> f64 {
        1e-9 * self.parameters.l_ns(p, min_message_bytes)
    }

    /// The time in which two vectors are combined into one, in seconds per byte of one of them.
    pub fn combining(&self) -> f64 {
        1e-9 * self.parameters.combine_ns_per_byte
    }

    /// The table behind the answers.
    pub fn parameters(&self) -> &Arc<Parameters> {
        &self.parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g_and_l_are_positive_for_every_size_and_number_of_processes() {
        let hybrid = Growth::Hybrid { per_node: 4 };
        for growth in [Growth::SharedMemory, Growth::Rdma, Growth::MessagePassing, hybrid] {
            let table = Parameters::guess(growth);
            for bytes in [0, 1, 7, 8, 9, 63, 64, 65, 4096, 1 << 20, usize::MAX] {
                for p in [1, 2, 3, 64, 1 << 20] {
                    assert!(table.g_ns_per_byte(p, bytes) > 0.0);
                    assert!(table.l_ns(p, bytes) > 0.0);
                }
            }
        }
    }

    #[test]
    fn measured_sizes_give_their_own_numbers_and_others_lie_between() {
        let table = Parameters::guess(Growth::SharedMemory);
        assert_eq!(table.g_ns_per_byte(2, 64), 0.3);
        let between = table.g_ns_per_byte(2, 128);
        assert!(0.15 < between && between < 0.3);
        assert_eq!(table.g_ns_per_byte(2, 1), 8.0);
    }

    #[test]
    fn a_damaged_table_is_found() {
        let mut table = Parameters::guess(Growth::SharedMemory);
        assert!(table.is_sound());
        table.rows[1].g_ns_per_byte = f64::NAN;
        assert!(!table.is_sound());
        let combining = Parameters { combine_ns_per_byte: -1.0, ..Parameters::guess(Growth::Rdma) };
        assert!(!combining.is_sound());
    }
}
