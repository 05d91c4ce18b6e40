//! Write conflicts, resolved at the destination: which bytes of each write arrive.
//!
//! Several requests may write the same memory in one superstep; the outcome has to be that of some
//! serial order of whole requests. On threads the destination copies: it applies one request after another. With message
//! passing and RDMA the network writes. Then each source learns in the second exchange of meta-data which part of its
//! write to send, so that no byte is written twice. This module finds these parts.
//!
//! # The order, and why this one
//! Any serial order is correct (arbitrary-order CRCW PRAM), so this module uses the cheapest:
//! *writes take effect in descending order of their first address*. Writes with equal first addresses take effect in
//! descending order of their position in the list. So a byte belongs to the write that
//! begins first among those that cover it. Then
//!
//! - one sweep in ascending order decides everything: what lies below the highest end so far is
//!   taken, what lies above belongs to the write at hand;
//! - a write keeps a *suffix* of itself or nothing. It is never cut in two, so at most m pieces are
//!   sent for m writes, and the answer to a source is one number per request;
//! - winners are ordered by their position in the sweep, a total order: overlaps form no cycle.
//!
//! # Cost
//! Time O(m): a least-significant-digit radix sort of m addresses, then one sweep. The sort takes 8 bits a pass. If the
//! addresses span 2^b bytes, it makes ⌈b/8⌉ passes over m entries and 256 counters each: at most 8, and 4 for 64 MiB of
//! memory. No step depends on the length of a write. Memory O(m): 40 bytes a write, allocated only by
//! [`reserve`](Conflicts::reserve).
//!
//! The paper's Table 1 allows time O(m + h_s + h_b/s) and memory O(m + h_s + R/s), for a bound s on small messages. There
//! small messages are sorted, and may be inspected byte by byte. Large ones are cut at multiples of s, with an owner for
//! each of the R/s blocks. With the order above neither the terms beside m nor s are needed.

#[cfg(test)]
mod tests;

mod radix;

use radix::Key;

/// Resolves the writes aimed at one process's memory in one superstep.
///
/// ```
/// let mut conflicts = lpf_core::conflict::Conflicts::default();
/// conflicts.reserve(2).unwrap();
/// conflicts.push(0x1000, 8);
/// conflicts.push(0x1004, 8);
/// // The second write keeps its last four bytes, 0x1008 to 0x100c.
/// assert_eq!(conflicts.resolve(), [8, 4]);
/// ```
#[derive(Debug, Default)]
pub struct Conflicts {
    keys: Vec<Key>,
    scratch: Vec<Key>,
    /// Lengths in, surviving lengths out.
    lengths: Vec<usize>,
}

impl Conflicts {
    /// Makes room for `writes` writes; nothing else allocates while no more are pushed. O(writes).
    ///
    /// # Errors
    /// The bytes that were refused; what was reserved before stays.
    pub fn reserve(&mut self, writes: usize) -> Result<(), usize> {
        let bytes = writes.saturating_mul(2 * size_of::<Key>() + size_of::<usize>());
        let refused = |_| bytes;
        self.keys.try_reserve_exact(writes.saturating_sub(self.keys.len())).map_err(refused)?;
        self.lengths
            .try_reserve_exact(writes.saturating_sub(self.lengths.len()))
            .map_err(refused)?;
        self.scratch.try_reserve_exact(writes.saturating_sub(self.scratch.len())).map_err(refused)
    }

    /// Forgets the writes of the superstep before and keeps the room. Θ(1).
    pub fn clear(&mut self) {
        self.keys.clear();
        self.lengths.clear();
    }

    /// Adds a write of `bytes` bytes at `address`; its place in the list is the number of writes
    /// before it. Θ(1), without allocation while there is room.
    ///
    /// The range has been checked against its slot. Addresses rather than slots and offsets are
    /// compared, because slots may share memory.
    ///
    /// # Panics
    /// At 2^32 writes: more than a queue can hold.
    #[inline]
    pub fn push(&mut self, address: usize, bytes: usize) {
        let place = u32::try_from(self.lengths.len()).expect("fewer than 2^32 writes");
        self.keys.push(Key { address: address as u64, place });
        self.lengths.push(bytes);
    }

    /// For each write, by its place in the list, how many bytes of it survive: always its last
    /// ones. Every byte that any write covers survives in exactly one. O(m), without allocation.
    ///
    /// Ends the list: [`clear`](Self::clear) comes before the next [`push`](Self::push).
    pub fn resolve(&mut self) -> &[usize] {
        radix::sort(&mut self.keys, &mut self.scratch);
        let mut taken = 0_u64;
        for key in &self.keys {
            let length = &mut self.lengths[key.place as usize];
            let end = key.address.saturating_add(*length as u64);
            let begin = key.address.max(taken);
            *length = end.saturating_sub(begin) as usize;
            taken = taken.max(end);
        }
        self.keys.clear();
        &self.lengths
    }
}
