//! The primitives on slots and byte ranges, lent by a context.

use std::ops::Deref;

use crate::Pid;
use crate::arrivals::{Call, CallValues, Expect, InboxShape, InboxSlot, Link, Travel};
use crate::attr::SyncAttr;
use crate::error::{Error, Result};
use crate::lpf::{Awaited, Lpf};
use crate::slot::{GlobalSlot, LocalSlot, Registrant, Slot};
use crate::waits::Consult;

/// A context's backend, without the right to replace it: exchanging the backends of two contexts
/// would give one section's areas to the other.
///
/// What only looks (pid, probe, arrival, board) comes by [`Deref`].
#[derive(Debug)]
pub struct Raw<'a, L: Lpf>(&'a mut L);

impl<L: Lpf> Deref for Raw<'_, L> {
    type Target = L;

    fn deref(&self) -> &L {
        self.0
    }
}

macro_rules! forward {
    ($of:ident: $($(#[$meta:meta])* fn $name:ident(&mut self $(, $arg:ident: $type:ty)*) -> $result:ty;)*) => {
        $(
            #[doc = concat!("See [`", stringify!($of), "::", stringify!($name), "`](crate::", stringify!($of), "::", stringify!($name), ").")]
            $(#[$meta])*
            #[inline]
            #[track_caller]
            pub fn $name(&mut self $(, $arg: $type)*) -> $result {
                self.0.$name($($arg),*)
            }
        )*
    };
}

impl<'a, L: Lpf> Raw<'a, L> {
    pub(crate) fn new(backend: &'a mut L) -> Self {
        Raw(backend)
    }

    /// See [`Lpf::register_local`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    pub unsafe fn register_local(&mut self, base: *mut u8, bytes: usize) -> Result<LocalSlot> {
        // SAFETY: the caller's promise.
        unsafe { self.0.register_local(base, bytes, Registrant::Caller) }
    }

    /// See [`Lpf::register_global`]; sizes may differ between processes.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    #[track_caller]
    pub unsafe fn register_global(&mut self, base: *mut u8, bytes: usize) -> Result<GlobalSlot> {
        // SAFETY: the caller's promise.
        unsafe { self.0.register_global(base, bytes, 0) }
    }

    /// See [`Lpf::deregister`].
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn deregister(&mut self, slot: impl Into<Slot>) -> Result<()> {
        self.0.deregister(slot.into())
    }

    /// See [`Lpf::put`].
    ///
    /// ```compile_fail
    /// # use lpf_core::{Raw, Lpf, LocalSlot, Result};
    /// fn a_local_slot_is_no_remote_side<L: Lpf>(mut raw: Raw<'_, L>, x: LocalSlot) -> Result<()> {
    ///     raw.put(x, 0, 0, x, 0, 8)
    /// }
    /// ```
    ///
    /// # Errors
    /// As there.
    #[inline]
    #[track_caller]
    #[allow(clippy::too_many_arguments)]
    pub fn put(
        &mut self,
        src: impl Into<Slot>,
        src_offset: usize,
        to: Pid,
        dst: GlobalSlot,
        dst_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.0.put(src.into(), src_offset, to, dst, dst_offset, bytes)
    }

    /// See [`Links::send`](crate::Links::send).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// The source is not written until a flush, a full sync or the end of the section: the message
    /// may leave at any time before. The receiver of a send in parts does not read its messages after one of its calls
    /// has failed: they may be in the sender's memory.
    #[track_caller]
    pub unsafe fn send(
        &mut self,
        link: Link,
        src: impl Into<Slot>,
        src_offset: usize,
        bytes: usize,
        travel: Travel,
    ) -> Result<()> {
        self.0.send(link, src.into(), src_offset, bytes, travel)
    }

    /// See [`Lpf::get`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    #[track_caller]
    #[allow(clippy::too_many_arguments)]
    pub fn get(
        &mut self,
        from: Pid,
        src: GlobalSlot,
        src_offset: usize,
        dst: impl Into<Slot>,
        dst_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.0.get(from, src, src_offset, dst.into(), dst_offset, bytes)
    }

    /// See [`Links::offer`](crate::Links::offer).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// The memory behind `slot` is not touched until the sync that awaited the message: another
    /// process writes to it at any time before.
    pub unsafe fn offer(
        &mut self,
        link: Link,
        slot: impl Into<Slot>,
        offset: usize,
        bytes: usize,
    ) -> Result<u64> {
        self.0.offer(link, slot.into(), offset, bytes)
    }

    /// See [`Runtime::consult`](crate::Runtime::consult).
    ///
    /// # Errors
    /// As there.
    pub fn consult<R>(
        &mut self,
        wait: Consult<'_>,
        found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        self.0.consult(wait, found)
    }

    /// See [`Context::suspended`](crate::Context::suspended).
    ///
    /// # Errors
    /// As there.
    pub fn suspended<R>(&mut self, library: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        suspended(self, |raw| raw.0, library)
    }

    forward! { Lpf:
        fn sync(&mut self, attr: SyncAttr<'_>) -> Result<()>;
        fn resize_memory_register(&mut self, slots: usize) -> Result<()>;
        fn resize_message_queue(&mut self, requests: usize) -> Result<()>;
    }

    forward! { Links:
        fn register_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot>;
        fn deregister_inbox(&mut self, inbox: InboxSlot) -> Result<()>;
        fn open(&mut self, inbox: InboxSlot, ring: usize, peer: Pid, peer_ring: usize) -> Result<Link>;
        fn close(&mut self, link: Link) -> Result<()>;
        fn post(&mut self) -> Result<()>;
        fn expect(&mut self, messages: &[Expect]) -> Result<()>;
        fn poll(&mut self, awaited: Awaited<'_>) -> Result<bool>;
        fn release(&mut self, link: Link, nth: u64) -> Result<()>;
    }

    forward! { Runtime:
        fn reserve(&mut self, slots: usize, requests: usize) -> Result<()>;
        fn enter(&mut self, call: Call) -> ();
        fn sync_in_call(&mut self, attr: SyncAttr<'_>, values: Option<&dyn CallValues>) -> Result<()>;
        fn fail(&mut self, error: Error) -> Error;
    }
}

/// Suspends what is pending at the backend inside `lent` while `library` works.
pub(crate) fn suspended<C, L: Lpf, R>(
    lent: &mut C,
    backend: fn(&mut C) -> &mut L,
    library: impl FnOnce(&mut C) -> Result<R>,
) -> Result<R> {
    let suspension = Suspension::begin(lent, backend)?;
    library(suspension.lent)
}

/// What is pending at the backend inside `lent` is suspended. When this is dropped, it is pending again, whatever becomes
/// of the library: it may return an error or panic.
pub(crate) struct Suspension<'a, C, L: Lpf> {
    pub(crate) lent: &'a mut C,
    backend: fn(&mut C) -> &mut L,
}

impl<'a, C, L: Lpf> Suspension<'a, C, L> {
    pub(crate) fn begin(lent: &'a mut C, backend: fn(&mut C) -> &mut L) -> Result<Self> {
        backend(lent).suspend()?;
        Ok(Suspension { lent, backend })
    }
}

impl<C, L: Lpf> Drop for Suspension<'_, C, L> {
    fn drop(&mut self) {
        (self.backend)(self.lent).restore();
    }
}
