//! Collectives that move blocks and combine nothing.

use bytemuck::Pod;
use lpf_core::error::counted;
use lpf_core::{Context, Lpf, Result};

use super::lens::{Lens, total};
use super::raw::RawCall;
use crate::collectives::Collectives;
use crate::kinds::Collective;
use crate::memory::{Source, Target};
use crate::misuse::misuse;
use crate::shared::{Place, VALUE};

impl<'s> Collectives<'s> {
    /// Moves elements between places that are as long as the call has them: of views, or of single elements.
    #[inline]
    #[track_caller]
    pub(super) fn moved<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (kind, root): (Collective, usize),
        places: (Place, Place),
        lens: Lens<'_>,
    ) -> Result<()> {
        let call = RawCall::moving(kind, root, places, lens, size_of::<T>());
        // SAFETY: a view's memory is its section's, registered, and borrowed during the call; a single element's is this
        // object's. The typed call has checked lengths, root and counts.
        unsafe { self.carry_out(ctx, call) }
    }

    /// The elements of blocks of these lengths. (Not a function that takes a closure: a closure forgets where its call
    /// is in the program.)
    #[track_caller]
    pub(super) fn total<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        counts: &[usize],
        element: usize,
    ) -> Result<usize> {
        if counts.len() != self.len() {
            let given = counted(counts.len() as u64, "count");
            let text =
                format!("{given} for a group of {}, which takes one for each member", self.len());
            return Err(misuse(ctx, text));
        }
        let total = total(counts);
        if total.saturating_mul(element) > isize::MAX as usize {
            let text = "the counts add up to more elements than there is memory for".into();
            return Err(misuse(ctx, text));
        }
        Ok(total)
    }

    /// The elements of the blocks that are sent, and of those that are received. A member sends itself what it receives from itself.
    #[track_caller]
    pub(super) fn both_totals<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        (sends, receives): (&[usize], &[usize]),
        element: usize,
    ) -> Result<(usize, usize)> {
        let both = (self.total(ctx, sends, element)?, self.total(ctx, receives, element)?);
        let me = self.me();
        if sends[me] != receives[me] {
            let text = format!(
                "the counts of member {me} differ for its own block: it sends {} and receives {}",
                sends[me], receives[me]
            );
            return Err(misuse(ctx, text));
        }
        Ok(both)
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
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, ("y", y.view()), x.len.saturating_mul(self.len()))?;
        let lens = Lens::Equal(x.len);
        self.moved::<_, T>(ctx, (Collective::Allgather, 0), (x.place, y.place), lens)
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
        let total = self.total(ctx, counts, size_of::<T>())?;
        let x = self.as_long(ctx, ("x", x.view()), counts[self.me()])?;
        let y = self.as_long(ctx, ("y", y.view()), total)?;
        let lens = Lens::Counts(counts);
        self.moved::<_, T>(ctx, (Collective::Allgather, 0), (x.place, y.place), lens)
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
        let (root, x) = (self.root(ctx, root)?, self.inside(ctx, x.view())?);
        let total = x.len.saturating_mul(self.len());
        let y =
            if self.me() == root { self.as_long(ctx, ("y", y.view()), total)? } else { y.view() };
        let lens = Lens::Equal(x.len);
        self.moved::<_, T>(ctx, (Collective::Gather, root), (x.place, y.place), lens)
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
        let (root, total) = (self.root(ctx, root)?, self.total(ctx, counts, size_of::<T>())?);
        let x = self.as_long(ctx, ("x", x.view()), counts[self.me()])?;
        let y =
            if self.me() == root { self.as_long(ctx, ("y", y.view()), total)? } else { y.view() };
        let lens = Lens::Counts(counts);
        self.moved::<_, T>(ctx, (Collective::Gather, root), (x.place, y.place), lens)
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
        let (root, y) = (self.root(ctx, root)?, self.inside(ctx, y.view())?);
        let total = y.len.saturating_mul(self.len());
        let x =
            if self.me() == root { self.as_long(ctx, ("x", x.view()), total)? } else { x.view() };
        let lens = Lens::Equal(y.len);
        self.moved::<_, T>(ctx, (Collective::Scatter, root), (x.place, y.place), lens)
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
        let (root, total) = (self.root(ctx, root)?, self.total(ctx, counts, size_of::<T>())?);
        let y = self.as_long(ctx, ("y", y.view()), counts[self.me()])?;
        let x =
            if self.me() == root { self.as_long(ctx, ("x", x.view()), total)? } else { x.view() };
        let lens = Lens::Counts(counts);
        self.moved::<_, T>(ctx, (Collective::Scatter, root), (x.place, y.place), lens)
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
        let x = self.inside(ctx, x.view())?;
        let y = self.as_long(ctx, ("y", y.view()), x.len)?;
        let block = self.block(ctx, x.len)?;
        let lens = Lens::Equal(block);
        self.moved::<_, T>(ctx, (Collective::Alltoall, 0), (x.place, y.place), lens)
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
        let (sent, received) = self.both_totals(ctx, (sends, receives), size_of::<T>())?;
        let x = self.as_long(ctx, ("x", x.view()), sent)?;
        let y = self.as_long(ctx, ("y", y.view()), received)?;
        let lens = Lens::Exchange { sends, receives };
        self.moved::<_, T>(ctx, (Collective::Alltoall, 0), (x.place, y.place), lens)
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
        let root = self.root(ctx, root)?;
        let (place, _) = self.value_places::<L, T>(ctx)?;
        // SAFETY: the place is aligned to a cache line, long enough, and this object's.
        unsafe {
            place.data.cast::<T>().write(value);
            let lens = Lens::Equal(1);
            self.moved::<_, T>(ctx, (Collective::Broadcast, root), (place, place), lens)?;
            Ok(place.data.cast::<T>().read())
        }
    }

    /// Where a single element is worked on, and where a result is that needs a place of its own.
    #[track_caller]
    pub(super) fn value_places<L: Lpf, T: Pod>(
        &self,
        ctx: &Context<'s, L>,
    ) -> Result<(Place, Place)> {
        if size_of::<T>() > VALUE {
            let bytes = size_of::<T>();
            let text = format!(
                "an element of {bytes} bytes where {VALUE} are the most; put it into an area"
            );
            return Err(misuse(ctx, text));
        }
        Ok(self.shared.borrow().values())
    }
}
