//! Registered memory: slots and the table that finds them.

use serde::{Deserialize, Serialize};

use crate::Pid;
use crate::error::{Cause, Error, Result};

/// Slots with an index of 2^24 and above do not fit a packed request, and the last one stands for none; the table refuses
/// them.
pub const MAX_SLOTS: usize = NONE as usize;

const GENERATION_SHIFT: u32 = 24;
const INDEX_MASK: u64 = (1 << GENERATION_SHIFT) - 1;
/// Set in an entry's key, never in a slot's: the entry is taken but not yet active.
const PENDING: u64 = 1 << 63;
/// Set in the keys of global slots.
const GLOBAL: u64 = 1 << 62;
/// Set in the keys of outboxes.
const OUTBOX: u64 = 1 << 61;
/// Generations of a place: 2^37, which takes years of registrations. They are never used again.
const GENERATIONS: u64 = 1 << 37;
/// The bits of a note that name a place; all of them set name none.
const PLACE_MASK: u32 = INDEX_MASK as u32;
const NONE: u32 = PLACE_MASK;

/// Memory that can be named by its owner only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LocalSlot(u64);

/// Memory that every process can name, after the sync that activates it. The same value names the
/// areas registered by the same collective call on every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GlobalSlot(u64);

/// A slot of either kind: the local side of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slot(u64);

impl GlobalSlot {
    /// The slot's place in the table, equal on every process.
    #[inline]
    pub fn index(self) -> usize {
        (self.0 & INDEX_MASK) as usize
    }

    /// The slot as a number, for interfaces that have no types (C).
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The slot of a number, for interfaces that have no types.
    ///
    /// # Safety
    /// The number came from [`to_bits`](Self::to_bits) in the same context, from the code that registered the slot or
    /// shares its duties; or it names no slot at all. Requests on a slot are bound by the promises of its
    /// registration.
    pub unsafe fn from_bits(bits: u64) -> Self {
        GlobalSlot(bits)
    }

    /// Names no slot: the remote side of puts on links, whose place the runtime knows.
    pub const NONE: GlobalSlot = GlobalSlot(u64::MAX);
}

impl Slot {
    /// The slot's place in the table of its kind.
    #[inline]
    pub fn index(self) -> usize {
        (self.0 & INDEX_MASK) as usize
    }

    /// Whether this is a global slot.
    #[inline]
    pub fn is_global(self) -> bool {
        self.0 & GLOBAL != 0
    }

    /// The slot as a number, for interfaces that have no types (C).
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The slot of a number, for interfaces that have no types.
    ///
    /// # Safety
    /// As [`GlobalSlot::from_bits`].
    pub unsafe fn from_bits(bits: u64) -> Self {
        Slot(bits)
    }

    pub(crate) fn of_key(key: u64) -> Self {
        Slot(key)
    }

    /// Whether only puts on links may name it.
    #[inline]
    pub fn is_outbox(self) -> bool {
        self.0 & OUTBOX != 0
    }
}

impl From<LocalSlot> for Slot {
    #[inline]
    fn from(slot: LocalSlot) -> Self {
        Slot(slot.0)
    }
}

impl From<GlobalSlot> for Slot {
    #[inline]
    fn from(slot: GlobalSlot) -> Self {
        Slot(slot.0)
    }
}

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_global() { "global" } else { "local" };
        write!(f, "{kind} slot {}", self.index())
    }
}

impl std::fmt::Display for GlobalSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Slot::from(*self).fmt(f)
    }
}

/// The owner of registered local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Registrant {
    /// The caller.
    Caller,
    /// The typed layer, which frees the memory by itself.
    Runtime,
    /// The typed layer, for an outbox: the user writes it between puts, so only puts on links may
    /// name it, and nothing may write to it.
    Outbox,
}

/// One place of the table, as other processes may read it. With what only its owner needs it
/// takes 32 bytes, so that the two tables together hold 64 per reserved slot.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    key: u64,
    base: *mut u8,
    len: usize,
}

/// What only the owner needs of a place. Apart from the entry, because it changes in every
/// superstep and the entry's cache line is read by others.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// The next free or the next pending place (24 bits), and above it the bytes of an element of the area here: 0 if it is
    /// not an area, or its elements are longer than 255.
    link: u32,
    /// The mark of the superstep in which a request of this process last named the slot; see
    /// [`SlotTable::mark`].
    named_in: u32,
}

