//! What the message-passing protocol asks of the control plane: who failed, what is published, which
//! sections begin.
//!
//! Beside the network, which moves a program's bytes, the processes keep connections of their own,
//! served by a sleeping helper thread in each. They carry what must be told while a process computes
//! or waits: failures, the board, who waits for what, and orders to begin a section. So all of it
//! works although the network is driven by the thread that communicates, and by nobody else.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use super::transport::Rank;
use crate::Pid;
use crate::board::Board;
use crate::error::{Error, Result};
use crate::waits::Status;

/// The name of a section, equal on all its members and used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SectionId(pub u64);

/// An order to a process that serves: begin a section as one of its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The new section.
    pub section: SectionId,
    /// Its processes, by pid; the one that gives the order is process 0.
    pub members: Vec<Rank>,
    /// What the protocol wants to have said.
    pub bytes: Vec<u8>,
}

/// A handle to the control plane; any thread may use it.
///
/// Failures are kept by section. The first report of a section stands for all: whoever fails with
/// another learns of the first one instead, so that every process returns the same.
pub trait Control: Clone + Send + Sync + 'static {
    /// The registers of a section.
    type Board: Board;

    /// Takes part in a section from now on: reports and records of it are kept. Not collective, and
    /// waits for nobody; what came before is told soon.
    fn enter(&self, section: SectionId, members: &[Rank]);

    /// The counter of this process's supersteps in a section that it is in: looked at from time to time, so
    /// that others know how far it was should it die.
    fn track(&self, section: SectionId, supersteps: Arc<AtomicU64>);

    /// Takes no part any more; what was kept is dropped.
    fn leave(&self, section: SectionId);

    /// A number that changes when any section has failed, or a process died: one load. Who has seen
    /// it need not ask [`failure`](Control::failure) again.
    fn failures(&self) -> u64;

    /// The report that ends a section, if there is one. The death of a member is one.
    fn failure(&self, section: SectionId) -> Option<Error>;

    /// Reports a failure of a section to all its members and returns the report that stands, after at
    /// most a second.
    fn declare(&self, section: SectionId, error: Error) -> Error;

    /// Says what this process is doing in a section, for those who ask; again when what it waits for has
    /// changed. While it is
    /// [waiting](crate::waits::Doing::Waiting), the helper thread asks those it waits for, every
    /// [`ASK_AFTER`](crate::waits::ASK_AFTER), and declares what it finds.
    fn publish(&self, section: SectionId, status: Status);

    /// What the processes of a section have published, by process; `None` for one that did not answer. Takes at
    /// most a second, and a message to each of them: for a wait that is given up.
    fn statuses(&self, section: SectionId) -> Vec<Option<Status>>;

    /// The board of a section, as process `pid` of `processes` has it.
    fn board(&self, section: SectionId, pid: Pid, processes: Pid) -> Self::Board;

    /// Orders every member but process 0 to begin a section. Does not wait for them.
    ///
    /// # Errors
    /// *Fatal* where one of them is dead.
    fn order(&self, order: Order) -> Result<()>;

    /// Agrees with all processes of the network on closing it together: true at all of them, if each of them
    /// said that it can; false at all of them, as soon as one said that it cannot, or has left or died. Who
    /// says so itself does not wait. Not to be called twice.
    fn close_together(&self, can: bool) -> bool;

    /// Whether one of them has said that it cannot, or has left or died.
    fn stays_open(&self) -> bool;
}
