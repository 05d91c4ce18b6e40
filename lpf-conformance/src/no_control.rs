//! For tests of a network alone.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lpf_core::board::{Board, Record, Topic};
use lpf_core::waits::Status;
use lpf_core::{Error, Pid, Result};
use lpf_messages::{Control, Order, Rank, SectionId};

/// A control plane that nobody asks: the network does not.
#[derive(Clone, Copy, Debug)]
pub struct NoControl;

impl Control for NoControl {
    type Board = NoControl;

    fn enter(&self, _: SectionId, _: &[Rank]) {}
    fn track(&self, _: SectionId, _: Arc<AtomicU64>) {}
    fn leave(&self, _: SectionId) {}
    fn failures(&self) -> u64 {
        0
    }
    fn failure(&self, _: SectionId) -> Option<Error> {
        None
    }
    fn declare(&self, _: SectionId, error: Error) -> Error {
        error
    }
    fn publish(&self, _: SectionId, _: Pid, _: Status) {}
    fn statuses(&self, _: SectionId) -> Vec<Option<Status>> {
        Vec::new()
    }
    fn board(&self, _: SectionId, _: Pid, _: Pid) -> NoControl {
        NoControl
    }
    fn order(&self, _: Order) -> Result<()> {
        Ok(())
    }
    fn close_together(&self, can: bool) -> bool {
        can
    }
    fn stays_open(&self) -> bool {
        false
    }
}

impl Board for NoControl {
    fn max_record(&self) -> usize {
        0
    }
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn write(&self, _: Topic, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn read(&self, _: Pid, _: Topic) -> Result<Option<Record>> {
        Ok(None)
    }
    fn read_all(&self, _: Topic) -> Result<Vec<Option<Record>>> {
        Ok(Vec::new())
    }
    fn agree(&self, _: Topic, _: &[u8]) -> Result<bool> {
        Ok(false)
    }
    fn agreed(&self, _: Topic) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}
