//! Which message goes to which receive: those of one sender and tag, in the order in which they
//! were made.
//!
//! Under a name (sender and tag) wait either receives or messages, never both.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use lpf_messages::network::{Chain, Forgotten, Slab};
use lpf_messages::{Piece, Rank, Tag};

use super::bodies::{Body, Buffer, Given};
use super::library::Request;

/// How much of one sender's messages waits here for receives, at most: beyond it the protocol is
/// broken.
const UNEXPECTED: usize = 64 << 20;

/// What a waiting message costs beside its bytes: its places in the slab and in the table of
/// queues, while either grows.
const OVERHEAD: usize = 256;

/// Buffers of messages that are kept for the next ones.
const SPARE: usize = 64;
/// And as much memory.
const SPARE_BYTES: usize = 4 << 20;

/// Longer lists are not kept for the next message.
const KEPT_PIECES: usize = 1 << 14;

/// A send or a receive that somebody has a ticket for, or that is to end by itself.
pub(crate) struct Operation {
    pub(crate) sends: bool,
    pub(crate) peer: Rank,
    pub(crate) tag: Tag,
    pub(crate) stage: Stage,
    /// Length of the message; of a receive, once there is one.
    pub(crate) bytes: usize,
    pub(crate) pieces: Vec<Piece>,
    /// The number of the message's body, or the ticket of its other side where it goes in parts, and how much
    /// of it is in MPI's hands, or has gone or come.
    pub(crate) number: u32,
    pub(crate) other: Option<u64>,
    pub(crate) given: Given,
    /// What MPI has to do for it, oldest first.
    pub(crate) requests: VecDeque<Request>,
    /// What MPI reads or writes in place of many small pieces.
    pub(crate) packed: Option<Buffer>,
    /// When it was last asked about: see [`Pace`](super::pace::Pace).
    pub(crate) asked: u64,
}

impl Default for Operation {
    fn default() -> Self {
        Operation {
            sends: false,
            peer: 0,
            tag: Tag { context: 0, channel: 0 },
            stage: Stage::Waiting,
            bytes: 0,
            pieces: Vec::new(),
            number: 0,
            other: None,
            given: Given::default(),
            requests: VecDeque::new(),
            packed: None,
            asked: 0,
        }
    }
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A receive in its queue.
    Waiting,
    /// A receive that is in no queue any more, and begins soon.
    Met,
    /// A send that goes in parts once its receiver says so.
    Offered,
    /// In MPI's hands, or going in parts.
    Moving,
    /// A receive whose message does not fit: in no queue, and never finished.
    Lost,
    /// Its memory is its owner's again, as soon as the owner asks.
    Finished,
}

/// A message that waits for a receive.
#[derive(Default)]
pub(crate) struct Message {
    /// Its bytes, where they came with its frame.
    pub(crate) bytes: Vec<u8>,
    /// What is still to come, where they did not.
    pub(crate) rest: Option<Coming>,
    charge: usize,
}

/// How the bytes of a long message come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coming {
    Mpi(Body),
    /// Through a ring, once their sender is told by the ticket of the send that they may.
    Parts {
        send: u64,
        bytes: usize,
    },
}

impl Coming {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Coming::Mpi(Body { bytes, .. }) | Coming::Parts { bytes, .. } => bytes,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Name {
    from: Rank,
    tag: Tag,
}

#[derive(Default)]
struct Queue {
    receives: Chain,
    messages: Chain,
}

/// A hash of three small numbers, which nobody chooses to be clever.
#[derive(Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

pub(crate) struct Matching {
    pub(crate) operations: Slab<Operation>,
    messages: Slab<Message>,
    /// What waiting messages count for, by sender.
    held: Vec<usize>,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// All names that there were, until their context is forgotten: most come again at once.
    queues: HashMap<Name, Queue, BuildHasherDefault<NameHasher>>,
    forgotten: Forgotten,
}

impl Matching {
    pub(crate) fn new(size: usize) -> Self {
        Matching {
            operations: Slab::new(),
            messages: Slab::new(),
            held: vec![0; size],
            spare: Vec::with_capacity(SPARE),
            spare_bytes: 0,
            queues: HashMap::default(),
            forgotten: Forgotten::default(),
        }
    }

