//! The times of the transfers of a schedule. Round numbers define an order, not points in time.

use super::{Instance, Transfer};

/// Follows a schedule in time. A transfer begins when both processes have arrived, and its sender has the value.
/// Before that, the sender has sent, and the receiver has received, all earlier transfers. It takes a round time.
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

    /// The begin of the next transfer, in the order of rounds. Transfers of one round may be passed in any order, because
    /// they do not depend on each other.
    pub fn begin(&mut self, transfer: &Transfer) -> u64 {
        let (from, to) = (transfer.sender, transfer.receiver);
        let at = |process: usize| process * self.segments + transfer.segment as usize;
        let (sent, received) = (at(from), at(to));
        let begin = self.sent[from].max(self.received[to]).max(self.ready[sent]);
        let end = begin.saturating_add(self.round_time);
        (self.sent[from], self.received[to], self.ready[received]) = (end, end, end);
        begin
    }

    /// The time at which each process has received all transfers so far, by rank.
    pub fn received(&self) -> &[u64] {
        &self.received
    }

    /// The time at which the last process has ended all transfers so far.
    pub fn end(&self) -> u64 {
        self.sent.iter().chain(&self.received).max().copied().unwrap_or(0)
    }
}
