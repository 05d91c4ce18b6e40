//! The values of a call in words, for the error of members that call differently.
//!
//! Messages carry the hash of these values, and no value. The receiver finds the sender's value with its own ones: it
//! changes one of them at a time until the hash is the sender's.

mod memory_check;
mod operators;

use lpf_core::CallValues;

use crate::kinds::{Collective, MEMORY_CHECK};
use crate::preferences::Mode;
use crate::signature::{OperatorName, Signature, stamp};
pub(crate) use memory_check::MemoryCheck;
use operators::Other;

/// Lengths up to this number of elements are tried, lengths that differ from this member's by at most a sixteenth, and
/// round ones.
/// Each further length makes it more probable that another difference has its hash: with 100 000 lengths about 1 in 1000.
const ELEMENTS: usize = 1 << 14;

/// The values of a call at one member.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    pub(crate) what: &'a Signature,
    /// The number of the algorithm that carries it out.
    pub(crate) algorithm: usize,
    pub(crate) mode: Mode,
    /// The members of the group.
    pub(crate) members: usize,
}

/// Whether a call has a root.
fn has_root(kind: Collective) -> bool {
    use Collective::{Broadcast, Gather, Reduce, Scatter};
    matches!(kind, Broadcast | Reduce | Gather | Scatter)
}

fn root(what: &Signature) -> Option<String> {
    has_root(what.kind).then(|| format!("root {}", what.root))
}

/// "of 8 bytes", or "of blocks of 8 bytes".
fn length(what: &Signature) -> String {
    use Collective::{Allreduce, Broadcast, Exscan, Reduce, Scan};
    let bytes = lpf_core::error::counted(what.size as u64, "byte");
    match what.kind {
        _ if what.has_counts => "with counts".into(),
        Broadcast | Reduce | Allreduce | Scan | Exscan => format!("of {bytes}"),
        _ => format!("of blocks of {bytes}"),
    }
}

fn ending(mode: Mode) -> &'static str {
    match mode {
        Mode::Expected => "with expected arrivals",
        Mode::Full => "in full supersteps",
    }
}

impl Values<'_> {
    /// The names of the algorithms that this call can have, by their numbers. None if the members' arrivals choose it.
    fn algorithms(&self) -> Vec<&'static str> {
        let Signature { kind, pattern, site, .. } = *self.what;
        match pattern | site {
            0 => kind.algorithms(self.members, 1).into_iter().map(|one| one.name).collect(),
            _ => Vec::new(),
        }
    }

    /// The lengths in bytes that another member may have passed, this member's excepted.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        let (size, element) = (self.what.size, self.what.element.max(1));
        let len = size / element;
        let around = (len / 16).min(ELEMENTS);
        let near = (len - around).max(ELEMENTS)..len.saturating_add(around);
        let far =
            [len / self.members, len.saturating_mul(self.members), len / 2, len.saturating_mul(2)];
        let powers = (0..40).map(|power| 1 << power);
        let round =
            (0..9).flat_map(|power| (1..100).map(move |digits| digits * 10_usize.pow(power)));
        let all = (0..ELEMENTS).chain(near).chain(far).chain(powers).chain(round);
        all.map(move |len: usize| len.saturating_mul(element)).filter(move |&other| other != size)
    }
}

impl Values<'_> {
    /// The operator of a sender that passes another one to the same call, on the same number of elements.
    fn operator_of_sender<I: Iterator<Item = Signature>>(
        &self,
        theirs: u32,
        by_any: impl Fn(Signature) -> I,
    ) -> Option<String> {
        let own = *self.what;
        let len = own.size / own.element.max(1);
        operators::others(own.operator, own.element, own.commutes).into_iter().find_map(|other| {
            let Other { name, element, commutes } = &other;
            let (operator, size) = (OperatorName(name), len * element);
            let what = Signature { element: *element, commutes: *commutes, size, ..own };
            let hash = operator.hash();
            let is_it = |what: &Signature| stamp(what.digest_with(hash), self.mode) == theirs;
            by_any(what).find(is_it)?;
            let operator = operator.text()?;
            Some(match size == own.size {
                true => format!("with operator {operator}"),
                false => format!("{}, operator {operator}", length(&what)),
            })
        })
    }
}

