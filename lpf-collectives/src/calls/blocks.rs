//! Collectives that move blocks and combine nothing.

use bytemuck::Pod;
use lpf_core::error::counted;
use lpf_core::{Context, Lpf, Result};

use super::lens::{Lens, total};
use super::raw::RawCall;
use crate::collectives::Collectives;
use crate::kinds::Collective;
use crate::memory::{Source, Target, View};
use crate::misuse::misuse;
use crate::shared::VALUE;

impl<'s> Collectives<'s> {
    /// Moves elements of `x` to `y`.
    #[inline(always)]
    #[track_caller]
    pub(super) fn moved<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (kind, root): (Collective, usize),
        [x, y]: [View; 2],
        lens: Lens<'_>,
    ) -> Result<()> {
        self.check(ctx, (kind, root), [x, y], lens, size_of::<T>())?;
        let call = RawCall::moving(kind, root, (x.place, y.place), lens, size_of::<T>());
        // SAFETY: a view's memory is its section's, registered, and borrowed during the call, or this object's. The root is a
        // member, the counts are one for each member, and the views have the elements that such a call needs.
        unsafe { self.carry_out(ctx, call) }
    }

    /// There is a count for each member, and there can be memory for all elements.
    #[track_caller]
    fn check_counts<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        counts: &[usize],
        element: usize,
    ) -> Result<()> {
        if counts.len() != self.len() {
            let given = counted(counts.len() as u64, "count");
            let text =
                format!("{given} for a group of {}, which takes one for each member", self.len());
            return Err(misuse(ctx, text));
        }
        if total(counts).saturating_mul(element) > isize::MAX as usize {
            let text = "the counts add up to more elements than there is memory for".into();
            return Err(misuse(ctx, text));
        }
        Ok(())
    }

    /// The counts of a call can be those of this group. A member sends itself what it receives from itself.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check_lens<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        lens: Lens<'_>,
        element: usize,
    ) -> Result<()> {
        let (sends, receives) = match lens {
            Lens::Equal(_) => return Ok(()),
            Lens::Counts(counts) => return self.check_counts(ctx, counts, element),
            Lens::Exchange { sends, receives } => (sends, receives),
        };
        self.check_counts(ctx, sends, element)?;
        self.check_counts(ctx, receives, element)?;
        let me = self.me();
        if sends[me] != receives[me] {
            let text = format!(
                "the counts of member {me} differ for its own block: it sends {} and receives {}",
                sends[me], receives[me]
            );
            return Err(misuse(ctx, text));
        }
        Ok(())
    }

    /// Concatenates the `x` of all members, in their order, into the `y` of every member.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if `y` is not p times as long as `x`.
    #[track_caller]
    pub fn allgather<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (x, y) = (x.view(), y.view());
        self.moved::<_, T>(ctx, (Collective::Allgather, 0), [x, y], Lens::Equal(x.len))
    }

    /// As [`allgather`](Self::allgather), but member i contributes `counts[i]` elements. The counts are the same at
    /// every member.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if `x` is not as long as its count, or `y` as all.
    #[track_caller]
    pub fn allgather_v<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: impl Source<'s, Element = T>,
        counts: &[usize],
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let views = [x.view(), y.view()];
        self.moved::<_, T>(ctx, (Collective::Allgather, 0), views, Lens::Counts(counts))
    }

    /// Concatenates the `x` of all members, in their order, into the root's `y`. The others' `y` is not touched.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if the root's `y` is not p times as long as `x`.
    #[track_caller]
    pub fn gather<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (x, y) = (x.view(), y.view());
        self.moved::<_, T>(ctx, (Collective::Gather, root), [x, y], Lens::Equal(x.len))
    }

    /// As [`gather`](Self::gather), but member i contributes `counts[i]` elements. The counts are the same at every
    /// member.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if `x` is not as long as its count, or the root's `y`
    /// as all.
    #[track_caller]
    pub fn gather_v<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Source<'s, Element = T>,
        counts: &[usize],
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let views = [x.view(), y.view()];
        self.moved::<_, T>(ctx, (Collective::Gather, root), views, Lens::Counts(counts))
    }

    /// Block i of the root's `x`, a p-th of it, becomes member i's `y`. The others' `x` is not read.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if the root's `x` is not p times as long as `y`.
    #[track_caller]
    pub fn scatter<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        // Its length is that of the call, so it is checked first.
        let (x, y) = (x.view(), self.inside(ctx, y.view())?);
        self.moved::<_, T>(ctx, (Collective::Scatter, root), [x, y], Lens::Equal(y.len))
    }

    /// As [`scatter`](Self::scatter), but member i gets `counts[i]` elements. The counts are the same at every member.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if `y` is not as long as its count, or the root's `x`
    /// as all.
    #[track_caller]
    pub fn scatter_v<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Source<'s, Element = T>,
        counts: &[usize],
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let views = [x.view(), y.view()];
        self.moved::<_, T>(ctx, (Collective::Scatter, root), views, Lens::Counts(counts))
    }

    /// Block j of member i's `x` becomes block i of member j's `y`. A block is a p-th of either.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if `y` is not as long as `x`, or if that is not a
    /// multiple of p.
    #[track_caller]
    pub fn alltoall<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (x, y) = (x.view(), y.view());
        let lens = Lens::Equal(self.block(ctx, x.len)?);
        self.moved::<_, T>(ctx, (Collective::Alltoall, 0), [x, y], lens)
    }

    /// The elements of a block, a p-th of a vector of `len`.
    #[track_caller]
    pub(super) fn block<L: Lpf>(&self, ctx: &Context<'s, L>, len: usize) -> Result<usize> {
        if !len.is_multiple_of(self.len()) {
            let next = len.next_multiple_of(self.len());
            let text = format!(
                "{len} elements cannot be divided evenly among {} members; the next length that can is {next}",
                self.len()
            );
            return Err(misuse(ctx, text));
        }
        Ok(len / self.len())
    }

    /// As [`alltoall`](Self::alltoall), but `sends[j]` elements go to member j, and `receives[j]` elements arrive from
    /// it. Blocks are consecutive, in the members' order.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if `x` or `y` are not as long as their counts; *fatal*
    /// where a member sends another number than its receiver awaits.
    #[track_caller]
    pub fn alltoall_v<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        x: impl Source<'s, Element = T>,
        sends: &[usize],
        y: impl Target<'s, Element = T>,
        receives: &[usize],
    ) -> Result<()> {
        let lens = Lens::Exchange { sends, receives };
        self.moved::<_, T>(ctx, (Collective::Alltoall, 0), [x.view(), y.view()], lens)
    }

    /// Copies one element of the root to every member.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* for an element of more than 4096 bytes.
    #[track_caller]
    pub fn broadcast_value<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        value: T,
    ) -> Result<T> {
        let (x, _) = self.value_views::<L, T>(ctx)?;
        // SAFETY: the view is aligned to a cache line, long enough, and this object's.
        unsafe {
            x.place.data.cast::<T>().write(value);
            self.moved::<_, T>(ctx, (Collective::Broadcast, root), [x, x], Lens::Equal(1))?;
            Ok(x.place.data.cast::<T>().read())
        }
    }

    /// Where a single element is worked on, and where a result is that needs a place of its own.
    #[track_caller]
    pub(super) fn value_views<L: Lpf, T: Pod>(&self, ctx: &Context<'s, L>) -> Result<(View, View)> {
        if size_of::<T>() > VALUE {
            let bytes = size_of::<T>();
            let text = format!(
                "an element of {bytes} bytes where {VALUE} are the most; put it into an area"
            );
            return Err(misuse(ctx, text));
        }
        let (x, y) = self.shared.borrow().values();
        let view = |place| View { place, len: 1, active_from: 0, outside: None };
        Ok((view(x), view(y)))
    }
}
