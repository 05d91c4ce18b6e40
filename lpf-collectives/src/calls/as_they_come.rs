//! Reductions by trees that grow as members come.

use bytemuck::Pod;
use lpf_core::{CallValues, Context, Lpf, Result};

use super::carry_out::{caught, whole};
use super::combining;
use super::raw::{RawCall, RawOperator};
use crate::algorithms::by_arrival::{Rounds, reduce_pairs};
use crate::algorithms::{Member, Vector};
use crate::arbiter::{Answered, Arbiter, pair_word};
use crate::arrival_pattern::pairing::{Growth, Pairing};
use crate::collectives::Collectives;
use crate::hash::mixed;
use crate::kinds::Collective;
use crate::memory::{Source, Target};
use crate::misuse::misuse;
use crate::operators::Operator;
use crate::preferences::Mode;
use crate::run::{Buffers, Call, expected, leave};
use crate::schedule::Schedule;
use crate::signature::{Signature, TREES, stamp};
use crate::values::Values;

/// The number of a tree that grows, as an algorithm: apart from those whose schedule is known before.
fn number(growth: Growth) -> usize {
    TREES + growth as usize
}

impl<'s> Collectives<'s> {
    /// Combines the `x` of all members into the root's `y`, along a tree that grows as members arrive. Members that have
    /// arrived are paired with each other; no estimates are needed. The root gets the tree.
    ///
    /// `y` is as long as `x` at every member. At members other than the root it is working memory, without a defined
    /// value afterwards. The order in which operands are combined depends on time, and so do the bits of a sum of
    /// floating-point numbers; [`reduce_by_pairing`](Self::reduce_by_pairing) repeats them. An operator that does not
    /// commute needs an arbiter of neighbours. In strict mode and in full supersteps the tree is the one for members that
    /// arrive at once, with transfers of equal length.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce), and *misuse* if `y` is not as long as `x` at every member, or if the arbiter belongs to
    /// another group or does not fit the operator.
    #[track_caller]
    pub fn reduce_as_they_come<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arbiter: &mut Arbiter<'s, L>,
        root: usize,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<Option<Pairing>> {
        let (root, x) = (self.root(ctx, root)?, self.inside(ctx, x.view())?);
        let y = self.as_long(ctx, ("y", y.view()), x.len)?;
        let (site, group) = arbiter.id();
        if group != self.id() {
            return Err(misuse(ctx, "the arbiter was made for another group".into()));
        }
        let combine = &mut combining::<T, _>(operator);
        let (operator, growth) = (RawOperator::of(operator, combine), arbiter.growth());
        self.grows(ctx, &operator, growth)?;
        let memory = (x.place, y.place, x.len);
        let call = RawCall::combining(Collective::Reduce, root, operator, memory);
        // An empty vector has no messages, by which the root would learn which members have arrived.
        let is_nothing = call.what.size == 0 || self.len() == 1;
        if self.mode(ctx)? == Mode::Full || self.group.has_barriers() || is_nothing {
            let together = vec![0; self.len()];
            let (tree, _) = Pairing::of_times(growth, root, &together, |_, _| 1, |_| 1);
            // SAFETY: views' memory is their section's, borrowed during the call.
            unsafe { self.by_pairs(ctx, &tree, site, call)? };
            return Ok((self.me() == root).then_some(tree));
        }
        // SAFETY: as above.
        unsafe { self.grow(ctx, arbiter, call) }
    }

