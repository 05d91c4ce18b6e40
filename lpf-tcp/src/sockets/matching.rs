//! Which message goes to which receive: those of one sender and tag, in the order in which they
//! were made.
//!
//! Under a name (sender and tag) wait either receives, for which no message has begun to arrive, or
//! messages, for which no receive is posted; never both. A message that has found its receive is in
//! no queue any more, arrived or not.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::{Index, IndexMut};

use lpf_messages::network::{Chain, Forgotten, Slab};
use lpf_messages::{Rank, Tag};

use super::frame::{HEADER, Header, NO_TAG};
use super::pieces::Pieces;

/// How much of one sender's messages waits here for receives, at most. The rest of a longer one stays
/// where it is until its receive is posted, with all that is behind it. Shorter ones have to fit: else
/// the protocol is broken, and the connection with it.
const UNEXPECTED: usize = 64 << 20;

/// What is longer may be held back.
const LONG: usize = 1 << 20;

/// What a waiting message costs beside its bytes: its places in the slab and in the table of
/// queues, while either grows.
const OVERHEAD: usize = 256;

/// Buffers of messages that are kept for the next ones: so many, each so long at most.
const SPARE: (usize, usize) = (64, 16 << 10);

/// A send or a receive that somebody has a ticket for.
pub(super) struct Operation {
    pub(super) sends: bool,
    pub(super) peer: Rank,
    pub(super) tag: Tag,
    pub(super) stage: Stage,
    /// Length of the message; of a receive, once there is one.
    pub(super) bytes: usize,
    pub(super) pieces: Pieces,
    /// A send's header.
    pub(super) header: [u8; HEADER],
    /// Of a send to oneself that waits: its message.
    pub(super) message: u32,
    /// When it was last asked about: see [`Pace`](super::pace::Pace).
    pub(super) asked: u64,
}

impl Default for Operation {
    fn default() -> Self {
        Operation {
            sends: false,
            peer: 0,
            tag: NO_TAG,
            stage: Stage::Waiting,
            bytes: 0,
            pieces: Pieces::default(),
            header: [0; HEADER],
            message: 0,
            asked: 0,
        }
    }
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// In a queue.
    Waiting,
    /// Matched, or partly out.
    Moving,
    /// Its memory is its owner's again, as soon as the owner asks.
    Finished,
}

/// A message that waits for a receive.
#[derive(Default)]
pub(super) struct Message {
    /// What has arrived of it.
    pub(super) arrived: Vec<u8>,
    /// Its length.
    pub(super) bytes: usize,
    /// What it counts for among its sender's.
    charge: usize,
    /// A send to oneself, which keeps its bytes.
    pub(super) sender: Option<u32>,
}

/// Where the bytes of a frame go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere yet: the header is not complete.
    Header,
    /// Into the pieces of a receive.
    Receive(u32),
    /// Into a message that waits.
    Message(u32),
    /// Nobody wants them.
    Nowhere,
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

/// The messages that wait.
pub(super) struct Kept {
    slab: Slab<Message>,
    /// Their charges, by sender.
    held: Vec<usize>,
    spare: Vec<Vec<u8>>,
}

pub(super) struct Matching {
    pub(super) operations: Slab<Operation>,
    pub(super) kept: Kept,
    /// No queue in it is empty.
    queues: HashMap<Name, Queue>,
    forgotten: Forgotten,
}

impl Kept {
    /// A buffer for so much of a message of one sender as is kept here, and its charge, or why there is
    /// none.
    fn admit(&mut self, from: Rank, bytes: usize) -> Result<(Vec<u8>, usize), String> {
        let room = (UNEXPECTED - OVERHEAD).checked_sub(self.held[from]);
        let kept = room.map(|room| bytes.min(room)).filter(|&kept| kept >= bytes.min(LONG));
        let Some(kept) = kept else {
            return Err(format!(
                "process {from} has sent more than {} MiB for which no receive is posted",
                UNEXPECTED >> 20
            ));
        };
        let charge = kept + OVERHEAD;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.try_reserve_exact(kept).map_err(|error| {
            format!("{kept} bytes of a message from process {from} cannot be kept: {error}")
        })?;
        self.held[from] += charge;
        Ok((buffer, charge))
    }

    /// Lets go of a message that is in no queue any more.
    pub(super) fn release(&mut self, from: Rank, message: u32) {
        let mut gone = std::mem::take(&mut self.slab[message]);
        self.slab.give_back(message);
        self.held[from] -= gone.charge;
        if (1..=SPARE.1).contains(&gone.arrived.capacity()) && self.spare.len() < SPARE.0 {
            gone.arrived.clear();
            self.spare.push(gone.arrived);
        }
    }
}

impl Message {
    /// How much more of it is kept here.
    pub(super) fn room(&self) -> usize {
        (self.charge - OVERHEAD).saturating_sub(self.arrived.len())
    }
}

impl Index<u32> for Kept {
    type Output = Message;

    fn index(&self, message: u32) -> &Message {
        &self.slab[message]
    }
}

impl IndexMut<u32> for Kept {
    fn index_mut(&mut self, message: u32) -> &mut Message {
        &mut self.slab[message]
    }
}

