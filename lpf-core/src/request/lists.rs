//! The lists of one process: one for each target and kind of request.
//!
//! A section of p processes holds p of these, so they must not take O(p) each if p is large. Up to
//! [`FEW`] processes, or if there is room for as many requests as there are lists, the list of each number is at that
//! place. Else they are a table in which a list is found by its number, with open addressing, of twice as many places
//! as there can be lists in use: no more than there is room for requests.

use super::Tail;

/// So many processes have all lists at once: a few pages each.
const FEW: usize = 128;

/// No list.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Lists {
    tails: Vec<Tail>,
    /// The numbers of the lists in a table, whose length is a power of two; empty if each list is at its own place.
    numbers: Vec<u32>,
    /// All lists that there may be.
    most: usize,
}

impl Lists {
    /// Without requests, for `processes` processes and room for `requests` requests.
    ///
    /// # Errors
    /// The bytes that were refused.
    pub(super) fn new(processes: usize, requests: usize) -> Result<Self, usize> {
        let most = 2 * processes;
        let places = Self::places_for(most, requests);
        let mut lists = Lists { tails: Vec::new(), numbers: Vec::new(), most };
        let is_table = places < most;
        let refused = |_| Self::bytes_for(processes, requests);
        lists.tails.try_reserve_exact(places).map_err(refused)?;
        lists.tails.extend((0..places).map(|_| Tail::EMPTY));
        if is_table {
            lists.numbers.try_reserve_exact(places).map_err(refused)?;
            lists.numbers.resize(places, NONE);
        }
        Ok(lists)
    }

    fn places_for(most: usize, requests: usize) -> usize {
        let table = requests.min(most).saturating_mul(2).max(1).next_power_of_two();
        if most <= 2 * FEW || table >= most { most } else { table }
    }

    /// The bytes of lists for `processes` processes and `requests` requests.
    pub(super) fn bytes_for(processes: usize, requests: usize) -> usize {
        let places = Self::places_for(2 * processes, requests);
        places.saturating_mul(size_of::<Tail>() + size_of::<u32>())
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.tails.capacity() * size_of::<Tail>() + self.numbers.capacity() * size_of::<u32>()
    }

    /// As many lists, without requests.
    ///
    /// # Errors
    /// The bytes that were refused.
    pub(super) fn another(&self) -> Result<Self, usize> {
        let requests = if self.numbers.is_empty() { self.most } else { self.numbers.len() / 2 };
        Self::new(self.most / 2, requests)
    }

    /// Makes places for the lists of `requests` requests; those in use keep what they have.
    ///
    /// # Errors
    /// The bytes that were refused; nothing has changed then.
    pub(super) fn reserve(&mut self, requests: usize) -> Result<(), usize> {
        if Self::places_for(self.most, requests) <= self.tails.len() {
            return Ok(());
        }
        let mut larger = Self::new(self.most / 2, requests)?;
        for place in 0..self.tails.len() {
            if let Some(list) = self.number_at(place) {
                let to = larger.claim(list);
                larger.tails[to] = std::mem::replace(&mut self.tails[place], Tail::EMPTY);
            }
        }
        *self = larger;
        Ok(())
    }

    /// The place of a list, which it has from now on.
    ///
    /// # Panics
    /// For a list that does not exist.
    #[inline(always)]
    pub(super) fn claim(&mut self, list: usize) -> usize {
        if self.numbers.is_empty() {
            return list;
        }
        self.claim_in_table(list)
    }

    #[inline(never)]
    fn claim_in_table(&mut self, list: usize) -> usize {
        assert!(list < self.most, "list {list} of {}", self.most);
        let place = self.find(list);
        self.numbers[place] = list as u32;
        place
    }

    /// The place of a list in the table, or a free one. No more than half of the places are in use.
    fn find(&self, list: usize) -> usize {
        let mask = self.numbers.len() - 1;
        let mut place = list & mask;
        while self.numbers[place] != NONE && self.numbers[place] != list as u32 {
            place = (place + 1) & mask;
        }
        place
    }

    /// The end of a list, which may be empty.
    #[inline]
    pub(super) fn get(&self, list: usize) -> &Tail {
        let place = if self.numbers.is_empty() { list } else { self.find(list) };
        &self.tails[place]
    }

    /// The end of the list at a place.
    #[inline(always)]
    pub(super) fn at(&mut self, place: usize) -> &mut Tail {
        &mut self.tails[place]
    }

    /// The places that lists can have.
    #[inline]
    pub(super) fn places(&self) -> usize {
        self.tails.len()
    }

    /// The list at a place, if it has requests.
    #[inline]
    pub(super) fn number_at(&self, place: usize) -> Option<usize> {
        let is_in_use = self.tails[place].requests > 0;
        is_in_use.then(|| self.numbers.get(place).map_or(place, |&number| number as usize))
    }

    /// Empties all lists.
    pub(super) fn clear(&mut self) {
        for tail in &mut self.tails {
            if tail.requests > 0 {
                *tail = Tail::EMPTY;
            }
        }
        // To fill nothing at all takes 70 ns where the C library uses masked stores, at an address that is no memory.
        if !self.numbers.is_empty() {
            self.numbers.fill(NONE);
        }
    }
}
