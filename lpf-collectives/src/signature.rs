//! What all members of a group must agree on in a call.

use crate::hash::mixed;
use crate::kinds::*;
use crate::preferences::Mode;

/// What tells an operator from others: its name and its elements', as the compiler has them. Two are the same
/// here where their text lies in one place, which is soon compared; else where it has the same hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperatorName<'a>(pub(crate) &'a str);

impl<'a> OperatorName<'a> {
    /// Nothing is combined.
    pub(crate) const NONE: Self = OperatorName("");

    /// The names of the operator and its elements, of the type of a function from the one to the other.
    pub(crate) fn parts(self) -> Option<(&'a str, &'a str)> {
        self.0.strip_prefix("fn(")?.rsplit_once(") -> ")
    }

    /// "Sum of u64", if it has parts; other names as they are.
    pub(crate) fn text(self) -> Option<String> {
        match self.parts() {
            Some((operator, element)) => {
                Some(format!("{} of {}", without_paths(operator), without_paths(element)))
            }
            None => (!self.0.is_empty()).then(|| self.0.into()),
        }
    }

    /// Of its text.
    pub(crate) fn hash(self) -> u64 {
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.0.as_bytes().chunks(8).fold(0, |hash, bytes| mixed(hash, word(bytes)))
    }
}

/// The names of types without the modules that they are in.
fn without_paths(types: &str) -> String {
    let is_in_name = |byte: char| byte.is_alphanumeric() || byte == '_' || byte == ':';
    let parts = types.split_inclusive(|byte| !is_in_name(byte));
    parts.map(|part| part.rsplit_once("::").map_or(part, |(_, name)| name)).collect()
}

impl PartialEq for OperatorName<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for OperatorName<'_> {}

/// The bits of a stamp that say what a call is called.
const KIND: u64 = lpf_core::Call::KIND as u64;

/// From this number of an algorithm on they are trees that grow.
pub(crate) const TREES: usize = 64;

/// The algorithm's number of a call whose algorithm the collectives choose.
const CHOSEN: usize = usize::MAX;

/// One call: what its messages' stamp is made of. Calls of a member that are the same have the same schedule, until the
/// preferences change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) kind: Collective,
    /// The number of its algorithm.
    pub(crate) algorithm: usize,
    /// Where there is one, else 0.
    pub(crate) root: usize,
    /// Bytes of a vector, or of a block; of counts a hash.
    pub(crate) size: usize,
    /// Bytes of an element.
    pub(crate) element: usize,
    /// Whether operands may change places.
    pub(crate) commutes: bool,
    /// What combines them.
    pub(crate) operator: OperatorName<'static>,
    /// Whether its schedule depends on counts, which are not here.
    pub(crate) has_counts: bool,
    /// Of when members arrive, a hash; 0 where that is nothing to the call.
    pub(crate) pattern: u64,
    /// Which of the program's calls it is, where that is known.
    pub(crate) site: u64,
}

impl Signature {
    /// Of this collective, on `size` bytes of elements of `element`.
    #[inline]
    pub(crate) fn new(kind: Collective, size: usize, element: usize) -> Self {
        let operator = OperatorName::NONE;
        Signature {
            kind,
            algorithm: CHOSEN,
            root: 0,
            size,
            element,
            commutes: true,
            operator,
            has_counts: false,
            pattern: 0,
            site: 0,
        }
    }

    /// The number of its name.
    pub(crate) fn named(&self) -> u32 {
        // Of an ordinary call nothing is known but what it is.
        match (self.kind, self.pattern | self.site) {
            (kind, _) if self.has_counts => WITH_COUNTS + (kind as u32 - Collective::Gather as u32),
            (kind, 0) => kind as u32,
            (Collective::Allreduce, _) => ALLREDUCE_BY_ARRIVAL,
            (Collective::Reduce, _) if self.algorithm < TREES => REDUCE_BY_ARRIVAL,
            (Collective::Reduce, _) if self.site == 0 => REDUCE_BY_PAIRING,
            (Collective::Reduce, _) => REDUCE_AS_THEY_COME,
            (kind, _) => kind as u32,
        }
    }

    /// What tells it from other calls, the number of its name in the lowest bits. To make it takes as long as a short
    /// message.
    pub(crate) fn digest(&self) -> u64 {
        self.digest_with(self.operator.hash())
    }

    /// The digest of the same call with the operator whose name has this hash.
    pub(crate) fn digest_with(&self, operator: u64) -> u64 {
        self.hash(operator) & !KIND | u64::from(self.named())
    }

    /// What the messages of the memory check before this call carry, if those of another such allreduce carry `check`.
    /// Members whose calls on slices differ in kind, root or size are found by it. To make it takes a few operations.
    pub(crate) fn memory_check(&self, check: u32) -> u32 {
        let small = u64::from(check) | u64::from(self.named()) << 32;
        let hash = [self.root as u64, self.size as u64].into_iter().fold(small, mixed);
        ((hash ^ hash >> 32) & !KIND) as u32 | MEMORY_CHECK
    }

    fn hash(&self, operator: u64) -> u64 {
        let Signature { kind, algorithm, root, size, element, commutes, pattern, site, .. } = *self;
        let small = kind as u64 | (algorithm as u64) << 8 | u64::from(commutes) << 16;
        let numbers = [small ^ pattern ^ site, root as u64, size as u64, element as u64, operator];
        numbers.into_iter().fold(0, mixed)
    }
}

/// What the messages of a call carry.
#[inline]
pub(crate) fn stamp(digest: u64, mode: Mode) -> u32 {
    let hash = mixed(digest, mode as u64);
    ((hash ^ hash >> 32) & !KIND | digest & KIND) as u32
}