const _: () = assert!(size_of::<Entry>() + size_of::<Note>() == 32);

impl Note {
    const FREE: Note = Note { link: NONE, named_in: 0 };

    fn next(self) -> u32 {
        self.link & PLACE_MASK
    }

    /// Sets the next place, and returns the one before.
    fn set_next(&mut self, next: u32) -> u32 {
        let before = self.next();
        self.link = self.link & !PLACE_MASK | next;
        before
    }

    fn element(self) -> usize {
        (self.link >> GENERATION_SHIFT) as usize
    }

    fn set_element(&mut self, element: usize) {
        let element = u8::try_from(element).unwrap_or(0);
        self.link = self.next() | u32::from(element) << GENERATION_SHIFT;
    }
}

impl Entry {
    /// Where the memory begins.
    #[inline]
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Its length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether this place holds an active slot.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.key != 0 && self.key & PENDING == 0
    }

    /// The address of a range, if it lies inside.
    #[inline]
    pub fn range(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.len => Some(self.base.wrapping_add(offset)),
            _ => None,
        }
    }
}

const FREE: Entry = Entry { key: 0, base: std::ptr::null_mut(), len: 0 };

#[derive(Debug)]
struct Half {
    entries: Vec<Entry>,
    notes: Vec<Note>,
    /// The place given back last.
    free: u32,
    /// Places from here on were never given out.
    fresh: u32,
}

impl Half {
    const EMPTY: Half = Half { entries: Vec::new(), notes: Vec::new(), free: NONE, fresh: 0 };

    /// Appends free places up to `slots`; the memory was reserved before.
    fn extend_to(&mut self, slots: usize) {
        let slots = slots.max(self.entries.len());
        self.entries.resize(slots, FREE);
        self.notes.resize(slots, Note::FREE);
    }

    /// Gets the memory for `slots` places.
    fn reserve(&mut self, slots: usize) -> Option<()> {
        let more = slots.saturating_sub(self.entries.len());
        self.entries.try_reserve_exact(more).ok()?;
        self.notes.try_reserve_exact(more).ok()
    }

    /// The active entry of a slot.
    #[inline]
    fn find(&self, key: u64) -> Option<&Entry> {
        let index = (key & INDEX_MASK) as usize;
        self.entries.get(index).filter(|entry| entry.key == key && key != 0)
    }

    /// The place before `wanted` on the list from `first` on.
    fn before(&self, first: u32, wanted: u32) -> Option<usize> {
        let mut at = first;
        while at != NONE {
            let next = self.notes[at as usize].next();
            if next == wanted {
                return Some(at as usize);
            }
            at = next;
        }
        None
    }

    /// Gives out the place freed last, else the lowest that was never used.
    fn take(&mut self, generation: u64, base: *mut u8, len: usize, flags: u64) -> Option<u64> {
        if generation >= GENERATIONS {
            return None;
        }
        let index = if self.free != NONE {
            let index = self.free;
            self.free = self.notes[index as usize].next();
            index
        } else if (self.fresh as usize) < self.entries.len() {
            self.fresh += 1;
            self.fresh - 1
        } else {
            return None;
        };
        let key = u64::from(index) | generation << GENERATION_SHIFT | flags;
        self.entries[index as usize] = Entry { key, base, len };
        self.notes[index as usize] = Note::FREE;
        Some(key & !PENDING)
    }
}

/// The slots of one process: a table of global and one of local ones with one common capacity.
///
/// Places of global slots are given out and taken back in the order of the collective calls, so
/// that their numbers agree on every process without communication. A place carries a generation,
/// so that a slot outlives its deregistration only as an *unknown slot*.
#[derive(Debug)]
pub struct SlotTable {
    global: Half,
    local: Half,
    generation: u64,
    used: usize,
    capacity: usize,
    /// Of the capacity, for the text of an error.
    of_libraries: usize,
    pending: u32,
    calls: u64,
    hash: u64,
    /// The length in bytes of the area registered last.
    area: u64,
    owner: Pid,
    /// Stands for the superstep of this process: never 0, and not used again before 2^32 supersteps.
    mark: u32,
    /// The mark given out last, which is a library's if its caller's superstep goes on.
    latest: u32,
    /// What libraries have suspended, the latest last.
    suspended: Vec<Suspended>,
    abandoned: Abandoned,
}

