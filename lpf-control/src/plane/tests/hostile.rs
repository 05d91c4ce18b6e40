//! Random and nearly right words, from a peer that is inside.

use super::*;
use crate::connection::frame::decode;
use crate::plane::words::Decision;
use lpf_core::waits::{Doing, Stream, Want, What};

/// Byte strings for each side; with those of the rendezvous a million.
const STRINGS: usize = 350_000;

/// Strings that one job takes before a fresh one begins.
const EPISODE: usize = 100;

/// A generator that is good enough to mix bytes.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 8
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A word of the corpus; one in `odds` is changed a little, or random bytes.
    pub(crate) fn string(&mut self, corpus: &[Vec<u8>], odds: usize) -> Vec<u8> {
        let mut string = corpus[self.below(corpus.len())].clone();
        if self.below(odds) > 0 {
            return string;
        }
        match self.below(6) {
            0 => {
                let bytes = self.below(40);
                return (0..bytes).map(|_| self.next() as u8).collect();
            }
            1 => string.truncate(self.below(string.len() + 1)),
            2 => string.push(self.next() as u8),
            3 | 4 if !string.is_empty() => {
                let at = self.below(string.len());
                string[at] = self.next() as u8;
            }
            5 => {
                let other = &corpus[self.below(corpus.len())];
                let (end, start) = (self.below(string.len() + 1), self.below(other.len() + 1));
                string.truncate(end);
                string.extend_from_slice(&other[start..]);
            }
            _ => {}
        }
        string
    }
}

fn payload<T: serde::Serialize>(word: &T) -> Vec<u8> {
    encode(word)[4..].to_vec()
}

fn some_status(n: usize) -> Status {
    let stream = Stream::new(n % 4, (n + 1) % 4, lpf_core::InboxSlot::new(0), 0);
    let what = if n.is_multiple_of(7) { What::Opening } else { What::Messages };
    let want = Want { what, stream, have: 0, need: 1 };
    let mut status = Status { superstep: 1, ..Status::default() };
    let counts = status.on_mut(stream);
    counts.sent.made = (n / 4) as u64;
    counts.received.opened = (n % 2) as u64;
    counts.received.held_by = (n % 5 > 2).then_some((n % 4, (n % 3) as u64));
    status.doing = match n % 3 {
        0 => Doing::Waiting(vec![want]),
        1 => Doing::FullSync(1),
        _ => Doing::Computing,
    };
    status
}

/// Every word upwards, with few sections, members and topics, so that they meet.
fn ups() -> Vec<Vec<u8>> {
    let mut words = vec![payload(&Up::Goodbye), payload(&Up::Beat(vec![(SectionId(0), 4)]))];
    for n in 0..24 {
        let (section, topic) = (SectionId((n % 3) as u64), Topic((n % 2) as u64));
        let bytes = vec![n as u8; n % 9];
        let members = vec![0, 1, 2, 3];
        let error = Error::fatal(n % 5, 0, Cause::Deadlock(format!("{n}")));
        let record = Record { version: n as u64, bytes: bytes.clone() };
        let (from, of, to, round, question) = (n % 5, n / 5, n % 5, n as u64, n as u64);
        let status = (n % 4 > 0).then(|| some_status(n));
        words.extend([
            payload(&Up::Enter { section, members: members.clone() }),
            payload(&Up::Leave(section)),
            payload(&Up::Record { section, from, topic, record }),
            payload(&Up::Agree { section, topic, question, bytes: bytes.clone() }),
            payload(&Up::Fetched { section, topic }),
            payload(&Up::Ask { section, by: from, of, round }),
            payload(&Up::Answer { section, of, to, round, status }),
        ]);
        if n % 6 == 0 {
            words.push(payload(&Up::Declare { section, error }));
            words.push(payload(&Up::Order(Order { section, members, bytes })));
        }
    }
    words
}

