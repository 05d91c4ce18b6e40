//! One process of a section on threads, and the state of its engine.

use std::io::Write;
use std::sync::Arc;

use lpf_core::request::Requests;
use lpf_core::runtime::links::Ends;
use lpf_core::runtime::{LocalState, Process};
use lpf_core::{Cause, Error, Pid, Result};

use crate::comm::{Comm, Peer, Rows};
use crate::links::{End, Links, Removed};

/// One process of a section: a thread.
pub type Threads = Process<ThreadEngine>;

/// The engine of one thread: shared memory.
#[derive(Debug)]
pub struct ThreadEngine {
    pub(crate) rows: Rows,
    /// Meetings entered, whatever for; first ones only.
    pub(crate) meeting: u64,
    /// Calls of the barrier.
    pub(crate) epoch: u32,
    /// What all announced in the meeting under way, and what this process did.
    pub(crate) all: u32,
    pub(crate) mine: u32,
    pub(crate) comm: Arc<Comm>,
    pub(crate) ends: Ends<End>,
    pub(crate) removed: Removed,
    /// For the rehook that is about to begin.
    pub(crate) prepared: Option<Box<Prepared>>,
    /// Processors that an exec from here may use.
    pub(crate) free: Pid,
}

/// The memory of a rehook, which a process gets before the barrier: after a refusal it does not arrive there.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) parity: usize,
    pub(crate) spare: LocalState,
}

/// Process `pid` of the section behind `comm`, with `free` processors for its own exec.
pub(crate) fn process(comm: Arc<Comm>, pid: Pid, free: Pid) -> Result<Threads> {
    let queue = Requests::new(pid, comm.processes())?;
    Ok(process_with(queue, comm, free))
}

/// As [`process`], with its requests, for which alone memory may be refused.
pub(crate) fn process_with(queue: Requests, comm: Arc<Comm>, free: Pid) -> Threads {
    let (pid, _) = queue.process();
    let local = LocalState::of(queue, comm.peers[pid].checks.clone());
    Process::of(local, ThreadEngine::new(comm, pid, free))
}

impl ThreadEngine {
    pub(crate) fn new(comm: Arc<Comm>, pid: Pid, free: Pid) -> Self {
        ThreadEngine {
            rows: Rows::default(),
            meeting: 0,
            epoch: comm.barrier.epoch(pid),
            all: 0,
            mine: 0,
            ends: Ends::default(),
            removed: Removed::new(),
            prepared: None,
            free,
            comm,
        }
    }

    /// What this process shows the others.
    #[inline]
    pub(crate) fn peer(&self, local: &LocalState) -> &Peer {
        &self.comm.peers[local.pid]
    }

    #[inline]
    pub(crate) fn links(&mut self) -> Links<'_> {
        Links { comm: &self.comm, ends: &mut self.ends }
    }

    /// Declares that this process does not arrive at `meeting`. A late process is a thread, which cannot be ended. While it
    /// goes on, the call that started the section does not return, so its error is not seen. So one line reports it at once.
    #[cold]
    pub(crate) fn declare_for(&self, meeting: u64, error: Error) {
        let is_late = matches!(error.cause(), Cause::Late { .. });
        if self.comm.declare(meeting, error.clone()) && is_late && !cfg!(loom) {
            // Nothing else can be done about a standard error that is closed.
            let _ = writeln!(
                std::io::stderr(),
                "lpf: {error}; the section ends when this process returns"
            );
        }
        self.comm.ring_all();
    }
}
