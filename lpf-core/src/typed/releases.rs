//! What the owners of messages, areas and links are done with.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::arrivals::{Link, MAX_WINDOW};
use crate::slot::{GlobalSlot, LocalSlot};

/// An area whose handle is gone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dropped {
    Global(GlobalSlot, usize),
    Local(LocalSlot, usize),
}

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

    #[inline]
    pub(crate) fn pop(&self) -> Option<(Link, u64)> {
        self.0.list.borrow_mut().pop()
    }

    /// A link that a library gave up.
    #[inline]
    pub(crate) fn pop_closing(&self) -> Option<Link> {
        self.0.closings.borrow_mut().pop()
    }

    pub(crate) fn push(&self, link: Link, nth: u64) {
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
