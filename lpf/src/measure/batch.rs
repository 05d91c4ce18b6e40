//! Supersteps that are timed in a row.

/// The pattern to be timed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The pattern's place in the list.
    pub pattern: usize,
    /// Supersteps in a row.
    pub repetitions: u32,
    /// Whether it begins with a superstep that is not timed.
    pub warm: bool,
}

impl Batch {
    /// The next batch of a pattern whose supersteps take `ns` nanoseconds. A superstep before the clock starts
    /// settles caches, and starts all processes together. Compared with a long superstep either is nothing.
    pub fn of(pattern: usize, ns: f64) -> Self {
        // On a busy machine a process loses its core for milliseconds at a time: the shorter the batches are, the
        // more of them see nothing of that.
        const BATCH_NS: f64 = 0.25e6;
        const LONG_NS: f64 = 5e6;
        Batch { pattern, repetitions: repetitions(ns, BATCH_NS), warm: ns < LONG_NS }
    }
}

/// A batch and the nanoseconds that a superstep of it took on average.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// What was timed.
    pub batch: Batch,
    /// Nanoseconds per superstep, at process 0.
    pub ns: f64,
}

/// Supersteps of `ns` nanoseconds that fill a batch of `batch_ns`.
pub fn repetitions(ns: f64, batch_ns: f64) -> u32 {
    (batch_ns / ns.max(1.0)).clamp(1.0, 20_000.0) as u32
}