    /// Combines the `x` of all members into the `y` of a tree's root. The result has the same bits as that of
    /// [`reduce_as_they_come`](Self::reduce_as_they_come) with this tree. Every member passes the same tree, which only
    /// the root gets from that call.
    ///
    /// # Errors
    /// As [`reduce_as_they_come`](Self::reduce_as_they_come), and *misuse* for a tree of another number of members. So is
    /// a tree with pairs that are not neighbours, if the operator does not commute.
    #[track_caller]
    pub fn reduce_by_pairing<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        tree: &Pairing,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, ("y", y.view()), x.len)?;
        let combine = &mut combining::<T, _>(operator);
        let operator = RawOperator::of(operator, combine);
        if tree.members != self.len() {
            let text = format!("a tree of {} for a group of {} members", tree.members, self.len());
            return Err(misuse(ctx, text));
        }
        self.grows(ctx, &operator, tree.growth)?;
        let memory = (x.place, y.place, x.len);
        let call = RawCall::combining(Collective::Reduce, tree.root, operator, memory);
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe { self.by_pairs(ctx, tree, 0, call) }
    }

    #[track_caller]
    fn grows<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        operator: &RawOperator<'_>,
        growth: Growth,
    ) -> Result<()> {
        self.fits(ctx, operator.element)?;
        if !operator.commutes && growth != Growth::Neighbours {
            let text = "an operator that does not commute needs a tree of neighbours".into();
            return Err(misuse(ctx, text));
        }
        Ok(())
    }

    /// # Safety
    /// As [`carry_out`](Self::carry_out), of the target at every member.
    #[track_caller]
    unsafe fn by_pairs<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        tree: &Pairing,
        site: u64,
        call: RawCall<'_>,
    ) -> Result<()> {
        let v = Vector { bytes: call.what.size, element: call.what.element };
        let rounds = self.rounds(ctx)?;
        let pairs = tree.pairs.iter().copied().map(pair_word);
        let pattern = pairs.fold(1, mixed).max(1);
        let write = |s: &mut Schedule, m: Member| {
            reduce_pairs(s, m, tree.pairs.iter().copied(), v, rounds);
        };
        let call = call.by(number(tree.growth), [site, pattern], &write);
        // SAFETY: as this function's caller promises it; the schedule lies in the vectors.
        unsafe { self.carry_out(ctx, call) }
    }

    /// # Safety
    /// As [`by_pairs`](Self::by_pairs), for an operator.
    #[track_caller]
    unsafe fn grow<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        arbiter: &mut Arbiter<'s, L>,
        call: RawCall<'_>,
    ) -> Result<Option<Pairing>> {
        let RawCall { what, memory: Buffers { input: x, output: y }, combine, .. } = call;
        let Some(combine) = combine else { return Ok(None) };
        let (growth, (site, _)) = (arbiter.growth(), arbiter.id());
        let Signature { root, element, .. } = what;
        let v = Vector { bytes: what.size, element };
        let what = Signature { algorithm: number(growth), site, ..what };
        let digest = what.digest();
        let Collectives { group, shared, workspace, .. } = self;
        let (shared, schedule) = (&mut *shared.borrow_mut(), &mut workspace.borrow_mut().schedule);
        let member @ Member { me, members } = group.member();
        let part = whole(shared.cell, element);
        let mut raw = ctx.raw();
        let which = group.enter(&mut raw, stamp(digest, Mode::Expected));
        arbiter.enter(which);
        let (algorithm, mode) = (what.algorithm, Mode::Expected);
        let values: Option<&dyn CallValues> =
            Some(&Values { what: &what, algorithm, mode, members });
        let (mut input, mut nth, mut tree) = (x, 0, None);
        let done = loop {
            nth += 1;
            let answered = arbiter.next(&mut raw, (root, nth), (digest, v.bytes));
            let Answered { pair, pairs } = match answered {
                Ok(answered) => answered,
                Err(error) => break Err(error),
            };
            schedule.clear();
            reduce_pairs(schedule, member, [pair].into_iter(), v, Rounds::Own);
            let buffers = &Buffers { input, output: y };
            let mut call = Call {
                raw: &mut raw,
                which,
                values,
                group,
                shared,
                buffers,
                combine,
                part,
                lends: true,
            };
            // SAFETY: the caller's promise: what is combined lies in the target from the first time on.
            let run = |call: &mut Call<'_, '_, L>| unsafe { expected(call, schedule) };
            if let Err(error) = caught(&mut call, run) {
                break Err(error);
            }
            input = y;
            // The last pair of all is the root's.
            let is_last = pairs.len() + 1 == members;
            if pair[0] == me || is_last && pairs.last() == Some(&pair) {
                tree = Some(pairs);
                break Ok(());
            }
        };
        leave(&mut raw, done)?;
        if me != root {
            return Ok(None);
        }
        arbiter.is_done();
        Ok(tree.map(|pairs| Pairing { members, root, growth, pairs }))
    }
}
