//! The pool of put and get requests of one process, grouped by target.
//!
//! # Shape
//! One pool of chunks serves all targets: a target owns a list of chunks, so `m` reserved
//! requests need O(m + p) memory and never m per pair. A request is two words:
//!
//! ```text
//! word 0   length (16 bits) | address at this process (48)
//! word 1   slot at the other process (24) | offset in it (40)
//! ```
//!
//! A length of 0xffff marks another record: a link to the next chunk, the end of
//! the list, a request too large for the packed form (three records), or a *repeat*.
//!
//! # Repeats
//! Programs put in runs: n elements at a constant stride on both sides. Two requests whose words
//! differ from their predecessors' by the same amounts continue an arithmetic progression. `push` then only counts, and writes one repeat record when the run ends: "continue
//! the progression of the last two requests n more times". A run costs no memory traffic, and the
//! order of execution is the order of the calls.
//!
//! # Room
//! A request takes at most 48 bytes and a chunk of 256 bytes holds at least five of the largest:
//! 51.2 bytes per reserved request, plus one chunk per target and kind, whose rest may stay unused.
//!
//! # Suspension
//! A library suspends the requests of its caller, to use full supersteps of its own. Suspended lists stay in
//! their chunks. The library's lists begin in the chunks behind them, and its [`reset`](Requests::reset) goes
//! back no further. Each suspension of requests adds one more chunk per target and kind to the pool, as a
//! block of its own, because the lists lead into the other blocks and may not move.

mod changes;
mod lists;
mod recent;

pub use changes::{Capacities, Changes};
pub use recent::{Asked, Recent, Refusal};

use lists::Lists;
use serde::{Deserialize, Serialize};

use crate::Pid;
use crate::error::{Cause, Error, Result};

/// Two words; see the module's documentation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record(pub u64, pub u64);

impl Record {
    #[inline(always)]
    fn minus(self, other: Record) -> Record {
        Record(self.0.wrapping_sub(other.0), self.1.wrapping_sub(other.1))
    }

    #[inline(always)]
    fn plus(self, other: Record) -> Record {
        Record(self.0.wrapping_add(other.0), self.1.wrapping_add(other.1))
    }
}

const LENGTH_SHIFT: u32 = 48;
const ADDRESS_MASK: u64 = (1 << LENGTH_SHIFT) - 1;
const SLOT_SHIFT: u32 = 40;
const OFFSET_MASK: u64 = (1 << SLOT_SHIFT) - 1;
const TAG: u64 = 0xffff << LENGTH_SHIFT;
const END: u64 = TAG;
const LINK: u64 = TAG | 1;
const REPEAT: u64 = TAG | 2;
const LARGE: u64 = TAG | 3;

/// Records of a chunk; the last one is kept for a link or the end.
const CHUNK: usize = 16;

/// Aligned to its size, so that a reader knows from a record's address where its chunk ends.
#[repr(C, align(256))]
#[derive(Clone, Debug)]
struct Chunk([Record; CHUNK]);

const _: () = assert!(size_of::<Chunk>() == 256);
const USABLE: usize = CHUNK - 1;
/// How many records ahead the queue's line is fetched for writing: the other core has read it in the
/// superstep before, and taking it back lasts as long as some dozens of puts.
const WRITE_AHEAD: usize = 32;
/// The most records one request takes.
const LARGEST: usize = 3;
/// Requests of the largest form that fit one chunk whatever came before them.
const LARGEST_PER_CHUNK: usize = USABLE / LARGEST;

/// What a request does, seen from the process that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// Local memory to remote memory.
    Put,
    /// Remote memory to local memory.
    Get,
}

/// The end of one target's list: exactly one cache line.
#[repr(C, align(64))]
#[derive(Debug)]
struct Tail {
    last: Record,
    stride: Record,
    /// Where the next record goes.
    at: *mut Record,
    /// The record kept for a link.
    limit: *mut Record,
    head: *mut Record,
    /// Requests that continue the progression and are not written yet.
    repeats: u32,
    /// Requests of this superstep, empty ones included.
    requests: u32,
}

const _: () = assert!(size_of::<Tail>() == 64);

impl Tail {
    /// # Safety
    /// `at` is below `limit`, inside a chunk owned by this list.
    #[inline(always)]
    unsafe fn write(&mut self, record: Record) {
        // SAFETY: the caller's promise.
        unsafe {
            self.at.write(record);
            self.at = self.at.add(1);
        }
        prefetch_for_writing(self.at.wrapping_add(WRITE_AHEAD));
    }

    const EMPTY: Tail = Tail {
        at: std::ptr::null_mut(),
        limit: std::ptr::null_mut(),
        head: std::ptr::null_mut(),
        last: Record(0, 0),
        // No first request can continue from (0, 0) by this: its length would be a tag.
        stride: Record(u64::MAX, u64::MAX),
        repeats: 0,
        requests: 0,
    };
}