/// Every word downwards.
fn downs() -> Vec<Vec<u8>> {
    let mut words = vec![payload(&Down::Beat)];
    for n in 0..24 {
        let (section, topic) = (SectionId((n % 3) as u64), Topic((n % 2) as u64));
        let bytes = vec![n as u8; n % 9];
        let error = Error::fatal(n % 5, 0, Cause::Deadlock(format!("{n}")));
        let record = Record { version: n as u64, bytes: bytes.clone() };
        let (from, of, by, round) = (n % 5, n % 5, n % 5, (n % 3) as u64);
        let decision = Decision::First;
        words.extend([
            payload(&Down::Record { section, from, topic, record }),
            payload(&Down::Agreed { section, topic, bytes: bytes.clone() }),
            payload(&Down::Decided { question: round, decision }),
            payload(&Down::Asked { section, of, by, round }),
            payload(&Down::Answered { section, of, to: by, round, status: Some(some_status(n)) }),
        ]);
        if n % 8 == 0 {
            words.push(payload(&Down::Failed { section, error }));
            words.push(payload(&Down::Order(Order { section, members: vec![0, 1], bytes })));
            words.push(payload(&Down::Died { rank: n % 5, reason: "so".into() }));
        }
    }
    words.extend([Down::Finish, Down::Farewell].iter().map(payload));
    words
}

/// Answers what the victim asks, with anything.
fn answer(state: &mut State, random: &mut Random) {
    for connection in 0..if state.hub.is_some() { 4 } else { 1 } {
        let (mut bytes, mut inflow) = (Vec::new(), Inflow::default());
        state.mail.outbox(connection).drain(&mut bytes, usize::MAX);
        inflow.extend(&bytes);
        while let Ok(Some(frame)) = inflow.next(words::LONGEST) {
            let status = Some(some_status(random.next() as usize));
            let answer = match state.hub {
                Some(_) => match decode(frame) {
                    Some(Down::Asked { section, of, by: to, round }) => {
                        payload(&Up::Answer { section, of, to, round, status })
                    }
                    _ => continue,
                },
                None => match decode(frame) {
                    Some(Up::Ask { section, by: to, of, round }) => {
                        payload(&Down::Answered { section, of, to, round, status })
                    }
                    _ => continue,
                },
            };
            state.frame(connection, &answer);
        }
    }
}

/// A process of four, in three sections with all the others.
fn fresh(rank: Rank) -> State {
    let mut state = State::new(rank, 4, Beats::Off, Arc::default(), Instant::now());
    for section in 0..3 {
        if let Some(word) = state.member.enter(SectionId(section), &[0, 1, 2, 3]) {
            state.say(word);
        }
    }
    state
}

/// Feeds strings to process `victim`, on connections that `from` gives: in some episodes nonsense, in
/// others words that are right, each by itself, and one in many that is not. Who has refused a peer is
/// replaced.
fn feed(victim: Rank, corpus: &[Vec<u8>], from: impl Fn(&mut Random) -> usize) {
    let mut random = Random::new(0x5eed + victim as u64);
    let mut refused = 0;
    for _ in 0..STRINGS / EPISODE {
        let odds = [1, 8, 64, usize::MAX][random.below(4)];
        let (mut state, mut now, mut came) = (fresh(victim), Instant::now(), 0);
        for n in 0..EPISODE {
            let string = random.string(corpus, odds);
            let connection = from(&mut random);
            state.frame(connection, &string);
            state.give_up_overflown();
            came += string.len() + 64;
            if n % 5 == 0 {
                now += BEAT;
                let status = some_status(random.next() as usize);
                if random.below(4) == 0 {
                    let pid = random.below(4);
                    state.member.publish(SectionId(random.next() % 3), pid, status, now);
                }
                state.tick(now);
                answer(&mut state, &mut random);
            }
            let hub = state.hub.as_ref().map_or(0, |hub| hub.kept().0);
            let kept = state.member.kept() + hub + state.mail.bytes();
            assert!(kept < 32 * came + 4096, "{kept} bytes are kept of {came}");
            if (0..4).any(|rank| state.member.death(rank).is_some()) {
                refused += 1;
                (state, came) = (fresh(victim), 0);
            }
        }
    }
    assert!(refused > STRINGS / 10, "nonsense is refused: {refused} times");
}

#[test]
fn process_0_survives_what_any_process_may_send() {
    feed(0, &ups(), |random| 1 + random.below(3));
}

#[test]
fn a_process_survives_what_process_0_may_send() {
    feed(1, &downs(), |_| 0);
}
