//! What the threads of a process and its helper thread share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use lpf_messages::Rank;
use mio::Waker;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::state::State;

/// The state, and how its threads wake each other.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) rank: Rank,
    pub(crate) size: Rank,
    state: Mutex<State>,
    /// Something came that a waiting thread may want.
    news: Condvar,
    /// Failures and deaths so far, to be read without the lock.
    changes: Arc<AtomicU64>,
    waker: Waker,
    woken: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        rank: Rank,
        size: Rank,
        state: State,
        changes: Arc<AtomicU64>,
        waker: Waker,
    ) -> Self {
        Shared {
            rank,
            size,
            state: Mutex::new(state),
            news: Condvar::new(),
            changes,
            waker,
            woken: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn failures(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Looks at the state.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock())
    }

    /// Changes the state; the helper sends what there is to send, and who waits looks again.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let changed = change(&mut state);
        self.tell(state);
        changed
    }

    /// As [`change`](Self::change), by the helper, which looks for what is to be sent anyway.
    pub(super) fn change_as_helper<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.woken.store(false, Ordering::SeqCst);
        let mut state = self.state.lock();
        let changed = change(&mut state);
        state.mail.take_pending();
        drop(state);
        self.news.notify_all();
        changed
    }

    fn tell(&self, mut state: MutexGuard<'_, State>) {
        let wakes = state.mail.take_pending() || state.stopped;
        drop(state);
        self.news.notify_all();
        if wakes && !self.woken.swap(true, Ordering::SeqCst) {
            // It only fails where the counter behind it is full, and then the helper is awake.
            let _ = self.waker.wake();
        }
    }

    /// Changes the state, then waits until `until` gives something or the time is up.
    pub(crate) fn wait<T>(
        &self,
        change: impl FnOnce(&mut State),
        mut until: impl FnMut(&mut State) -> Option<T>,
        deadline: Option<Instant>,
    ) -> Option<T> {
        self.change(change);
        let mut state = self.state.lock();
        loop {
            let found = until(&mut state);
            if found.is_some() || state.stopped {
                return found;
            }
            let timed_out = match deadline {
                Some(deadline) => self.news.wait_until(&mut state, deadline).timed_out(),
                None => {
                    self.news.wait(&mut state);
                    false
                }
            };
            if timed_out {
                return until(&mut state);
            }
        }
    }
}
