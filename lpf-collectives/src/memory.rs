//! What users hand to a collective: areas of the typed layer, whole or in part.

use std::ops::{Bound, RangeBounds};

use lpf_core::{Area, Local, Memory};

use crate::shared::Place;

/// Only this crate and the conformance suite implement [`Source`] and [`Target`].
pub mod sealed {
    /// What both traits require.
    pub trait Sealed {}
}

/// Elements of registered memory.
#[derive(Clone, Copy, Debug)]
pub struct View {
    pub(crate) place: Place,
    pub(crate) len: usize,
    /// The first superstep in which its memory can be used.
    pub(crate) active_from: u64,
    /// Why the range is none of its memory's: the elements that are asked for, and how many there are.
    pub(crate) outside: Option<(usize, usize, usize)>,
}

/// What a collective reads: `&area`, or `(&area, range)` for some of its elements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory that a collective can read",
    label = "expected `&area`, or `(&area, range)` for some of its elements",
    note = "make an area with `ctx.alloc(len)?`, which all processes call (or with `ctx.area(len)?` or `ctx.local(len)?`, which need room from `ctx.resize`), and copy elements into it with `ctx.write`",
    note = "no area is needed for a single element (`allreduce_value`, `scan_value`) nor for a slice (`allreduce_vec`, `exchange`)"
)]
pub trait Source<'s>: sealed::Sealed {
    /// The element type.
    type Element;
    #[doc(hidden)]
    fn view(&self) -> View;
}

/// What a collective writes: `&mut area`, or `(&mut area, range)` for some of its elements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory that a collective can write",
    label = "expected `&mut area`, or `(&mut area, range)` for some of its elements",
    note = "make an area with `ctx.alloc(len)?`, which all processes call (or with `ctx.area(len)?` or `ctx.local(len)?`, which need room from `ctx.resize`), and copy elements into it with `ctx.write`",
    note = "no area is needed for a single element (`allreduce_value`, `scan_value`) nor for a slice (`allreduce_vec`, `exchange`)"
)]
pub trait Target<'s>: sealed::Sealed {
    /// The element type.
    type Element;
    #[doc(hidden)]
    fn view(&self) -> View;
}

fn view<'s, M: Memory<'s>>(memory: &M, range: &impl RangeBounds<usize>) -> View {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => memory.len(),
    };
    let fits = start <= end && end <= memory.len();
    let outside = (!fits).then(|| (start, end, memory.len()));
    let (start, end) = if fits { (start, end) } else { (0, 0) };
    let (slot, data) = (memory.slot(), memory.data().wrapping_add(start).cast());
    let place = Place { slot, offset: start * size_of::<M::Element>(), data };
    View { place, len: end - start, active_from: memory.active_from(), outside }
}

macro_rules! both {
    ($($name:ident),*) => {$(
        impl<'s, T: bytemuck::Pod> sealed::Sealed for &$name<'s, T> {}
        #[diagnostic::do_not_recommend]
        impl<'s, T: bytemuck::Pod> Source<'s> for &$name<'s, T> {
            type Element = T;
            fn view(&self) -> View {
                view(*self, &(..))
            }
        }
        impl<'s, T: bytemuck::Pod> sealed::Sealed for &mut $name<'s, T> {}
        #[diagnostic::do_not_recommend]
        impl<'s, T: bytemuck::Pod> Target<'s> for &mut $name<'s, T> {
            type Element = T;
            fn view(&self) -> View {
                view(&**self, &(..))
            }
        }
        impl<'s, T: bytemuck::Pod, R: RangeBounds<usize>> sealed::Sealed for (&$name<'s, T>, R) {}
        #[diagnostic::do_not_recommend]
        impl<'s, T: bytemuck::Pod, R: RangeBounds<usize>> Source<'s> for (&$name<'s, T>, R) {
            type Element = T;
            fn view(&self) -> View {
                view(self.0, &self.1)
            }
        }
        impl<'s, T: bytemuck::Pod, R: RangeBounds<usize>> sealed::Sealed for (&mut $name<'s, T>, R) {}
        #[diagnostic::do_not_recommend]
        impl<'s, T: bytemuck::Pod, R: RangeBounds<usize>> Target<'s> for (&mut $name<'s, T>, R) {
            type Element = T;
            fn view(&self) -> View {
                view(&*self.0, &self.1)
            }
        }
    )*};
}

both!(Area, Local);