/// Global slots whose handles were dropped here, but not yet by all processes.
#[derive(Debug, Default)]
struct Abandoned {
    /// With the number of the memory block.
    slots: Vec<(GlobalSlot, usize)>,
    /// The sum of a number for each slot, so that it does not depend on their order.
    sum: u64,
    /// Whether the other processes do not know the latest word.
    is_news: bool,
    /// Blocks whose slots all processes have abandoned.
    blocks: Vec<usize>,
}

impl Abandoned {
    fn number(slot: GlobalSlot) -> u64 {
        let mixed = (slot.0 ^ slot.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 32).wrapping_mul(0x94d0_49bb_1331_11eb)
    }
}

/// What waits for a sync of a caller, while its library works.
#[derive(Debug)]
struct Suspended {
    /// The superstep whose requests are suspended.
    mark: u32,
    /// Registrations that are not active yet.
    pending: u32,
}

// SAFETY: the table only stores the addresses; who may touch the memory is the business of the
// requests' rules.
unsafe impl Send for SlotTable {}

impl SlotTable {
    /// An empty table without room, as a fresh context has it.
    pub fn new(owner: Pid) -> Self {
        SlotTable {
            global: Half::EMPTY,
            local: Half::EMPTY,
            generation: 0,
            used: 0,
            capacity: 0,
            of_libraries: 0,
            pending: NONE,
            calls: 0,
            hash: 0,
            area: 0,
            owner,
            mark: 1,
            latest: 1,
            suspended: Vec::new(),
            abandoned: Abandoned::default(),
        }
    }

    /// The requests of this superstep are executed: the slots that they name are not busy any more.
    #[inline]
    pub fn end_superstep(&mut self) {
        self.latest = self.latest.wrapping_add(1).max(1);
        self.mark = self.latest;
    }

    /// The requests that are pending, and the registrations, wait until [`restore`](Self::restore). The slots
    /// that the requests name stay busy. Suspensions nest.
    ///
    /// # Errors
    /// The bytes that were refused.
    pub fn suspend(&mut self) -> std::result::Result<(), usize> {
        self.suspended.try_reserve(1).map_err(|_| size_of::<Suspended>())?;
        let pending = std::mem::replace(&mut self.pending, NONE);
        self.suspended.push(Suspended { mark: self.mark, pending });
        self.end_superstep();
        Ok(())
    }

    /// The registrations suspended last are pending again, and no slot is busy because of requests made since.
    ///
    /// # Panics
    /// If nothing is suspended.
    pub fn restore(&mut self) {
        let Suspended { mark, pending } =
            self.suspended.pop().expect("each restore follows a suspend");
        self.mark = mark;
        // What a library registered last and never synced waits with its caller's.
        match self.global.before(self.pending, NONE) {
            None => self.pending = pending,
            Some(last) => {
                self.global.notes[last].set_next(pending);
            }
        }
    }

    /// Whether a request that is pending or suspended names the slot of this note.
    fn is_busy(&self, note: Note) -> bool {
        note.named_in == self.mark || self.is_suspended(note)
    }

    /// Whether a suspended request names the slot of this note.
    fn is_suspended(&self, note: Note) -> bool {
        self.suspended.iter().any(|caller| caller.mark == note.named_in)
    }

    /// Slots that may be registered at the same time.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Slots registered at present.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Makes room for `slots` in memory, without handing it out yet. Refused memory leaves the
    /// table as it was.
    pub fn reserve(&mut self, slots: usize, superstep: u64) -> Result<()> {
        let refuse = || {
            let bytes = slots.saturating_mul(2 * (size_of::<Entry>() + size_of::<Note>()));
            Error::mitigable(
                self.owner,
                superstep,
                Cause::OutOfMemory { what: "slots".into(), bytes },
            )
        };
        if slots > MAX_SLOTS {
            return Err(refuse());
        }
        let reserved = self.global.reserve(slots);
        reserved.and_then(|()| self.local.reserve(slots)).ok_or_else(refuse)
    }

