//! Entering and leaving sections: exec, rehook, the closing barrier.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use lpf_core::request::Requests;
use lpf_core::runtime::{LocalState, Node, check_processes};
use lpf_core::settings::Pin;
use lpf_core::{Args, Pid, Result};
use parking_lot::Mutex;

use crate::comm::{Comm, Others, Rows};
use crate::environment::Environment;
use crate::memory;
use crate::pin;
use crate::pin_choice;
use crate::pool;
use crate::strays;
use crate::threads::{self, Prepared, ThreadEngine, Threads};

/// Runs `section` on the processes of a node, on as many of the `free` processors, and `own` as its first on this thread;
/// `nested` if this thread is
/// a process of a section already. Neither may panic, and both leave the section: they end in [`lpf_core::run_section`].
pub(crate) fn exec<R>(
    environment: &Arc<Environment>,
    (node, others): (Node, Option<Others>),
    free: Pid,
    nested: bool,
    args: Args<'_>,
    section: impl Fn(Threads, Args<'_>) -> Result<()> + Sync,
    own: impl FnOnce(Threads, Args<'_>) -> Result<R>,
) -> Result<R> {
    let procs = node.processes;
    check_processes(procs)?;
    memory::check_section(procs)?;
    let began = Instant::now();
    let pin = pin_choice::resolve(&environment.pin, procs, nested);
    let comm = Comm::new((node, others), environment, &pin)?;
    // What may be refused. Each thread makes the rest of its process, which is large and would be moved often.
    let mut queues = Vec::with_capacity(procs);
    for pid in node.pids() {
        queues.push(Mutex::new(Some(Requests::new(pid, comm.processes())?)));
    }
    let symbols = args.symbols;
    let take = |seat: usize| {
        // Even shares of the free processors, the remainder to low numbers.
        let share = free / procs + Pid::from(seat < free % procs);
        let queue = queues[seat].lock().take()?;
        Some(threads::process_with(queue, comm.clone(), share.max(1)).enter())
    };
    // Before this thread is pinned: the machine is read as the program may use it.
    let pins = pin::plan(&pin, procs, environment.cores);
    let member = |seat: usize| {
        pins.settle(seat);
        if let Some(process) = take(seat) {
            // What went wrong is in the failure's report.
            let _ = section(process, Args { symbols, ..Args::none() });
        }
    };
    let mut ended = None;
    pool::run(procs - 1, &|worker| member(worker + 1), || {
        let _pinned = pins.hold();
        if let Some(process) = take(0) {
            ended = Some(own(process, args));
        }
    })?;
    if environment.pin == Pin::Auto && pin != Pin::None {
        strays::report(began);
    }
    match comm.failure.report() {
        None => ended.expect("the first process has run on this thread"),
        Some(report) => Err(report),
    }
}

impl ThreadEngine {
    pub(crate) fn prepare_inner(&self, local: &LocalState) -> Result<Prepared> {
        let parity = (self.meeting + 1) as usize % 2;
        if local.pid == self.comm.node.first {
            let inner = &mut self.comm.lock_inner()[parity];
            match &*inner {
                Some(kept) if !kept.failure.is_set() => {
                    kept.board.begin_section();
                    kept.reserved.store(0, Relaxed);
                }
                _ => {
                    let made = Comm::new(
                        (self.comm.node, self.comm.others.clone()),
                        &self.comm.environment,
                        &self.comm.pin,
                    )?;
                    *inner = Some(made);
                }
            }
        }
        Ok(Prepared { parity, spare: LocalState::new(local.pid, local.nprocs, None)? })
    }

    /// This process in the context that process 0 has made.
    pub(crate) fn enter_inner(&mut self, local: &LocalState) -> Result<Threads> {
        let prepared = self.prepared.take();
        let Prepared { parity, spare: mut fresh } =
            *prepared.expect("core has prepared the rehook");
        let comm = self.comm.lock_inner()[parity].clone();
        let comm = comm.expect("process 0 made it before the barrier");
        let own = comm.peer(local.pid);
        own.forget();
        fresh.keep_checks_in(own.checks.clone());
        let engine = ThreadEngine::new(comm, local.pid, self.free);
        Ok(Threads::of(fresh, engine).enter())
    }
}

impl crate::comm::Peer {
    /// Forgets an earlier context of the same processes. Called by its process before its first
    /// meeting in the new one.
    fn forget(&self) {
        self.show_table((std::ptr::null(), 0));
        self.hide_residents();
        self.show_rows(&Rows::default());
        self.wanted_requests.store(0, Relaxed);
        *self.registrations.lock() = Default::default();
        self.clear_inboxes();
        *self.lock_status() = Default::default();
        if let Some(checks) = &self.checks {
            *checks.lock() = Default::default();
        }
    }
}
