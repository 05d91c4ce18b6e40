//! Messages in memory, handed out late.

use std::cell::UnsafeCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lpf_messages::{Outcome, Piece, Rank, SharedMemory, Tag, Ticket, Transport};

use super::control::MemoryControl;

/// How long the network keeps a message back, at most.
const LATE: Duration = Duration::from_micros(50);

struct Message {
    bytes: Vec<u8>,
    ready: Instant,
    /// Set when it was taken: its sender's ticket is finished then.
    taken: Arc<Mutex<bool>>,
}

/// What is under way to one process, by sender and tag, in order.
#[derive(Default)]
struct Mail(HashMap<(Rank, Tag), VecDeque<Message>>);

#[derive(Clone)]
pub(crate) struct World {
    /// By receiver.
    mail: Arc<Vec<Mutex<Mail>>>,
    size: Rank,
    lets_go: bool,
}

enum Open {
    Send { taken: Arc<Mutex<bool>>, bytes: usize },
    Receive { from: Rank, tag: Tag, pieces: Vec<Piece>, done: Option<usize> },
}

pub(crate) struct MemoryTransport {
    world: World,
    rank: Rank,
    control: MemoryControl,
    /// In the order in which they were made.
    open: BTreeMap<u64, Open>,
    next: u64,
    chance: u64,
    messages: u64,
    /// What it may write to for ever.
    held: Vec<Piece>,
}

impl Drop for MemoryTransport {
    /// The last moment to write where somebody let go too soon.
    fn drop(&mut self) {
        for piece in &self.held {
            // SAFETY: the memory of a receive whose end was denied.
            unsafe { std::ptr::write_bytes(piece.base, 0xee, piece.bytes) };
        }
    }
}

impl World {
    /// One that does not let go of what it may write to where `lets_go` is false.
    pub(crate) fn new(size: usize, lets_go: bool) -> Self {
        let mail = (0..size).map(|_| Mutex::default()).collect();
        World { mail: Arc::new(mail), size, lets_go }
    }

    pub(crate) fn transport(&self, rank: Rank, control: MemoryControl) -> MemoryTransport {
        MemoryTransport {
            world: self.clone(),
            rank,
            control,
            open: BTreeMap::new(),
            next: 0,
            chance: rank as u64 + 1,
            messages: 0,
            held: Vec::new(),
        }
    }
}

/// A line of what processes share.
#[repr(align(64))]
struct Line {
    _bytes: [u8; 64],
}

/// Memory that is shared, until it is given back: others have its address.
struct Lent {
    _lines: Vec<UnsafeCell<Line>>,
}

// SAFETY: it is only dropped.
unsafe impl Send for Lent {}

impl MemoryTransport {
    /// Some pairs of processes share memory, among them the first two.
    fn is_near(&self, other: Rank) -> bool {
        !(self.rank + other).is_multiple_of(3)
    }

    fn delay(&mut self) -> Duration {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        if self.chance.is_multiple_of(4) {
            LATE * (self.chance >> 32 & 7) as u32 / 8
        } else {
            Duration::ZERO
        }
    }

    fn push(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Arc<Mutex<bool>> {
        let ready = Instant::now() + self.delay();
        let taken = Arc::new(Mutex::new(false));
        let message = Message { bytes, ready, taken: taken.clone() };
        let mut mail = self.world.mail[to].lock().unwrap();
        mail.0.entry((self.rank, tag)).or_default().push_back(message);
        self.messages += 1;
        taken
    }

    fn ticket(&mut self, open: Open) -> Ticket {
        self.next += 1;
        self.open.insert(self.next, open);
        Ticket(self.next)
    }
}

// SAFETY: a send's pieces are read before it returns; a receive's are written in `progress` alone,
// while its ticket is open.
unsafe impl Transport for MemoryTransport {
    type Control = MemoryControl;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> Rank {
        self.world.size
    }

    fn control(&self) -> &MemoryControl {
        &self.control
    }

    fn send_copy(&mut self, to: Rank, tag: Tag, bytes: &[u8]) -> Outcome<()> {
        self.push(to, tag, bytes.to_vec());
        Ok(())
    }

