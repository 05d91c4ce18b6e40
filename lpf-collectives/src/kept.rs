//! Schedules written lately: to write one takes as long as a short collective.

use crate::calls::{OperatorName, What};
use crate::schedule::Schedule;

/// So many, one for some kinds of collectives each.
const PLACES: usize = 4;
/// Longer ones are not kept: their messages take longer than they do.
const STEPS: usize = 16;
const ROUNDS: usize = 16;

/// The schedules of a member's latest calls, and the hashes of their operators.
#[derive(Debug)]
pub(crate) struct Kept {
    schedules: [(Option<What>, Schedule); PLACES],
    operators: [(OperatorName, u64); PLACES],
}

impl Kept {
    /// Nothing yet, and room for some; where memory is refused, none will be kept.
    pub(crate) fn new() -> Self {
        let place = || (None, Schedule::with_capacity(STEPS, ROUNDS).unwrap_or_default());
        let none = OperatorName::NONE;
        Kept {
            schedules: std::array::from_fn(|_| place()),
            operators: [(none, none.hash()); PLACES],
        }
    }

    /// The hash of a call's operator: to make it takes as long as a message.
    #[inline]
    pub(crate) fn hash(&mut self, what: &What) -> u64 {
        let (of, hash) = &mut self.operators[Self::place(what)];
        if *of != what.operator {
            (*of, *hash) = (what.operator, what.operator.hash());
        }
        *hash
    }

    fn place(what: &What) -> usize {
        what.kind as usize % PLACES
    }

    /// The schedule of this call, if it is known.
    #[inline]
    pub(crate) fn get(&self, what: &What) -> Option<&Schedule> {
        let (of, schedule) = &self.schedules[Self::place(what)];
        (of.as_ref() == Some(what)).then_some(schedule)
    }

    /// Keeps a call's schedule, in place of another one, where it is short.
    pub(crate) fn keep(&mut self, what: What, schedule: &Schedule) {
        let (of, place) = &mut self.schedules[Self::place(&what)];
        if what.is_exact && place.copy_from(schedule) {
            *of = Some(what);
        }
    }
}
