//! Handles of registered memory.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;

use crate::slot::{GlobalSlot, LocalSlot, Slot};
use crate::typed::releases::{Dropped, Releases};

mod sealed {
    pub trait Sealed {}
}

/// Registered memory of one process of section `'s`: an [`Area`] or a [`Local`]. Sealed: the typed
/// layer's soundness rests on what a handle is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not registered memory",
    label = "expected an area: an `Area` or a `Local`",
    note = "make an area with `ctx.alloc(len)?`, which all processes call (or with `ctx.area(len)?` or `ctx.local(len)?`, which need room from `ctx.resize`), and copy elements into it with `ctx.write(&mut area).copy_from_slice(...)`",
    note = "if it is a `Result`, put `?` behind the call that made it"
)]
pub trait Memory<'s>: sealed::Sealed {
    /// The element type.
    type Element: Pod;

    /// The slot, as the local side of a request.
    fn slot(&self) -> Slot;

    /// Elements.
    fn len(&self) -> usize;

    /// Whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[doc(hidden)]
    fn data(&self) -> *mut Self::Element;

    /// What keeps it registered.
    #[doc(hidden)]
    fn into_registration(self) -> AreaRegistration
    where
        Self: Sized;

    /// The first superstep in which others can use it, or requests name it.
    #[doc(hidden)]
    fn active_from(&self) -> u64;
}

/// Keeps an area registered. When it is dropped, the area is given back: a local one at the next full sync, a global
/// one at the first full sync at which all processes have dropped the same areas.
#[derive(Debug)]
pub struct AreaRegistration {
    dropped: Option<Dropped>,
    releases: Releases,
}

impl AreaRegistration {
    /// Room was reserved in `releases` before.
    pub(crate) fn new(dropped: Dropped, releases: Releases) -> Self {
        releases.area_made();
        AreaRegistration { dropped: Some(dropped), releases }
    }

    /// The number of the area's block. The area was deregistered: nothing is left to do when this is dropped.
    pub(crate) fn into_block(mut self) -> Option<usize> {
        let (Dropped::Global(_, block) | Dropped::Local(_, block)) = self.dropped.take()?;
        Some(block)
    }
}

impl Drop for AreaRegistration {
    fn drop(&mut self) {
        self.releases.area_dropped(self.dropped.take());
    }
}

macro_rules! handle {
    ($(#[$meta:meta])* $name:ident, $slot:ty) => {
        $(#[$meta])*
        pub struct $name<'s, T> {
            slot: $slot,
            data: *mut T,
            len: usize,
            active_from: u64,
            registration: AreaRegistration,
            section: PhantomData<fn(&'s ()) -> &'s ()>,
        }

        impl<'s, T> $name<'s, T> {
            pub(crate) fn new(
                slot: $slot,
                registration: AreaRegistration,
                data: *mut T,
                len: usize,
                active_from: u64,
            ) -> Self {
                $name { slot, data, len, active_from, registration, section: PhantomData }
            }

            /// Keeps the area registered without its elements, for a library's object that works on its slot and has
            /// no lifetime of a section.
            pub fn into_registration(self) -> AreaRegistration {
                self.registration
            }
        }

        /// In words: it stands in the errors that give an area back.
        impl<T> fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (name, element) = (stringify!($name), type_name::<T>());
                write!(f, "{name}<{element}> of length {}, {}", self.len, Slot::from(self.slot))
            }
        }

        impl<T> sealed::Sealed for $name<'_, T> {}

        #[diagnostic::do_not_recommend]
        impl<'s, T: Pod> Memory<'s> for $name<'s, T> {
            type Element = T;

            #[inline]
            fn slot(&self) -> Slot {
                self.slot.into()
            }

            #[inline]
            fn len(&self) -> usize {
                self.len
            }

            #[inline]
            fn data(&self) -> *mut T {
                self.data
            }

            fn into_registration(self) -> AreaRegistration {
                self.registration
            }

            #[inline]
            fn active_from(&self) -> u64 {
                self.active_from
            }
        }
    };
}

handle! {
    /// A global area: `len` elements at every process, named by the same call everywhere. Its slot and memory are given
    /// back when all processes have dropped their handles of the same areas, at the end of the next full sync; or by
    /// [`deregister`](crate::Context::deregister).
    ///
    /// An area means something to its own section only:
    ///
    /// ```compile_fail
    /// # use lpf_core::{Context, Lpf, Result};
    /// fn of_another_section<L: Lpf>(ctx: &mut Context<'_, L>) -> Result<()> {
    ///     let outer = ctx.area::<u64>(1)?;
    ///     ctx.rehook(|inner| {
    ///         inner.read(&outer); // E0521: borrowed data escapes, 's of one is not that of the other
    ///         Ok(())
    ///     })
    /// }
    /// ```
    Area, GlobalSlot
}

handle! {
    /// A local area: usable at once, and only as the local side of requests. If it is dropped, its slot and memory are
    /// given back at the next full sync, or at the following one if a request names it.
    Local, LocalSlot
}

impl<T> Area<'_, T> {
    /// The slot, as either side of a request.
    #[inline]
    pub fn global_slot(&self) -> GlobalSlot {
        self.slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::SlotTable;

    #[test]
    fn an_area_prints_as_words_and_not_as_its_parts() {
        let mut slots = SlotTable::new(0);
        slots.set_capacity(1, 0);
        let slot = slots.register_global(std::ptr::null_mut(), 32, 0, 0).unwrap();
        let releases = Releases::default();
        assert!(releases.reserve_for_areas(1));
        let registration = AreaRegistration::new(Dropped::Global(slot, 0), releases);
        let area = Area::new(slot, registration, std::ptr::null_mut::<u64>(), 4, 1);
        assert_eq!(format!("{area:?}"), "Area<u64> of length 4, global slot 0");
    }
}