impl CallValues for Values<'_> {
    fn own(&self) -> String {
        let operator = self.what.operator.text().map(|operator| format!("operator {operator}"));
        let algorithm =
            self.algorithms().get(self.algorithm).map(|name| format!("algorithm {name}"));
        let mode = (self.mode == Mode::Full).then(|| ending(self.mode).into());
        let all = [Some(length(self.what)), root(self.what), operator, algorithm, mode];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn of_sender(&self, theirs: u32) -> Option<String> {
        let &Values { what, mode, members, .. } = self;
        match theirs & lpf_core::Call::KIND {
            kind if kind == what.named() => {}
            MEMORY_CHECK => {
                return MemoryCheck { next: what, mode, members }.of_other_length(theirs);
            }
            _ => return None,
        }
        let own = Signature { algorithm: self.algorithm, ..*self.what };
        let operator = own.operator.hash();
        let is_it = |what: Signature, mode| stamp(what.digest_with(operator), mode) == theirs;
        let mut roots = (0..self.members).filter(|_| has_root(own.kind));
        if let Some(root) = roots.find(|&root| is_it(Signature { root, ..own }, self.mode)) {
            return Some(format!("with root {root}"));
        }
        let other = if self.mode == Mode::Full { Mode::Expected } else { Mode::Full };
        if is_it(own, other) {
            return Some(ending(other).into());
        }
        let names = self.algorithms();
        for (algorithm, name) in names.iter().enumerate() {
            let what = Signature { algorithm, ..own };
            if is_it(what, self.mode) || is_it(what, other) {
                return Some(format!("by algorithm {name}"));
            }
        }
        if own.has_counts {
            return None;
        }
        // Another operator or length may have led to another algorithm.
        let by_any = |what: Signature| {
            let others = (0..names.len()).filter(move |&algorithm| algorithm != own.algorithm);
            let all = std::iter::once(own.algorithm).chain(others);
            all.map(move |algorithm| Signature { algorithm, ..what })
        };
        self.operator_of_sender(theirs, by_any).or_else(|| {
            let mut lengths = self.sizes().flat_map(|size| by_any(Signature { size, ..own }));
            lengths.find(|&what| is_it(what, self.mode)).map(|what| length(&what))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::any::type_name;

    use super::*;
    use crate::operators::{Max, Min, Pair, Sum};

    fn sum() -> Signature {
        let operator = OperatorName("fn(lpf_collectives::operators::Sum) -> u64");
        Signature { operator, ..Signature::new(Collective::Allreduce, 8, 8) }
    }

    fn values(what: &Signature) -> Values<'_> {
        Values { what, algorithm: 0, mode: Mode::Expected, members: 3 }
    }

    /// What a member with `own` reads in the stamp of a member that has `other` and carries it out by this algorithm.
    fn read(own: &Signature, other: Signature, algorithm: usize, mode: Mode) -> Option<String> {
        values(own).of_sender(stamp(Signature { algorithm, ..other }.digest(), mode))
    }

    #[test]
    fn a_call_is_told_with_its_values() {
        assert_eq!(values(&sum()).own(), "of 8 bytes, operator Sum of u64, algorithm doubling");
        let gather = Signature { root: 2, ..Signature::new(Collective::Gather, 1, 1) };
        assert_eq!(values(&gather).own(), "of blocks of 1 byte, root 2, algorithm direct");
        let counts =
            Values { mode: Mode::Full, ..values(&Signature { has_counts: true, ..gather }) }.own();
        assert_eq!(counts, "with counts, root 2, algorithm direct, in full supersteps");
        let by_arrival = values(&Signature { pattern: 7, ..sum() }).own();
        assert_eq!(by_arrival, "of 8 bytes, operator Sum of u64");
    }

    #[test]
    fn the_one_value_that_differs_is_read_from_the_stamp() {
        let own = &sum();
        let sized = |size| Signature { size, ..*own };
        let said = |other, algorithm, mode| read(own, other, algorithm, mode);
        assert_eq!(said(sized(16), 0, Mode::Expected).as_deref(), Some("of 16 bytes"));
        assert_eq!(said(sized(1 << 30), 3, Mode::Expected).as_deref(), Some("of 1073741824 bytes"));
        // More elements than are tried.
        assert_eq!(said(sized(8 * 1_000_003), 0, Mode::Expected), None);
        assert_eq!(said(*own, 1, Mode::Expected).as_deref(), Some("by algorithm ring"));
        assert_eq!(said(*own, 0, Mode::Full).as_deref(), Some("in full supersteps"));
        let broadcast =
            &Signature { root: 1, ..Signature::new(Collective::Broadcast, 1_000_008, 8) };
        let rooted = read(broadcast, Signature { root: 2, ..*broadcast }, 0, Mode::Expected);
        assert_eq!(rooted.as_deref(), Some("with root 2"));
        let near = read(broadcast, Signature { size: 1_000_000, ..*broadcast }, 0, Mode::Expected);
        assert_eq!(near.as_deref(), Some("of 1000000 bytes"));
    }

    #[test]
    fn another_built_in_operator_is_read_from_the_stamp() {
        let named = |operator, element| {
            let operator = OperatorName(operator);
            Signature { operator, ..Signature::new(Collective::Allreduce, 5 * element, element) }
        };
        let sum = named(type_name::<fn(Sum) -> u64>(), 8);
        let pair = named(type_name::<fn((Sum, Max)) -> Pair<u64, u64>>(), 16);
        let own = Signature { commutes: false, ..named("fn(program::Compose) -> [i64; 2]", 16) };
        for (own, other, said) in [
            (sum, named(type_name::<fn(Max) -> u64>(), 8), "with operator Max of u64"),
            (sum, named(type_name::<fn(Sum) -> f64>(), 8), "with operator Sum of f64"),
            (sum, named(type_name::<fn(Min) -> i8>(), 1), "of 5 bytes, operator Min of i8"),
            (
                pair,
                named(type_name::<fn((Sum, Min)) -> Pair<u64, u64>>(), 16),
                "with operator (Sum, Min) of Pair<u64, u64>",
            ),
            (own, named(type_name::<fn(Sum) -> [i64; 2]>(), 16), "with operator Sum of [i64; 2]"),
        ] {
            for algorithm in [0, 1] {
                let read = read(&own, other, algorithm, Mode::Expected);
                assert_eq!(read.as_deref(), Some(said));
            }
        }
        // A program's own operators are not known.
        assert_eq!(read(&sum, own, 0, Mode::Expected), None);
    }
}