/// A list that is complete and may be read by other processes until the next
/// [`reset`](Requests::reset).
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// The first record, null where no request moves a byte.
    pub head: *const Record,
    /// Requests in it, empty ones included.
    pub requests: u32,
}

impl List {
    /// No request.
    pub const EMPTY: List = List { head: std::ptr::null(), requests: 0 };
}

/// The requests of one process; see the module's documentation.
#[derive(Debug)]
pub struct Requests {
    /// All room. While nothing is suspended, it is one block.
    pool: Vec<Vec<Chunk>>,
    /// The chunk that is handed out next. All before it are in use, and those behind it are free.
    next: ChunkAt,
    /// Puts to process t are list t, gets from process t are list p + t.
    lists: Lists,
    used: usize,
    /// Gets among the requests of this superstep.
    gets: usize,
    capacity: usize,
    of_libraries: usize,
    owner: Pid,
    processes: usize,
    /// What libraries have suspended, the latest last.
    suspended: Vec<Suspended>,
    /// Lists without requests, for suspensions to come.
    spare: Vec<Lists>,
}

/// Where a chunk is in the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ChunkAt {
    block: usize,
    index: usize,
}

/// Requests of a caller, while its library works.
#[derive(Debug)]
struct Suspended {
    /// Their lists, if there are any requests.
    lists: Option<Lists>,
    used: usize,
    gets: usize,
    next: ChunkAt,
}

/// The number of chunks of a pool.
fn chunks_of(pool: &[Vec<Chunk>]) -> usize {
    pool.iter().map(Vec::len).sum()
}

// SAFETY: the pointers lead into the pool, which moves with the value only as a heap allocation.
unsafe impl Send for Requests {}

impl Requests {
    /// The pool of process `owner` of `processes`, without room: O(1) memory. Refused memory is a mitigable error.
    pub fn new(owner: Pid, processes: Pid) -> Result<Self> {
        let lists = Lists::new(processes, 0).map_err(|bytes| {
            Error::mitigable(owner, 0, Cause::OutOfMemory { what: "request lists".into(), bytes })
        })?;
        Ok(Requests {
            pool: Vec::new(),
            next: ChunkAt::default(),
            lists,
            used: 0,
            gets: 0,
            capacity: 0,
            of_libraries: 0,
            owner,
            processes,
            suspended: Vec::new(),
            spare: Vec::new(),
        })
    }

    /// The process whose requests these are, and the number of all.
    pub fn process(&self) -> (Pid, Pid) {
        (self.owner, self.processes)
    }

    /// The chunks for `requests` requests, of which `levels` callers have suspended some. A list has one chunk
    /// that is not full, and every caller has lists of its own.
    fn chunks_for(&self, requests: usize, levels: usize) -> usize {
        let lists = requests.min(2 * self.processes).saturating_mul(1 + levels);
        requests
            .div_ceil(LARGEST_PER_CHUNK)
            .saturating_add(lists)
            .saturating_add(usize::from(requests > 0))
    }

    /// How many callers have suspended requests.
    fn levels(&self) -> usize {
        self.suspended.iter().filter(|caller| caller.used > 0).count()
    }

    /// All requests for which there is room, the suspended ones included.
    fn room(&self) -> usize {
        self.capacity + self.suspended.iter().map(|caller| caller.used).sum::<usize>()
    }

    /// Gets the memory for `requests` without handing it out yet; refused memory leaves
    /// everything as it was. Requests that are pending keep their place.
    pub fn reserve(&mut self, requests: usize, superstep: u64) -> Result<Option<Reserved>> {
        let chunks = self.chunks_for(requests, self.levels());
        let refused_lists = |bytes| {
            let cause = Cause::OutOfMemory { what: "request lists".into(), bytes };
            Error::mitigable(self.owner, superstep, cause)
        };
        // All of them: whichever is in use when the new room comes into force has to have the places. A refusal leaves
        // some with more places than they need yet.
        let suspended = self.suspended.iter_mut().filter_map(|caller| caller.lists.as_mut());
        for lists in suspended.chain(&mut self.spare).chain([&mut self.lists]) {
            lists.reserve(requests).map_err(refused_lists)?;
        }
        if chunks <= chunks_of(&self.pool) {
            return Ok(None);
        }
        let refused = |_| {
            let bytes = chunks.saturating_mul(size_of::<Chunk>());
            let cause = Cause::OutOfMemory { what: "requests".into(), bytes };
            Error::mitigable(self.owner, superstep, cause)
        };
        let chunks = if requests > u32::MAX as usize { usize::MAX } else { chunks };
        let block = new_block(chunks).map_err(refused)?;
        // One more block than there is: it may have to stand beside those that suspended requests lie in.
        self.pool.try_reserve(1).map_err(|_| refused(0))?;
        Ok(Some(Reserved(block)))
    }