impl Matching {
    pub(super) fn new(size: usize) -> Self {
        let spare = Vec::with_capacity(SPARE.0);
        Matching {
            operations: Slab::new(),
            kept: Kept { slab: Slab::new(), held: vec![0; size], spare },
            queues: HashMap::new(),
            forgotten: Forgotten::default(),
        }
    }

    /// Does something to the queue of a name; a queue that is empty then is gone.
    fn at_queue<T>(
        &mut self,
        name: Name,
        act: impl FnOnce(&mut Queue, &mut Slab<Operation>, &mut Slab<Message>) -> T,
    ) -> Option<T> {
        let Entry::Occupied(mut entry) = self.queues.entry(name) else { return None };
        let queue = entry.get_mut();
        let result = act(queue, &mut self.operations, &mut self.kept.slab);
        if queue.receives.is_empty() && queue.messages.is_empty() {
            entry.remove();
        }
        Some(result)
    }

    /// The oldest receive under a name, which leaves its queue.
    pub(super) fn take_receive(&mut self, from: Rank, tag: Tag) -> Option<u32> {
        let first = |queue: &mut Queue, operations: &mut Slab<Operation>, _: &mut _| {
            operations.pop(&mut queue.receives)
        };
        let receive = self.at_queue(Name { from, tag }, first)??;
        self.operations[receive].stage = Stage::Moving;
        Some(receive)
    }

    /// The oldest message under a name, which leaves its queue. It may still be arriving.
    pub(super) fn take_message(&mut self, from: Rank, tag: Tag) -> Option<u32> {
        self.at_queue(Name { from, tag }, |queue, _, messages| messages.pop(&mut queue.messages))?
    }

    /// Queues a receive for which no message is there.
    pub(super) fn post(&mut self, receive: u32) {
        let Operation { peer: from, tag, .. } = self.operations[receive];
        let queue = self.queues.entry(Name { from, tag }).or_default();
        self.operations.append(&mut queue.receives, receive);
    }

    /// Takes a receive that waits out of its queue.
    pub(super) fn withdraw(&mut self, receive: u32) {
        let Operation { peer: from, tag, .. } = self.operations[receive];
        self.at_queue(Name { from, tag }, |queue, operations, _| {
            operations.unlink(&mut queue.receives, receive);
        });
    }

    /// Drops a message that is in its queue.
    pub(super) fn discard(&mut self, from: Rank, tag: Tag, message: u32) {
        self.at_queue(Name { from, tag }, |queue, _, messages| {
            messages.unlink(&mut queue.messages, message);
        });
        self.kept.release(from, message);
    }

    /// Where a frame goes whose header has come, or why it is the end of the connection.
    pub(super) fn arrival(&mut self, from: Rank, header: Header) -> Result<Place, String> {
        let Header { tag, bytes, .. } = header;
        if let Some(receive) = self.take_receive(from, tag) {
            return self.fits(receive, bytes).map(|()| Place::Receive(receive));
        }
        if self.forgotten.contains(tag.context) {
            return Ok(Place::Nowhere);
        }
        let (arrived, charge) = self.kept.admit(from, bytes)?;
        let message = Message { arrived, bytes, charge, sender: None };
        Ok(Place::Message(self.keep(from, tag, message)))
    }

    /// Whether a message of `bytes` bytes fits into the receive that it has met. Notes its length.
    pub(super) fn fits(&mut self, receive: u32, bytes: usize) -> Result<(), String> {
        let operation = &mut self.operations[receive];
        operation.bytes = bytes;
        let (room, Tag { context, channel }) = (operation.pieces.left(), operation.tag);
        if bytes <= room {
            return Ok(());
        }
        Err(format!(
            "a message of {bytes} bytes from process {} is longer than the {room} bytes of its \
             receive (context {context}, channel {channel})",
            operation.peer
        ))
    }

    fn keep(&mut self, from: Rank, tag: Tag, message: Message) -> u32 {
        let place = self.kept.slab.take();
        self.kept[place] = message;
        let queue = self.queues.entry(Name { from, tag }).or_default();
        self.kept.slab.append(&mut queue.messages, place);
        place
    }

    /// Queues a copy of a message of this process to itself.
    pub(super) fn keep_copy(&mut self, own: Rank, tag: Tag, bytes: &[u8]) {
        if !self.forgotten.contains(tag.context) {
            let mut arrived = self.kept.spare.pop().unwrap_or_default();
            arrived.extend_from_slice(bytes);
            self.keep(own, tag, Message { arrived, bytes: bytes.len(), charge: 0, sender: None });
        }
    }

    /// Queues a message of this process to itself, whose bytes stay where they are.
    pub(super) fn keep_sender(&mut self, send: u32) {
        let Operation { peer, tag, bytes, .. } = self.operations[send];
        let message = Message { bytes, sender: Some(send), ..Message::default() };
        self.operations[send].message = self.keep(peer, tag, message);
    }

    /// Drops the messages of a context, now and later.
    pub(super) fn forget(&mut self, context: u32) {
        self.forgotten.insert(context);
        let Matching { operations, kept, queues, .. } = self;
        queues.retain(|name, queue| {
            if name.tag.context != context {
                return true;
            }
            while let Some(message) = kept.slab.pop(&mut queue.messages) {
                if let Some(send) = kept[message].sender {
                    operations[send].stage = Stage::Moving; // in no queue any more
                }
                kept.release(name.from, message);
            }
            !queue.receives.is_empty()
        });
    }
}
