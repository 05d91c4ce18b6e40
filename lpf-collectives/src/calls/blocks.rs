//! Collectives that move blocks and combine nothing.

use std::cell::RefCell;
use std::rc::Rc;

use bytemuck::Pod;
use lpf_core::error::counted;
use lpf_core::{Context, Lpf, Result};

use super::{Plan, nothing};
use crate::algorithms::*;
use crate::blocks::Blocks;
use crate::collectives::Collectives;
use crate::kinds::Collective;
use crate::memory::{Source, Target};
use crate::misuse::misuse;
use crate::run::Buffers;
use crate::scratch::Scratch;
use crate::shared::{Place, Shared, VALUE};
use crate::signature::Signature;
use crate::ways::*;

/// Blocks one behind the other, in elements.
#[derive(Clone, Copy)]
pub(super) enum Layout<'a> {
    /// Of one length.
    Equal(usize),
    /// Where each ends.
    Any(&'a [usize]),
}

/// Which way blocks go.
#[derive(Clone, Copy)]
pub(super) enum Rooted {
    /// To the root.
    Gather,
    /// From the root.
    Scatter,
}

impl Layout<'_> {
    /// The longest block.
    fn longest(&self) -> usize {
        match *self {
            Layout::Equal(len) => len,
            Layout::Any(ends) => {
                let starts = std::iter::once(&0).chain(ends);
                ends.iter().zip(starts).map(|(end, start)| end - start).max().unwrap_or(0)
            }
        }
    }

    /// Of every block the elements from `first` on, at most `len`.
    fn piece(&self, element: usize, first: usize, len: usize) -> Blocks<'_> {
        match *self {
            Layout::Equal(all) => {
                let (first, bytes) = (first * element, len * element);
                Blocks::Equal { first, stride: all * element, bytes }
            }
            Layout::Any(ends) => Blocks::Any { ends, element, first, most: len },
        }
    }

    fn total(&self, members: usize) -> usize {
        match *self {
            Layout::Equal(len) => members * len,
            Layout::Any(ends) => ends.last().copied().unwrap_or(0),
        }
    }

    /// A call on such blocks.
    fn what(&self, kind: Collective, way: usize, element: usize) -> Signature {
        match *self {
            Layout::Equal(len) => Signature::new(kind, way, len * element, element),
            Layout::Any(ends) => {
                let mix = |hash: u64, &end: &usize| crate::hash::mixed(hash, end as u64);
                let hash = ends.iter().fold(1, mix) as usize;
                Signature { has_counts: true, ..Signature::new(kind, way, hash, element) }
            }
        }
    }
}

/// Where the blocks of a call end, in a vector that goes back to the collectives for later calls.
pub(super) struct Ends {
    ends: Vec<usize>,
    shared: Rc<RefCell<Shared>>,
}

impl Ends {
    pub(super) fn layout(&self) -> Layout<'_> {
        Layout::Any(&self.ends)
    }

    /// The elements of all blocks.
    fn total(&self) -> usize {
        self.layout().total(self.ends.len())
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        if let Ok(mut shared) = self.shared.try_borrow_mut() {
            shared.ends.push(std::mem::take(&mut self.ends));
        }
    }
}

