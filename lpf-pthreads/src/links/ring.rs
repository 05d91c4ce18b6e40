//! The memory in which a channel ends.
//!
//! ```text
//! ring   sender's line | owner's line | offers | cell 0 | cell 1 | … | cell W'-1
//! cell   header of 64 bytes (sequence number, stamp, length, credit, 32 bytes of payload) | data
//! ```
//!
//! One writer per word. The sender writes cells and its line; the owner writes its line and the
//! offers. Counts are cumulative over the ring's life, whoever has its link: a link opened on a
//! used ring goes on where the last one ended, so no stale count can be mistaken for a new one.
//!
//! The sequence number in a cell is the cumulative counter: message n (from 1) fills cell
//! (n-1) mod W' and stores n there last, with release; W' is W, or the power of two above it. The owner looks with acquire for exactly n.
//! A sender writes cell n only when the owner has released n - W. It learns so from the owner's messages to
//! it, which carry the count, also those that it has not awaited; and in the owner's line, where the window
//! known of is used up (acquire, both: the owner's reads of the cell came before its release). A count in a
//! message costs nothing. One in the line has to fetch it from the sender's cache first, and what is stored
//! after it, the next message, waits so long (AMD EPYC, cores far apart: an exchange of 8 bytes took 390 ns
//! with the line alone).

#[cfg(not(loom))]
mod memory;
#[cfg(loom)]
mod modelled;

#[cfg(not(loom))]
pub(crate) use memory::{InboxMemory, copy_to_landing};
#[cfg(all(loom, test))]
pub(crate) use modelled::{Bytes, bytes};
#[cfg(loom)]
pub(crate) use modelled::{InboxMemory, copy_to_landing};

use std::cell::UnsafeCell;

use lpf_core::Pid;

use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Payload that fits the header's own cache line.
const IN_HEADER: usize = 32;

/// Set in a cell's length: the message went to a landing.
pub(crate) const LANDED: u64 = 1 << 63;
/// Set in a cell's length: the message is read in its sender's memory, which the cell's [`Loan`] names.
pub(crate) const LENT: u64 = 1 << 62;

/// Written by the sender.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct SenderLine {
    /// Messages sent.
    pub(crate) sent: AtomicU64,
    /// Of these, landings.
    pub(crate) landed: AtomicU64,
    /// The [`end`] whose link sends here; FREE between links.
    pub(crate) claim: AtomicU64,
    /// The last one whose messages came here, or may have.
    pub(crate) served: AtomicU64,
}

/// An end of a link that nobody has.
pub(crate) const FREE: u64 = 0;

/// A sender's end of a link: the `opened`-th link, from 1, of process `from` into a ring.
pub(crate) fn end(from: Pid, opened: u64) -> u64 {
    (from as u64 + 1) << 32 | u64::from(opened as u32)
}

/// The process of an [`end`] and which of its links it is.
pub(crate) fn process_of(end: u64) -> (Pid, u64) {
    (((end >> 32) as Pid).wrapping_sub(1), u64::from(end as u32))
}

/// Written by the owner.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct OwnerLine {
    /// Messages released.
    pub(crate) released: AtomicU64,
    /// Landings offered.
    pub(crate) offered: AtomicU64,
    /// The [`end`] for which the owner has opened its own; FREE between links.
    pub(crate) granted: AtomicU64,
}

/// The count of what was released in a ring, as a message carries it: with the ring's number, since who
/// receives the message may send into another ring, and without the bits that its receiver knows.
pub(crate) fn credit(ring: usize, released: u64) -> u64 {
    (ring as u64) << 32 | u64::from(released as u32)
}

/// The count of a [`credit`], if it is of this ring and more than what is known.
pub(crate) fn more_credit(credit: u64, ring: usize, known: u64) -> Option<u64> {
    let more = (credit as u32).wrapping_sub(known as u32);
    ((credit >> 32) as usize == ring && more.cast_signed() > 0).then(|| known + u64::from(more))
}

/// Where the owner wants a landing.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Offer {
    /// Number of the offer, from 1; stored last, with release.
    pub(crate) number: AtomicU64,
    pub(crate) address: AtomicPtr<u8>,
    pub(crate) bytes: AtomicUsize,
    /// Who has the memory: see [`offer`].
    pub(crate) state: AtomicU32,
}

/// States of an offer. The sender moves OPEN to TAKEN to DONE, the owner OPEN to REVOKED; each
/// first step is a compare-exchange, so that a sender that copies is awaited and one that comes
/// too late does not begin.
pub(crate) mod offer {
    pub(crate) const OPEN: u32 = 1;
    pub(crate) const TAKEN: u32 = 2;
    pub(crate) const DONE: u32 = 3;
    pub(crate) const REVOKED: u32 = 4;
}

/// Where a message lies that is read in its sender's memory; in its cell, in the place of a short payload.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Loan {
    address: AtomicPtr<u8>,
    /// Who has the memory: see [`loan`].
    state: AtomicU32,
}

/// States of a loan. The borrower moves OPEN to TAKEN to DONE, the lender OPEN to REVOKED, when the section
/// has failed; each first step is a compare-exchange, so that one who reads is awaited and one who comes too
/// late does not begin. Where nothing fails the release says that the memory is its lender's again.
mod loan {
    pub(super) const OPEN: u32 = 1;
    pub(super) const TAKEN: u32 = 2;
    pub(super) const DONE: u32 = 3;
    pub(super) const REVOKED: u32 = 4;
}

impl Loan {
    /// The lender's; the message's number, which it stores next, publishes it.
    #[inline]
    pub(crate) fn open(&self, address: *const u8) {
        self.address.store(address.cast_mut(), Ordering::Relaxed);
        self.state.store(loan::OPEN, Ordering::Relaxed);
    }

    /// The borrower's: from now on it may read. False where the lender has taken the memory back.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        self.state
            .compare_exchange(loan::OPEN, loan::TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Where the message lies.
    #[inline]
    pub(crate) fn address(&self) -> *const u8 {
        self.address.load(Ordering::Relaxed).cast_const()
    }

    /// The borrower's, in a failed section: it reads no more.
    pub(crate) fn give_up(&self) {
        self.state.store(loan::DONE, Ordering::Release);
    }

    /// The lender's, in a failed section: false while the borrower reads.
    pub(crate) fn revoke(&self) -> bool {
        let taken = self.state.compare_exchange(
            loan::OPEN,
            loan::REVOKED,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        taken != Err(loan::TAKEN)
    }
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct Cell {
    pub(crate) sequence: AtomicU64,
    pub(crate) stamp: AtomicU64,
    pub(crate) length: AtomicU64,
    /// What the message's sender had released of the messages that come to it on its link: [`credit`].
    pub(crate) credit: AtomicU64,
    /// Reached by raw pointers alone: a short message.
    payload: UnsafeCell<[u8; IN_HEADER]>,
}

#[cfg(test)]
mod tests {
    use super::{credit, more_credit};

    #[test]
    fn a_credit_is_of_its_ring_and_never_takes_back() {
        let around = (3 << 32) - 2;
        assert_eq!(more_credit(credit(7, around + 5), 7, around), Some(around + 5));
        assert_eq!(more_credit(credit(7, around), 7, around + 5), None);
        assert_eq!(more_credit(credit(7, around), 7, around), None);
        assert_eq!(more_credit(credit(6, around + 5), 7, around), None);
    }
}
