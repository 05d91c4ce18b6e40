//! Schedules written lately: to write one takes as long as a short collective.

use crate::calls::What;
use crate::schedule::Schedule;

/// So many, one for some kinds of collectives each.
const PLACES: usize = 4;
/// Longer ones are not kept: their messages take longer than they do.
const STEPS: usize = 16;
const ROUNDS: usize = 16;

/// The schedules of a member's latest calls.
#[derive(Debug)]
pub(crate) struct Kept([(Option<What>, Schedule); PLACES]);

impl Kept {
    /// Nothing yet, and room for some; where memory is refused, none will be kept.
    pub(crate) fn new() -> Self {
        let place = || (None, Schedule::with_capacity(STEPS, ROUNDS).unwrap_or_default());
        Kept(std::array::from_fn(|_| place()))
    }

    fn place(what: &What) -> usize {
        what.kind as usize % PLACES
    }

    /// The schedule of this call, if it is known.
    #[inline]
    pub(crate) fn get(&self, what: &What) -> Option<&Schedule> {
        let (of, schedule) = &self.0[Self::place(what)];
        (of.as_ref() == Some(what)).then_some(schedule)
    }

    /// Keeps a call's schedule, in place of another one, where it is short.
    pub(crate) fn keep(&mut self, what: What, schedule: &Schedule) {
        let (of, place) = &mut self.0[Self::place(&what)];
        if what.is_exact && place.copy_from(schedule) {
            *of = Some(what);
        }
    }
}
