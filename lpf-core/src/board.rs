//! The board: registers beside the context, for helper threads.
//!
//! A section's arrival estimates, agreements and dynamic pairings travel here, not through the
//! primitives: readable at any time, written by threads that hold no context. A topic holds the
//! latest record of each sender, never a queue.

mod memory;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use memory::{MemoryBoard, Registers};

use crate::Pid;
use crate::error::Result;

/// A topic of the board; its users choose the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Topic(pub u64);

/// A record and how often its sender has written it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// 1 for the first record of a sender and topic.
    pub version: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The board of a section. Handles are cheap to clone and may be used by any thread. Nothing is
/// promised about the order of records among each other, or with messages and syncs.
pub trait Board: Clone + Send + Sync + 'static {
    /// The longest record: 8p + 64 bytes.
    fn max_record(&self) -> usize;

    /// Whether all processes of the section are threads of this operating-system process. Then the writer itself can
    /// wake the reader, which need not look from time to time.
    fn is_in_one_process(&self) -> bool {
        false
    }

    /// The engine's clock: the time since some moment, the same for all clones of this handle. Θ(1).
    fn now(&self) -> Duration;

    /// Replaces this process's record under `topic`.
    ///
    /// # Errors
    /// *Misuse* for a record longer than [`max_record`](Board::max_record), *mitigable* where
    /// memory is refused, *fatal* if the section failed.
    fn write(&self, topic: Topic, record: &[u8]) -> Result<()>;

    /// The latest record of one process, if it wrote one.
    ///
    /// # Errors
    /// *Misuse* for a process that does not exist, *fatal* if the section failed.
    fn read(&self, from: Pid, topic: Topic) -> Result<Option<Record>>;

    /// The latest record of every process, by process.
    ///
    /// # Errors
    /// *Fatal* if the section failed.
    fn read_all(&self, topic: Topic) -> Result<Vec<Option<Record>>>;

    /// Closes an agreement: the first record under `topic`, by any process, stands for all and never changes. True if
    /// it was this record. May take a round trip: for helper threads.
    ///
    /// # Errors
    /// As [`write`](Board::write).
    fn agree(&self, topic: Topic, record: &[u8]) -> Result<bool>;

    /// Fetches the agreement, if it is closed. It is kept until every process has fetched it; a
    /// process that fetched it does not get it again.
    ///
    /// # Errors
    /// *Fatal* if the section failed.
    fn agreed(&self, topic: Topic) -> Result<Option<Vec<u8>>>;
}
