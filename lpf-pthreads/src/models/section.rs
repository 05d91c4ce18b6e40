//! A section without the pool: the models start its threads themselves.

use std::sync::Arc;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::thread;

use lpf_core::Pid;
use lpf_core::runtime::Node;
use lpf_core::settings::Pin;

use super::SLEEPING;
use crate::Config;
use crate::barrier::{Barrier, Shape};
use crate::comm::Comm;
use crate::threads::{self, Threads};

/// A section whose waits sleep at once.
pub(super) fn section(processes: Pid, shape: &Shape, timeout: Option<Duration>) -> Arc<Comm> {
    // The sizes of levels say that no barrier is to be measured; the model brings its own.
    let config = Config::new().procs(processes).topology(Some(vec![1])).timeout(timeout);
    let comm =
        Comm::new((Node::of_all(processes), None), &config.environment(processes), &Pin::None)
            .unwrap();
    let mut comm = Arc::into_inner(comm).unwrap();
    comm.barrier = Barrier::new(processes, shape, [SLEEPING; 2]);
    Arc::new(comm)
}

/// Runs `process` as every process of `comm` on a thread of its own; what each returned.
pub(super) fn run<R: 'static>(
    comm: &Arc<Comm>,
    process: impl Fn(&mut Threads) -> R + Clone + 'static,
) -> Vec<R> {
    let one = {
        let comm = comm.clone();
        move |pid: Pid| {
            // Models end without the closing meeting: the process has not entered.
            process(&mut threads::process(comm.clone(), pid, 1).unwrap())
        }
    };
    let others: Vec<_> = (1..comm.node.processes)
        .map(|pid| {
            let one = one.clone();
            thread::spawn(move || one(pid))
        })
        .collect();
    let own = one(0);
    let others = others.into_iter().map(|other| other.join().unwrap());
    std::iter::once(own).chain(others).collect()
}

/// One word of memory per process. Its owner writes it when no superstep is under way; the others
/// read it inside one. loom finds two that are not ordered.
pub(super) struct Memory(Vec<UnsafeCell<u64>>);

// SAFETY: whether accesses are ordered is what the models check.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub(super) fn new(processes: Pid) -> Arc<Self> {
        Arc::new(Memory((0..processes).map(|_| UnsafeCell::new(0)).collect()))
    }

    /// What its owner does with it outside a superstep: writes it, frees it.
    pub(super) fn write(&self, owner: Pid, value: u64) {
        // SAFETY: a word of this vector.
        self.0[owner].with_mut(|place| unsafe { *place = value });
    }

    /// What another process does with it inside a superstep.
    pub(super) fn read(&self, owner: Pid) -> u64 {
        // SAFETY: a word of this vector.
        self.0[owner].with(|place| unsafe { *place })
    }
}
