//! How a failure spreads: one word that every wait looks at, and the report behind it.
//!
//! The word is the number of the first *meeting* (entry of a full sync, of a rehook, of the closing
//! barrier) that some process will never reach. A process that waits in meeting j gives up only if
//! the word is at most j: then the failed process cannot arrive at j, so j can never be complete,
//! so nobody has begun to copy in it. A process that waits in an earlier meeting goes on: everybody
//! arrived there or will. This is why memory is quiet when `sync` returns *fatal*.
//!
//! A process whose patience ends (`LPF_TIMEOUT`) would declare a meeting that may become complete at
//! this very moment, and others may have departed from it already. So under a time-out all take one
//! decision about each meeting, by a compare-and-exchange: who departs says that it takes place, who
//! gives up that it does not, and whoever comes first has said it for all.

use lpf_core::Error;

use crate::sync::{AtomicU64, Mutex, Ordering, lock};

#[derive(Debug)]
pub(crate) struct Failure {
    missing: AtomicU64,
    /// The latest meeting decided about: twice its epoch, and one more where it was given up.
    decided: AtomicU64,
    report: Mutex<Option<Error>>,
}

impl Failure {
    pub(crate) fn new() -> Self {
        Failure {
            missing: AtomicU64::new(u64::MAX),
            decided: AtomicU64::new(0),
            report: Mutex::new(None),
        }
    }

    /// Says that this process will not reach `meeting`. The first report stands; true if it is this one.
    pub(crate) fn declare(&self, meeting: u64, report: Error) -> bool {
        let mut first = lock(&self.report);
        let is_first = first.is_none();
        first.get_or_insert(report);
        self.missing.fetch_min(meeting, Ordering::SeqCst);
        #[cfg(loom)]
        crate::models::futex::something_happened();
        is_first
    }

    /// Decides, under a time-out, whether the meeting of `epoch` takes place: as this process says,
    /// or as another said before it.
    pub(crate) fn decide(&self, epoch: u32, takes_place: bool) -> bool {
        let mine = u64::from(epoch) << 1 | u64::from(!takes_place);
        let mut latest = self.decided.load(Ordering::Acquire);
        loop {
            match ((latest >> 1) as u32).wrapping_sub(epoch) as i32 {
                0 => return latest & 1 == 0,
                // Somebody departed from it and is further.
                1.. => return true,
                _ => {}
            }
            let place = &self.decided;
            match place.compare_exchange(latest, mine, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return takes_place,
                Err(now) => latest = now,
            }
        }
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
        lock(&self.report).clone()
    }
}
