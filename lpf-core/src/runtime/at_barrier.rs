//! The wait at a barrier, as core's wait sees it.

use super::Purpose;
use super::tables::Tables;
use super::waiting::{Medium, Waiting, status_at};
use crate::Pid;
use crate::error::Error;
use crate::waits::Status;

/// A wait at a barrier.
#[derive(Debug)]
pub struct ForBarrier<'a, F> {
    /// Of the process.
    pub tables: &'a Tables,
    /// Why it has arrived there.
    pub purpose: Purpose,
    /// Finds a process that has not arrived.
    pub missing: F,
}

impl<F: Fn() -> Option<Pid>> Waiting for ForBarrier<'_, F> {
    fn status(&self, medium: &impl Medium) -> Status {
        let Tables { local, links, .. } = self.tables;
        status_at(local, links, self.purpose, medium)
    }

    fn missing(&self, _medium: &impl Medium) -> Pid {
        let local = &self.tables.local;
        local.known_as((self.missing)().unwrap_or(local.pid))
    }

    fn superstep(&self) -> u64 {
        self.tables.local.superstep
    }

    /// The engine decides whether a barrier is complete when a process fails.
    fn is_concerned_by(&self, _report: &Error) -> bool {
        false
    }
}
