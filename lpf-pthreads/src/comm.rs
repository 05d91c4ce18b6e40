//! What the processes of a section share.

use std::cell::UnsafeCell;
use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicPtr, AtomicUsize};
use std::sync::{Arc, Weak};

use lpf_core::board::Registers;
use lpf_core::check::SharedChecks;
use lpf_core::process::Maker;
use lpf_core::request::{List, Record};
use lpf_core::runtime::{Aimed, GlobalSlots, LocalState, Node, Registrations, Residents, Statuses};
use lpf_core::settings::Pin;
use lpf_core::slot::Entry;
use lpf_core::wait::Patience;
use lpf_core::waits::Status;
use lpf_core::{Cause, Error, Pid};
use parking_lot::{Mutex, MutexGuard};

use crate::barrier::{Barrier, Line};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::links::ring::InboxMemory;
use crate::sync::{AtomicU32, AtomicU64, Ordering, Padded, now};
use crate::tune;

/// A row, as two words of a line.
pub(crate) fn row_to_words(row: Aimed) -> [u64; 2] {
    let counts = u64::from(row.puts.requests) << 32 | u64::from(row.gets);
    [row.puts.head as u64, counts]
}

pub(crate) fn row_from_words([head, counts]: [u64; 2]) -> Aimed {
    let puts = List { head: head as *const _, requests: (counts >> 32) as u32 };
    Aimed { puts, gets: counts as u32 }
}

/// The rows of one process in its own memory, where there are too many for its line: a table in which a row is found
/// by its target, with open addressing. It has twice as many places as the process can have targets in a superstep, or
/// one for each process if these are fewer. A row of an earlier meeting is a free place.
#[derive(Debug, Default)]
pub(crate) struct Rows(Vec<RowCell>);

#[derive(Debug)]
struct RowCell(UnsafeCell<Written>);

/// A row, its target, and the meeting for which it was written: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Written {
    meeting: u64,
    head: *const Record,
    requests: u32,
    gets: u32,
    target: Pid,
}

const _: () = assert!(size_of::<Written>() == 32);

impl Written {
    const FREE: Written =
        Written { meeting: 0, head: std::ptr::null(), requests: 0, gets: 0, target: 0 };

    fn row(self) -> Aimed {
        Aimed { puts: List { head: self.head, requests: self.requests }, gets: self.gets }
    }
}

// SAFETY: cells are written by their process and read by others only at different times, as the methods of
// `Rows` and `ShownRows` demand.
unsafe impl Send for Rows {}

impl Rows {
    /// The places for `requests` requests among `processes` processes.
    fn places_for(processes: usize, requests: usize) -> usize {
        let table = requests.saturating_mul(2).min(processes).next_power_of_two();
        if requests == 0 || processes <= ROWS_IN_LINE { 0 } else { table }
    }

    /// The bytes for `requests` requests among `processes` processes.
    pub(crate) fn bytes_for(processes: usize, requests: usize) -> usize {
        Self::places_for(processes, requests) * size_of::<RowCell>()
    }

    /// Makes places for the targets of `requests` requests; true if the rows have moved.
    ///
    /// # Errors
    /// The bytes that were refused; nothing has changed then.
    pub(crate) fn reserve(&mut self, processes: usize, requests: usize) -> Result<bool, usize> {
        let places = Self::places_for(processes, requests);
        if places <= self.0.len() {
            return Ok(false);
        }
        let mut cells = Vec::new();
        cells.try_reserve_exact(places).map_err(|_| Self::bytes_for(processes, requests))?;
        cells.extend((0..places).map(|_| RowCell(UnsafeCell::new(Written::FREE))));
        self.0 = cells;
        Ok(true)
    }

    /// Writes the row for `target`, which has none for this meeting.
    ///
    /// # Safety
    /// Called by the rows' process, between its departure from one sync and its arrival at the next.
    pub(crate) unsafe fn write(&self, target: Pid, row: Aimed, meeting: u64) {
        let mask = self.0.len() - 1;
        let mut place = target & mask;
        loop {
            let cell = self.0[place].0.get();
            // SAFETY: nobody else reads or writes it at that time.
            unsafe {
                if (*cell).meeting != meeting {
                    let List { head, requests } = row.puts;
                    *cell = Written { meeting, head, requests, gets: row.gets, target };
                    return;
                }
            }
            place = (place + 1) & mask;
        }
    }
}

