//! What the processes of a section share: its barrier, its failure, its start.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use lpf_conformance::Mode;
use lpf_core::board::Registers;
use lpf_core::check::SharedChecks;
use lpf_core::process::Maker;
use lpf_core::runtime::links::Ends;
use lpf_core::runtime::{LocalState, Process, Purpose, Shown, Summary, check_processes};
use lpf_core::waits::Status;
use lpf_core::{Args, Error, Pid, Result};

use crate::engine::Toy;
use crate::links::{Ring, RingName};

// ANCHOR: state
/// All that changes in a section.
#[derive(Default)]
pub(crate) struct State {
    /// By process, the barriers that it has arrived at; and those at which all have.
    pub(crate) arrived: Vec<u64>,
    completed: u64,
    /// What has been announced at the next barrier, and what all announced at the last one.
    announced: Option<Summary>,
    agreed: Option<Summary>,
    /// By process, its requests and slots in the full sync under way.
    pub(crate) shown: Vec<Option<Arc<Shown>>>,
    /// The first error that a process has found in that sync.
    pub(crate) found: Option<Error>,
    /// The failure of the section.
    pub(crate) failure: Option<Error>,
    pub(crate) rings: HashMap<RingName, Ring>,
    /// By process, what it waits for.
    pub(crate) statuses: Vec<Status>,
    /// The section of a rehook, with the number of the barrier that entered it.
    inner: Option<(u64, Arc<Shared>)>,
    /// Counts changes, for processes that sleep until there is one.
    pub(crate) changes: u64,
}

/// What the processes of a section share.
pub(crate) struct Shared {
    state: Mutex<State>,
    change: Condvar,
    pub(crate) board: Registers,
    /// By process, what checked mode keeps of it.
    pub(crate) checks: Vec<SharedChecks>,
    pub(crate) mode: Mode,
    pub(crate) maker: Maker,
}
// ANCHOR_END: state

impl Shared {
    pub(crate) fn new(processes: Pid, mode: Mode) -> Arc<Self> {
        let state = State {
            arrived: (0..processes).map(|_| 0).collect(),
            shown: (0..processes).map(|_| None).collect(),
            statuses: (0..processes).map(|_| Status::default()).collect(),
            ..State::default()
        };
        Arc::new(Shared {
            state: Mutex::new(state),
            change: Condvar::new(),
            board: Registers::new(now),
            checks: (0..processes).map(|_| SharedChecks::default()).collect(),
            mode,
            maker: Maker::this(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no process panics under the lock")
    }

    /// Changes the state and wakes the processes that sleep.
    pub(crate) fn change<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        state.changes += 1;
        self.change.notify_all();
        f(&mut state)
    }

    /// Sleeps until there is a change after the `seen` ones.
    pub(crate) fn sleep(&self, seen: u64, time: Duration) {
        drop(self.change.wait_timeout_while(self.lock(), time, |state| state.changes == seen));
    }

    /// The section of the rehook that the last barrier entered. The first process to ask makes it.
    pub(crate) fn inner(&self) -> Arc<Shared> {
        let State { inner, completed, .. } = &mut *self.lock();
        if inner.as_ref().is_none_or(|(entered, _)| entered != completed) {
            *inner = Some((*completed, Shared::new(self.checks.len(), self.mode)));
        }
        inner.as_ref().expect("it was made").1.clone()
    }
    // ANCHOR: barrier
    /// Waits for a barrier at which no process can be missing.
    pub(crate) fn wait_for_all(&self, number: u64) {
        drop(self.change.wait_while(self.lock(), |state| state.completed < number));
    }

    /// The section fails. The first report stands.
    pub(crate) fn fail(&self, error: Error) -> Error {
        let report = self.change(|state| state.failure.get_or_insert(error).clone());
        self.board.fail(report.clone());
        report
    }
}

impl State {
    /// Process `pid` arrives at its next barrier, whose number is returned.
    pub(crate) fn arrive(&mut self, pid: Pid, mine: Summary) -> u64 {
        self.announced.get_or_insert(mine).merge(&mine);
        let number = self.arrived[pid] + 1;
        self.arrived[pid] = number;
        if self.arrived.iter().all(|&arrived| arrived == number) {
            self.completed = number;
            self.agreed = self.announced.take();
        }
        number
    }

    /// What all announced at a barrier that is complete. Else it never is, if the section has failed, or because this
    /// process gives it up: all decide under the lock.
    pub(crate) fn agreed(&mut self, number: u64, late: Option<Error>) -> Result<Option<Summary>> {
        if self.completed == number {
            return Ok(self.agreed);
        }
        self.failure = self.failure.take().or(late);
        self.failure.clone().map_or(Ok(None), Err)
    }
}
// ANCHOR_END: barrier

/// The clock.
pub(crate) fn now() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}

// ANCHOR: sections
/// Process `pid` of a section. From now on the others count on it.
pub(crate) fn enter(shared: &Arc<Shared>, pid: Pid, free: Pid) -> Result<Process<Toy>> {
    let checks = shared.mode.check.then(|| shared.checks[pid].clone());
    let local = LocalState::new(pid, shared.checks.len(), checks)?;
    let (shared, all) = (shared.clone(), Summary::of(&local, Purpose::Sync));
    let toy = Toy { shared, all, ends: Ends::default(), free };
    Ok(Process::of(local, toy).enter())
}

/// Runs `own` as process 0 of up to `procs` on this thread, and `section` as the others, on `free` processors.
pub(crate) fn exec<R>(
    mode: Mode,
    procs: Pid,
    free: Pid,
    args: Args<'_>,
    section: impl Fn(Process<Toy>, Args<'_>) -> Result<()> + Copy + Send,
    own: impl FnOnce(Process<Toy>, Args<'_>) -> Result<R>,
) -> Result<R> {
    check_processes(procs)?;
    let procs = procs.min(free);
    let shared = Shared::new(procs, mode);
    let share = |pid| (free / procs + Pid::from(pid < free % procs)).max(1);
    let first = enter(&shared, 0, share(0))?;
    let others: Result<Vec<_>> = (1..procs).map(|pid| enter(&shared, pid, share(pid))).collect();
    let (others, symbols) = (others?, args.symbols);
    let ended = thread::scope(|scope| {
        for process in others {
            scope.spawn(move || section(process, Args { symbols, ..Args::none() }));
        }
        own(first, args)
    });
    shared.lock().failure.clone().map_or(ended, Err)
}
// ANCHOR_END: sections