    /// Lets `requests` be queued from now on, the suspended ones included; libraries reserved `of_libraries` of them.
    /// Pending requests that are not suspended are dropped.
    ///
    /// Whether that number is in force: while requests are suspended the room does not shrink.
    pub fn set_capacity(
        &mut self,
        requests: usize,
        of_libraries: usize,
        reserved: Option<Reserved>,
    ) -> bool {
        self.of_libraries = of_libraries;
        self.clear();
        if let Some(Reserved(block)) = reserved {
            if self.suspended.is_empty() {
                // No list leads into the old blocks.
                self.pool.clear();
            }
            self.pool.push(block);
        }
        let (room, suspended) = (self.room(), self.room() - self.capacity);
        let is_in_force = self.suspended.is_empty() || requests >= room;
        let requests = if is_in_force { requests } else { room };
        assert!(
            self.chunks_for(requests, self.levels()) <= chunks_of(&self.pool),
            "{requests} requests were not reserved"
        );
        self.capacity = requests - suspended;
        is_in_force
    }

    /// Requests that may be queued in one superstep.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Why no request is left.
    #[cold]
    pub fn used_up(&self) -> Cause {
        Cause::RequestsUsedUp { reserved: self.capacity, libraries: self.of_libraries }
    }

    /// Why a superstep cannot be in which this process, `target`, makes and is subject to `count` requests.
    #[cold]
    pub fn overrun(&self, target: Pid, origin: Pid, count: usize) -> Cause {
        let (reserved, libraries) = (self.capacity, self.of_libraries);
        Cause::TargetOverrun { target, origin, count, reserved, libraries }
    }

    /// Requests counted against the capacity in this superstep.
    #[inline]
    pub fn used(&self) -> usize {
        self.used
    }

    /// Bytes held, for the test that counts them.
    pub fn bytes(&self) -> usize {
        chunks_of(&self.pool) * size_of::<Chunk>() + self.lists.bytes()
    }

    /// The bytes that room for `requests` requests takes.
    pub fn bytes_for(&self, requests: usize) -> usize {
        let chunks = self.chunks_for(requests, 0).saturating_mul(size_of::<Chunk>());
        chunks.saturating_add(Lists::bytes_for(self.processes, requests))
    }

    /// Counts a request with `other` against the capacity: once here, and once more where it is
    /// its own target. False if there is no room.
    #[inline(always)]
    pub fn admit(&mut self, other: Pid) -> bool {
        let cost = 1 + usize::from(other == self.owner);
        if self.capacity - self.used < cost {
            return false;
        }
        self.used += cost;
        true
    }

    /// Queues a request that [`admit`](Self::admit) let in: `bytes` at `address` here, to or from
    /// `offset` of global slot number `slot` at `other`.
    ///
    /// A run's requests take the few instructions up to the first return, inlined into the caller.
    ///
    /// # Panics
    /// For a process that does not exist.
    #[inline(always)]
    pub fn push(
        &mut self,
        way: Way,
        other: Pid,
        address: *mut u8,
        bytes: usize,
        slot: usize,
        offset: usize,
    ) {
        let list = self.number(way, other);
        let list = self.lists.claim(list);
        let tail = self.lists.at(list);
        tail.requests += 1;
        self.gets += usize::from(way == Way::Get);
        let address = address as u64;
        let too_large = (address >> LENGTH_SHIFT) | (offset as u64 >> SLOT_SHIFT);
        if (bytes as u64).wrapping_sub(1) >= 0xfffe || too_large != 0 {
            return self.push_large(list, address, bytes, slot, offset);
        }
        let record = Record(
            address | (bytes as u64) << LENGTH_SHIFT,
            offset as u64 | (slot as u64) << SLOT_SHIFT,
        );
        let stride = record.minus(tail.last);
        tail.last = record;
        if stride == tail.stride {
            tail.repeats += 1;
            return;
        }
        tail.stride = stride;
        if tail.repeats > 0 || tail.at == tail.limit {
            return self.push_after_room(list, record);
        }
        // SAFETY: `at` is below `limit`, inside a chunk owned by this list.
        unsafe { tail.write(record) };
    }

    #[inline(never)]
    fn push_after_room(&mut self, list: usize, record: Record) {
        self.make_room(list, 1);
        // SAFETY: make_room left `at` below `limit`, inside a chunk owned by this list.
        unsafe { self.lists.at(list).write(record) };
    }