/// Where the others find the rows of a process.
#[derive(Debug)]
struct ShownRows {
    cells: AtomicPtr<RowCell>,
    places: AtomicUsize,
}

impl ShownRows {
    /// The row for `target` of this meeting.
    ///
    /// # Safety
    /// Called between the first and the second meeting of a sync, of which `meeting` is the number.
    unsafe fn read(&self, target: Pid, meeting: u64) -> Aimed {
        let places = self.places.load(Ordering::Relaxed);
        if places == 0 {
            return Aimed::EMPTY;
        }
        let (cells, mask) = (self.cells.load(Ordering::Relaxed), places - 1);
        let mut place = target & mask;
        loop {
            // SAFETY: the process showed its rows before the first meeting, and neither writes nor moves them before
            // the second. The place is below their number.
            let written = unsafe { *(*cells.add(place)).0.get() };
            if written.meeting != meeting {
                return Aimed::EMPTY;
            }
            if written.target == target {
                return written.row();
            }
            place = (place + 1) & mask;
        }
    }
}

/// With at most this many processes the rows are words of the line, two each: what the first
/// meeting has fetched already.
pub(crate) const ROWS_IN_LINE: usize = crate::barrier::PAYLOAD / 2;

/// What a process shows the others. Each word has one writer, its process; the others read it
/// between the two meetings of a sync, which order the accesses.
#[derive(Debug)]
pub(crate) struct Peer {
    rows: ShownRows,
    /// The processes that it stands for, if it is a node.
    residents: AtomicPtr<Residents>,
    table: AtomicPtr<Entry>,
    table_len: AtomicUsize,
    pub(crate) wanted_requests: AtomicUsize,
    /// As [`LocalState::registrations`](lpf_core::runtime::LocalState::registrations) has them.
    pub(crate) registrations: Mutex<[Registrations; 2]>,
    /// Stands for the slots that this process has abandoned.
    pub(crate) abandoned: AtomicU64,
    /// Rung for a process that sleeps in an expected wait.
    pub(crate) bell: Padded<Bell>,
    /// By inbox number.
    inboxes: Mutex<Vec<Option<Arc<InboxMemory>>>>,
    status: Mutex<Status>,
    /// Present in checked mode.
    pub(crate) checks: Option<SharedChecks>,
}

#[derive(Debug, Default)]
pub(crate) struct Bell {
    pub(crate) asleep: AtomicU32,
    pub(crate) rings: AtomicU32,
}

impl Peer {
    fn new(check: bool) -> Self {
        Peer {
            rows: ShownRows {
                cells: AtomicPtr::new(std::ptr::null_mut()),
                places: AtomicUsize::new(0),
            },
            residents: AtomicPtr::new(std::ptr::null_mut()),
            table: AtomicPtr::new(std::ptr::null_mut()),
            table_len: AtomicUsize::new(0),
            wanted_requests: AtomicUsize::new(0),
            registrations: Mutex::default(),
            abandoned: AtomicU64::new(0),
            bell: Padded(Bell::default()),
            inboxes: Mutex::new(Vec::new()),
            status: Mutex::default(),
            checks: check.then(SharedChecks::default),
        }
    }

    /// Shows where this process's rows are. Called by their process, outside of a sync.
    pub(crate) fn show_rows(&self, rows: &Rows) {
        self.rows.cells.store(rows.0.as_ptr().cast_mut(), Ordering::Relaxed);
        self.rows.places.store(rows.0.len(), Ordering::Relaxed);
    }

    /// What this process has for `target` in this meeting.
    ///
    /// # Safety
    /// Called between the first and the second meeting of a sync, of which `meeting` is the number.
    pub(crate) unsafe fn row(&self, target: Pid, meeting: u64) -> Aimed {
        // SAFETY: the caller's promise is that of `read`.
        unsafe { self.rows.read(target, meeting) }
    }

    /// Shows this process's global slots to those that get from it.
    pub(crate) fn show_table(&self, (entries, len): (*const Entry, usize)) {
        self.table.store(entries.cast_mut(), Ordering::Relaxed);
        self.table_len.store(len, Ordering::Relaxed);
    }