    /// Lets `slots` be registered from now on, of which libraries reserved `of_libraries`;
    /// [`reserve`](Self::reserve) came before.
    pub fn set_capacity(&mut self, slots: usize, of_libraries: usize) {
        self.global.extend_to(slots);
        self.local.extend_to(slots);
        (self.capacity, self.of_libraries) = (slots, of_libraries);
    }

    #[cold]
    fn full(&self, superstep: u64) -> Error {
        let cause = Cause::SlotsUsedUp { reserved: self.capacity, libraries: self.of_libraries };
        Error::misuse(self.owner, superstep, cause)
    }

    /// Registers local memory, usable at once.
    pub fn register_local(
        &mut self,
        base: *mut u8,
        len: usize,
        registrant: Registrant,
        superstep: u64,
    ) -> Result<LocalSlot> {
        if self.used >= self.capacity {
            return Err(self.full(superstep));
        }
        self.generation += 1;
        let flags = if registrant == Registrant::Outbox { OUTBOX } else { 0 };
        let key = self.local.take(self.generation, base, len, flags);
        let key = key.ok_or_else(|| self.full(superstep))?;
        self.used += 1;
        Ok(LocalSlot(key))
    }

    /// Registers memory that every process will be able to name after the next full sync.
    /// An area has elements of `element` bytes, and its length and this size are equal on every process, or that sync is
    /// fatal. `element` is 0 if it is not an area.
    pub fn register_global(
        &mut self,
        base: *mut u8,
        len: usize,
        element: usize,
        superstep: u64,
    ) -> Result<GlobalSlot> {
        if self.used >= self.capacity {
            return Err(self.full(superstep));
        }
        // The generation of a global slot counts collective calls only, so that it agrees too.
        let key = self.global.take(self.calls + 1, base, len, GLOBAL | PENDING);
        let key = key.ok_or_else(|| self.full(superstep))?;
        self.used += 1;
        let index = (key & INDEX_MASK) as u32;
        if element > 0 {
            self.area = len as u64;
        }
        self.note(1, if element > 0 { fingerprint(len, element) } else { 0 });
        let note = &mut self.global.notes[index as usize];
        note.set_next(self.pending);
        note.set_element(element);
        self.pending = index;
        Ok(GlobalSlot(key))
    }