    /// Ends a run and sees to it that `records` fit behind one another at `at`.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, list: usize, records: usize) {
        let repeats = std::mem::take(&mut self.lists.at(list).repeats);
        if repeats > 0 {
            self.chunk_with(list, 1);
            let tail = self.lists.at(list);
            // SAFETY: chunk_with left room for one record.
            unsafe {
                tail.at.write(Record(REPEAT, u64::from(repeats)));
                tail.at = tail.at.add(1);
            }
        }
        self.chunk_with(list, records);
    }

    fn chunk_with(&mut self, list: usize, records: usize) {
        let tail = self.lists.at(list);
        if (tail.limit as usize - tail.at as usize) / size_of::<Record>() >= records {
            return;
        }
        let chunk = take_chunk(&mut self.pool, &mut self.next);
        if tail.head.is_null() {
            tail.head = chunk;
        } else {
            // SAFETY: the chunk's last record is never handed out, so `at` is at most there.
            unsafe { tail.at.write(Record(LINK, chunk as u64)) };
        }
        tail.at = chunk;
        tail.limit = chunk.wrapping_add(USABLE);
    }

    #[cold]
    fn push_large(&mut self, list: usize, address: u64, bytes: usize, slot: usize, offset: usize) {
        if bytes == 0 {
            return;
        }
        self.make_room(list, LARGEST);
        let tail = self.lists.at(list);
        // SAFETY: make_room left room for three records.
        unsafe {
            tail.at.write(Record(LARGE, slot as u64));
            tail.at.add(1).write(Record(address, bytes as u64));
            tail.at.add(2).write(Record(offset as u64, 0));
            tail.at = tail.at.add(LARGEST);
        }
        tail.last = Record(0, 0);
        tail.stride = Record(u64::MAX, u64::MAX);
    }

    /// Completes the list of `way` and `other` and shows it.
    pub fn finish(&mut self, way: Way, other: Pid) -> List {
        let list = self.number(way, other);
        if self.lists.get(list).requests == 0 {
            return List::EMPTY;
        }
        let list = self.lists.claim(list);
        if self.lists.at(list).repeats > 0 {
            self.make_room(list, 0);
        }
        let tail = self.lists.at(list);
        if !tail.head.is_null() {
            // SAFETY: `at` is at most the chunk's last record, which is kept for this.
            unsafe { tail.at.write(Record(END, 0)) };
        }
        List { head: tail.head, requests: tail.requests }
    }

    /// Whether any request of this superstep is a get.
    #[inline]
    pub fn has_gets(&self) -> bool {
        self.gets > 0
    }

    /// Requests of `way` with `other` so far, empty ones included.
    #[inline]
    pub fn count(&self, way: Way, other: Pid) -> u32 {
        self.lists.get(self.number(way, other)).requests
    }

    /// The number of a list.
    #[inline(always)]
    fn number(&self, way: Way, other: Pid) -> usize {
        other + if way == Way::Get { self.processes } else { 0 }
    }

    /// The places that lists can have: O(requests reserved) if processes are many.
    #[inline]
    pub fn places(&self) -> usize {
        self.lists.places()
    }

    /// Whose list is at a place, if one with requests is.
    #[inline]
    pub fn list_at(&self, place: usize) -> Option<(Way, Pid)> {
        let list = self.lists.number_at(place)?;
        Some(match list.checked_sub(self.processes) {
            None => (Way::Put, list),
            Some(from) => (Way::Get, from),
        })
    }

    /// Empties the queue. What is suspended stays.
    pub fn reset(&mut self) {
        if self.used > 0 {
            self.clear();
        }
    }

    fn clear(&mut self) {
        (self.used, self.gets) = (0, 0);
        self.next = self.suspended.last().map_or(ChunkAt::default(), |caller| caller.next);
        self.lists.clear();
    }

    /// Suspends what is queued until [`restore`](Self::restore): the queue is empty then, with the room that is
    /// left. Suspensions nest. If something is queued, it takes memory for as many lists the first time on each level.
    ///
    /// # Errors
    /// The bytes that were refused. Nothing is suspended then.
    pub fn suspend(&mut self) -> std::result::Result<(), usize> {
        self.suspended.try_reserve(1).map_err(|_| size_of::<Suspended>())?;
        let Requests { used, gets, next, .. } = *self;
        let mut lists = None;
        if used > 0 {
            let needed = self.chunks_for(self.room(), self.levels() + 1);
            let missing = needed.saturating_sub(chunks_of(&self.pool));
            if missing > 0 {
                self.pool.try_reserve(1).map_err(|_| size_of::<Vec<Chunk>>())?;
                self.pool.push(new_block(missing)?);
            }
            self.spare.try_reserve(1).map_err(|_| size_of::<Vec<Tail>>())?;
            let empty = match self.spare.pop() {
                Some(empty) => empty,
                None => self.lists.another()?,
            };
            lists = Some(std::mem::replace(&mut self.lists, empty));
            (self.used, self.gets) = (0, 0);
            self.capacity -= used;
        }
        self.suspended.push(Suspended { lists, used, gets, next });
        Ok(())
    }

    /// The requests suspended last are queued again; later ones are dropped.
    ///
    /// # Panics
    /// If nothing is suspended.
    pub fn restore(&mut self) {
        self.reset();
        let caller = self.suspended.pop().expect("each restore follows a suspend");
        let Suspended { lists, used, gets, next } = caller;
        if let Some(lists) = lists {
            // `suspend` made room for one more.
            self.spare.push(std::mem::replace(&mut self.lists, lists));
            self.capacity += used;
        }
        (self.used, self.gets, self.next) = (used, gets, next);
    }
}