    /// The processes that this one stands for, if it is a node.
    pub(crate) fn residents(&self) -> Option<&Residents> {
        // SAFETY: what the process has shown lies in its tables, for as long as it is in the section.
        unsafe { self.residents.load(Ordering::Relaxed).as_ref() }
    }

    /// Shows the processes that this one stands for.
    pub(crate) fn show_residents(&self, residents: &Residents) {
        self.residents.store(std::ptr::from_ref(residents).cast_mut(), Ordering::Relaxed);
    }

    /// Nothing is shown any more.
    pub(crate) fn hide_residents(&self) {
        self.residents.store(std::ptr::null_mut(), Ordering::Relaxed);
    }

    /// The global slots of this process.
    ///
    /// # Safety
    /// Called between the first and the second meeting of a sync; not used after.
    pub(crate) unsafe fn slots(&self) -> GlobalSlots<'_> {
        if let Some(residents) = self.residents() {
            return GlobalSlots::OfNode(residents);
        }
        let len = self.table_len.load(Ordering::Relaxed);
        if len == 0 {
            return GlobalSlots::Own(&[]);
        }
        // SAFETY: the process showed its table before the first meeting and does not change it
        // before the second.
        GlobalSlots::Own(unsafe {
            std::slice::from_raw_parts(self.table.load(Ordering::Relaxed), len)
        })
    }

    /// What checked mode keeps of this process, or of each that it stands for.
    pub(crate) fn all_checks(&self) -> &[SharedChecks] {
        match self.residents() {
            Some(residents) => &residents.checks,
            None => self.checks.as_slice(),
        }
    }

    pub(crate) fn lock_status(&self) -> MutexGuard<'_, Status> {
        self.status.lock()
    }

    fn lock_inboxes(&self) -> MutexGuard<'_, Vec<Option<Arc<InboxMemory>>>> {
        self.inboxes.lock()
    }

    /// Adds an inbox; its number is that of the call.
    pub(crate) fn add_inbox(&self, inbox: Arc<InboxMemory>) {
        self.lock_inboxes().push(Some(inbox));
    }

    pub(crate) fn inbox(&self, number: usize) -> Option<Arc<InboxMemory>> {
        self.lock_inboxes().get(number).cloned().flatten()
    }

    pub(crate) fn remove_inbox(&self, number: usize) -> Option<Arc<InboxMemory>> {
        self.lock_inboxes().get_mut(number)?.take()
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
    /// Its processes.
    pub(crate) node: Node,
    /// The other nodes, if there are any.
    pub(crate) others: Option<Others>,
    pub(crate) barrier: Barrier,
    pub(crate) failure: Failure,
    pub(crate) peers: Vec<Padded<Peer>>,
    pub(crate) board: Registers,
    pub(crate) environment: Arc<Environment>,
    /// Its threads exist in this process alone, and in no child that is forked from it.
    pub(crate) maker: Maker,
    /// Bytes of the reservations of all processes.
    pub(crate) reserved: AtomicUsize,
    /// Where its threads were put.
    pub(crate) pin: Pin,
    /// The context of a rehook, made by process 0 for the others to fetch and kept for the next but
    /// one: by parity of the meeting that enters it, because a process that leaves one early may
    /// enter the next before the last has fetched.
    inner: Mutex<[Option<Arc<Comm>>; 2]>,
}

/// The other nodes of a hybrid section, as the waits of one node see them.
pub trait Outside: Send + Sync {
    /// Looks at the network: moves what can move, and returns the failure of the section, if there is one. Called beside
    /// the sleeps of a wait.
    fn look(&self) -> Option<Error>;

    /// A thread has published what it does, in its node.
    fn published(&self);
}

/// The rest of a hybrid section.
pub(crate) struct Others {
    /// The processes of all nodes.
    pub(crate) processes: Pid,
    /// The node of the context. It keeps this memory, so it is not kept from here; and each rehook has another one.
    outside: Mutex<Weak<dyn Outside>>,
}

impl Others {
    pub(crate) fn new(processes: Pid, outside: Weak<dyn Outside>) -> Self {
        Others { processes, outside: Mutex::new(outside) }
    }

    pub(crate) fn outside(&self) -> Option<Arc<dyn Outside>> {
        self.outside.lock().upgrade()
    }

