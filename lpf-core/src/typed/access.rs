//! Several areas at once.

use crate::typed::area::{Area, Local, Memory};
use bytemuck::Pod;

mod sealed {
    pub trait Sealed {}
}

/// What [`Context::access`](crate::Context::access) takes: references to areas of section `'s`, or
/// tuples of two to six, arrays or vectors of them. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reference to an area, and not a tuple, array or `Vec` of such references",
    label = "expected `&area`, `&mut area`, a tuple of two to six of them, or an array or `Vec` of them",
    note = "of an array of areas: `areas.each_ref()` or `areas.each_mut()`; of a `Vec`: `areas.iter_mut().collect::<Vec<_>>()`"
)]
pub trait Access<'a, 's>: sealed::Sealed {
    /// The slices, shared for `&area`, exclusive for `&mut area`.
    type Slices;

    /// # Safety
    /// Called by [`Context::access`](crate::Context::access) alone, which holds the context
    /// mutably for `'a`: no sync and no other access meanwhile.
    #[doc(hidden)]
    unsafe fn slices(self) -> Self::Slices;
}

macro_rules! one {
    ($name:ident) => {
        impl<T> sealed::Sealed for &$name<'_, T> {}
        impl<T> sealed::Sealed for &mut $name<'_, T> {}

        #[diagnostic::do_not_recommend]
        impl<'a, 's, T: Pod> Access<'a, 's> for &'a $name<'s, T> {
            type Slices = &'a [T];

            #[inline]
            unsafe fn slices(self) -> &'a [T] {
                // SAFETY: the context is held mutably for 'a: no sync and no other access
                // meanwhile. The handle is borrowed, so no exclusive slice of the area exists.
                unsafe { std::slice::from_raw_parts(self.data(), self.len()) }
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'a, 's, T: Pod> Access<'a, 's> for &'a mut $name<'s, T> {
            type Slices = &'a mut [T];

            #[inline]
            unsafe fn slices(self) -> &'a mut [T] {
                // SAFETY: as above; the handle, the only one of its memory, is borrowed mutably.
                unsafe { std::slice::from_raw_parts_mut(self.data(), self.len()) }
            }
        }
    };
}

one!(Area);
one!(Local);

macro_rules! tuple {
    ($($name:ident)+) => {
        impl<$($name: sealed::Sealed),+> sealed::Sealed for ($($name,)+) {}

        #[diagnostic::do_not_recommend]
        impl<'a, 's, $($name: Access<'a, 's>),+> Access<'a, 's> for ($($name,)+) {
            type Slices = ($($name::Slices,)+);

            #[inline]
            #[allow(non_snake_case)]
            unsafe fn slices(self) -> Self::Slices {
                let ($($name,)+) = self;
                // SAFETY: the caller's promise.
                unsafe { ($($name.slices(),)+) }
            }
        }
    };
}

tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);

impl<A: sealed::Sealed, const N: usize> sealed::Sealed for [A; N] {}

#[diagnostic::do_not_recommend]
impl<'a, 's, A: Access<'a, 's>, const N: usize> Access<'a, 's> for [A; N] {
    type Slices = [A::Slices; N];

    #[inline]
    unsafe fn slices(self) -> Self::Slices {
        // SAFETY: the context is held mutably for 'a, as the caller promises, and for all of the references at once.
        self.map(|area| unsafe { area.slices() })
    }
}

impl<A: sealed::Sealed> sealed::Sealed for Vec<A> {}

#[diagnostic::do_not_recommend]
impl<'a, 's, A: Access<'a, 's>> Access<'a, 's> for Vec<A> {
    type Slices = Vec<A::Slices>;

    #[inline]
    unsafe fn slices(self) -> Self::Slices {
        // SAFETY: as for an array.
        self.into_iter().map(|area| unsafe { area.slices() }).collect()
    }
}
