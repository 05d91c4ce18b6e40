//! Where threads run.

use std::cell::Cell;

use lpf_core::process::PerProcess;
use lpf_core::settings::Pin;

use crate::topology::{MachineTopology, topology};

pub(crate) fn machine() -> &'static MachineTopology {
    static MACHINE: PerProcess<MachineTopology> = PerProcess::inherited(topology);
    MACHINE.get()
}

/// The core of each process of a section, or none.
#[derive(Debug)]
pub(crate) struct Pins {
    cores: Vec<usize>,
    /// Processes that share a core.
    share: usize,
}

/// How many processes share a core.
pub(crate) fn per_core(processes: usize, cores: usize) -> usize {
    processes.div_ceil(cores.max(1)).max(1)
}

/// Which process goes where: neighbours share a core where processes outnumber cores, and cores are
/// taken in an order in which neighbours share much (compact) or little (scatter).
pub(crate) fn plan(pin: &Pin, processes: usize, cores: usize) -> Pins {
    let machine = machine();
    let order: Vec<usize> = match pin {
        Pin::None | Pin::Auto => Vec::new(),
        Pin::Compact => machine.cores.iter().map(|core| core.number).collect(),
        Pin::Scatter => scattered(machine),
    };
    if order.is_empty() {
        return Pins { cores: order, share: 1 };
    }
    let mut order = order;
    if let Some(here) = current_core().and_then(|core| order.iter().position(|&c| c == core)) {
        // Process 0 is the caller: it stays where it is.
        order.rotate_left(here);
    }
    let cores = cores.clamp(1, order.len());
    let share = per_core(processes, cores);
    Pins { cores: (0..processes).map(|process| order[process / share]).collect(), share }
}

#[cfg(target_os = "linux")]
fn current_core() -> Option<usize> {
    // SAFETY: the call takes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(not(target_os = "linux"))]
fn current_core() -> Option<usize> {
    None
}

/// The cores in turns: the first of each last cache, then the second of each, and so on.
fn scattered(machine: &MachineTopology) -> Vec<usize> {
    let mut rank = std::collections::BTreeMap::new();
    let mut order: Vec<(usize, usize, usize)> = machine
        .cores
        .iter()
        .map(|core| {
            let rank = rank.entry((core.node, core.last_cache)).or_insert(0usize);
            *rank += 1;
            (*rank, core.node, core.number)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, number)| number).collect()
}

impl Pins {
    /// Pins this thread, which is the user's, as process 0 until the guard goes. With a core of its
    /// own it need not be pinned: the others are, elsewhere.
    pub(crate) fn hold(&self) -> Option<Pinned> {
        match self.cores.first() {
            Some(&core) if self.share > 1 => {
                let pinned = Pinned::now();
                only(core).apply();
                CORE.set(Some(core));
                Some(pinned)
            }
            _ => None,
        }
    }

    /// Puts this thread, which is a worker of the pool, where process `pid` runs. It stays there
    /// until a section wants it elsewhere: repeated sections pay no system call.
    pub(crate) fn settle(&self, pid: usize) {
        let wanted = self.cores.get(pid).copied();
        if CORE.replace(wanted) != wanted {
            match wanted {
                Some(core) => only(core).apply(),
                None => everywhere(),
            }
        }
    }
}

fn only(core: usize) -> Affinity {
    let mut set = Affinity::default();
    set.add(core);
    set
}

/// Lets this thread run on all cores of the program again: a thread inherits the cores of the one
/// that started it, which may be pinned.
pub(crate) fn everywhere() {
    let mut all = Affinity::default();
    machine().cores.iter().for_each(|core| all.add(core.number));
    all.apply();
}

thread_local! {
    /// The core that this thread was put on.
    static CORE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Gives the thread its former cores back when it goes.
pub(crate) struct Pinned {
    before: Option<Affinity>,
    core: Option<usize>,
}

impl Pinned {
    /// Where this thread is now.
    fn now() -> Self {
        Pinned { before: affinity(), core: CORE.get() }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        CORE.set(self.core);
        if let Some(before) = &self.before {
            before.apply();
        }
    }
}

/// Calls `f` with this thread on all cores of the program, also if the section has pinned it to one core.
///
/// A thread and a program inherit the cores of the thread that starts them, and keep them for ever. So start them
/// here if a section starts them, and build pools of threads here: the number of cores that
/// `available_parallelism` gives is also that of the calling thread.
///
/// ```
/// lpf_pthreads::exec(4, |ctx, _args| {
///     let helper = lpf_pthreads::unpinned(|| std::thread::spawn(|| 6 * 7));
///     ctx.sync()?;
///     assert_eq!(helper.join().unwrap(), 42);
///     Ok(())
/// })?;
/// # Ok::<(), lpf_core::Error>(())
/// ```
///
/// A thread that LPF has not pinned keeps the cores that it has. Two calls of the system if it is pinned.
pub fn unpinned<R>(f: impl FnOnce() -> R) -> R {
    let _pinned = CORE.get().is_some().then(|| {
        let pinned = Pinned::now();
        everywhere();
        pinned
    });
    f()
}

#[cfg(target_os = "linux")]
struct Affinity(libc::cpu_set_t);

#[cfg(target_os = "linux")]
impl Default for Affinity {
    fn default() -> Self {
        // SAFETY: a zeroed cpu_set_t is an empty set.
        Affinity(unsafe { std::mem::zeroed() })
    }
}

#[cfg(target_os = "linux")]
impl Affinity {
    fn add(&mut self, core: usize) {
        if core < 8 * size_of::<libc::cpu_set_t>() {
            // SAFETY: the number is below the set's size.
            unsafe { libc::CPU_SET(core, &mut self.0) };
        }
    }

    /// A refusal leaves the thread where it is: pinning is about speed alone.
    fn apply(&self) {
        // SAFETY: the set lives through the call, which changes this thread alone.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &self.0) };
    }
}

/// The cores of a thread by its number; 0 for this one.
#[cfg(target_os = "linux")]
fn affinity_of(thread: i32) -> Option<Affinity> {
    let mut set = Affinity::default();
    // SAFETY: the call fills the set.
    let got = unsafe { libc::sched_getaffinity(thread, size_of::<libc::cpu_set_t>(), &mut set.0) };
    (got == 0).then_some(set)
}

#[cfg(target_os = "linux")]
fn affinity() -> Option<Affinity> {
    affinity_of(0)
}

/// How many cores a thread or process may use.
#[cfg(target_os = "linux")]
pub(crate) fn count_cores(thread: i32) -> Option<usize> {
    // SAFETY: the set lives through the call.
    affinity_of(thread).map(|set| unsafe { libc::CPU_COUNT(&set.0) } as usize)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn count_cores(_thread: i32) -> Option<usize> {
    None
}

#[cfg(not(target_os = "linux"))]
#[derive(Default)]
struct Affinity;

#[cfg(not(target_os = "linux"))]
impl Affinity {
    fn add(&mut self, _core: usize) {}
    fn apply(&self) {}
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Option<Affinity> {
    None
}
