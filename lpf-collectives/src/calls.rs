//! The collectives, typed.

mod algorithm;
mod as_they_come;
mod blocks;
mod by_arrival;
mod carry_out;
mod lens;
mod pattern;
mod raw;
mod vectors;

pub use raw::{RawCall, RawOperator};

use bytemuck::Pod;
use lpf_core::error::counted;
use lpf_core::{Cause, Context, Element, Error, Lpf, Result, Slot};

use crate::calls::lens::Lens;
use crate::collectives::Collectives;
use crate::kinds::Collective;
use crate::memory::{Source, Target, View};
use crate::misuse::{misuse, refused};
use crate::operators::{Operator, on_slices};
use crate::preferences::Mode;

#[cold]
#[track_caller]
fn inactive<L: Lpf>(ctx: &Context<'_, L>, slot: Slot) -> Error {
    let slot = slot.to_string();
    refused(ctx, Cause::InactiveSlot { slot })
}

/// (Of numbers: a view that is passed through memory stays there, and is slower to read.)
#[cold]
#[track_caller]
fn outside<L: Lpf>(ctx: &Context<'_, L>, start: usize, end: usize, len: usize) -> Error {
    let backwards = if end < start { ", which end before they begin" } else { "" };
    let text = format!("elements {start}..{end} were asked for of an area of {len}{backwards}");
    misuse(ctx, text)
}

/// That the vector of this name does not have the length that the call needs.
#[cold]
fn other_length(name: &str, has: usize, needs: usize) -> String {
    let has = counted(has as u64, "element");
    let needs = match needs {
        usize::MAX => "more than there is memory".into(),
        needs => format!("exactly {needs}"),
    };
    format!("{name} has {has} where this call needs {needs}")
}

/// An operator for the executor.
fn combining<T: Pod, O: Operator<T>>(
    operator: &O,
) -> impl FnMut(*const u8, *const u8, *mut u8, usize) {
    // SAFETY: the executor hands out whole elements of checked places and of messages.
    move |left, right, into, bytes| unsafe { on_slices::<T, O>(operator, left, right, into, bytes) }
}

impl<'s> Collectives<'s> {
    /// A view whose memory can be used. (Always inlined: to return a view through memory takes as long as a tenth of a short
    /// collective.)
    #[inline(always)]
    #[track_caller]
    fn inside<L: Lpf>(&self, ctx: &Context<'s, L>, view: View) -> Result<View> {
        match view.outside {
            None if view.active_from > ctx.superstep() => Err(inactive(ctx, view.place.slot)),
            None => Ok(view),
            Some((start, end, len)) => Err(outside(ctx, start, end, len)),
        }
    }