    /// A new operation, in no queue.
    pub(crate) fn operation(&mut self, sends: bool, peer: Rank, tag: Tag, asked: u64) -> u32 {
        let place = self.operations.take();
        let operation = &mut self.operations[place];
        (operation.sends, operation.peer, operation.tag) = (sends, peer, tag);
        (operation.stage, operation.bytes, operation.asked) = (Stage::Waiting, 0, asked);
        operation.other = None;
        place
    }

    /// The end of an operation: its ticket is spent.
    pub(crate) fn end(&mut self, place: u32) {
        let operation = &mut self.operations[place];
        operation.pieces.clear();
        operation.pieces.shrink_to(KEPT_PIECES);
        self.operations.give_back(place);
    }

    /// Keeps for ever the memory that MPI may still touch.
    pub(crate) fn leak(&mut self) {
        self.operations
            .values_mut()
            .for_each(|operation| std::mem::forget(operation.packed.take()));
    }

    /// The oldest receive under a name, which leaves its queue.
    #[inline]
    pub(crate) fn take_receive(&mut self, from: Rank, tag: Tag) -> Option<u32> {
        let queue = self.queues.get_mut(&Name { from, tag })?;
        self.operations.pop(&mut queue.receives)
    }

    /// The oldest message under the name of a receive, which leaves its queue; the receive is queued
    /// where there is none.
    #[inline]
    pub(crate) fn message_or_post(&mut self, receive: u32) -> Option<u32> {
        let Operation { peer: from, tag, .. } = self.operations[receive];
        let queue = self.queues.entry(Name { from, tag }).or_default();
        let message = self.messages.pop(&mut queue.messages);
        if message.is_none() {
            self.operations.append(&mut queue.receives, receive);
        }
        message
    }

    /// Takes a receive that waits out of its queue.
    pub(crate) fn withdraw(&mut self, receive: u32) {
        let Operation { peer: from, tag, .. } = self.operations[receive];
        let Some(queue) = self.queues.get_mut(&Name { from, tag }) else { return };
        self.operations.unlink(&mut queue.receives, receive);
    }

    pub(crate) fn message(&self, message: u32) -> &Message {
        &self.messages[message]
    }

    /// Lets go of a message that is in no queue any more.
    pub(crate) fn release(&mut self, from: Rank, message: u32) {
        let mut gone = std::mem::take(&mut self.messages[message]);
        self.messages.give_back(message);
        self.held[from] -= gone.charge;
        let bytes = gone.bytes.capacity();
        if bytes > 0 && self.spare.len() < SPARE && self.spare_bytes + bytes <= SPARE_BYTES {
            self.spare_bytes += bytes;
            gone.bytes.clear();
            self.spare.push(gone.bytes);
        }
    }

    pub(crate) fn is_forgotten(&self, context: u32) -> bool {
        self.forgotten.contains(context)
    }

    /// Keeps a message for which no receive is posted, or says why not.
    pub(crate) fn keep(
        &mut self,
        from: Rank,
        tag: Tag,
        bytes: &[u8],
        rest: Option<Coming>,
    ) -> Result<(), String> {
        let charge = bytes.len() + OVERHEAD;
        let held = &mut self.held[from];
        if *held + charge > UNEXPECTED {
            return Err(format!(
                "process {from} has sent more than {} MiB for which no receive is posted",
                UNEXPECTED >> 20
            ));
        }
        *held += charge;
        let mut buffer = Vec::new();
        if !bytes.is_empty() {
            buffer = self.spare.pop().unwrap_or_default();
            self.spare_bytes -= buffer.capacity();
            buffer.extend_from_slice(bytes);
        }
        let place = self.messages.take();
        self.messages[place] = Message { bytes: buffer, rest, charge };
        let queue = self.queues.entry(Name { from, tag }).or_default();
        self.messages.append(&mut queue.messages, place);
        Ok(())
    }

    /// Drops the messages of a context, now and later. What was still to come is told.
    pub(crate) fn forget(&mut self, context: u32, mut unwanted: impl FnMut(Rank, Coming)) {
        self.forgotten.insert(context);
        let mut gone = Vec::new();
        let messages = &mut self.messages;
        self.queues.retain(|name, queue| {
            if name.tag.context != context {
                return true;
            }
            while let Some(message) = messages.pop(&mut queue.messages) {
                gone.push((name.from, message));
            }
            !queue.receives.is_empty()
        });
        for (from, message) in gone {
            if let Some(rest) = self.messages[message].rest {
                unwanted(from, rest);
            }
            self.release(from, message);
        }
    }
}
