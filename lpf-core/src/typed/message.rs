//! Messages that have arrived on a channel.

use std::marker::PhantomData;
use std::ops::Deref;

use crate::arrivals::Link;
use crate::typed::releases::Releases;

/// A message that has arrived: a slice of `T` in its cell. It exists from the sync that awaited it
/// until it is dropped, which gives the cell back; it does not borrow the context, so that
/// `accumulator += message` can be written.
///
/// Not before its sync, and not after its release:
///
/// ```compile_fail
/// # use lpf_core::{Context, Lpf, Result, Channel};
/// fn before_its_sync<L: Lpf>(ctx: &mut Context<'_, L>, from: &mut Channel<'_, u64>) {
///     let first = from[0]; // a channel has no elements; messages come from `expect`
/// }
/// ```
/// ```compile_fail
/// # use lpf_core::Message;
/// fn after_its_release(message: Message<'_, u64>) -> u64 {
///     drop(message);
///     message[0] // moved
/// }
/// ```
#[derive(Debug)]
pub struct Message<'s, T> {
    data: *const T,
    len: usize,
    link: Link,
    nth: u64,
    releases: Releases,
    section: PhantomData<fn(&'s ()) -> &'s ()>,
}

impl<T> Message<'_, T> {
    /// # Safety
    /// `data` points to `len` elements of a cell that is not written until `releases` was told so.
    pub(crate) unsafe fn new(
        data: *const T,
        len: usize,
        link: Link,
        nth: u64,
        releases: Releases,
    ) -> Self {
        Message { data, len, link, nth, releases, section: PhantomData }
    }
}

impl<T> Deref for Message<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `new`'s promise; the release is queued by drop only.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T> Drop for Message<'_, T> {
    fn drop(&mut self) {
        self.releases.push(self.link, self.nth);
    }
}