    #[inline(always)]
    #[track_caller]
    fn as_long<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        (name, view): (&str, View),
        len: usize,
    ) -> Result<View> {
        let view = self.inside(ctx, view)?;
        if view.len != len {
            return Err(misuse(ctx, other_length(name, view.len, len)));
        }
        Ok(view)
    }

    #[inline]
    #[track_caller]
    fn root<L: Lpf>(&self, ctx: &Context<'s, L>, root: usize) -> Result<usize> {
        if root >= self.len() {
            let text = format!(
                "member {root} was named as the root of a group of {}, whose last is {}",
                self.len(),
                self.len() - 1
            );
            return Err(misuse(ctx, text));
        }
        Ok(root)
    }

    #[cold]
    #[track_caller]
    fn no_room<L: Lpf>(&self, ctx: &Context<'s, L>, element: usize) -> Error {
        let text = format!(
            "elements of {element} bytes do not fit what the collectives have for them; see Settings::scratch_bytes"
        );
        misuse(ctx, text)
    }

    /// How this call's rounds end.
    #[inline]
    #[track_caller]
    fn mode<L: Lpf>(&self, ctx: &Context<'s, L>) -> Result<Mode> {
        match (self.preferences.mode, self.strict) {
            (None | Some(Mode::Expected), false) => Ok(Mode::Expected),
            (mode, _) => self.slow_mode(ctx, mode),
        }
    }

    #[track_caller]
    fn slow_mode<L: Lpf>(&self, ctx: &Context<'s, L>, mode: Option<Mode>) -> Result<Mode> {
        let is_all = self.len() == ctx.nprocs();
        if mode == Some(Mode::Full) && !is_all {
            let text = "full supersteps need all processes as members".into();
            return Err(misuse(ctx, text));
        }
        // In strict mode a part of the context has barriers of its own.
        Ok(if is_all { Mode::Full } else { Mode::Expected })
    }

    #[inline]
    #[track_caller]
    fn fits<L: Lpf>(&self, ctx: &Context<'s, L>, element: usize) -> Result<()> {
        let cell = self.shared.borrow().cell;
        if element > cell {
            let text = format!(
                "elements of {element} bytes do not fit the collectives' cells of {cell}; see Settings::cell_bytes"
            );
            return Err(misuse(ctx, text));
        }
        Ok(())
    }

    /// The root is a member, the counts are those of this group, and the views have the elements that the call needs.
    #[inline(always)]
    #[track_caller]
    fn check<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        (kind, root): (Collective, usize),
        [x, y]: [View; 2],
        lens: Lens<'_>,
        element: usize,
    ) -> Result<()> {
        self.root(ctx, root)?;
        self.check_lens(ctx, lens, element)?;
        let [of_x, of_y] = lens.needs((kind, root), (self.me(), self.len()));
        if let Some(len) = of_x {
            self.as_long(ctx, ("x", x), len)?;
        }
        if let Some(len) = of_y {
            self.as_long(ctx, ("y", y), len)?;
        }
        Ok(())
    }

    /// Combines vectors, or blocks, of `len` elements.
    #[inline(always)]
    #[track_caller]
    fn combined<L: Lpf, T: Pod, O: Operator<T>>(
        &mut self,
        ctx: &mut Context<'s, L>,
        (kind, root): (Collective, usize),
        operator: &O,
        ([x, y], len): ([View; 2], usize),
    ) -> Result<()> {
        self.check(ctx, (kind, root), [x, y], Lens::Equal(len), size_of::<T>())?;
        let combine = &mut combining::<T, _>(operator);
        let operator = RawOperator::of(operator, combine);
        let call = RawCall::combining(kind, root, operator, (x.place, y.place, len));
        // SAFETY: a view's memory is its section's, registered, and borrowed during the call, or this object's; it is aligned
        // for the operator. The root is a member, and the views have the elements that such a call needs.
        unsafe { self.carry_out(ctx, call) }
    }

    /// Copies the root's `x` to the `x` of every member.
    ///
    /// # Errors
    /// *Misuse* for a root that is not a member or a range outside its area; *fatal* if members called
    /// different collectives, or the section failed.
    #[track_caller]
    pub fn broadcast<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        x: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = x.view();
        self.moved::<_, T>(ctx, (Collective::Broadcast, root), [x, x], Lens::Equal(x.len))
    }

    /// Combines the `x` of all members into the root's `y`. The others' `y` is not touched.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), and *misuse* if `y` is not as long as `x`, or elements are
    /// longer than a cell.
    #[track_caller]
    pub fn reduce<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        root: usize,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (x, y) = (x.view(), y.view());
        self.combined(ctx, (Collective::Reduce, root), operator, ([x, y], x.len))
    }

    /// Combines the `x` of all members into the `y` of every member.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn allreduce<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (x, y) = (x.view(), y.view());
        self.combined(ctx, (Collective::Allreduce, 0), operator, ([x, y], x.len))
    }

    /// Combines the `x` of all members into the `x` of every member.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn allreduce_in_place<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let x = x.view();
        self.combined(ctx, (Collective::Allreduce, 0), operator, ([x, x], x.len))
    }

    /// Combines one element of every member; every member gets the result.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce), and *misuse* for an element of more than 4096 bytes.
    #[track_caller]
    pub fn allreduce_value<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        value: T,
    ) -> Result<T> {
        let (x, _) = self.value_views::<L, T>(ctx)?;
        // SAFETY: the view is aligned to a cache line, long enough, and this object's.
        unsafe { x.place.data.cast::<T>().write(value) };
        self.combined(ctx, (Collective::Allreduce, 0), operator, ([x, x], 1))?;
        // SAFETY: as above; the call has written it.
        Ok(unsafe { x.place.data.cast::<T>().read() })
    }

    /// Combines the `x` of all members. Block i of the result, a p-th of it, becomes member i's `y`.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce), and *misuse* if `x` is not p times as long as `y`.
    #[track_caller]
    pub fn reduce_scatter<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (x, y) = (x.view(), y.view());
        let block = self.block(ctx, x.len)?;
        self.combined(ctx, (Collective::ReduceScatter, 0), operator, ([x, y], block))
    }

    /// Combines the `x` of members 0 to i into member i's `y`.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn scan<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (x, y) = (x.view(), y.view());
        self.scan_typed(ctx, operator, ([x, y], x.len), false)
    }

    /// Combines the `x` of members 0 to i-1 into member i's `y`. Member 0 gets the operator's identity.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn exscan<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        x: impl Source<'s, Element = T>,
        y: impl Target<'s, Element = T>,
    ) -> Result<()> {
        let (x, y) = (x.view(), y.view());
        self.scan_typed(ctx, operator, ([x, y], x.len), true)
    }

    /// Combines the elements of members 0 to i; member i gets the result.
    ///
    /// # Errors
    /// As [`allreduce_value`](Self::allreduce_value).
    #[track_caller]
    pub fn scan_value<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        value: T,
    ) -> Result<T> {
        self.scan_one(ctx, operator, value, false)
    }

    /// Combines the elements of members 0 to i-1; member i gets the result, and member 0 the operator's identity. With a
    /// pass over each member's own elements before and after it, this is a scan of a distributed vector.
    ///
    /// # Errors
    /// As [`allreduce_value`](Self::allreduce_value).
    #[track_caller]
    pub fn exscan_value<L: Lpf, T: Element>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        value: T,
    ) -> Result<T> {
        self.scan_one(ctx, operator, value, true)
    }

    #[track_caller]
    fn scan_one<L: Lpf, T: Pod>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &impl Operator<T>,
        value: T,
        exclusive: bool,
    ) -> Result<T> {
        let (x, y) = self.value_views::<L, T>(ctx)?;
        // SAFETY: both views are aligned to a cache line, long enough, and this object's; the call writes the result.
        unsafe {
            x.place.data.cast::<T>().write(value);
            self.scan_typed(ctx, operator, ([x, y], 1), exclusive)?;
            Ok(y.place.data.cast::<T>().read())
        }
    }

    #[track_caller]
    fn scan_typed<L: Lpf, T: Pod, O: Operator<T>>(
        &mut self,
        ctx: &mut Context<'s, L>,
        operator: &O,
        memory: ([View; 2], usize),
        exclusive: bool,
    ) -> Result<()> {
        // It may panic: before the call has begun.
        let identity = (exclusive && self.me() == 0).then(|| operator.identity());
        let kind = if exclusive { Collective::Exscan } else { Collective::Scan };
        self.combined(ctx, (kind, 0), operator, memory)?;
        if let Some(identity) = identity {
            let ([_, y], len) = memory;
            let to = y.place.data.cast::<T>();
            // SAFETY: `y` has `len` aligned elements of this process. The call has returned, so no other code writes them.
            (0..len).for_each(|nth| unsafe { to.add(nth).write(identity) });
        }
        Ok(())
    }
}
