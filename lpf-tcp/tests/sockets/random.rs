//! Random traffic of three processes, driven in a random order, arrives exactly.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lpf_messages::{Piece, Ticket, Transport};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::*;

const P: usize = 3;

#[derive(Clone, Debug)]
struct Message {
    from: usize,
    to: usize,
    channel: u32,
    bytes: usize,
    /// Sent as a copy.
    copied: bool,
    /// Lengths of its pieces at both ends; the last is what is left.
    cut_from: usize,
    cut_to: usize,
    /// What the receive has room for beyond it.
    room: usize,
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let bytes = prop_oneof![Just(0), 1..64_usize, 64..20_000_usize, 100_000..2_000_000_usize];
    let cut = prop_oneof![1..50_usize, Just(4096), Just(usize::MAX)];
    let message = (0..P, 0..P, 0..3_u32, bytes, any::<bool>(), cut.clone(), cut, 0..3_usize)
        .prop_map(|(from, to, channel, bytes, copied, cut_from, cut_to, room)| {
            let copied = copied && bytes < 10_000;
            Message { from, to, channel, bytes, copied, cut_from, cut_to, room }
        });
    prop::collection::vec(message, 0..40)
}

/// What a process still has to do, and what it waits for.
struct Process {
    net: Net,
    /// Its sends and receives, by message, in an order that keeps that of equal names.
    todo: Vec<(usize, bool)>,
    next: usize,
    pending: Vec<(Ticket, usize)>,
}

/// Sends and receives of a process in an order of their own, but for those of equal names.
fn shuffled(messages: &[Message], rank: usize, keys: &[Index]) -> Vec<(usize, bool)> {
    let mut latest = HashMap::new();
    let mut todo: Vec<(usize, usize, bool)> = Vec::new();
    for (nth, message) in messages.iter().enumerate() {
        for (mine, sends) in [(message.from == rank, true), (message.to == rank, false)] {
            if mine {
                let other = if sends { message.to } else { message.from };
                let name = (other, message.channel, sends);
                let key = keys[nth % keys.len()].index(1000) * if sends { 1 } else { 7 } % 1000;
                let at = latest.entry(name).and_modify(|at: &mut usize| *at = key.max(*at));
                let at = *at.or_insert(key);
                todo.push((at, nth, sends));
            }
        }
    }
    todo.sort_by_key(|(at, ..)| *at); // stable: equal names stay in order
    todo.into_iter().map(|(_, nth, sends)| (nth, sends)).collect()
}

impl Process {
    /// Starts its next send or receive.
    fn start(&mut self, messages: &[Message], sources: &[Vec<u8>], targets: &mut [Vec<u8>]) {
        let Some(&(nth, sends)) = self.todo.get(self.next) else { return };
        self.next += 1;
        let Message { from, to, channel, copied, cut_from, cut_to, .. } = messages[nth];
        // SAFETY: sources and targets live until all tickets are finished.
        let ticket = unsafe {
            if !sends {
                let pieces: Vec<Piece> =
                    targets[nth].chunks_mut(cut_to).map(Piece::of_mut).collect();
                self.net.receive(from, tag(channel), &pieces).unwrap()
            } else if copied {
                return self.net.send_copy(to, tag(channel), &sources[nth]).unwrap();
            } else {
                let pieces: Vec<Piece> = sources[nth].chunks(cut_from).map(Piece::of).collect();
                self.net.send(to, tag(channel), &pieces).unwrap()
            }
        };
        self.pending.push((ticket, messages[nth].bytes));
    }

    fn ask(&mut self, choice: &Index) -> Result<(), TestCaseError> {
        if !self.pending.is_empty() {
            let nth = choice.index(self.pending.len());
            if let Some(bytes) = self.net.test(&self.pending[nth].0).unwrap() {
                prop_assert_eq!(bytes, self.pending.swap_remove(nth).1);
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.next == self.todo.len() && self.pending.is_empty()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_traffic_arrives_exactly(
        messages in messages(),
        keys in prop::collection::vec(any::<Index>(), 10),
        choices in prop::collection::vec((0..P, 0..10_u32, any::<Index>()), 50),
    ) {
        let sources: Vec<Vec<u8>> =
            messages.iter().enumerate().map(|(nth, m)| pattern(nth, m.bytes)).collect();
        let mut targets: Vec<Vec<u8>> =
            messages.iter().map(|m| vec![0xee; m.bytes + m.room]).collect();
        let process = |(rank, net)| Process {
            net,
            todo: shuffled(&messages, rank, &keys),
            next: 0,
            pending: Vec::new(),
        };
        let mut processes: Vec<Process> = networks(P).into_iter().enumerate().map(process).collect();
        let end = Instant::now() + PATIENCE;
        for round in 0.. {
            let (rank, action, choice) = &choices[round % choices.len()];
            let process = &mut processes[*rank];
            match action {
                0..3 => process.start(&messages, &sources, &mut targets),
                3 => process.net.progress().unwrap(),
                4 => process.net.idle(Duration::from_micros(10)),
                _ => process.ask(choice)?,
            }
            if round % choices.len() == 0 {
                // Whatever the choices are, everybody has a turn.
                for process in &mut processes {
                    process.start(&messages, &sources, &mut targets);
                    process.net.progress().unwrap();
                    process.ask(&keys[round / choices.len() % keys.len()])?;
                }
                if processes.iter().all(Process::is_done) {
                    break;
                }
                prop_assert!(Instant::now() < end, "nothing moves");
            }
        }
        for (nth, message) in messages.iter().enumerate() {
            let (arrived, beyond) = targets[nth].split_at(message.bytes);
            prop_assert!(arrived == sources[nth], "message {} differs", nth);
            prop_assert!(beyond.iter().all(|byte| *byte == 0xee), "beyond message {}", nth);
        }
    }
}
