//! Schedules written lately: to write one takes as long as a short collective.

use crate::calls::What;
use crate::schedule::Schedule;

/// So many, one for some kinds of collectives each.
const PLACES: usize = 4;
/// Longer ones are not kept: their messages take longer than they do.
const STEPS: usize = 16;
const ROUNDS: usize = 16;

/// The schedules of a member's latest calls, each with the call's digest. The last place is that of the latest call
/// that depends on arrivals: its schedule is kept however long it is, since more than its messages depend on its time.
#[derive(Debug)]
pub(crate) struct Kept([(Option<What>, u64, Schedule); PLACES + 1]);

impl Kept {
    /// Nothing yet, and room for some; where memory is refused, none will be kept.
    pub(crate) fn new() -> Self {
        let place = || (None, 0, Schedule::with_capacity(STEPS, ROUNDS).unwrap_or_default());
        Kept(std::array::from_fn(|_| place()))
    }

    fn place(what: &What) -> usize {
        if what.pattern == 0 { what.kind as usize % PLACES } else { PLACES }
    }

    /// Where this call's schedule is, if it is known, and the call's digest.
    #[inline]
    pub(crate) fn find(&self, what: &What) -> (Option<usize>, u64) {
        let place = Self::place(what);
        match &self.0[place] {
            (Some(of), digest, _) if of == what => (Some(place), *digest),
            _ => (None, what.digest()),
        }
    }

    /// The schedule in a place.
    #[inline]
    pub(crate) fn schedule(&self, place: usize) -> &Schedule {
        &self.0[place].2
    }

    /// Keeps a call's schedule, in place of another one, where it is short; else in exchange for that.
    pub(crate) fn keep(&mut self, what: What, digest: u64, schedule: &mut Schedule) {
        let (of, own, place) = &mut self.0[Self::place(&what)];
        if what.pattern != 0 {
            std::mem::swap(place, schedule);
            (*of, *own) = (Some(what), digest);
        } else if what.is_exact && place.copy_from(schedule) {
            (*of, *own) = (Some(what), digest);
        }
    }
}
