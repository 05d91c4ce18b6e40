//! Every reduction to a result that member 1 has, by every algorithm, so that something may happen in its midst.

use lpf_collectives::arbiter::Arbiter;
use lpf_collectives::arrival_pattern::Estimates;
use lpf_collectives::arrival_pattern::pairing::Growth;
use lpf_collectives::*;
use lpf_core::{Context, Local, Lpf, Result};

/// An algorithm, and what is called for it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reduction {
    Ordinary(Allreduce),
    ToAll(AllreduceByArrival),
    ToOne(ReduceByArrival),
    Grows(Growth),
}

impl Reduction {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let ordinary = Allreduce::ALL.iter().copied().map(Reduction::Ordinary);
        let to_all = AllreduceByArrival::ALL.iter().copied().map(Reduction::ToAll);
        let to_one = ReduceByArrival::ALL.iter().copied().map(Reduction::ToOne);
        let grows = [Growth::Any, Growth::Neighbours].map(Reduction::Grows);
        ordinary.chain(to_all).chain(to_one).chain(grows)
    }

    pub(super) fn is_ordinary(self) -> bool {
        matches!(self, Reduction::Ordinary(_))
    }

    /// Member 1, which is expected last, is the root where there is one: so it combines in all of them.
    pub(super) fn call<'s, L: Lpf>(
        self,
        ctx: &mut Context<'s, L>,
        c: &mut Collectives<'s>,
        operator: &impl Operator<u64>,
        x: &Local<'s, u64>,
        y: &mut Local<'s, u64>,
    ) -> Result<()> {
        let late = |member| if member == 1 { 100_000 } else { 0 };
        let times: Vec<u64> = (0..c.len()).map(late).collect();
        let arrivals = Estimates::new(&times, 1);
        let preferences = c.preferences_mut();
        preferences.segments = Some(3);
        match self {
            Reduction::Ordinary(way) => {
                preferences.allreduce = Some(way);
                c.allreduce(ctx, operator, x, y)
            }
            Reduction::ToAll(way) => {
                preferences.allreduce_by_arrival = Some(way);
                c.allreduce_by_arrival(ctx, &arrivals, operator, x, y)
            }
            Reduction::ToOne(way) => {
                preferences.reduce_by_arrival = Some(way);
                c.reduce_by_arrival(ctx, &arrivals, 1, operator, x, y)
            }
            Reduction::Grows(growth) => {
                let mut arbiter = Arbiter::new(ctx, c, growth)?;
                c.reduce_as_they_come(ctx, &mut arbiter, 1, operator, x, y).map(|_| ())
            }
        }
    }
}
