//! The control plane, as the message-passing protocol uses it: failures, published records, and the beginning of
//! sections.
//!
//! Beside the network, which moves a program's bytes, the processes keep connections of their own,
//! served by a sleeping helper thread in each. They carry messages that must arrive while a process computes
//! or waits: failures, the board, published waits, and orders to begin a section. The network itself makes progress only
//! in calls of the thread that communicates.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use lpf_core::Pid;
use lpf_core::board::Board;
use lpf_core::error::{Error, Result};
use lpf_core::waits::Status;

/// A process of the network, in any section: 0 to `size - 1`.
pub type Rank = Pid;

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
    /// The data of the protocol.
    pub bytes: Vec<u8>,
}

/// A handle to the control plane; any thread may use it.
///
/// Failures are kept by section. The first report of a section stands for all. A process that fails with
/// another error gets the first one instead, so that every process returns the same.
pub trait Control: Clone + Send + Sync + 'static {
    /// The registers of a section.
    type Board: Board;

    /// Takes part in a section from now on: reports and records of it are kept. Not collective, and
    /// does not wait for others. Earlier reports and records arrive soon. `members` has the member of the job where each
    /// process of the section is; the processes of a node are at the same one, and consecutive.
    fn enter(&self, section: SectionId, members: &[Rank]);

    /// The counter of this process's supersteps in a section that it is in: looked at from time to time, so
    /// that others know how far it was should it die.
    fn track(&self, section: SectionId, supersteps: Arc<AtomicU64>);

    /// Takes no part any more; the reports and records kept are dropped.
    fn leave(&self, section: SectionId);

    /// A number that changes when any section has failed, or a process has died: one load. While it is the same,
    /// [`failure`](Control::failure) need not be asked again.
    fn failures(&self) -> u64;

    /// The report that ends a section, if there is one. The death of a member is one.
    fn failure(&self, section: SectionId) -> Option<Error>;

    /// Reports a failure of a section to all its members and returns the report that stands, after at
    /// most a second.
    fn declare(&self, section: SectionId, error: Error) -> Error;

    /// Publishes the state of a process here in a section; called again when its wait has changed. While it is
    /// [waiting](lpf_core::waits::Doing::Waiting), the helper thread asks the processes that it waits for, every
    /// [`ASK_AFTER`](lpf_core::waits::ASK_AFTER), and declares a fault that it finds.
    fn publish(&self, section: SectionId, pid: Pid, status: Status);

    /// The published states of the processes of a section, by process; `None` for one that did not answer. Takes at
    /// most a second, and a message to each of them: for a wait that is given up.
    fn statuses(&self, section: SectionId) -> Vec<Option<Status>>;

    /// The board of a section, as process `pid` of `processes` has it.
    fn board(&self, section: SectionId, pid: Pid, processes: Pid) -> Self::Board;

    /// Orders every member but process 0 to begin a section. Does not wait for them.
    ///
    /// # Errors
    /// *Fatal* if one of them is dead.
    fn order(&self, order: Order) -> Result<()>;

    /// Agrees with all processes of the network on closing it together. True at all of them, if each of them
    /// can. False at all of them, as soon as one cannot, or has left or died. A process that passes false does not wait.
    /// Not to be called twice.
    fn close_together(&self, can: bool) -> bool;

    /// Whether one of them has said that it cannot, or has left or died.
    fn stays_open(&self) -> bool;
}
