//! Random traffic of all processes, started and asked about in random order.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lpf_core::Pid;
use lpf_messages::{Piece, Ticket, Transport};

use crate::support::*;

const ROUNDS: u64 = 25;
const MESSAGES: usize = 120;

/// Numbers that are the same everywhere, or one's own.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

struct Message {
    from: Pid,
    to: Pid,
    channel: u32,
    bytes: usize,
    copied: bool,
    cut_from: usize,
    cut_to: usize,
    room: usize,
}

fn message(chance: &mut Chance, size: Pid) -> Message {
    let bytes = match chance.below(10) {
        0 => 0,
        1..5 => 1 + chance.below(64),
        5..8 => 64 + chance.below(10_000),
        _ => 10_000 + chance.below(400_000),
    };
    let cuts = [1 + chance.below(60), 4_096, 700, usize::MAX];
    Message {
        from: chance.below(size),
        to: chance.below(size),
        channel: chance.below(3) as u32,
        bytes,
        copied: bytes < 10_000 && chance.below(2) == 0,
        cut_from: cuts[chance.below(4)],
        cut_to: cuts[chance.below(4)],
        room: chance.below(3),
    }
}

pub(crate) fn random_traffic_arrives_exactly(net: &mut Net) {
    let (rank, size) = (net.rank(), net.size());
    for round in 1..=ROUNDS {
        let mut chance = Chance(round * 0x9e37_79b9);
        let messages: Vec<Message> = (0..MESSAGES).map(|_| message(&mut chance, size)).collect();
        let mut own = Chance(round * 1_000_003 + rank as u64 + 1);
        play(net, &messages, &mut own);
    }
}

/// This process's sends and receives, in an order of its own but for those of equal names.
fn shuffled(messages: &[Message], rank: Pid, chance: &mut Chance) -> Vec<(usize, bool)> {
    let mut latest: HashMap<(Pid, u32, bool), usize> = HashMap::new();
    let mut todo = Vec::new();
    for (nth, message) in messages.iter().enumerate() {
        for (mine, sends) in [(message.from == rank, true), (message.to == rank, false)] {
            if mine {
                let other = if sends { message.to } else { message.from };
                let key = chance.below(1_000);
                let at = latest.entry((other, message.channel, sends)).or_insert(key);
                *at = key.max(*at);
                todo.push((*at, nth, sends));
            }
        }
    }
    todo.sort_by_key(|(at, ..)| *at); // stable: equal names stay in order
    todo.into_iter().map(|(_, nth, sends)| (nth, sends)).collect()
}

fn play(net: &mut Net, messages: &[Message], chance: &mut Chance) {
    let rank = net.rank();
    let sources: Vec<Vec<u8>> =
        messages.iter().enumerate().map(|(nth, m)| pattern(nth as u64 + 1, m.bytes)).collect();
    let mut targets: Vec<Vec<u8>> = messages.iter().map(|m| vec![0xee; m.bytes + m.room]).collect();
    let todo = shuffled(messages, rank, chance);
    let (mut next, mut pending) = (0, Vec::<(Ticket, usize)>::new());
    let end = Instant::now() + PATIENCE;
    while next < todo.len() || !pending.is_empty() {
        match chance.below(8) {
            0..3 if next < todo.len() => {
                let (nth, sends) = todo[next];
                next += 1;
                let Message { from, to, channel, bytes, copied, cut_from, cut_to, .. } =
                    messages[nth];
                // SAFETY: sources and targets live until all tickets are finished.
                let ticket = unsafe {
                    if !sends {
                        let pieces: Vec<Piece> =
                            targets[nth].chunks_mut(cut_to).map(Piece::of_mut).collect();
                        net.receive(from, tag(channel), &pieces).unwrap()
                    } else if copied {
                        net.send_copy(to, tag(channel), &sources[nth]).unwrap();
                        continue;
                    } else {
                        let pieces: Vec<Piece> =
                            sources[nth].chunks(cut_from).map(Piece::of).collect();
                        net.send(to, tag(channel), &pieces).unwrap()
                    }
                };
                pending.push((ticket, bytes));
            }
            3 => net.progress().unwrap(),
            4 => net.idle(Duration::from_micros(5)),
            _ if !pending.is_empty() => {
                let nth = chance.below(pending.len());
                if let Some(bytes) = net.test(&pending[nth].0).unwrap() {
                    assert_eq!(bytes, pending.swap_remove(nth).1);
                }
            }
            _ => {}
        }
        assert!(Instant::now() < end, "nothing moves");
    }
    for (nth, message) in messages.iter().enumerate().filter(|(_, m)| m.to == rank) {
        let (came, beyond) = targets[nth].split_at(message.bytes);
        assert!(came == sources[nth], "message {nth} differs");
        assert!(beyond.iter().all(|byte| *byte == 0xee), "beyond message {nth}");
    }
}
