//! The total exchange: every process sends equally many words to every process.

use lpf_core::{Context, Lpf, Pid, Result};
use serde::{Deserialize, Serialize};

use super::superstep::{Areas, Pattern};

/// `words` words of `word` bytes from each process, spread evenly over all processes, itself
/// included, as the paper counts h.
///
/// The words go to the targets in turn, and are read and written without a stride: words side by side would be one
/// larger message. And g has to hold for any h-relation, so it may not depend on a run-length coding of requests or
/// on a prefetcher that predicts the order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TotalExchange {
    processes: Pid,
    word: usize,
    per_target: usize,
    /// From one word to the next of the same target, modulo `per_target`; prime to it.
    scatter: usize,
    by_get: bool,
}

impl TotalExchange {
    /// The exchange of an h-relation of about `bytes` bytes: at least one word to each process,
    /// unless `bytes` is 0.
    pub fn new(processes: Pid, word: usize, bytes: usize) -> Self {
        let round = word * processes;
        let per_target = if bytes == 0 { 0 } else { (bytes / round).max(1) };
        TotalExchange { processes, word, per_target, scatter: scatter(per_target), by_get: false }
    }

    /// The same exchange made of gets.
    pub fn by_get(self) -> Self {
        TotalExchange { by_get: true, ..self }
    }

    /// h: the bytes that each process sends and receives.
    pub fn h_bytes(&self) -> usize {
        self.word * self.per_target * self.processes
    }
}

/// A number prime to `n`, near the golden section of it.
fn scatter(n: usize) -> usize {
    let near = (n as f64 * 0.618) as usize;
    (near.max(1)..).find(|&a| gcd(a, n) == 1).unwrap_or(1)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl<L: Lpf> Pattern<L> for TotalExchange {
    fn bytes(&self) -> usize {
        self.h_bytes()
    }

    fn requests(&self) -> usize {
        2 * self.per_target * self.processes
    }

    fn queue<'s>(&self, ctx: &mut Context<'s, L>, areas: &Areas<'s>, base: usize) -> Result<()> {
        let (own, p, w) = (ctx.pid(), self.processes, self.word);
        // Block d of the sources is for process d; block s of the destinations is from process s.
        let block = |process: Pid| process * self.per_target;
        let mut place = 0;
        for _ in 0..self.per_target {
            for step in 0..p {
                let other = if own + step < p { own + step } else { own + step - p };
                let here = base + w * (block(other) + place);
                let there = base + w * (block(own) + place);
                if self.by_get {
                    let theirs = there..there + w;
                    ctx.get(other, &areas.sources, theirs, &areas.destinations, here)?;
                } else {
                    ctx.put(&areas.sources, here..here + w, other, &areas.destinations, there)?;
                }
            }
            place += self.scatter;
            if place >= self.per_target {
                place %= self.per_target;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_a_block_is_used_once() {
        for n in [1, 2, 3, 7, 8, 100, 4096, 99_991] {
            let step = scatter(n);
            let mut seen = vec![false; n];
            for j in 0..n {
                assert!(!std::mem::replace(&mut seen[(j * step) % n], true), "n = {n}");
            }
        }
    }

    #[test]
    fn h_is_what_was_asked_for_down_to_one_word_for_each() {
        assert_eq!(TotalExchange::new(4, 8, 0).h_bytes(), 0);
        assert_eq!(TotalExchange::new(4, 8, 1).h_bytes(), 32);
        assert_eq!(TotalExchange::new(4, 8, 64).h_bytes(), 64);
        assert_eq!(TotalExchange::new(3, 8, 1000).h_bytes(), 984);
    }
}
