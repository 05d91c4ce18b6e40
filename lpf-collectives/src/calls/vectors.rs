//! Collectives on slices, which return vectors. Each copies what it is given into registered memory of the collectives
//! and the result out of it; between the two, it is a call on areas.

use bytemuck::Pod;
use lpf_core::error::counted;
use lpf_core::{Cause, Context, Element, Error, Lpf, Pid, Result};

use super::combining;
use super::lens::total;
use super::raw::{RawCall, RawOperator};
use crate::collectives::Collectives;
use crate::kinds::Collective;
use crate::misuse::misuse;
use crate::operators::{At, MinAt, Operator};
use crate::shared::LINE;
use crate::signature::Signature;
use crate::staging::Part;

/// What a call works on, and the vectors for its result.
struct Staged<'a, T> {
    x: Part<T>,
    y: Part<T>,
    lens: &'a [usize],
    vectors: Vec<Vec<T>>,
}

/// Empty vectors with room for these lengths; nothing if memory is refused.
fn with_room<T>(lens: &[usize]) -> Option<Vec<Vec<T>>> {
    let mut vectors = Vec::new();
    vectors.try_reserve_exact(lens.len()).ok()?;
    for &len in lens {
        let mut vector = Vec::new();
        vector.try_reserve_exact(len).ok()?;
        vectors.push(vector);
    }
    Some(vectors)
}

/// A call that moves blocks, or vectors, of `len` elements of `T`.
fn moves<T>(kind: Collective, root: usize, len: usize) -> Signature {
    let element = size_of::<T>();
    Signature { root, ..Signature::new(kind, len.saturating_mul(element), element) }
}

/// A call that moves blocks of different lengths, for which no member has more than `most` elements.
fn moves_parts<T>(kind: Collective, root: usize, most: usize) -> Signature {
    Signature { has_counts: true, ..moves::<T>(kind, root, most) }
}

/// A call that combines blocks, or vectors, of `len` elements of `T`.
fn combines<T: Pod, O: Operator<T>>(
    kind: Collective,
    root: usize,
    operator: &O,
    len: usize,
) -> Signature {
    let (commutes, operator) = (operator.commutes(), RawOperator::name_of::<T, O>());
    Signature { commutes, operator, ..moves::<T>(kind, root, len) }
}

fn refused<L: Lpf>(ctx: &Context<'_, L>, process: Pid, bytes: usize) -> Error {
    let cause = Cause::OutOfMemory { what: "the vectors of a collective".into(), bytes };
    Error::mitigable(process, ctx.superstep(), cause)
}