/// A block of `chunks` chunks.
///
/// # Errors
/// The bytes that were refused.
fn new_block(chunks: usize) -> std::result::Result<Vec<Chunk>, usize> {
    let mut block = Vec::new();
    let refused = |_| chunks.saturating_mul(size_of::<Chunk>());
    block.try_reserve_exact(chunks).map_err(refused)?;
    block.resize(chunks, Chunk([Record(0, 0); CHUNK]));
    Ok(block)
}

/// Hands out the chunk at `next`.
#[inline]
fn take_chunk(pool: &mut [Vec<Chunk>], next: &mut ChunkAt) -> *mut Record {
    while pool.get(next.block).is_some_and(|block| next.index == block.len()) {
        *next = ChunkAt { block: next.block + 1, index: 0 };
    }
    let block = pool.get_mut(next.block).expect("the pool has room for its capacity");
    assert!(next.index < block.len(), "a chunk in use is in its block");
    // SAFETY: the chunk lies inside the block's allocation, by the line above. By the pointer to the
    // allocation, and not by a reference to the block: other lists hold pointers into it.
    let chunk = unsafe { block.as_mut_ptr().add(next.index) };
    next.index += 1;
    chunk.cast()
}

/// Memory for a larger pool, not yet in use.
#[derive(Debug)]
pub struct Reserved(Vec<Chunk>);

/// One request, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The address at the process that made it.
    pub address: *mut u8,
    /// Its length.
    pub bytes: usize,
    /// The global slot's number at the other process.
    pub slot: usize,
    /// The offset in that slot.
    pub offset: usize,
}

impl Request {
    #[inline]
    fn unpack(record: Record) -> Self {
        Request {
            address: (record.0 & ADDRESS_MASK) as *mut u8,
            bytes: (record.0 >> LENGTH_SHIFT) as usize,
            slot: (record.1 >> SLOT_SHIFT) as usize,
            offset: (record.1 & OFFSET_MASK) as usize,
        }
    }
}

impl List {
    /// Calls `execute` for every request that moves a byte, in the order of the calls, until it
    /// returns an error.
    ///
    /// # Safety
    /// - `self` came from [`Requests::finish`], whose pool lives and is not changed meanwhile, and
    ///   what its owner wrote is visible to this thread.
    #[inline]
    pub unsafe fn for_each<E>(
        self,
        mut execute: impl FnMut(Request) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if self.head.is_null() {
            return Ok(());
        }
        let mut at = self.head;
        let (mut last, mut before) = (Record(0, 0), Record(0, 0));
        loop {
            // SAFETY: a list ends in an END record; everything up to it was written.
            let record = unsafe { *at };
            if record.0 < TAG {
                prefetch_source(at);
                execute(Request::unpack(record))?;
                (before, last) = (last, record);
                at = at.wrapping_add(1);
                continue;
            }
            match record.0 {
                REPEAT => {
                    let stride = last.minus(before);
                    for _ in 0..record.1 {
                        before = last;
                        last = last.plus(stride);
                        execute(Request::unpack(last))?;
                    }
                    at = at.wrapping_add(1);
                }
                LINK => at = record.1 as *const Record,
                LARGE => {
                    // SAFETY: two more records belong to a large request.
                    let (place, offset) = unsafe { (*at.add(1), *at.add(2)) };
                    execute(Request {
                        address: place.0 as *mut u8,
                        bytes: place.1 as usize,
                        slot: record.1 as usize,
                        offset: offset.0 as usize,
                    })?;
                    (last, before) = (Record(0, 0), Record(0, 0));
                    at = at.wrapping_add(LARGEST);
                }
                _ => return Ok(()),
            }
        }
    }
}

/// Requests at constant strides on both sides: what a run of calls becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first one.
    pub first: Request,
    /// How many there are, at least 1.
    pub count: usize,
    /// From one address to the next.
    pub address_stride: isize,
    /// From one offset to the next.
    pub offset_stride: isize,
}

impl Run {
    fn single(first: Request) -> Self {
        Run { first, count: 1, address_stride: 0, offset_stride: 0 }
    }

    /// The requests from `first` to the `count`-th of the progression on, where only the places
    /// change; else nothing.
    fn of(first: Request, second: Request, count: usize) -> Option<Self> {
        (first.bytes == second.bytes && first.slot == second.slot).then(|| Run {
            first,
            count,
            address_stride: (second.address as isize).wrapping_sub(first.address as isize),
            offset_stride: (second.offset as isize).wrapping_sub(first.offset as isize),
        })
    }

