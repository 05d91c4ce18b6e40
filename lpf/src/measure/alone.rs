//! What is measured on one process by itself.

use lpf_collectives::combine_ns_per_byte;
use serde::{Deserialize, Serialize};

use super::memcpy::memcpy_ns_per_byte;
use super::{Plan, Word};

/// The largest copy, bytes: a larger one takes longer than the samples of a short measurement may.
const MOST: usize = 64 << 20;

/// Numbers that are measured without a section.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Alone {
    /// r for each word size of the plan, nanoseconds per byte.
    pub(super) memcpy: Vec<f64>,
    /// Of a sum of f64, nanoseconds per byte.
    pub(super) combine_ns_per_byte: f64,
}

impl Alone {
    /// Measured on this process; takes about a twentieth of the plan's time, or less once `stop` is true.
    pub fn measure(plan: &Plan, stop: &dyn Fn() -> bool) -> Self {
        let time = plan.time.div_f64(20.0 * plan.words.len() as f64);
        let bytes = |word: &Word| word.largest.min(MOST);
        let speed = |word: &Word| memcpy_ns_per_byte(word.bytes, bytes(word), time, stop).median();
        let memcpy = plan.words.iter().map(speed).collect();
        Alone { memcpy, combine_ns_per_byte: combine_ns_per_byte() }
    }
}
