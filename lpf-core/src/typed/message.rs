//! Messages that have arrived on a channel.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;

use crate::arrivals::{Link, MAX_WINDOW};
use crate::typed::area::Dropped;

/// Messages and areas that their owners are done with, on their way to the backend. Room for every cell is
/// reserved when a channel is opened, and for every area when it is made, so that dropping never allocates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Releases(Rc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    list: RefCell<Vec<(Link, u64)>>,
    links: Cell<usize>,
    closings: RefCell<Vec<Link>>,
    /// Areas whose handles were dropped.
    dropped: RefCell<Vec<Dropped>>,
    /// Handles of areas.
    areas: Cell<usize>,
}

impl Releases {
    /// Gets room for all messages of one more link; false where it is refused.
    pub(crate) fn reserve_for_one_more(&self) -> bool {
        let mut list = self.0.list.borrow_mut();
        let room = (self.0.links.get() + 1) * MAX_WINDOW as usize;
        let more = room.saturating_sub(list.len());
        list.try_reserve_exact(more).is_ok()
    }

    /// Gets room for `more` areas that will be dropped; false if it is refused.
    pub(crate) fn reserve_for_areas(&self, more: usize) -> bool {
        self.0.dropped.borrow_mut().try_reserve(self.0.areas.get() + more).is_ok()
    }

    pub(crate) fn area_made(&self) {
        self.0.areas.set(self.0.areas.get() + 1);
    }

    /// A handle is gone; nothing if its area was deregistered.
    pub(crate) fn area_dropped(&self, dropped: Option<Dropped>) {
        self.0.areas.set(self.0.areas.get() - 1);
        self.0.dropped.borrow_mut().extend(dropped);
    }

    #[inline]
    pub(crate) fn has_dropped_areas(&self) -> bool {
        !self.0.dropped.borrow().is_empty()
    }

    /// Passes each dropped area to `stays`, and keeps those for which it returns true.
    pub(crate) fn retain_dropped_areas(&self, stays: impl FnMut(&Dropped) -> bool) {
        self.0.dropped.borrow_mut().retain(stays);
    }

    pub(crate) fn opened(&self) {
        self.0.links.set(self.0.links.get() + 1);
    }

    pub(crate) fn closed(&self) {
        self.0.links.set(self.0.links.get() - 1);
    }

    pub(crate) fn pop(&self) -> Option<(Link, u64)> {
        self.0.list.borrow_mut().pop()
    }

    /// A link that a library gave up.
    pub(crate) fn pop_closing(&self) -> Option<Link> {
        self.0.closings.borrow_mut().pop()
    }

    fn push(&self, link: Link, nth: u64) {
        self.0.list.borrow_mut().push((link, nth));
    }
}

/// Receives the links of a library's object when that is dropped, because dropping has no context. The links
/// are closed before the next call of any kind. So a process that needs their rings need not wait until this process
/// calls the library again.
#[derive(Clone, Debug)]
pub struct Closings(Releases);

impl Closings {
    pub(crate) fn new(releases: Releases) -> Self {
        Closings(releases)
    }

    /// The link is closed soon. No message of it is unreleased, and no put unflushed.
    pub fn close(&self, link: Link) {
        self.0.0.closings.borrow_mut().push(link);
    }
}

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
