//! What the processes of a section share.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use lpf_core::check::{Pending, Registry};
use lpf_core::process::Maker;
use lpf_core::request::List;
use lpf_core::settings::Pin;
use lpf_core::slot::Entry;
use lpf_core::waits::Status;
use lpf_core::{Error, Pid};
use parking_lot::{Mutex, MutexGuard};

use crate::barrier::Barrier;
use crate::board::BoardState;
use crate::failure::Failure;
use crate::links::ring::InboxMemory;
use crate::section::Environment;
use crate::sync::{AtomicU32, AtomicU64, Ordering, Padded};
use crate::tune;

/// What one process has for one other in one superstep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Puts for it.
    pub(crate) puts: List,
    /// Gets that name it.
    pub(crate) gets: u32,
}

impl Row {
    pub(crate) const EMPTY: Row =
        Row { puts: List { head: std::ptr::null(), requests: 0 }, gets: 0 };

    /// As two words of a line.
    pub(crate) fn to_words(self) -> [u64; 2] {
        let counts = u64::from(self.puts.requests) << 32 | u64::from(self.gets);
        [self.puts.head as u64, counts]
    }

    pub(crate) fn from_words([head, counts]: [u64; 2]) -> Self {
        let puts = List { head: head as *const _, requests: (counts >> 32) as u32 };
        Row { puts, gets: counts as u32 }
    }
}

/// A row in the memory of its process, where there are too many for its line.
#[derive(Debug)]
pub(crate) struct RowCell(UnsafeCell<(Row, u64)>);

impl RowCell {
    fn new() -> Self {
        RowCell(UnsafeCell::new((Row::EMPTY, 0)))
    }

    /// # Safety
    /// Called by the row's process, between its departure from one sync and its arrival at the
    /// next.
    pub(crate) unsafe fn write(&self, row: Row, meeting: u64) {
        // SAFETY: nobody reads it at that time.
        unsafe { *self.0.get() = (row, meeting) }
    }

    /// The row of this meeting; an older one is no news.
    ///
    /// # Safety
    /// Called between the first and the second meeting of a sync.
    pub(crate) unsafe fn read(&self, meeting: u64) -> Row {
        // SAFETY: its process does not write it at that time, and what it wrote came before the
        // first meeting.
        let (row, written) = unsafe { *self.0.get() };
        if written == meeting { row } else { Row::EMPTY }
    }
}

/// What a process shows the others. Each word has one writer, its process; the others read it
/// between the two meetings of a sync, which order the accesses.
#[derive(Debug)]
pub(crate) struct Peer {
    /// By target.
    pub(crate) rows: Vec<RowCell>,
    table: AtomicPtr<Entry>,
    table_len: AtomicUsize,
    pub(crate) wanted_slots: AtomicUsize,
    pub(crate) wanted_requests: AtomicUsize,
    pub(crate) registrations: AtomicU64,
    pub(crate) registration_hash: AtomicU64,
    /// Rung for a process that sleeps in an expected wait.
    pub(crate) bell: Padded<Bell>,
    /// By inbox number.
    inboxes: Mutex<Vec<Option<Arc<InboxMemory>>>>,
    status: Mutex<Status>,
    /// Checked mode only.
    checks: Mutex<Checks>,
}

/// What checked mode knows of one process.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) pending: Pending,
    pub(crate) registry: Registry,
}

#[derive(Debug, Default)]
pub(crate) struct Bell {
    pub(crate) asleep: AtomicU32,
    pub(crate) rings: AtomicU32,
}

// SAFETY: `rows` is written by its process and read by others only at different times, as its
// methods demand; everything else is atomic or locked.
unsafe impl Sync for Peer {}
// SAFETY: the pointers in it name memory of the section, which outlives the value.
unsafe impl Send for Peer {}

impl Peer {
    fn new(processes: usize) -> Self {
        Peer {
            rows: (0..processes).map(|_| RowCell::new()).collect(),
            table: AtomicPtr::new(std::ptr::null_mut()),
            table_len: AtomicUsize::new(0),
            wanted_slots: AtomicUsize::new(0),
            wanted_requests: AtomicUsize::new(0),
            registrations: AtomicU64::new(0),
            registration_hash: AtomicU64::new(0),
            bell: Padded(Bell::default()),
            inboxes: Mutex::new(Vec::new()),
            status: Mutex::default(),
            checks: Mutex::default(),
        }
    }