impl<'s> Collectives<'s> {
    /// Where blocks of these many elements end. (Not a function that takes a closure: a closure forgets where its call
    /// is in the program.)
    #[track_caller]
    pub(super) fn ends<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        counts: &[usize],
        element: usize,
    ) -> Result<Ends> {
        if counts.len() != self.len() {
            let given = counted(counts.len() as u64, "count");
            let text =
                format!("{given} for a group of {}, which takes one for each member", self.len());
            return Err(misuse(ctx, text));
        }
        let mut ends = self.shared.borrow_mut().ends.pop().unwrap_or_default();
        ends.clear();
        ends.extend(counts.iter().scan(0usize, |sum, &count| {
            *sum = sum.saturating_add(count);
            Some(*sum)
        }));
        let ends = Ends { ends, shared: self.shared.clone() };
        if ends.total().saturating_mul(element) > isize::MAX as usize {
            let text = "the counts add up to more elements than there is memory for".into();
            return Err(misuse(ctx, text));
        }
        Ok(ends)
    }

    /// Where the blocks that leave end, and those that come. A member sends itself what it receives from itself.
    #[track_caller]
    pub(super) fn both_ends<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        (sends, receives): (&[usize], &[usize]),
        element: usize,
    ) -> Result<(Ends, Ends)> {
        let both = (self.ends(ctx, sends, element)?, self.ends(ctx, receives, element)?);
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
        let y = self.as_long(ctx, y.view(), x.len.saturating_mul(self.len()))?;
        let layout = Layout::Equal(x.len);
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe { self.allgather_places(ctx, (x.place, y.place), layout, size_of::<T>()) }
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
        let ends = self.ends(ctx, counts, size_of::<T>())?;
        let x = self.as_long(ctx, x.view(), counts[self.me()])?;
        let y = self.as_long(ctx, y.view(), ends.total())?;
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe { self.allgather_places(ctx, (x.place, y.place), ends.layout(), size_of::<T>()) }
    }

    /// # Safety
    /// The places are registered memory of this process, as long as the blocks, which nobody else touches
    /// until it returns.
    #[track_caller]
    pub(super) unsafe fn allgather_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y): (Place, Place),
        layout: Layout<'_>,
        element: usize,
    ) -> Result<()> {
        let v = Vector { bytes: layout.total(self.len()) * element, element };
        let way = self.preferences.allgather.unwrap_or_else(|| {
            self.cheapest(ctx, (Collective::Allgather, v, true), Allgather::ALL, |way| {
                Some(way.supersteps(self.len(), v))
            })
        });
        let what = layout.what(Collective::Allgather, way as usize, element);
        let len = layout.longest();
        let own = layout.piece(element, 0, len).of(self.me());
        let plan = Plan { what, len, scratch: way.scratch(self.len()) };
        // SAFETY: the caller's promise; the own block is no other's.
        unsafe {
            std::ptr::copy(x.data.cast_const(), y.data.add(own.start), own.bytes);
            let buffers = |_, _| Buffers { input: x, output: y };
            self.carry_out(ctx, plan, &mut nothing(), buffers, |s, m, first, len| {
                let blocks = layout.piece(element, first, len);
                by_way::allgather(way, s, m, blocks);
            })
        }
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
        let y = if self.me() == root { self.as_long(ctx, y.view(), total)? } else { y.view() };
        let layout = Layout::Equal(x.len);
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe {
            self.rooted_places(
                ctx,
                (root, Rooted::Gather),
                (x.place, y.place),
                layout,
                size_of::<T>(),
            )
        }
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
        let (root, ends) = (self.root(ctx, root)?, self.ends(ctx, counts, size_of::<T>())?);
        let x = self.as_long(ctx, x.view(), counts[self.me()])?;
        let y =
            if self.me() == root { self.as_long(ctx, y.view(), ends.total())? } else { y.view() };
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe {
            self.rooted_places(
                ctx,
                (root, Rooted::Gather),
                (x.place, y.place),
                ends.layout(),
                size_of::<T>(),
            )
        }
    }

    /// # Safety
    /// The places are registered memory of this process, as long as the blocks, which nobody else touches
    /// until it returns.
    #[track_caller]
    pub(super) unsafe fn rooted_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (root, way): (usize, Rooted),
        (x, y): (Place, Place),
        layout: Layout<'_>,
        element: usize,
    ) -> Result<()> {
        let (kind, preferred) = match way {
            Rooted::Gather => (Collective::Gather, self.preferences.gather),
            Rooted::Scatter => (Collective::Scatter, self.preferences.scatter),
        };
        let by = self.gather_way(ctx, preferred, layout, element);
        let what = Signature { root, ..layout.what(kind, by as usize, element) };
        let plan = Plan { what, len: layout.longest(), scratch: by.scratch(self.len()) };
        // SAFETY: the caller's promise; pieces lie in the blocks.
        unsafe {
            let buffers = |m, first| {
                let own = skipped(layout, m, first) * element;
                match way {
                    Rooted::Gather => Buffers { input: x.from(own), output: y },
                    Rooted::Scatter => Buffers { input: x, output: y.from(own) },
                }
            };
            self.carry_out(ctx, plan, &mut nothing(), buffers, |s, m, first, len| {
                let blocks = layout.piece(element, first, len);
                match way {
                    Rooted::Gather => by_way::gather(by, s, m, root, blocks),
                    Rooted::Scatter => by_way::scatter(by, s, m, root, blocks),
                }
            })
        }
    }

    /// The tree is for blocks of one length.
    #[track_caller]
    fn gather_way<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        preferred: Option<Gather>,
        layout: Layout<'_>,
        element: usize,
    ) -> Gather {
        if matches!(layout, Layout::Any(_)) {
            return Gather::Direct;
        }
        let v = Vector { bytes: layout.total(self.len()) * element, element };
        preferred.unwrap_or_else(|| {
            self.cheapest(ctx, (Collective::Gather, v, true), Gather::ALL, |way| {
                Some(way.supersteps(self.len(), v))
            })
        })
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
        let x = if self.me() == root { self.as_long(ctx, x.view(), total)? } else { x.view() };
        let layout = Layout::Equal(y.len);
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe {
            self.rooted_places(
                ctx,
                (root, Rooted::Scatter),
                (x.place, y.place),
                layout,
                size_of::<T>(),
            )
        }
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
        let (root, ends) = (self.root(ctx, root)?, self.ends(ctx, counts, size_of::<T>())?);
        let y = self.as_long(ctx, y.view(), counts[self.me()])?;
        let x =
            if self.me() == root { self.as_long(ctx, x.view(), ends.total())? } else { x.view() };
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe {
            self.rooted_places(
                ctx,
                (root, Rooted::Scatter),
                (x.place, y.place),
                ends.layout(),
                size_of::<T>(),
            )
        }
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
        let y = self.as_long(ctx, y.view(), x.len)?;
        let block = self.block(ctx, x.len)?;
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe { self.alltoall_places(ctx, (x.place, y.place), block, size_of::<T>()) }
    }

    /// # Safety
    /// As [`allgather_places`](Self::allgather_places).
    #[track_caller]
    pub(super) unsafe fn alltoall_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y): (Place, Place),
        block: usize,
        element: usize,
    ) -> Result<()> {
        let layout = Layout::Equal(block);
        let v = Vector { bytes: block * element * self.len(), element };
        let way = self.preferences.alltoall.unwrap_or_else(|| {
            self.cheapest(ctx, (Collective::Alltoall, v, true), Alltoall::ALL, |way| {
                Some(way.supersteps(self.len(), v))
            })
        });
        let what = layout.what(Collective::Alltoall, way as usize, element);
        let plan = Plan { what, len: block, scratch: way.scratch(self.len()) };
        // SAFETY: the caller's promise; pieces lie in the blocks.
        unsafe {
            let buffers = |_, _| Buffers { input: x, output: y };
            self.carry_out(ctx, plan, &mut nothing(), buffers, |s, m, first, len| {
                let blocks = layout.piece(element, first, len);
                by_way::alltoall(way, s, m, blocks);
            })
        }
    }

    /// The elements of a block, a p-th of a vector of `len`.
    #[track_caller]
    pub(super) fn block<L: Lpf>(&self, ctx: &Context<'s, L>, len: usize) -> Result<usize> {
        if !len.is_multiple_of(self.len()) {
            let text = format!(
                "{} elements cannot be divided evenly among {} members; use the form with counts",
                len,
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
        let (leaves, comes) = self.both_ends(ctx, (sends, receives), size_of::<T>())?;
        let x = self.as_long(ctx, x.view(), leaves.total())?;
        let y = self.as_long(ctx, y.view(), comes.total())?;
        let layouts = (leaves.layout(), comes.layout());
        // SAFETY: views' memory is their section's, borrowed during the call.
        unsafe { self.uneven_places(ctx, (x.place, y.place), layouts, size_of::<T>()) }
    }

    /// # Safety
    /// As [`allgather_places`](Self::allgather_places).
    #[track_caller]
    pub(super) unsafe fn uneven_places<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (x, y): (Place, Place),
        (leaves, comes): (Layout<'_>, Layout<'_>),
        element: usize,
    ) -> Result<()> {
        // No member knows the counts of all, so no round is joined by all.
        let scratch = Scratch { unknown: true, ..Scratch::default() };
        let what = Signature::new(Collective::Alltoall, Alltoall::ALL.len(), 0, element);
        let what = Signature { has_counts: true, ..what };
        let longest = leaves.longest().max(comes.longest());
        let plan = Plan { what, len: 0, scratch };
        // SAFETY: the caller's promise.
        unsafe {
            let buffers = |_, _| Buffers { input: x, output: y };
            self.carry_out(ctx, plan, &mut nothing(), buffers, |s, m, _, _| {
                let leaves = leaves.piece(element, 0, longest);
                alltoall_direct(s, m, leaves, comes.piece(element, 0, longest));
            })
        }
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
            self.broadcast_place(ctx, root, place, (1, size_of::<T>()))?;
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

/// Elements of a member's own block before a piece, where it has no more than others.
fn skipped(layout: Layout<'_>, m: Member, first: usize) -> usize {
    match layout {
        Layout::Equal(_) => first,
        Layout::Any(ends) => {
            let start = m.me.checked_sub(1).map_or(0, |before| ends[before]);
            first.min(ends[m.me] - start)
        }
    }
}
