//! What is to be sent to one process and did not leave yet.
//!
//! Nobody waits for a slow receiver: frames queue here, and of what only the latest counts a newer
//! frame takes the older one's place. What still grows beyond [`MOST`] is given up with its receiver.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use lpf_core::Pid;
use lpf_core::board::Topic;
use lpf_messages::SectionId;

/// The most bytes that wait for one process.
pub(crate) const MOST: usize = 64 << 20;

/// What a queued frame beyond its bytes counts for.
const PER_FRAME: usize = 64;

/// Of frames with equal keys only the latest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A sign of life.
    Beat,
    /// A record: section, sender, topic.
    Record(SectionId, Pid, Topic),
    /// A question of one process to another.
    Asked(SectionId, Pid, Pid),
    /// The answer of one process to another.
    Answered(SectionId, Pid, Pid),
}

#[derive(Debug)]
enum Item {
    Frame(Arc<[u8]>),
    Latest(Key),
}

/// A bounded queue of frames.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Item>,
    latest: HashMap<Key, Arc<[u8]>>,
    bytes: usize,
    closed: bool,
    overflown: bool,
}

impl Outbox {
    /// Queues a frame.
    pub(crate) fn push(&mut self, key: Option<Key>, frame: Arc<[u8]>) {
        if self.closed {
            return;
        }
        self.bytes += frame.len() + PER_FRAME;
        match key {
            None => self.queue.push_back(Item::Frame(frame)),
            Some(key) => match self.latest.insert(key, frame) {
                None => self.queue.push_back(Item::Latest(key)),
                Some(older) => self.bytes -= older.len() + PER_FRAME,
            },
        }
        if self.bytes > MOST {
            self.close();
            self.overflown = true;
        }
    }

    /// Drops everything, also what is still to come.
    pub(crate) fn close(&mut self) {
        *self = Outbox { closed: true, ..Outbox::default() };
    }

    /// Whether more came than may wait; told once.
    pub(crate) fn take_overflown(&mut self) -> bool {
        std::mem::take(&mut self.overflown)
    }

    /// Moves frames to `into` until it holds `most` bytes or more.
    pub(crate) fn drain(&mut self, into: &mut Vec<u8>, most: usize) {
        while into.len() < most
            && let Some(item) = self.queue.pop_front()
        {
            let frame = match item {
                Item::Frame(frame) => Some(frame),
                Item::Latest(key) => self.latest.remove(&key),
            };
            if let Some(frame) = frame {
                self.bytes -= frame.len() + PER_FRAME;
                into.extend_from_slice(&frame);
            }
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(byte: u8) -> Arc<[u8]> {
        vec![byte; 10].into()
    }

    #[test]
    fn a_newer_record_takes_the_place_of_the_older() {
        let mut outbox = Outbox::default();
        let key = |topic| Some(Key::Record(SectionId(1), 0, Topic(topic)));
        outbox.push(key(1), frame(1));
        outbox.push(None, frame(2));
        for newer in 3..200 {
            outbox.push(key(1), frame(newer));
        }
        outbox.push(key(2), frame(200));
        assert_eq!(outbox.bytes(), 3 * (10 + PER_FRAME));
        let mut sent = Vec::new();
        outbox.drain(&mut sent, usize::MAX);
        assert_eq!(sent, [[199; 10], [2; 10], [200; 10]].concat());
        assert!(outbox.is_empty() && outbox.bytes() == 0);
        outbox.push(key(1), frame(5));
        assert!(!outbox.is_empty(), "what has left is not the latest any more");
    }

    #[test]
    fn a_receiver_that_takes_nothing_is_given_up() {
        let mut outbox = Outbox::default();
        let large: Arc<[u8]> = vec![0; MOST / 4].into();
        for _ in 0..4 {
            assert!(!outbox.take_overflown());
            outbox.push(None, large.clone());
        }
        assert!(outbox.take_overflown() && !outbox.take_overflown());
        outbox.push(None, large);
        assert!(outbox.is_empty() && outbox.bytes() == 0);
    }
}
