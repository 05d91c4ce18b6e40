//! The values of a memory check: those of the call on slices that it comes before. Members whose lengths are on both sides
//! of the limit of the check are in different calls, and yet only their lengths differ.

use std::any::type_name;

use lpf_core::CallValues;

use super::{Values, has_root, length, root};
use crate::kinds::{Collective, MEMORY_CHECK, NAMES};
use crate::operators::{At, MinAt};
use crate::preferences::Mode;
use crate::signature::{OperatorName, Signature, stamp};

/// The values of a memory check at one member.
#[derive(Debug)]
pub(crate) struct MemoryCheck<'a> {
    /// The call that it comes before, whose algorithm is not chosen yet.
    pub(crate) next: &'a Signature,
    pub(crate) mode: Mode,
    /// The members of the group.
    pub(crate) members: usize,
}

/// "before reduce of 8 bytes, root 0"
fn before(next: &Signature, values: &str) -> String {
    format!("before {} {values}", NAMES[next.named() as usize])
}

impl MemoryCheck<'_> {
    /// What the sender's memory check comes before, if it is one of these calls.
    fn of_calls(&self, theirs: u32, mut calls: impl Iterator<Item = Signature>) -> Option<String> {
        let operator = OperatorName(type_name::<fn(MinAt) -> At<usize>>());
        let bytes = size_of::<At<usize>>();
        let check = Signature { operator, ..Signature::new(Collective::Allreduce, bytes, bytes) };
        let algorithms = 0..Collective::Allreduce.algorithms(self.members, bytes).len();
        let stamps = algorithms
            .map(|algorithm| stamp(Signature { algorithm, ..check }.digest(), self.mode))
            .collect::<Vec<_>>();
        let is_it = |next: &Signature| stamps.iter().any(|&own| next.memory_check(own) == theirs);
        calls.find(is_it).map(|next| {
            let values = [Some(length(&next)), root(&next)];
            before(&next, &values.into_iter().flatten().collect::<Vec<_>>().join(", "))
        })
    }

    /// The same call with another length.
    pub(super) fn of_other_length(&self, theirs: u32) -> Option<String> {
        if self.next.has_counts {
            return None;
        }
        let call = self.as_call();
        self.of_calls(theirs, call.sizes().map(|size| Signature { size, ..*self.next }))
    }

    /// Another collective, or another root, on equally many bytes.
    fn of_other_call(&self, theirs: u32) -> Option<String> {
        let size = self.next.size;
        let sizes = [size, size.saturating_mul(self.members), size / self.members];
        let calls = Collective::ALL.into_iter().flat_map(|kind| {
            let roots = if has_root(kind) { 0..self.members } else { 0..1 };
            roots.flat_map(move |root| sizes.map(|size| (kind, root, size)))
        });
        let calls = calls.map(|(kind, root, size)| Signature {
            kind,
            root,
            size,
            has_counts: false,
            ..*self.next
        });
        self.of_calls(theirs, calls)
    }

    /// The values of the call after it, by an algorithm that is not known.
    fn as_call(&self) -> Values<'_> {
        let &MemoryCheck { next, mode, members } = self;
        Values { what: next, algorithm: usize::MAX, mode, members }
    }
}

impl CallValues for MemoryCheck<'_> {
    fn own(&self) -> String {
        before(self.next, &self.as_call().own())
    }

    fn of_sender(&self, theirs: u32) -> Option<String> {
        match theirs & lpf_core::Call::KIND {
            MEMORY_CHECK => self.of_other_length(theirs).or_else(|| self.of_other_call(theirs)),
            _ => self.as_call().of_sender(theirs),
        }
    }
}