impl<'s> Collectives<'s> {
    /// Copies `parts`, consecutively, to where a call reads its `x`, and makes room for a `y` and vectors of `lens`
    /// elements, for a call `next`. No member has more than `most` elements in `x` and `y`: all members pass the same
    /// number. If it is large, an allreduce finds out whether all members have the memory, so that all of them or none go on.
    #[track_caller]
    fn stage<'a, L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        parts: &[impl AsRef<[T]>],
        lens: &'a [usize],
        (most, next): (usize, &dyn Fn() -> Signature),
    ) -> Result<Staged<'a, T>> {
        let (element, apart) = (size_of::<T>(), LINE.max(align_of::<T>()));
        let x = parts.iter().map(|part| part.as_ref().len()).fold(0, usize::saturating_add);
        let y = total(lens);
        // More than there are addresses is refused as memory is.
        let front = x.saturating_mul(element).checked_next_multiple_of(apart).unwrap_or(usize::MAX);
        let bytes = front.saturating_add(y.saturating_mul(element));
        let grown = self.staging.borrow_mut().grow(ctx, bytes);
        let vectors = match grown {
            Ok(()) => with_room(lens),
            Err(error) if error.is_mitigable() => None,
            Err(error) => return Err(error),
        };
        let is_small =
            most.saturating_mul(element).saturating_add(apart) <= self.staging.borrow().least;
        let vectors = if is_small {
            vectors.ok_or_else(|| refused(ctx, ctx.pid(), bytes))?
        } else {
            self.at_all_or_none(ctx, vectors, bytes, &next())?
        };
        let mut staging = self.staging.borrow_mut();
        let staged = Staged { x: staging.part(0, x), y: staging.part(front, y), lens, vectors };
        staging.write(ctx, staged.x, parts);
        Ok(staged)
    }

    /// The results of a call.
    fn vectors<L: Lpf, T: Pod>(&self, ctx: &Context<'s, L>, staged: Staged<'_, T>) -> Vec<Vec<T>> {
        let Staged { y, lens, mut vectors, .. } = staged;
        self.staging.borrow().read(ctx, y, lens, &mut vectors);
        vectors
    }

    /// The only result of a call.
    fn vector<L: Lpf, T: Pod>(&self, ctx: &Context<'s, L>, staged: Staged<'_, T>) -> Vec<T> {
        self.vectors(ctx, staged).pop().unwrap_or_default()
    }

    /// What every member got from its system for call `next`: the same error at all members if one was refused its `bytes`.
    #[track_caller]
    fn at_all_or_none<L: Lpf, R>(
        &mut self,
        ctx: &mut Context<'s, L>,
        got: Option<R>,
        bytes: usize,
        next: &Signature,
    ) -> Result<R> {
        let lacks = if got.is_some() { usize::MAX } else { ctx.pid() };
        let (x, _) = self.value_views::<L, At<usize>>(ctx)?;
        let (place, value) = (x.place, x.place.data.cast::<At<usize>>());
        let combine = &mut combining::<At<usize>, _>(&MinAt);
        let operator = RawOperator::of::<At<usize>, _>(&MinAt, combine);
        let call = RawCall::combining(Collective::Allreduce, 0, operator, (place, place, 1));
        // SAFETY: the view is aligned to a cache line, registered, long enough, and this object's. The call writes it.
        let first = unsafe {
            value.write(At::new(lacks, bytes));
            self.carry_out_before(ctx, call, Some(next))?;
            value.read()
        };
        match got {
            Some(got) if first.value == usize::MAX => Ok(got),
            _ => Err(refused(ctx, first.value, first.position)),
        }
    }

    /// How many elements each part has: one for each member.
    #[track_caller]
    fn lens<L: Lpf, T>(
        &self,
        ctx: &Context<'s, L>,
        parts: &[impl AsRef<[T]>],
    ) -> Result<Vec<usize>> {
        if parts.len() != self.len() {
            let given = counted(parts.len() as u64, "part");
            let text =
                format!("{given} for a group of {}, which takes one for each member", self.len());
            return Err(misuse(ctx, text));
        }
        Ok(parts.iter().map(|part| part.as_ref().len()).collect())
    }

    /// The elements of all members, in their order.
    ///
    /// # Errors
    /// *Mitigable*, at all members, if memory is refused; *fatal* if members called different collectives, or the
    /// section failed.
    #[track_caller]
    pub fn allgather_value<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        value: T,
    ) -> Result<Vec<T>> {
        let members = [self.len()];
        let next = || moves::<T>(Collective::Allgather, 0, 1);
        let staged = self.stage(ctx, &[[value]], &members, (members[0] + 1, &next))?;
        self.allgather(ctx, staged.x, staged.y)?;
        Ok(self.vector(ctx, staged))
    }

    /// The root's `x`, at every member. Its length is known to the root only: the other members' `x` is not read. A
    /// broadcast of the length, and one of the elements.
    ///
    /// # Errors
    /// As [`allgather_value`](Self::allgather_value), and *misuse* for a root that is not a member.
    #[track_caller]
    pub fn broadcast_vec<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: &[T],
    ) -> Result<Vec<T>> {
        let len = self.broadcast_value(ctx, root, x.len())?;
        self.broadcast_known(ctx, root, x, len)
    }

    /// A vector whose length all members know.
    #[track_caller]
    fn broadcast_known<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: &[T],
        len: usize,
    ) -> Result<Vec<T>> {
        let lens = [len];
        let next = || moves::<T>(Collective::Broadcast, root, len);
        let staged = self.stage::<_, T>(ctx, &[[]; 0], &lens, (len, &next))?;
        if self.me() == root {
            self.staging.borrow_mut().write(ctx, staged.y, &[x]);
        }
        self.broadcast(ctx, root, staged.y)?;
        Ok(self.vector(ctx, staged))
    }

    /// The combined `x` of all members at the root, and an empty vector at the other members.
    ///
    /// # Errors
    /// As [`broadcast_vec`](Self::broadcast_vec), and *fatal* if the lengths differ.
    #[track_caller]
    pub fn reduce_vec<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        operator: &impl Operator<T>,
        x: &[T],
    ) -> Result<Vec<T>> {
        let lens = [if self.me() == self.root(ctx, root)? { x.len() } else { 0 }];
        let next = || combines(Collective::Reduce, root, operator, x.len());
        let staged = self.stage(ctx, &[x], &lens, (x.len().saturating_mul(2), &next))?;
        self.reduce(ctx, root, operator, staged.x, staged.y)?;
        Ok(self.vector(ctx, staged))
    }

    /// The combined `x` of all members, at every member.
    ///
    /// # Errors
    /// As [`allgather_value`](Self::allgather_value), and *fatal* if the lengths differ.
    #[track_caller]
    pub fn allreduce_vec<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: &[T],
    ) -> Result<Vec<T>> {
        let lens = [x.len()];
        let next = || combines(Collective::Allreduce, 0, operator, x.len());
        let staged = self.stage(ctx, &[x], &lens, (x.len().saturating_mul(2), &next))?;
        self.allreduce(ctx, operator, staged.x, staged.y)?;
        Ok(self.vector(ctx, staged))
    }

    /// Block i of the combined `x` of all members, at member i. A block is a p-th of `x`.
    ///
    /// # Errors
    /// As [`allreduce_vec`](Self::allreduce_vec), and *misuse* if the length is not a multiple of p.
    #[track_caller]
    pub fn reduce_scatter_vec<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: &[T],
    ) -> Result<Vec<T>> {
        let lens = [self.block(ctx, x.len())?];
        let next = || combines(Collective::ReduceScatter, 0, operator, lens[0]);
        let staged = self.stage(ctx, &[x], &lens, (x.len().saturating_mul(2), &next))?;
        self.reduce_scatter(ctx, operator, staged.x, staged.y)?;
        Ok(self.vector(ctx, staged))
    }

    /// The concatenated `x` of all members, in their order, at every member. The lengths may differ: an allgather of the
    /// lengths, and one of the elements.
    ///
    /// # Errors
    /// As [`allgather_value`](Self::allgather_value).
    #[track_caller]
    pub fn allgather_vec<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: &[T],
    ) -> Result<Vec<T>> {
        let counts = self.allgather_value(ctx, x.len())?;
        let lens = [total(&counts)];
        let most = lens[0].saturating_mul(2);
        let next = || moves_parts::<T>(Collective::Allgather, 0, most);
        let staged = self.stage(ctx, &[x], &lens, (most, &next))?;
        self.allgather_v(ctx, staged.x, &counts, staged.y)?;
        Ok(self.vector(ctx, staged))
    }

    /// The concatenated `x` of all members, in their order, at the root, and an empty vector at the other members. The
    /// lengths may differ: an allgather of the lengths, and a gather of the elements.
    ///
    /// # Errors
    /// As [`broadcast_vec`](Self::broadcast_vec).
    #[track_caller]
    pub fn gather_vec<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: &[T],
    ) -> Result<Vec<T>> {
        let root = self.root(ctx, root)?;
        let counts = self.allgather_value(ctx, x.len())?;
        let all = total(&counts);
        let lens = [if self.me() == root { all } else { 0 }];
        let most = all.saturating_mul(2);
        let next = || moves_parts::<T>(Collective::Gather, root, most);
        let staged = self.stage(ctx, &[x], &lens, (most, &next))?;
        self.gather_v(ctx, root, staged.x, &counts, staged.y)?;
        Ok(self.vector(ctx, staged))
    }

    /// Part i of the root's `parts`, at member i. The parts may have different lengths: a broadcast of the lengths, and
    /// a scatter of the elements. The other members' `parts` are not read.
    ///
    /// # Errors
    /// As [`broadcast_vec`](Self::broadcast_vec), and *misuse* at the root if it has not one part for each member.
    #[track_caller]
    pub fn scatter_vec<L: Lpf, T: Element, P: AsRef<[T]>>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        parts: &[P],
    ) -> Result<Vec<T>> {
        let parts = if self.me() == self.root(ctx, root)? { parts } else { &[] };
        let counts = if self.me() == root { self.lens(ctx, parts)? } else { Vec::new() };
        let counts = self.broadcast_known(ctx, root, &counts, self.len())?;
        let (all, lens) = (total(&counts), [counts[self.me()]]);
        let most = all.saturating_mul(2);
        let next = || moves_parts::<T>(Collective::Scatter, root, most);
        let staged = self.stage(ctx, parts, &lens, (most, &next))?;
        self.scatter_v(ctx, root, staged.x, &counts, staged.y)?;
        Ok(self.vector(ctx, staged))
    }

    /// Block j of member i's `x` becomes block i of member j's result. A block is a p-th of `x`. For blocks of different
    /// lengths: [`exchange`](Self::exchange).
    ///
    /// # Errors
    /// As [`reduce_scatter_vec`](Self::reduce_scatter_vec).
    #[track_caller]
    pub fn alltoall_vec<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: &[T],
    ) -> Result<Vec<T>> {
        let block = self.block(ctx, x.len())?;
        let lens = [x.len()];
        let next = || moves::<T>(Collective::Alltoall, 0, block);
        let staged = self.stage(ctx, &[x], &lens, (x.len().saturating_mul(2), &next))?;
        self.alltoall(ctx, staged.x, staged.y)?;
        Ok(self.vector(ctx, staged))
    }

    /// Sends `parts[j]` to member j, and returns the parts that arrive: part i is that of member i. The parts may have
    /// any lengths, which only their senders have to know.
    ///
    /// Cost, with h the most bytes that a member sends or receives: h g + l for the elements, and the copies of what is
    /// sent and received. Before that, an alltoall of one word per member exchanges the lengths. By an allreduce of two
    /// words, all members learn whether one of them was refused memory.
    ///
    /// ```
    /// # use lpf_collectives::Collectives;
    /// # lpf_pthreads::Config::new().procs(4).exec(4, lpf_core::Args::none(), |ctx, _args| {
    /// let mut all = Collectives::new(ctx)?;
    /// // To every member as many copies of the own number as its own number says.
    /// let parts: Vec<Vec<usize>> = (0..all.len()).map(|to| vec![all.me(); to]).collect();
    /// let received = all.exchange(ctx, &parts)?;
    /// assert_eq!(received[2], vec![2; all.me()]);
    /// # Ok(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`allgather_value`](Self::allgather_value), and *misuse* if there is not one part for each member.
    #[track_caller]
    pub fn exchange<L: Lpf, T: Element, P: AsRef<[T]>>(
        &mut self,
        ctx: &mut Context<'s, L>,
        parts: &[P],
    ) -> Result<Vec<Vec<T>>> {
        let sends = self.lens(ctx, parts)?;
        let receives = self.alltoall_vec(ctx, &sends)?;
        let next = || moves_parts::<T>(Collective::Alltoall, 0, usize::MAX);
        let staged = self.stage(ctx, parts, &receives, (usize::MAX, &next))?;
        self.alltoall_v(ctx, staged.x, &sends, staged.y, &receives)?;
        Ok(self.vectors(ctx, staged))
    }
}

#[cfg(test)]
mod tests {
    use lpf_core::{Args, Kind};

    use super::*;

    #[test]
    fn memory_refused_at_one_member_is_mitigable_and_the_same_at_all() {
        let program = |ctx: &mut Context<'_, _>, _args: Args<'_>| {
            let mut all = Collectives::new(ctx)?;
            for refused in 0..ctx.nprocs() {
                let got = (ctx.pid() != refused).then_some(());
                let bytes = 100 + ctx.pid();
                let next = moves::<u8>(Collective::Allgather, 0, 1);
                let error = all.at_all_or_none(ctx, got, bytes, &next);
                let error = error.expect_err("one was refused");
                assert_eq!((error.kind(), error.process()), (Kind::Mitigable, Some(refused)));
                let bytes = 100 + refused;
                let what = "the vectors of a collective".into();
                assert_eq!(*error.cause(), Cause::OutOfMemory { what, bytes });
                assert_eq!(all.allgather_vec(ctx, &[ctx.pid()])?, [0, 1, 2]);
            }
            Ok(())
        };
        lpf_pthreads::Config::new().procs(3).exec(3, Args::none(), program).unwrap();
    }
}
