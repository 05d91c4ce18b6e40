//! When the transfers of a schedule happen: rounds are an order, and no clock.

use super::{Instance, Transfer};

/// Follows a schedule in time: a transfer begins when both processes have arrived, its sender has sent and its
/// receiver has received all before it, and its sender has what it sends; it takes a round time.
#[derive(Clone, Debug)]
pub struct Timeline {
    segments: usize,
    round_time: u64,
    /// When each process has sent all so far, and when it has received all.
    sent: Vec<u64>,
    received: Vec<u64>,
    /// When each process has the value that it holds of each segment.
    ready: Vec<u64>,
}

impl Timeline {
    /// Of the first round. A word for each process and segment.
    pub fn new(instance: &Instance) -> Self {
        let (arrivals, segments) = (instance.arrivals(), instance.segments() as usize);
        let ready = arrivals.iter().flat_map(|&time| std::iter::repeat_n(time, segments)).collect();
        Timeline {
            segments,
            round_time: instance.round_time(),
            sent: arrivals.to_vec(),
            received: arrivals.to_vec(),
            ready,
        }
    }

    /// The next transfer, in the order of rounds: when it begins. Of one round it does not matter in which order
    /// they come: none depends on another.
    pub fn begin(&mut self, transfer: &Transfer) -> u64 {
        let (from, to) = (transfer.sender as usize, transfer.receiver as usize);
        let at = |process: usize| process * self.segments + transfer.segment as usize;
        let (sent, received) = (at(from), at(to));
        let begin = self.sent[from].max(self.received[to]).max(self.ready[sent]);
        let end = begin.saturating_add(self.round_time);
        (self.sent[from], self.received[to], self.ready[received]) = (end, end, end);
        begin
    }

    /// When each process has received all so far, by rank.
    pub fn received(&self) -> &[u64] {
        &self.received
    }

    /// When the last process is done with all so far.
    pub fn end(&self) -> u64 {
        self.sent.iter().chain(&self.received).max().copied().unwrap_or(0)
    }
}
