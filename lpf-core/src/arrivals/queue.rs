//! Puts on a link that have not left: the same for every backend.

use std::collections::VecDeque;

use crate::slot::Slot;

/// How a message of a link travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// As the next message, through a cell.
    Cell,
    /// As the next messages, each of this many bytes except the last: for data that does not fit one cell
    /// and is used part by part. [`Links::longest_part`](crate::Links::longest_part) has the longest part. They count as one
    /// send among the W between two syncs of any kind. The receiver may read a part in the sender's memory, as threads do.
    /// Then a flush waits until the last part is released.
    Parts(usize),
    /// As the next message, straight into the area that the peer offers for it (a *landing*).
    Landing,
}

/// A put on a link, or what is left of it.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// The slot that it was made from.
    pub slot: Slot,
    /// Where its bytes are.
    pub address: *const u8,
    /// How many.
    pub bytes: usize,
    /// How they travel.
    pub travel: Travel,
    /// The stamp of the call it was made in.
    pub stamp: u64,
}

// SAFETY: the address names memory of the put's slot, which its process keeps until the flush.
unsafe impl Send for Queued {}

impl Queued {
    /// Whether it goes to an offered area.
    #[inline]
    pub fn is_landing(&self) -> bool {
        self.travel == Travel::Landing
    }

    /// The number of messages of a put of `bytes` bytes.
    #[inline]
    pub fn messages(bytes: usize, travel: Travel) -> u64 {
        match travel {
            Travel::Parts(part) if bytes > part => bytes.div_ceil(part) as u64,
            _ => 1,
        }
    }
}

/// The puts that wait for the ring, for credit or for an offer, in their order.
#[derive(Debug, Default)]
pub struct Queue(VecDeque<Queued>);

impl Queue {
    /// Room for `puts` puts.
    pub fn with_capacity(puts: usize) -> Self {
        Queue(VecDeque::with_capacity(puts))
    }

    /// Adds a put.
    #[inline]
    pub fn push(&mut self, put: Queued) {
        self.0.push_back(put);
    }

    /// Puts, those included of which a part has left.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether everything has left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The message to leave next.
    #[inline]
    pub fn next(&self) -> Option<Queued> {
        let &put = self.0.front()?;
        let bytes = match put.travel {
            Travel::Parts(part) => put.bytes.min(part),
            Travel::Cell | Travel::Landing => put.bytes,
        };
        Some(Queued { bytes, ..put })
    }

    /// The message to leave next has left.
    #[inline]
    pub fn pop(&mut self, message: &Queued) {
        match self.0.front_mut() {
            Some(put) if put.bytes > message.bytes => {
                put.address = put.address.wrapping_add(message.bytes);
                put.bytes -= message.bytes;
            }
            _ => {
                self.0.pop_front();
            }
        }
    }

    /// Whether a put was made from `slot`.
    pub fn names(&self, slot: Slot) -> bool {
        self.0.iter().any(|put| put.slot == slot)
    }

    /// How many messages leave before the first landing, if there is one.
    pub fn before_landing(&self) -> Option<u64> {
        let at = self.0.iter().position(Queued::is_landing)?;
        let messages = |put: &Queued| Queued::messages(put.bytes, put.travel);
        Some(self.0.range(..at).map(messages).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: usize, travel: Travel) -> Queued {
        let address = std::ptr::without_provenance(4096);
        Queued { slot: Slot::of_key(1), address, bytes, travel, stamp: 0 }
    }

    #[test]
    fn a_put_in_parts_leaves_cell_by_cell_and_counts_so() {
        let mut queue = Queue::default();
        queue.push(put(20, Travel::Parts(8)));
        queue.push(put(0, Travel::Parts(8)));
        queue.push(put(100, Travel::Landing));
        let mut left = Vec::new();
        assert_eq!(queue.before_landing(), Some(4));
        while let Some(next) = queue.next() {
            left.push((next.address as usize - 4096, next.bytes));
            queue.pop(&next);
        }
        assert_eq!(left, [(0, 8), (8, 8), (16, 4), (0, 0), (0, 100)]);
        assert_eq!((queue.before_landing(), queue.len()), (None, 0));
        let count = |bytes| Queued::messages(bytes, Travel::Parts(8));
        assert_eq!([count(0), count(8), count(9), count(20)], [1, 1, 2, 3]);
        assert_eq!(Queued::messages(20, Travel::Cell), 1);
    }
}