    unsafe fn send(&mut self, to: Rank, tag: Tag, pieces: &[Piece]) -> Outcome<Ticket> {
        let mut bytes = Vec::new();
        for piece in pieces {
            // SAFETY: the caller's promise.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(piece.base, piece.bytes) });
        }
        let length = bytes.len();
        let taken = self.push(to, tag, bytes);
        Ok(self.ticket(Open::Send { taken, bytes: length }))
    }

    unsafe fn receive(&mut self, from: Rank, tag: Tag, pieces: &[Piece]) -> Outcome<Ticket> {
        Ok(self.ticket(Open::Receive { from, tag, pieces: pieces.to_vec(), done: None }))
    }

    fn test(&mut self, ticket: &Ticket) -> Outcome<Option<usize>> {
        self.progress()?;
        let done =
            match self.open.get(&ticket.0).expect("a ticket is asked about until it is spent") {
                Open::Send { taken, bytes } => taken.lock().unwrap().then_some(*bytes),
                Open::Receive { done, .. } => *done,
            };
        if done.is_some() {
            self.open.remove(&ticket.0);
        }
        Ok(done)
    }

    fn progress(&mut self) -> Outcome<()> {
        let mut mail = self.world.mail[self.rank].lock().unwrap();
        if mail.0.is_empty() {
            return Ok(());
        }
        let mut waiting = HashSet::new();
        for open in self.open.values_mut() {
            let Open::Receive { from, tag, pieces, done } = open else { continue };
            if done.is_some() || waiting.contains(&(*from, *tag)) {
                continue;
            }
            let Some(queue) = mail.0.get_mut(&(*from, *tag)) else { continue };
            if queue.front().is_none_or(|message| message.ready > Instant::now()) {
                waiting.insert((*from, *tag));
                continue;
            }
            let message = queue.pop_front().expect("looked at just now");
            if queue.is_empty() {
                mail.0.remove(&(*from, *tag));
            }
            let mut rest = &message.bytes[..];
            for piece in pieces {
                let (here, behind) = rest.split_at(piece.bytes.min(rest.len()));
                // SAFETY: the pieces are valid for writes until the ticket is finished.
                unsafe { std::ptr::copy_nonoverlapping(here.as_ptr(), piece.base, here.len()) };
                rest = behind;
            }
            assert!(rest.is_empty(), "{tag:?}: {} bytes have no place", rest.len());
            *message.taken.lock().unwrap() = true;
            *done = Some(message.bytes.len());
        }
        Ok(())
    }

    /// In worlds that let go of nothing there is none.
    fn share(&mut self, bytes: usize) -> Option<SharedMemory> {
        let mut lines = Vec::new();
        lines.try_reserve_exact(bytes.div_ceil(64)).ok()?;
        lines.resize_with(bytes.div_ceil(64), || UnsafeCell::new(Line { _bytes: [0; 64] }));
        let base = lines.as_mut_ptr().cast::<u8>();
        let place = base.expose_provenance() as u64;
        let owner = Box::new(Lent { _lines: lines });
        self.world.lets_go.then_some(SharedMemory { base, bytes, place, owner })
    }

    fn reach(&self, owner: Rank, place: u64, _: usize) -> Option<*mut u8> {
        self.is_near(owner).then(|| std::ptr::with_exposed_provenance_mut(place as usize))
    }

    fn cancel(&mut self, ticket: Ticket) -> bool {
        match self.open.remove(&ticket.0) {
            Some(Open::Receive { pieces, done: None, .. }) if !self.world.lets_go => {
                self.held.extend(pieces);
                false
            }
            _ => true,
        }
    }

    fn forget(&mut self, context: u32) {
        let mut mail = self.world.mail[self.rank].lock().unwrap();
        mail.0.retain(|&(_, tag), _| tag.context != context);
    }

    fn idle(&mut self, time: Duration) {
        std::thread::sleep(time.min(Duration::from_micros(200)));
    }

    fn messages(&self) -> u64 {
        self.messages
    }
}
