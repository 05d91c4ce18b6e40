//! Random programs on links: messages through cells and into landings, awaited in time or later,
//! with flushes and full syncs between.
//!
//! The contract promises that a program in which both ends know the schedule never waits for ever,
//! as long as nobody is more than a window behind: of what a process sent up to a superstep and its
//! receiver awaited before it, at most W messages are left. All that is drawn is cut down to that.

use std::iter::once;

use lpf_core::Pid;
use proptest::prelude::*;

use crate::random::words::{Reader, to_bytes};

/// The longest landing.
pub(super) const LONGEST: usize = 3000;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) bytes: usize,
    pub(super) is_landing: bool,
}

/// What one process sends another in a superstep, and how many the other awaits then.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Traffic {
    pub(super) sent: Vec<Message>,
    pub(super) awaited: usize,
}

/// The syncs of a superstep beside the one that awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Syncs {
    pub(super) flush_before: bool,
    pub(super) flush_after: bool,
    pub(super) full_after: bool,
    /// Messages are released as soon as they are read.
    pub(super) releases: bool,
}

/// One superstep of everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) syncs: Syncs,
    /// From process a to process b at `a * procs + b`.
    pub(super) traffic: Vec<Traffic>,
}

/// A whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) procs: Pid,
    pub(super) window: u32,
    pub(super) cell_bytes: usize,
    pub(super) steps: Vec<Step>,
}

impl Exchange {
    /// The messages of process `from` to process `to`, by number.
    pub(super) fn messages(&self, from: Pid, to: Pid) -> impl Iterator<Item = Message> + '_ {
        let pair = from * self.procs + to;
        self.steps.iter().flat_map(move |step| step.traffic[pair].sent.iter().copied())
    }

    /// As bytes, to travel.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let head = [self.procs as u64, u64::from(self.window), self.cell_bytes as u64];
        let mut words = Vec::from(head);
        words.push(self.steps.len() as u64);
        for step in &self.steps {
            let Syncs { flush_before, flush_after, full_after, releases } = step.syncs;
            words.extend([flush_before, flush_after, full_after, releases].map(u64::from));
            for traffic in &step.traffic {
                words.extend([traffic.awaited as u64, traffic.sent.len() as u64]);
                words.extend(
                    traffic.sent.iter().map(|m| (m.bytes as u64) << 1 | u64::from(m.is_landing)),
                );
            }
        }
        to_bytes(&words)
    }

    /// The program of these bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = Reader::new(bytes);
        let (procs, window) = (words.next() as Pid, words.next() as u32);
        let cell_bytes = words.next() as usize;
        let steps = (0..words.next())
            .map(|_| {
                let mut flag = || words.next() == 1;
                let syncs = Syncs {
                    flush_before: flag(),
                    flush_after: flag(),
                    full_after: flag(),
                    releases: flag(),
                };
                let pairs = procs * procs;
                Step { syncs, traffic: (0..pairs).map(|_| read_traffic(&mut words)).collect() }
            })
            .collect();
        Exchange { procs, window, cell_bytes, steps }
    }
}

fn read_traffic(words: &mut Reader<'_>) -> Traffic {
    let awaited = words.next() as usize;
    let sent = (0..words.next()).map(|_| {
        let word = words.next();
        Message { bytes: (word >> 1) as usize, is_landing: word & 1 == 1 }
    });
    Traffic { sent: sent.collect(), awaited }
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let bytes = prop_oneof![1 => Just(0usize), 3 => 0usize..33, 2 => 0usize..LONGEST];
    let message = (bytes, prop::bool::weighted(0.3))
        .prop_map(|(bytes, is_landing)| Message { bytes, is_landing });
    (prop::collection::vec(message, 0..7), 0usize..10)
        .prop_map(|(sent, awaited)| Traffic { sent, awaited })
}

fn step() -> impl Strategy<Value = Step> {
    let flag = || prop::bool::weighted(0.3);
    let syncs = (flag(), flag(), flag(), flag()).prop_map(
        |(flush_before, flush_after, full_after, releases)| Syncs {
            flush_before,
            flush_after,
            full_after,
            releases,
        },
    );
    (syncs, prop::collection::vec(traffic(), 25))
        .prop_map(|(syncs, traffic)| Step { syncs, traffic })
}

/// Exchanges between 2 to 5 processes.
pub(super) fn exchanges() -> impl Strategy<Value = Exchange> {
    let window = prop_oneof![3 => 1u32..9, 1 => Just(64u32)];
    let cell_bytes = prop_oneof![Just(0usize), Just(32), Just(33), 1usize..4000];
    (2..6_usize, window, cell_bytes, prop::collection::vec(step(), 0..10))
        .prop_map(|(procs, window, cell_bytes, steps)| realise(procs, window, cell_bytes, steps))
}

fn realise(procs: Pid, window: u32, cell_bytes: usize, mut steps: Vec<Step>) -> Exchange {
    let pairs = procs * procs;
    let mut lag = vec![0usize; pairs];
    let mut unflushed = vec![0usize; pairs];
    // At last everybody awaits all.
    let mut rest = Step { syncs: Syncs::default(), traffic: vec![Traffic::default(); pairs] };
    rest.traffic.iter_mut().for_each(|traffic| traffic.awaited = usize::MAX);
    for step in steps.iter_mut().chain(once(&mut rest)) {
        step.traffic.truncate(pairs);
        for (pair, traffic) in step.traffic.iter_mut().enumerate() {
            let to_itself = pair / procs == pair % procs;
            let room = if to_itself { 0 } else { window as usize - lag[pair] };
            traffic.sent.truncate(room);
            for message in traffic.sent.iter_mut().filter(|message| !message.is_landing) {
                message.bytes = message.bytes.min(cell_bytes);
            }
            lag[pair] += traffic.sent.len();
            unflushed[pair] += traffic.sent.len();
            traffic.awaited = traffic.awaited.min(lag[pair]);
            lag[pair] -= traffic.awaited;
        }
        // Two windows may wait for credit, and a receiver may be slow: who has put more than one
        // since its last flush flushes before it puts another.
        let syncs = &mut step.syncs;
        syncs.flush_after |= unflushed.iter().any(|&puts| puts > window as usize);
        if syncs.flush_before || syncs.flush_after || syncs.full_after {
            unflushed.fill(0);
        }
    }
    steps.push(rest);
    Exchange { procs, window, cell_bytes, steps }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn an_exchange_travels_as_bytes(exchange in exchanges()) {
            prop_assert_eq!(Exchange::from_bytes(&exchange.to_bytes()), exchange);
        }

        #[test]
        fn an_exchange_awaits_what_it_sends_and_is_never_a_window_behind(exchange in exchanges()) {
            for pair in 0..exchange.procs * exchange.procs {
                let mut lag = 0;
                for step in &exchange.steps {
                    lag += step.traffic[pair].sent.len();
                    prop_assert!(lag <= exchange.window as usize);
                    lag -= step.traffic[pair].awaited;
                }
                prop_assert_eq!(lag, 0);
            }
        }
    }
}