    /// Shows this process's global slots to those that get from it.
    pub(crate) fn show_table(&self, (entries, len): (*const Entry, usize)) {
        self.table.store(entries.cast_mut(), Ordering::Relaxed);
        self.table_len.store(len, Ordering::Relaxed);
    }

    /// The global slots of this process.
    ///
    /// # Safety
    /// Called between the first and the second meeting of a sync; not used after.
    pub(crate) unsafe fn table(&self) -> &[Entry] {
        let len = self.table_len.load(Ordering::Relaxed);
        if len == 0 {
            return &[];
        }
        // SAFETY: the process showed its table before the first meeting and does not change it
        // before the second.
        unsafe { std::slice::from_raw_parts(self.table.load(Ordering::Relaxed), len) }
    }

    pub(crate) fn lock_status(&self) -> MutexGuard<'_, Status> {
        self.status.lock()
    }

    pub(crate) fn lock_checks(&self) -> MutexGuard<'_, Checks> {
        self.checks.lock()
    }

    fn lock_inboxes(&self) -> MutexGuard<'_, Vec<Option<Arc<InboxMemory>>>> {
        self.inboxes.lock()
    }

    /// Adds an inbox; its number is that of the call.
    pub(crate) fn add_inbox(&self, inbox: Arc<InboxMemory>) -> usize {
        let mut inboxes = self.lock_inboxes();
        inboxes.push(Some(inbox));
        inboxes.len() - 1
    }

    pub(crate) fn inbox(&self, number: usize) -> Option<Arc<InboxMemory>> {
        self.lock_inboxes().get(number).cloned().flatten()
    }

    pub(crate) fn remove_inbox(&self, number: usize) {
        if let Some(inbox) = self.lock_inboxes().get_mut(number) {
            *inbox = None;
        }
    }

    pub(crate) fn clear_inboxes(&self) {
        self.lock_inboxes().clear();
    }

    /// Wakes the process if it sleeps in an expected wait.
    #[inline]
    pub(crate) fn ring(&self) {
        if self.bell.asleep.load(Ordering::Relaxed) != 0 {
            self.bell.rings.fetch_add(1, Ordering::Release);
            crate::futex::wake(&self.bell.rings);
        }
    }
}

/// The shared state of one context's processes.
#[derive(Debug)]
pub(crate) struct Comm {
    pub(crate) barrier: Barrier,
    pub(crate) failure: Failure,
    pub(crate) peers: Vec<Padded<Peer>>,
    pub(crate) board: BoardState,
    pub(crate) environment: Arc<Environment>,
    /// Its threads exist in this process alone, and in no child that is forked from it.
    pub(crate) maker: Maker,
    /// Where its threads were put.
    pub(crate) pin: Pin,
    /// The context of a rehook, made by process 0 for the others to fetch and kept for the next but
    /// one: by parity of the meeting that enters it, because a process that leaves one early may
    /// enter the next before the last has fetched.
    inner: Mutex<[Option<Arc<Comm>>; 2]>,
}

impl Comm {
    pub(crate) fn new(
        processes: Pid,
        environment: &Arc<Environment>,
        pin: &Pin,
    ) -> Result<Arc<Self>, Error> {
        let processes = processes as usize;
        let (shape, patience) = tune::barrier(environment, processes, pin);
        let mut peers = Vec::new();
        peers.try_reserve_exact(processes).map_err(|_| {
            let bytes = processes * size_of::<Padded<Peer>>();
            Error::refused(lpf_core::Cause::OutOfMemory { what: "a section".into(), bytes })
        })?;
        peers.extend((0..processes).map(|_| Padded(Peer::new(processes))));
        Ok(Arc::new(Comm {
            barrier: Barrier::new(processes, &shape, patience),
            failure: Failure::new(),
            peers,
            board: BoardState::new(processes),
            environment: environment.clone(),
            maker: Maker::this(),
            pin: pin.clone(),
            inner: Mutex::default(),
        }))
    }

    pub(crate) fn processes(&self) -> usize {
        self.peers.len()
    }

    pub(crate) fn lock_inner(&self) -> MutexGuard<'_, [Option<Arc<Comm>>; 2]> {
        self.inner.lock()
    }

    /// Wakes everybody who sleeps in an expected wait, after a failure.
    pub(crate) fn ring_all(&self) {
        self.peers.iter().for_each(|peer| peer.ring());
    }
}
