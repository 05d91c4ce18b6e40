//! Reductions of members that know when each of them arrives.

use std::cell::Cell;
use std::time::{Duration, Instant};

use bytemuck::Pod;
use lpf_core::error::counted;
use lpf_core::{Context, Lpf, Result};

use super::combining;
use super::pattern::Pattern;
use super::raw::{RawCall, RawOperator};
use crate::algorithms::by_arrival::Rounds;
use crate::algorithms::{Member, Vector};
use crate::arrival_pattern::clairvoyant::MOST;
use crate::arrival_pattern::{Estimates, predict};
use crate::collectives::Collectives;
use crate::hash::mixed;
use crate::kinds::Collective;
use crate::memory::{Source, Target};
use crate::misuse::misuse;
use crate::operators::Operator;
use crate::preferences::{Mode, Preferences};
use crate::schedule::Schedule;
use crate::shared::Place;
use crate::signature::Signature;
use crate::ways::{AllreduceByArrival, ReduceByArrival};

impl<'s> Collectives<'s> {
    /// Combines the `x` of all members into the root's `y`. The schedule depends on the predicted arrivals
    /// ([`Estimates`], the same at every member). Members that have arrived begin, and the last one sends only its own
    /// vector. Wrong estimates cost time, but do not change the result.
    ///
    /// `y` is as long as `x` at every member. At members other than the root it is working memory, without a defined
    /// value afterwards. If the estimates are equal, it is [`reduce`](Self::reduce).
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce), and *misuse* if there are not as many estimates as members.
    #[track_caller]
    pub fn reduce_by_arrival<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arrivals: &Estimates,
        root: usize,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (root, x) = (self.root(ctx, root)?, self.inside(ctx, x.view())?);
        let y = self.as_long(ctx, ("y", y.view()), x.len)?;
        let combine = &mut combining::<T, _>(operator);
        let operator = RawOperator::of(operator, combine);
        let commutes = operator.commutes;
        let pattern = self.pattern(ctx, arrivals, root, &operator, x.len)?;
        let usable = |&way: &_| commutes || way != ReduceByArrival::Clairvoyant;
        let way = self.preferences.reduce_by_arrival.or_else(|| {
            let chosen = self.ahead(Collective::Reduce, &pattern, || {
                let usual = self.usual_reduce(ctx, pattern.v, commutes);
                pattern.best_reduce(usual).map(|way| way as usize)
            });
            chosen.map(|nth| ReduceByArrival::ALL[nth])
        });
        let memory = (x.place, y.place, x.len);
        let call = RawCall::combining(Collective::Reduce, root, operator, memory);
        let Some(way) = way.filter(usable) else {
            self.by_arrival.set(self.usual_reduce(ctx, pattern.v, commutes).name());
            // SAFETY: views' memory is their section's, borrowed during the call.
            return unsafe { self.carry_out(ctx, Self::unaware(&pattern, call)) };
        };
        self.by_arrival.set(way.name());
        let write = |s: &mut Schedule, m, rounds| pattern.reduce(way, s, m, rounds);
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe { self.carry_out_by_arrival(ctx, &pattern, call, way as usize, write) }
    }

    /// Combines the `x` of all members into the `y` of every member, as [`reduce_by_arrival`](Self::reduce_by_arrival).
    ///
    /// # Errors
    /// As [`reduce_by_arrival`](Self::reduce_by_arrival).
    #[track_caller]
    pub fn allreduce_by_arrival<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arrivals: &Estimates,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, ("y", y.view()), x.len)?;
        self.allreduce_by_arrival_at(ctx, arrivals, operator, (x.place, y.place, x.len))
    }

    /// Combines the `x` of all members into the `x` of every member, as
    /// [`allreduce_by_arrival`](Self::allreduce_by_arrival).
    ///
    /// # Errors
    /// As [`reduce_by_arrival`](Self::reduce_by_arrival).
    #[track_caller]
    pub fn allreduce_in_place_by_arrival<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arrivals: &Estimates,
        operator: &impl Operator<T>,
        x: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        self.allreduce_by_arrival_at(ctx, arrivals, operator, (x.place, x.place, x.len))
    }

    #[track_caller]
    fn allreduce_by_arrival_at<L: Lpf, T: Pod, O: Operator<T>>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arrivals: &Estimates,
        operator: &O,
        memory: (Place, Place, usize),
    ) -> Result<()> {
        let combine = &mut combining::<T, _>(operator);
        let operator = RawOperator::of(operator, combine);
        let commutes = operator.commutes;
        let pattern = self.pattern(ctx, arrivals, 0, &operator, memory.2)?;
        let usable = |&way: &_| commutes || way == AllreduceByArrival::Linear;
        let way = self.preferences.allreduce_by_arrival.or_else(|| {
            let chosen = self.ahead(Collective::Allreduce, &pattern, || {
                let usual = self.usual_allreduce(ctx, pattern.v, commutes);
                pattern.best_allreduce(usual).map(|way| way as usize)
            });
            chosen.map(|nth| AllreduceByArrival::ALL[nth])
        });
        let call = RawCall::combining(Collective::Allreduce, 0, operator, memory);
        let Some(way) = way.filter(usable) else {
            self.by_arrival.set(self.usual_allreduce(ctx, pattern.v, commutes).name());
            // SAFETY: views' memory is their section's, borrowed during the call.
            return unsafe { self.carry_out(ctx, Self::unaware(&pattern, call)) };
        };
        self.by_arrival.set(way.name());
        let write = |s: &mut Schedule, m, rounds| pattern.allreduce(way, s, m, rounds);
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe { self.carry_out_by_arrival(ctx, &pattern, call, way as usize, write) }
    }

    #[track_caller]
    fn pattern<'a, L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        arrivals: &'a Estimates,
        root: usize,
        operator: &RawOperator<'_>,
        len: usize,
    ) -> Result<Pattern<'a>> {
        self.planning.set(Duration::ZERO);
        let has = arrivals.times_ns().len();
        if has != self.len() {
            let given = counted(has as u64, "estimate");
            let text =
                format!("{given} for a group of {}, which takes one for each member", self.len());
            return Err(misuse(ctx, text));
        }
        self.fits(ctx, operator.element)?;
        let v = Vector { bytes: len * operator.element, element: operator.element };
        let machine = ctx.probe();
        let (p, commutes, Preferences { segments, round_ns, .. }) =
            (self.len(), operator.commutes, self.preferences);
        let segments = segments.unwrap_or_else(|| predict::segments(&machine, p, v));
        let segments = segments.clamp(1, predict::most_segments(v));
        let segment_ns = |of| predict::segment_ns(&machine, p, v, of);
        let round_ns = round_ns.map_or_else(
            || [segment_ns(segments), segment_ns(p as u32), predict::pair_ns(&machine, p, v)],
            |round_ns| [round_ns; 3],
        );
        let round_ns = round_ns.map(|round_ns| round_ns.clamp(1, MOST - 1));
        Ok(Pattern { machine, arrivals, segments, round_ns, root, v, commutes })
    }

    /// Carries out a schedule on whole vectors, whose target is room at every member.
    ///
    /// # Safety
    /// As [`carry_out`](Self::carry_out), of the target at every member.
    #[track_caller]
    unsafe fn carry_out_by_arrival<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        pattern: &Pattern<'_>,
        call: RawCall<'_>,
        number: usize,
        write: impl Fn(&mut Schedule, Member, Rounds),
    ) -> Result<()> {
        let rounds = self.rounds(ctx)?;
        let (site, pattern) = (pattern.arrivals.site(), Self::times(pattern));
        let (chosen_in, written_in) = (self.planning.get(), Cell::new(Duration::ZERO));
        let timed = |s: &mut Schedule, m: Member| {
            // What this processor needs for it, to be reported only: nothing depends on it.
            let start = Instant::now();
            write(s, m, rounds);
            written_in.set(start.elapsed());
        };
        let call = call.by(number, [site, pattern], &timed);
        // SAFETY: as this function's caller promises it; the schedule lies in the vectors.
        let done = unsafe { self.carry_out(ctx, call) };
        self.planning.set(chosen_in + written_in.get());
        done
    }

    /// Where rounds end for all together they are as long as scratch is.
    #[track_caller]
    pub(super) fn rounds<L: Lpf>(&self, ctx: &Context<'s, L>) -> Result<Rounds> {
        let is_common = self.mode(ctx)? == Mode::Full || self.group.has_barriers();
        let longest = self.shared.borrow().room(self.len());
        Ok(if is_common { Rounds::Common { longest } } else { Rounds::Own })
    }

    /// What tells calls apart that are made of other times, or cut into other segments: not 0.
    fn times(pattern: &Pattern<'_>) -> u64 {
        let Pattern { arrivals, segments, round_ns: [round, tau, pair], .. } = *pattern;
        let numbers = [u64::from(segments), round, tau, pair, arrivals.grain_ns()];
        let all = arrivals.times_ns().iter().chain(&numbers);
        all.fold(0, |hash, &number| mixed(hash, number)).max(1)
    }

    /// A call by an arrival-unaware algorithm to which estimates have led: with their site, and a hash that no schedule
    /// by arrival has. So members with different estimates find out, whatever algorithm these lead to. If all arrive
    /// together, it is the call without estimates.
    fn unaware<'a>(pattern: &Pattern<'_>, call: RawCall<'a>) -> RawCall<'a> {
        let apart =
            if pattern.arrivals.spread_ns() > 0 { mixed(Self::times(pattern), 1) | 1 } else { 0 };
        let site = pattern.arrivals.site();
        RawCall { what: Signature { site, pattern: apart, ..call.what }, ..call }
    }

    /// What was chosen for a pattern, or is now; nothing where it is the ordinary algorithm, as it is where all come
    /// together and there is nothing to gain.
    fn ahead(
        &self,
        kind: Collective,
        pattern: &Pattern<'_>,
        choose: impl FnOnce() -> Option<usize>,
    ) -> Option<usize> {
        if pattern.arrivals.spread_ns() == 0 {
            return None;
        }
        let Vector { bytes, element } = pattern.v;
        let small = (pattern.root as u64) << 9 | u64::from(pattern.commutes) << 8 | kind as u64;
        let vector = mixed(bytes as u64, element as u64);
        let key = mixed(mixed(Self::times(pattern), small), vector).max(1);
        let timed = || {
            let start = Instant::now();
            let chosen = choose();
            self.planning.set(start.elapsed());
            chosen.map_or(0, |nth| nth + 1)
        };
        self.choices.of(key, timed).checked_sub(1)
    }
}