    pub(crate) fn set_outside(&self, outside: Weak<dyn Outside>) {
        *self.outside.lock() = outside;
    }
}

impl Clone for Others {
    fn clone(&self) -> Self {
        Others::new(self.processes, self.outside.lock().clone())
    }
}

impl Debug for Others {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "other nodes of a section of {} processes", self.processes)
    }
}

impl Statuses for Comm {
    fn status(&self, pid: Pid) -> Status {
        self.peer(pid).lock_status().clone()
    }
}

impl AsRef<Comm> for Comm {
    fn as_ref(&self) -> &Comm {
        self
    }
}

impl Comm {
    pub(crate) fn new(
        (node, others): (Node, Option<Others>),
        environment: &Arc<Environment>,
        pin: &Pin,
    ) -> Result<Arc<Self>, Error> {
        // Asked here, because it may allocate and no superstep does.
        let _ = crate::futex::is_registered();
        let processes = node.processes;
        let (shape, patience) = tune::barrier(environment, processes, pin);
        let mut peers = Vec::new();
        peers.try_reserve_exact(processes).map_err(|_| {
            let bytes = processes.saturating_mul(size_of::<Padded<Peer>>());
            Error::refused(lpf_core::Cause::OutOfMemory { what: "a section".into(), bytes })
        })?;
        peers.extend((0..processes).map(|_| Padded(Peer::new(environment.check))));
        Ok(Arc::new(Comm {
            node,
            others,
            barrier: Barrier::new(processes, &shape, patience),
            failure: Failure::new(),
            peers,
            board: Registers::new(now),
            environment: environment.clone(),
            maker: Maker::this(),
            reserved: AtomicUsize::new(0),
            pin: pin.clone(),
            inner: Mutex::default(),
        }))
    }

    /// Says that a process will not reach `meeting`, and why. True if this is the first report.
    #[cold]
    pub(crate) fn declare(&self, meeting: u64, error: Error) -> bool {
        let is_first = self.failure.declare(meeting, error);
        if let Some(report) = self.failure.report() {
            self.board.fail(report);
        }
        is_first
    }

    /// The section's failure.
    #[cold]
    pub(crate) fn report(&self, local: &LocalState) -> Error {
        let unknown = || local.misuse(Cause::Protocol("the section failed".into()));
        self.failure.report().unwrap_or_else(unknown)
    }

    /// An error in a child that was forked from this process: none of the others exists there.
    #[inline]
    pub(crate) fn check_process(&self, local: &LocalState) -> Result<(), Error> {
        self.maker.check(local.pid, local.superstep)
    }

    /// The processes of the section.
    pub(crate) fn processes(&self) -> Pid {
        self.others.as_ref().map_or(self.node.processes, |others| others.processes)
    }

    /// What a process shows.
    #[inline]
    pub(crate) fn peer(&self, pid: Pid) -> &Peer {
        &self.peers[self.node.seat(pid)]
    }

    /// What the process shows that is, or stands for, process `pid` of the section.
    pub(crate) fn peer_with(&self, pid: Pid) -> &Peer {
        match self.peers[0].residents() {
            None => self.peer(pid),
            Some(residents) => self.peer(residents.nodes().of(pid)),
        }
    }

    /// The line of a process at the barrier of this epoch.
    #[inline]
    pub(crate) fn line(&self, pid: Pid, epoch: u32) -> &Line {
        self.barrier.line(self.node.seat(pid), epoch)
    }

    /// Whether a process has arrived at the barrier of this epoch.
    pub(crate) fn has_arrived(&self, pid: Pid, epoch: u32) -> bool {
        self.line(pid, epoch).has_reached(epoch)
    }

    /// How long a wait of a process spins and yields.
    pub(crate) fn patience(&self) -> Patience {
        Patience::for_processes(self.node.processes, self.environment.cores)
    }

    pub(crate) fn lock_inner(&self) -> MutexGuard<'_, [Option<Arc<Comm>>; 2]> {
        self.inner.lock()
    }

    /// Wakes everybody who sleeps in an expected wait, after a failure.
    pub(crate) fn ring_all(&self) {
        self.peers.iter().for_each(|peer| peer.ring());
    }
}
