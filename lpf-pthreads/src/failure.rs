//! How a failure spreads: one word that every wait looks at, and the report behind it.
//!
//! The word is the number of the first *meeting* (entry of a full sync, of a rehook, of the closing
//! barrier) that some process will never reach. A process that waits in meeting j gives up only if
//! the word is at most j: then the failed process cannot arrive at j, so j can never be complete,
//! so nobody has begun to copy in it. A process that waits in an earlier meeting goes on: everybody
//! arrived there or will. This is why memory is quiet when `sync` returns *fatal*.

use lpf_core::Error;

use crate::sync::{AtomicU64, Mutex, Ordering};

#[derive(Debug)]
pub(crate) struct Failure {
    missing: AtomicU64,
    report: Mutex<Option<Error>>,
}

impl Failure {
    pub(crate) fn new() -> Self {
        Failure { missing: AtomicU64::new(u64::MAX), report: Mutex::new(None) }
    }

    /// Says that this process will not reach `meeting`. The first report stands.
    pub(crate) fn declare(&self, meeting: u64, report: Error) {
        let mut first = self.report.lock().unwrap_or_else(|poison| poison.into_inner());
        first.get_or_insert(report);
        self.missing.fetch_min(meeting, Ordering::SeqCst);
    }

    /// Whether meeting `meeting` can never be complete.
    #[inline]
    pub(crate) fn prevents(&self, meeting: u64) -> bool {
        self.missing.load(Ordering::Acquire) <= meeting
    }

    /// Whether anybody failed.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.prevents(u64::MAX - 1)
    }

    pub(crate) fn report(&self) -> Option<Error> {
        self.report.lock().unwrap_or_else(|poison| poison.into_inner()).clone()
    }
}