    /// Request `nth` of the run, from 0.
    #[inline]
    pub fn request(&self, nth: usize) -> Request {
        let step = nth as isize;
        Request {
            address: self.first.address.wrapping_offset(self.address_stride.wrapping_mul(step)),
            offset: (self.first.offset as isize).wrapping_add(self.offset_stride.wrapping_mul(step))
                as usize,
            ..self.first
        }
    }
}

impl List {
    /// As [`for_each`](Self::for_each), run by run: for a sender that sends a run as one record.
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub unsafe fn for_each_run<E>(
        self,
        mut execute: impl FnMut(Run) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        if self.head.is_null() {
            return Ok(());
        }
        if self.requests == 1 {
            // SAFETY: the list is not empty, and everything up to its end was written.
            let record = unsafe { *self.head };
            if record.0 < TAG {
                return execute(Run::single(Request::unpack(record)));
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.walk(execute) }
    }

    /// [`for_each_run`](Self::for_each_run), of a list that is not empty.
    ///
    /// # Safety
    /// As there.
    unsafe fn walk<E>(
        self,
        mut execute: impl FnMut(Run) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut at = self.head;
        // The last record; it is handed out when it is known not to begin a run.
        let mut held: Option<Record> = None;
        let mut before = Record(0, 0);
        loop {
            // SAFETY: as in `for_each`.
            let record = unsafe { *at };
            if record.0 < TAG {
                if let Some(held) = held.replace(record) {
                    execute(Run::single(Request::unpack(held)))?;
                    before = held;
                }
                at = at.wrapping_add(1);
                continue;
            }
            match record.0 {
                REPEAT => {
                    // It continues the progression of the two records before it; the second of
                    // them is the run's first request.
                    let last = held.take().unwrap_or(before);
                    let stride = last.minus(before);
                    let (first, second) =
                        (Request::unpack(last), Request::unpack(last.plus(stride)));
                    match Run::of(first, second, record.1 as usize + 1) {
                        Some(run) => execute(run)?,
                        None => {
                            let mut next = last;
                            for _ in 0..=record.1 {
                                execute(Run::single(Request::unpack(next)))?;
                                next = next.plus(stride);
                            }
                        }
                    }
                    let steps =
                        Record(stride.0.wrapping_mul(record.1), stride.1.wrapping_mul(record.1));
                    // What a next record may continue from.
                    before = last.plus(steps);
                    at = at.wrapping_add(1);
                }
                LINK => at = record.1 as *const Record,
                LARGE => {
                    if let Some(held) = held.take() {
                        execute(Run::single(Request::unpack(held)))?;
                    }
                    // SAFETY: two more records belong to a large request.
                    let (place, offset) = unsafe { (*at.add(1), *at.add(2)) };
                    execute(Run::single(Request {
                        address: place.0 as *mut u8,
                        bytes: place.1 as usize,
                        slot: record.1 as usize,
                        offset: offset.0 as usize,
                    }))?;
                    before = Record(0, 0);
                    at = at.wrapping_add(LARGEST);
                }
                _ => {
                    return match held {
                        Some(held) => execute(Run::single(Request::unpack(held))),
                        None => Ok(()),
                    };
                }
            }
        }
    }
}

/// How many records ahead the source of a request is fetched.
const PREFETCH_AHEAD: usize = 5;

/// Fetches what a request a few records on will read, and the record behind a chunk's end.
#[inline]
fn prefetch_source(at: *const Record) {
    let ahead = at.wrapping_add(PREFETCH_AHEAD);
    let same_chunk = (ahead as usize) / size_of::<Chunk>() == at as usize / size_of::<Chunk>();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the record lies in the same chunk, which is initialised; it may be an older one, but
    // prefetching has no effect on memory and accepts any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let source =
            if same_chunk { ((*ahead).0 & ADDRESS_MASK) as *const i8 } else { ahead.cast() };
        _mm_prefetch::<_MM_HINT_T0>(source);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = same_chunk;
}

#[inline]
fn prefetch_for_writing(at: *const Record) {
    // The intrinsic becomes a prefetch for reading unless the build is told of a processor that has
    // this one; processors without it take it for no instruction.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect on memory and accepts any address.
    unsafe {
        std::arch::asm!("prefetchw [{at}]", at = in(reg) at, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn requests(capacity: usize, processes: Pid) -> Requests {
        let mut requests = Requests::new(0, processes).unwrap();
        let reserved = requests.reserve(capacity, 0).unwrap();
        assert!(requests.set_capacity(capacity, 0, reserved));
        requests
    }

    fn collect(list: List) -> Vec<Request> {
        let mut all = Vec::new();
        // SAFETY: the list was just finished on this thread and its pool is alive.
        let done: std::result::Result<(), ()> = unsafe {
            list.for_each(|r| {
                all.push(r);
                Ok(())
            })
        };
        done.unwrap();
        all
    }

    fn collect_runs(list: List) -> Vec<Request> {
        let mut all = Vec::new();
        // SAFETY: as above.
        let done: std::result::Result<(), ()> = unsafe {
            list.for_each_run(|run| {
                all.extend((0..run.count).map(|nth| run.request(nth)));
                Ok(())
            })
        };
        done.unwrap();
        all
    }

    fn some_request() -> impl Strategy<Value = Request> {
        let address = prop_oneof![1u64..1 << 12, (1 << 47) - 4096u64..1 << 47, any::<u64>()];
        let bytes = prop_oneof![0usize..70, 0xfff0usize..0x1_0010, Just(1 << 40)];
        let offset = prop_oneof![0usize..64, (1 << 40) - 9usize..(1 << 40) + 9, Just(usize::MAX)];
        (address, bytes, 0usize..crate::slot::MAX_SLOTS, offset).prop_map(
            |(address, bytes, slot, offset)| Request {
                address: address as *mut u8,
                bytes,
                slot,
                offset,
            },
        )
    }

    /// Single requests mixed with runs of constant stride.
    fn some_program() -> impl Strategy<Value = Vec<Request>> {
        let run = (some_request(), 1usize..40, 0usize..100, 0usize..100).prop_map(
            |(first, n, here, there)| {
                (0..n)
                    .map(|i| Request {
                        address: first.address.wrapping_add(i * here),
                        offset: first.offset.wrapping_add(i * there),
                        ..first
                    })
                    .collect::<Vec<_>>()
            },
        );
        proptest::collection::vec(run, 0..12).prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out_in_order(program in some_program(), targets in 1_usize..4) {
            let mut pool = requests(2 * program.len(), targets);
            for round in 0..2 {
                for (i, r) in program.iter().enumerate() {
                    let to = (i * 7 + round) % targets;
                    prop_assert!(pool.admit(to));
                    pool.push(Way::Put, to, r.address, r.bytes, r.slot, r.offset);
                }
                for to in 0..targets {
                    let sent: Vec<_> = program
                        .iter()
                        .enumerate()
                        .filter(|(i, _)| (*i * 7 + round) % targets == to)
                        .map(|(_, r)| *r)
                        .collect();
                    let list = pool.finish(Way::Put, to);
                    prop_assert_eq!(list.requests as usize, sent.len());
                    let moving: Vec<_> = sent.into_iter().filter(|r| r.bytes > 0).collect();
                    prop_assert_eq!(collect(list), &moving[..]);
                    prop_assert_eq!(collect_runs(list), moving);
                }
                pool.reset();
            }
        }
    }

    #[test]
    fn a_run_takes_three_records_whatever_its_length() {
        let mut pool = requests(100_000, 2);
        for i in 0..100_000usize {
            assert!(pool.admit(1));
            pool.push(Way::Put, 1, (4096 + 16 * i) as *mut u8, 8, 3, 24 * i);
        }
        let list = pool.finish(Way::Put, 1);
        assert_eq!(collect(list).len(), 100_000);
        let mut runs = 0;
        // SAFETY: as above.
        let done: std::result::Result<(), ()> = unsafe {
            list.for_each_run(|_| {
                runs += 1;
                Ok(())
            })
        };
        assert!(done.is_ok() && runs <= 2, "{runs} runs");
        assert_eq!(pool.next, ChunkAt { block: 0, index: 1 });
    }

    #[test]
    fn the_pool_holds_what_was_reserved_in_its_largest_form() {
        for (capacity, targets) in [(1, 1), (7, 3), (100, 2), (1000, 8), (64, 64)] {
            let mut pool = requests(capacity, targets);
            for i in 0..capacity {
                let to = 1.max(i % targets).min(targets - 1);
                let way = if i % 2 == 0 { Way::Put } else { Way::Get };
                pool.push(way, to, std::ptr::dangling_mut(), 1 << 20, 1, i);
            }
        }
    }

    #[test]
    fn a_reserved_request_costs_at_most_64_bytes() {
        for targets in [1, 2, 16] {
            let pool = requests(10_000, targets);
            let per_target = 2 * (size_of::<Tail>() + size_of::<Chunk>());
            let all = 64 * 10_000 + targets * per_target + size_of::<Chunk>();
            assert!(pool.bytes() <= all);
        }
    }

    /// What a process and its libraries do.
    #[derive(Clone, Debug)]
    enum Act {
        Queue(Vec<Request>),
        Suspend,
        Restore,
        /// Ends the superstep of the innermost library, in which the room may change.
        Sync(Option<usize>),
    }

    fn some_act() -> impl Strategy<Value = Act> {
        prop_oneof![
            3 => some_program().prop_map(Act::Queue),
            2 => Just(Act::Suspend),
            2 => Just(Act::Restore),
            1 => proptest::option::of(0usize..400).prop_map(Act::Sync),
        ]
    }

    proptest! {
        /// Against lists of requests, one for each level and target.
        #[test]
        fn suspended_requests_come_back_as_they_were(
            acts in proptest::collection::vec(some_act(), 1..60),
            targets in prop_oneof![1_usize..4, Just(1000)],
        ) {
            // Of many processes the lists are a table, which grows with the room.
            let mut room = if targets < 4 { 300 } else { 10 };
            let mut pool = requests(room, targets);
            // The caller's and its libraries' requests, each with what it counts.
            let mut levels: Vec<Vec<(Pid, Request)>> = vec![Vec::new()];
            let cost = |to: Pid| 1 + usize::from(to == 0);
            for act in acts {
                let pending = |levels: &[Vec<(Pid, Request)>]| -> usize {
                    levels.iter().flatten().map(|&(to, _)| cost(to)).sum()
                };
                match act {
                    Act::Queue(program) => {
                        for (nth, r) in program.into_iter().enumerate() {
                            let to = nth * 37 % targets;
                            let fits = pending(&levels) + cost(to) <= room;
                            prop_assert_eq!(pool.admit(to), fits);
                            if fits {
                                pool.push(Way::Put, to, r.address, r.bytes, r.slot, r.offset);
                                levels.last_mut().unwrap().push((to, r));
                            }
                        }
                    }
                    Act::Suspend => {
                        pool.suspend().unwrap();
                        levels.push(Vec::new());
                    }
                    Act::Restore if levels.len() > 1 => {
                        pool.restore();
                        levels.pop();
                    }
                    Act::Restore => {}
                    Act::Sync(resize) => {
                        pool.reset();
                        levels.last_mut().unwrap().clear();
                        if let Some(requests) = resize {
                            let reserved = pool.reserve(requests, 0).unwrap();
                            let shrinks = levels.len() > 1 && requests < room;
                            prop_assert_eq!(pool.set_capacity(requests, 0, reserved), !shrinks);
                            room = if shrinks { room } else { requests };
                        }
                    }
                }
                let lists = (0..pool.places()).filter_map(|place| pool.list_at(place));
                let mut lists: Vec<_> = lists.collect();
                lists.sort_unstable_by_key(|&(_, to)| to);
                let mut named: Vec<_> = levels.last().unwrap().iter().map(|&(to, _)| to).collect();
                named.sort_unstable();
                named.dedup();
                prop_assert_eq!(lists, named.into_iter().map(|to| (Way::Put, to)).collect::<Vec<_>>());
                for to in 0..targets {
                    let queued = levels.last().unwrap().iter().filter(|(other, _)| *other == to);
                    let queued: Vec<_> = queued.map(|&(_, r)| r).collect();
                    let list = pool.finish(Way::Put, to);
                    prop_assert_eq!(list.requests as usize, queued.len());
                    let moving: Vec<_> = queued.into_iter().filter(|r| r.bytes > 0).collect();
                    prop_assert_eq!(collect(list), moving);
                }
            }
        }
    }

    #[test]
    fn lists_of_many_processes_take_no_more_than_the_requests() {
        let empty = Requests::new(5, 100_000).unwrap();
        assert!(empty.bytes() < 200, "{} bytes", empty.bytes());
        for (capacity, most) in [(1, 1_000), (100, 100_000), (1 << 20, 120 << 20)] {
            let mut pool = requests(capacity, 100_000);
            assert!(pool.bytes() < most && pool.bytes() <= pool.bytes_for(capacity));
            // As far apart as they can be, puts and gets.
            for nth in 0..capacity.min(100) {
                let way = if nth % 2 == 0 { Way::Put } else { Way::Get };
                assert!(pool.admit(99_999 - 512 * nth));
                pool.push(way, 99_999 - 512 * nth, std::ptr::dangling_mut(), 1 << 20, 1, 7);
            }
            assert_eq!(pool.count(Way::Put, 99_999), 1);
            assert_eq!(pool.count(Way::Get, 99_999), 0);
            assert_eq!(collect(pool.finish(Way::Put, 99_999)).len(), 1);
            assert!(pool.finish(Way::Get, 7).head.is_null());
        }
    }

    #[test]
    fn a_message_to_oneself_counts_twice() {
        let mut pool = requests(3, 2);
        assert!(pool.admit(0));
        assert!(!pool.admit(0));
        assert!(pool.admit(1));
        assert!(!pool.admit(1));
    }

    #[test]
    fn absurd_sizes_are_refused_and_leave_the_pool_usable() {
        let mut pool = requests(4, 2);
        for requests in [usize::MAX, usize::MAX / 10, 1 << 50] {
            assert!(pool.reserve(requests, 0).unwrap_err().is_mitigable());
        }
        assert!(pool.admit(1));
    }
}