    fn note(&mut self, call: u64, shape: u64) {
        self.calls += 1;
        let word = shape ^ call << 56;
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Deregisters a slot at once. One that pending or suspended requests name is busy.
    pub fn deregister(&mut self, slot: Slot, superstep: u64) -> Result<()> {
        let index = slot.index();
        let half = if slot.is_global() { &self.global } else { &self.local };
        let entry = half.entries.get(index);
        let Some(entry) = entry.filter(|e| e.key & !PENDING == slot.0 && e.key != 0) else {
            let cause = Cause::UnknownSlot { slot: slot.to_string() };
            return Err(Error::misuse(self.owner, superstep, cause));
        };
        if self.is_busy(half.notes[index]) {
            let cause = Cause::SlotBusy { slot: slot.to_string() };
            return Err(Error::misuse(self.owner, superstep, cause));
        }
        let was_pending = entry.key & PENDING != 0;
        let next = self.give_place_back(slot);
        if was_pending {
            self.unlink_pending(index as u32, next);
        }
        if slot.is_global() {
            self.note(2, slot.0);
            self.unabandon(slot);
        }
        Ok(())
    }

    /// Frees the place of a slot; returns the next one on the list that it was on.
    fn give_place_back(&mut self, slot: Slot) -> u32 {
        let index = slot.index();
        let half = if slot.is_global() { &mut self.global } else { &mut self.local };
        half.entries[index] = FREE;
        let next = half.notes[index].set_next(half.free);
        half.free = index as u32;
        self.used -= 1;
        next
    }

    /// The handle of a global slot was dropped here; `block` is the number of its memory. If memory is refused, the
    /// slot stays registered.
    pub fn abandon(&mut self, slot: GlobalSlot, block: usize) {
        let is_registered = self.area(slot.into()).is_some();
        let Abandoned { slots, sum, is_news, blocks } = &mut self.abandoned;
        let more = slots.len() + 1;
        if !is_registered || slots.try_reserve(1).is_err() || blocks.try_reserve(more).is_err() {
            return;
        }
        slots.push((slot, block));
        *sum = sum.wrapping_add(Abandoned::number(slot));
        *is_news = true;
    }

    /// A slot was deregistered by its number although its handle had been dropped.
    fn unabandon(&mut self, slot: Slot) {
        let Abandoned { slots, sum, is_news, .. } = &mut self.abandoned;
        if let Some(at) = slots.iter().position(|&(global, _)| Slot::from(global) == slot) {
            let (global, _) = slots.swap_remove(at);
            *sum = sum.wrapping_sub(Abandoned::number(global));
            *is_news = true;
        }
    }

    /// A word for the set of abandoned slots, which is equal on processes that have abandoned the same; 0 for the
    /// empty set, and while anything is suspended, because suspended requests may name the slots.
    #[inline]
    pub fn abandoned(&self) -> u64 {
        let Abandoned { slots, sum, .. } = &self.abandoned;
        if slots.is_empty() || !self.suspended.is_empty() { 0 } else { *sum | 1 }
    }

    /// Whether [`abandoned`](Self::abandoned) has changed since [`announced`](Self::announced) was called.
    #[inline]
    pub fn has_abandoned(&self) -> bool {
        self.abandoned.is_news && self.suspended.is_empty()
    }

    /// The other processes get the word of [`abandoned`](Self::abandoned) in this sync.
    pub fn announced(&mut self) {
        self.abandoned.is_news = false;
    }

    /// All processes have abandoned the same slots, and a full sync has executed all requests: deregisters the slots,
    /// in an order that is the same everywhere, and calls `each` with them.
    pub fn forget_abandoned(&mut self, mut each: impl FnMut(GlobalSlot)) {
        let mut slots = std::mem::take(&mut self.abandoned.slots);
        slots.sort_unstable_by_key(|(slot, _)| slot.0);
        for (slot, block) in slots.drain(..) {
            self.give_place_back(slot.into());
            // Room was reserved when the slot was abandoned.
            self.abandoned.blocks.push(block);
            each(slot);
        }
        self.abandoned = Abandoned {
            slots,
            blocks: std::mem::take(&mut self.abandoned.blocks),
            ..Abandoned::default()
        };
    }

    /// A block whose slot is gone, and which may be freed.
    #[inline]
    pub fn abandoned_block(&mut self) -> Option<usize> {
        self.abandoned.blocks.pop()
    }

    fn unlink_pending(&mut self, index: u32, next: u32) {
        let callers = self.suspended.iter_mut().map(|caller| &mut caller.pending);
        for first in std::iter::once(&mut self.pending).chain(callers) {
            if *first == index {
                *first = next;
                return;
            }
            if let Some(before) = self.global.before(*first, index) {
                self.global.notes[before].set_next(next);
                return;
            }
        }
    }

    /// Collective registration calls so far and their hash: equal on all processes, or the
    /// activating sync is fatal; and the length in bytes of the area registered last.
    pub fn registrations(&self) -> (u64, u64, u64) {
        (self.calls, self.hash, self.area)
    }

    /// Bytes of an element of the area at a place for global slots; 0 if it is not known.
    pub fn element(&self, place: usize) -> usize {
        self.global.notes.get(place).map_or(0, |note| note.element())
    }

    /// Activates what was registered before this sync.
    pub fn activate(&mut self) {
        let mut at = self.pending;
        while at != NONE {
            self.global.entries[at as usize].key &= !PENDING;
            at = self.global.notes[at as usize].set_next(NONE);
        }
        self.pending = NONE;
    }

    /// The active entry of a slot at the local side of a request.
    #[inline]
    pub fn local_side(&self, slot: Slot) -> Option<&Entry> {
        let half = if slot.is_global() { &self.global } else { &self.local };
        half.find(slot.0)
    }

    /// The active entry of a slot at the remote side of a request: active here means active
    /// everywhere.
    #[inline]
    pub fn remote_side(&self, slot: GlobalSlot) -> Option<&Entry> {
        self.global.find(slot.0)
    }

    /// Notes that a request of this superstep names an active slot, so that it cannot be deregistered
    /// before the next.
    #[inline]
    pub fn name(&mut self, slot: Slot) {
        let half = if slot.is_global() { &self.global } else { &self.local };
        let note = half.notes.get(slot.index());
        // What a suspended request names stays busy for longer.
        if note.is_none_or(|&note| self.is_suspended(note)) {
            return;
        }
        let half = if slot.is_global() { &mut self.global } else { &mut self.local };
        half.notes[slot.index()].named_in = self.mark;
    }

    /// Why a slot cannot be used now.
    #[cold]
    pub fn explain(&self, slot: Slot, superstep: u64) -> Error {
        let half = if slot.is_global() { &self.global } else { &self.local };
        let pending = half.entries.get(slot.index()).is_some_and(|e| e.key == slot.0 | PENDING);
        let slot = slot.to_string();
        let cause =
            if pending { Cause::InactiveSlot { slot } } else { Cause::UnknownSlot { slot } };
        Error::misuse(self.owner, superstep, cause)
    }

    /// Why a range of an active slot cannot be used.
    #[cold]
    pub fn out_of_range(&self, slot: Slot, offset: usize, bytes: usize) -> Cause {
        let len = self.area(slot).map_or(0, |(_, len)| len);
        Cause::OutOfRange { slot: slot.to_string(), offset, bytes, len, element: 1 }
    }

    /// The address and number of the global entries, for processes that execute requests on this one's
    /// memory. Valid until memory is reserved for more, and to be read while no slot is registered.
    pub fn global_place(&self) -> (*const Entry, usize) {
        (self.global.entries.as_ptr(), self.global.entries.len())
    }

    /// The global entries.
    pub fn global_entries(&self) -> &[Entry] {
        &self.global.entries
    }

    /// The address and length of an active slot.
    pub fn area(&self, slot: Slot) -> Option<(*mut u8, usize)> {
        let half = if slot.is_global() { &self.global } else { &self.local };
        half.entries
            .get(slot.index())
            .filter(|e| e.key & !PENDING == slot.0 && e.key != 0)
            .map(|e| (e.base, e.len))
    }
}

/// A number that stands for the length and the element size of an area; never 0.
fn fingerprint(bytes: usize, element: usize) -> u64 {
    let mixed =
        (bytes as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (element as u64).rotate_right(9);
    mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 8 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(slots: usize) -> SlotTable {
        let mut table = SlotTable::new(0);
        table.reserve(slots, 0).unwrap();
        table.set_capacity(slots, 0);
        table
    }

    #[test]
    fn a_fresh_table_has_no_room() {
        let error =
            table(0).register_local(std::ptr::null_mut(), 0, Registrant::Caller, 0).unwrap_err();
        assert_eq!(error.cause(), &Cause::SlotsUsedUp { reserved: 0, libraries: 0 });
    }

    #[test]
    fn an_absurd_reservation_is_refused_and_leaves_the_table_usable() {
        let mut table = table(1);
        for slots in [usize::MAX, usize::MAX / 10, MAX_SLOTS + 1] {
            assert!(table.reserve(slots, 0).unwrap_err().is_mitigable());
        }
        table.register_local(std::ptr::null_mut(), 0, Registrant::Caller, 0).unwrap();
    }

    #[test]
    fn a_global_slot_is_active_after_activation_only() {
        let mut table = table(2);
        let slot = table.register_global(std::ptr::dangling_mut(), 8, 0, 0).unwrap();
        assert!(table.remote_side(slot).is_none());
        assert!(matches!(table.explain(slot.into(), 0).cause(), Cause::InactiveSlot { .. }));
        table.activate();
        assert_eq!(table.remote_side(slot).map(|e| e.len()), Some(8));
    }

    #[test]
    fn a_deregistered_slot_is_unknown_even_after_its_place_is_used_again() {
        let mut table = table(1);
        let old = table.register_local(std::ptr::dangling_mut(), 8, Registrant::Caller, 0).unwrap();
        table.deregister(old.into(), 0).unwrap();
        let new = table.register_local(std::ptr::dangling_mut(), 8, Registrant::Caller, 0).unwrap();
        assert_ne!(old, new);
        assert!(table.local_side(old.into()).is_none());
        assert!(table.local_side(new.into()).is_some());
    }

    #[test]
    fn after_a_resize_below_what_is_in_use_nothing_more_is_registered() {
        let mut table = table(2);
        for _ in 0..2 {
            table.register_local(std::ptr::null_mut(), 0, Registrant::Caller, 0).unwrap();
        }
        table.set_capacity(1, 0);
        let refused = table.register_local(std::ptr::null_mut(), 0, Registrant::Caller, 0);
        assert!(refused.unwrap_err().is_misuse());
    }

    #[test]
    fn a_slot_named_in_this_superstep_is_busy_until_the_next() {
        let mut table = table(1);
        let slot =
            table.register_local(std::ptr::dangling_mut(), 8, Registrant::Caller, 4).unwrap();
        table.name(slot.into());
        assert!(matches!(
            table.deregister(slot.into(), 4).unwrap_err().cause(),
            Cause::SlotBusy { .. }
        ));
        table.end_superstep();
        table.deregister(slot.into(), 5).unwrap();
    }

    fn is_busy(table: &mut SlotTable, slot: LocalSlot) -> bool {
        let error = table.deregister(slot.into(), 0).expect_err("it is busy");
        matches!(error.cause(), Cause::SlotBusy { .. })
    }

    #[test]
    fn a_slot_that_suspended_requests_name_is_busy_on_every_level() {
        let mut table = table(3);
        let mut local =
            || table.register_local(std::ptr::dangling_mut(), 8, Registrant::Caller, 0).unwrap();
        let (outer, middle, inner) = (local(), local(), local());
        table.name(outer.into());
        table.suspend().unwrap();
        table.name(middle.into());
        table.suspend().unwrap();
        for _ in 0..3 {
            // The innermost library uses all three, which makes none of them less busy.
            [outer, middle, inner].into_iter().for_each(|slot| table.name(slot.into()));
            assert!(is_busy(&mut table, inner));
            table.end_superstep();
            assert!(is_busy(&mut table, outer) && is_busy(&mut table, middle));
        }
        table.name(inner.into());
        table.restore();
        table.deregister(inner.into(), 0).unwrap();
        assert!(is_busy(&mut table, middle) && is_busy(&mut table, outer));
        table.end_superstep();
        table.deregister(middle.into(), 0).unwrap();
        table.restore();
        assert!(is_busy(&mut table, outer));
        table.end_superstep();
        table.deregister(outer.into(), 0).unwrap();
    }

    #[test]
    fn the_marks_of_a_library_are_not_given_out_again() {
        let mut table = table(1);
        let slot =
            table.register_local(std::ptr::dangling_mut(), 8, Registrant::Caller, 0).unwrap();
        table.suspend().unwrap();
        table.end_superstep();
        table.name(slot.into());
        table.restore();
        for _ in 0..5 {
            table.end_superstep();
            assert_ne!(table.local.notes[0].named_in, table.mark);
        }
    }

    #[test]
    fn registrations_that_are_suspended_wait_for_their_own_sync() {
        let mut table = table(6);
        let global = |table: &mut SlotTable| {
            table.register_global(std::ptr::dangling_mut(), 8, 0, 0).unwrap()
        };
        let (first, second) = (global(&mut table), global(&mut table));
        table.suspend().unwrap();
        let library = global(&mut table);
        table.activate();
        assert!(table.remote_side(library).is_some() && table.remote_side(first).is_none());
        let late = global(&mut table);
        table.deregister(second.into(), 0).unwrap();
        table.restore();
        assert!(table.remote_side(late).is_none());
        let third = global(&mut table);
        table.activate();
        assert!([first, late, third].iter().all(|&slot| table.remote_side(slot).is_some()));
        assert!(table.remote_side(second).is_none());
    }

    #[test]
    fn abandoned_slots_go_when_the_words_are_equal_in_whatever_order_they_were_abandoned() {
        let mut tables = [table(4), table(4)];
        let register = |table: &mut SlotTable| {
            table.register_global(std::ptr::dangling_mut(), 8, 0, 0).unwrap()
        };
        let slots: Vec<_> =
            tables.iter_mut().map(|table| [0; 3].map(|_| register(table))).collect();
        assert_eq!(slots[0], slots[1]);
        let slots = slots[0];
        tables.iter_mut().for_each(SlotTable::activate);
        for (table, order) in tables.iter_mut().zip([[2, 0, 1], [0, 1, 2]]) {
            assert!(table.abandoned() == 0 && !table.has_abandoned());
            order.iter().for_each(|&nth| table.abandon(slots[nth], 10 + nth));
            assert!(table.has_abandoned());
            table.announced();
            assert!(!table.has_abandoned());
        }
        assert_eq!(tables[0].abandoned(), tables[1].abandoned());
        // Of another set, another word; of a set whose slot was deregistered meanwhile, too.
        let fourth = tables.each_mut().map(register)[0];
        tables[0].abandon(fourth, 13);
        assert_ne!(tables[0].abandoned(), tables[1].abandoned());
        tables.iter_mut().for_each(|table| table.deregister(fourth.into(), 0).unwrap());
        assert!(tables[0].has_abandoned());
        assert_eq!(tables[0].abandoned(), tables[1].abandoned());
        for table in &mut tables {
            let mut gone = Vec::new();
            table.forget_abandoned(|slot| gone.push(slot));
            assert_eq!((gone, table.abandoned(), table.used()), (slots.to_vec(), 0, 0));
            let mut blocks: Vec<_> = std::iter::from_fn(|| table.abandoned_block()).collect();
            blocks.sort_unstable();
            assert_eq!(blocks, [10, 11, 12]);
            assert!(slots.iter().all(|&slot| table.remote_side(slot).is_none()));
        }
        let [a, b] = &mut tables;
        for _ in 0..4 {
            assert_eq!(register(a), register(b));
        }
    }

    #[test]
    fn abandoned_slots_wait_while_anything_is_suspended() {
        let mut table = table(1);
        let slot = table.register_global(std::ptr::dangling_mut(), 8, 0, 0).unwrap();
        table.activate();
        table.name(slot.into());
        table.abandon(slot, 0);
        assert!(table.abandoned() != 0 && table.has_abandoned());
        table.suspend().unwrap();
        assert!(table.abandoned() == 0 && !table.has_abandoned());
        table.restore();
        assert!(table.abandoned() != 0 && table.has_abandoned());
        // A slot that is not registered any more is not remembered.
        table.end_superstep();
        table.deregister(slot.into(), 0).unwrap();
        table.abandon(slot, 0);
        assert_eq!(table.abandoned(), 0);
    }

    #[test]
    fn deregistering_before_activation_takes_the_slot_off_the_list() {
        let mut table = table(3);
        let slots: Vec<_> = (0..3)
            .map(|_| table.register_global(std::ptr::dangling_mut(), 8, 0, 0).unwrap())
            .collect();
        table.deregister(slots[1].into(), 0).unwrap();
        table.activate();
        assert!(table.remote_side(slots[0]).is_some());
        assert!(table.remote_side(slots[1]).is_none());
        assert!(table.remote_side(slots[2]).is_some());
    }

    #[test]
    fn the_same_calls_give_the_same_slots_and_hash_whatever_is_local() {
        let (mut a, mut b) = (table(8), table(8));
        for _ in 0..3 {
            b.register_local(std::ptr::null_mut(), 0, Registrant::Caller, 0).unwrap();
        }
        let ga = a.register_global(std::ptr::null_mut(), 0, 0, 0).unwrap();
        let gb = b.register_global(std::ptr::dangling_mut(), 9, 0, 0).unwrap();
        assert_eq!(ga, gb);
        assert_eq!(a.registrations(), b.registrations());
        let area = |of: &mut SlotTable, len| {
            of.register_global(std::ptr::dangling_mut(), len, 4, 0).unwrap()
        };
        let slots = (area(&mut a, 8), area(&mut b, 8));
        assert_eq!(slots.0, slots.1);
        assert_eq!((a.element(ga.index()), a.element(slots.0.index())), (0, 4));
        assert_eq!(a.registrations(), b.registrations());
        area(&mut a, 8);
        area(&mut b, 12);
        let ((calls, hash, area), other) = (a.registrations(), b.registrations());
        assert_eq!((calls, area, other.2), (other.0, 8, 12));
        assert_ne!(hash, other.1);
        b.deregister(gb.into(), 1).unwrap();
        assert_ne!(a.registrations(), b.registrations());
    }
}
