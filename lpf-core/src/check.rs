//! Checked mode (`LPF_CHECK=1`) finds violations of the contract that are not found otherwise, with their source
//! locations.
//!
//! Four mistakes leave a superstep well defined for the machine and meaningless for the program:
//! - the same bytes are read and written in one superstep;
//! - registrations are in another order than those of the other processes;
//! - a slot is used after it was deregistered;
//! - a slot is left registered at the end.
//!
//! This is the logic that finds them, the same for every backend. Without checked mode nothing here is called.
//!
//! # How a backend calls it
//! Each process holds a [`Registry`] and a list of [`Tracked`], filled by `register_*`,
//! `deregister`, `put` and `get` with [`Place::caller`] (the primitives are `#[track_caller]`).
//! A full sync does the following, after every process has stopped queueing and before a byte moves. On shared memory that
//! is after the first barrier, when each can read the others' lists. Between processes the lists travel with the first
//! meta-data.
//!
//! 1. [`difference`] between the [`calls`](Registry::calls) of all processes:
//!    if all neighbours agree, all do. If counts and hashes were compared, only if they differ;
//! 2. a [`Checker`] of this process's memory: [`own`](Checker::own) with its own list, and
//!    [`from`](Checker::from) with those of all processes (its own too: requests to oneself);
//!    [`overlap`](Checker::overlap) is fatal;
//! 3. when the sync is complete, the list is cleared and [`Registry::settle`] called (not while a library works
//!    in supersteps of its own, see [`Pending`]).
//!
//! A call on an unknown slot asks [`Registry::explain`], and a section that ends well asks
//! [`Pending::lost`] and [`Registry::leaks`].
//!
//! A mistake that a sync finds without checked mode too (a range outside its slot at the other
//! process, more requests than that reserved) gets the place of the [`Tracked`] request by
//! [`Error::at`](crate::Error::at). A call that is refused knows its place in any mode.

mod overlap;
mod pending;
mod registry;

pub use overlap::{Checker, Tracked};
pub use pending::Pending;
pub use registry::{Registration, Registry, difference};

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::panic::Location;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use crate::Pid;

/// Writes what was found, if anything was, to standard error.
pub fn report(found: Option<String>) {
    if let Some(found) = found {
        // A report that cannot be written is not a reason to fail.
        let _ = writeln!(std::io::stderr(), "checked mode: {found}");
    }
}

/// Reports that `process` has lost requests, without checked mode, which could name them.
#[cold]
pub fn report_lost(process: Pid) {
    let _ = writeln!(
        std::io::stderr(),
        "lpf: process {process} lost requests, which no sync followed (run with LPF_CHECK=1 to see which)"
    );
}

/// What checked mode keeps of one process.
#[derive(Debug, Default)]
pub struct Checks {
    /// Its requests.
    pub pending: Pending,
    /// Its registrations.
    pub registry: Registry,
}

/// The [`Checks`] of one process. Processes that share memory read each other's between the two barriers of a full
/// sync.
#[derive(Clone, Debug, Default)]
pub struct SharedChecks(Arc<Mutex<Checks>>);

impl SharedChecks {
    /// Access, by one thread at a time.
    pub fn lock(&self) -> MutexGuard<'_, Checks> {
        self.0.lock()
    }
}

/// A source location of a program, of this process or another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The file, as the compiler was given it.
    pub file: Cow<'static, str>,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1.
    pub column: u32,
}

impl Place {
    /// Where the caller was called: every function between the program and this is
    /// `#[track_caller]`.
    #[track_caller]
    pub fn caller() -> Self {
        Location::caller().into()
    }
}

impl From<&'static Location<'static>> for Place {
    fn from(location: &'static Location<'static>) -> Self {
        let file = Cow::Borrowed(location.file());
        Place { file, line: location.line(), column: location.column() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
