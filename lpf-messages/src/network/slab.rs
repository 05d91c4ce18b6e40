//! Numbered places that are taken, given back and taken again without allocating, and chains
//! through them.

use std::ops::{Index, IndexMut};

/// The number of no place.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
struct Entry<T> {
    value: T,
    /// How often the place was given back, so that a ticket of an earlier user is known as such.
    generation: u32,
    /// In the chain that the place is in.
    next: u32,
    previous: u32,
}

/// The places. A value stays where it is when its place is given back, with the memory that it
/// holds: the next user finds it as the last one left it.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    /// The place given back last; the others follow by `next`.
    free: u32,
}

/// A queue of places of one slab, by its ends. A place is in one chain at most.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    first: u32,
    last: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { first: NOWHERE, last: NOWHERE }
    }
}

impl Chain {
    /// Whether no place is in it.
    pub fn is_empty(&self) -> bool {
        self.first == NOWHERE
    }
}

impl<T: Default> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Default> Slab<T> {
    /// No places.
    pub fn new() -> Self {
        Slab { entries: Vec::new(), free: NOWHERE }
    }

    /// Takes a place, the one given back last if there is one: it is still in the cache.
    pub fn take(&mut self) -> u32 {
        if self.free != NOWHERE {
            let place = self.free;
            self.free = self.entries[place as usize].next;
            return place;
        }
        let place = self.entries.len() as u32;
        assert!(place != NOWHERE, "4,294,967,295 places are in use");
        let value = T::default();
        self.entries.push(Entry { value, generation: 0, next: NOWHERE, previous: NOWHERE });
        place
    }

    /// Gives a place back. It is in no chain any more.
    pub fn give_back(&mut self, place: u32) {
        let entry = &mut self.entries[place as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.next = std::mem::replace(&mut self.free, place);
    }

    /// A number that names this use of the place.
    pub fn ticket(&self, place: u32) -> u64 {
        u64::from(self.entries[place as usize].generation) << 32 | u64::from(place)
    }

    /// The place that a ticket names, while it is in use.
    pub fn find(&self, ticket: u64) -> Option<u32> {
        let (place, generation) = (ticket as u32, (ticket >> 32) as u32);
        (self.entries.get(place as usize)?.generation == generation).then_some(place)
    }

    /// The values of all places, in use or not.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }

    /// Puts a place at the end of a chain.
    pub fn append(&mut self, chain: &mut Chain, place: u32) {
        let entry = &mut self.entries[place as usize];
        (entry.previous, entry.next) = (chain.last, NOWHERE);
        match chain.last {
            NOWHERE => chain.first = place,
            last => self.entries[last as usize].next = place,
        }
        chain.last = place;
    }

    /// Takes the first place out of a chain.
    pub fn pop(&mut self, chain: &mut Chain) -> Option<u32> {
        let place = chain.first;
        (place != NOWHERE).then(|| {
            chain.first = self.entries[place as usize].next;
            match chain.first {
                NOWHERE => chain.last = NOWHERE,
                first => self.entries[first as usize].previous = NOWHERE,
            }
            place
        })
    }

    /// Takes a place out of the chain that it is in.
    pub fn unlink(&mut self, chain: &mut Chain, place: u32) {
        let Entry { next, previous, .. } = self.entries[place as usize];
        match previous {
            NOWHERE => chain.first = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NOWHERE => chain.last = previous,
            next => self.entries[next as usize].previous = previous,
        }
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        &self.entries[place as usize].value
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.entries[place as usize].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_names_one_use_of_a_place() {
        let mut slab = Slab::<u8>::new();
        let place = slab.take();
        let ticket = slab.ticket(place);
        assert_eq!(slab.find(ticket), Some(place));
        slab.give_back(place);
        assert_eq!(slab.find(ticket), None);
        assert_eq!(slab.take(), place);
        assert_eq!(slab.find(ticket), None);
        assert_ne!(slab.ticket(place), ticket);
        assert_eq!(slab.find(u64::MAX), None);
    }

    #[test]
    fn chains_keep_their_order_whoever_leaves() {
        let mut slab = Slab::<u8>::new();
        let places: Vec<u32> = (0..5).map(|_| slab.take()).collect();
        for leaving in &places {
            let mut chain = Chain::default();
            places.iter().for_each(|place| slab.append(&mut chain, *place));
            slab.unlink(&mut chain, *leaving);
            let rest: Vec<u32> = std::iter::from_fn(|| slab.pop(&mut chain)).collect();
            let expected: Vec<u32> = places.iter().copied().filter(|p| p != leaving).collect();
            assert_eq!(rest, expected);
            assert!(chain.is_empty());
        }
        places.iter().for_each(|place| slab.give_back(*place));
        let again: Vec<u32> = (0..5).map(|_| slab.take()).collect();
        assert_eq!(again, places.iter().rev().copied().collect::<Vec<_>>());
    }
}
