//! Matches messages with receives: those of one sender and tag in the order in which they were made.
//!
//! Under one name (sender and tag) either receives wait or messages wait, never both.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use lpf_messages::network::{Chain, Forgotten, Slab};
use lpf_messages::{Piece, Rank, Tag};

use super::bodies::{Body, Buffer, Given};
use super::library::Request;

/// The most bytes of one sender's messages that wait here for receives. With more the protocol is broken.
const UNEXPECTED: usize = 64 << 20;

/// The memory of a waiting message beside its bytes: its entries in the slab and in the table of queues, also while these
/// grow.
const OVERHEAD: usize = 256;

/// Buffers of messages that are kept for the next messages,
const SPARE: usize = 64;
/// and the most memory of all of them.
const SPARE_BYTES: usize = 4 << 20;

/// Longer lists are not kept for the next message.
const KEPT_PIECES: usize = 1 << 14;

/// A send or a receive: its owner has a ticket for it, or it ends by itself.
pub(crate) struct Operation {
    pub(crate) sends: bool,
    pub(crate) peer: Rank,
    pub(crate) tag: Tag,
    pub(crate) stage: Stage,
    /// Length of the message; of a receive, when it has one.
    pub(crate) bytes: usize,
    pub(crate) pieces: Vec<Piece>,
    /// The number of the message's body.
    pub(crate) number: u32,
    /// If the message goes in parts, the ticket of the operation at the other process.
    pub(crate) other: Option<u64>,
    /// How much of the message was given to MPI, or has left or arrived in parts.
    pub(crate) given: Given,
    /// Its requests at MPI, the oldest first.
    pub(crate) requests: VecDeque<Request>,
    /// The buffer that MPI reads or writes instead of many small pieces.
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
    /// A receive that has found its message and is in no queue any more.
    Met,
    /// A send that goes in parts when its receiver asks for them.
    Offered,
    /// MPI works on it, or its parts travel.
    Moving,
    /// A receive whose message does not fit: it is in no queue and never finishes.
    Lost,
    /// Complete: its owner may use the memory when it has tested the ticket.
    Finished,
}

/// A message that waits for a receive.
#[derive(Default)]
pub(crate) struct Message {
    /// Its bytes, if they arrived with its frame.
    pub(crate) bytes: Vec<u8>,
    /// How the bytes will arrive, if they did not.
    pub(crate) rest: Option<Coming>,
    charge: usize,
}

/// How the bytes of a long message arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coming {
    Mpi(Body),
    /// Through a ring, when their sender has been asked for them by the ticket of its send.
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

/// A hash of three small numbers, which no attacker chooses.
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
    /// By sender, the bytes that its waiting messages are charged.
    held: Vec<usize>,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// All names in use so far, until their context is forgotten: most are soon used again.
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

    /// Ends an operation, whose ticket is used up.
    pub(crate) fn end(&mut self, place: u32) {
        let operation = &mut self.operations[place];
        operation.pieces.clear();
        operation.pieces.shrink_to(KEPT_PIECES);
        self.operations.give_back(place);
    }

    /// Leaks the buffers that MPI may still touch.
    pub(crate) fn leak(&mut self) {
        self.operations
            .values_mut()
            .for_each(|operation| std::mem::forget(operation.packed.take()));
    }

    /// Takes the oldest receive under a name out of its queue.
    #[inline]
    pub(crate) fn take_receive(&mut self, from: Rank, tag: Tag) -> Option<u32> {
        let queue = self.queues.get_mut(&Name { from, tag })?;
        self.operations.pop(&mut queue.receives)
    }

    /// Takes the oldest queued message that matches a receive. If there is none, the receive is queued.
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

    /// Frees a message that is in no queue any more.
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

    /// Keeps a message for which no receive is posted.
    ///
    /// # Errors
    /// Why it cannot be kept.
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

    /// Drops the messages of a context, now and later. `unwanted` is called for bodies that have not arrived.
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
