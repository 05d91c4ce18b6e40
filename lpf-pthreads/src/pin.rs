//! Where threads run.

use std::sync::OnceLock;

use lpf_core::settings::Pin;

use crate::topology::{MachineTopology, topology};

pub(crate) fn machine() -> &'static MachineTopology {
    static MACHINE: OnceLock<MachineTopology> = OnceLock::new();
    MACHINE.get_or_init(topology)
}

/// The core of each process of a section, or none.
#[derive(Debug)]
pub(crate) struct Pins(Vec<usize>);

/// Which process goes where: process i of p on core i·n/p of n, in an order in which neighbours
/// share much (compact) or little (scatter).
pub(crate) fn plan(pin: &Pin, processes: usize, cores: usize) -> Pins {
    let machine = machine();
    let mut order: Vec<usize> = machine.cores.iter().map(|core| core.number).collect();
    match pin {
        Pin::None | Pin::Auto => return Pins(Vec::new()),
        Pin::Compact => {}
        Pin::Scatter => order = scattered(machine),
    }
    order.truncate(cores.max(1));
    if order.is_empty() {
        return Pins(Vec::new());
    }
    let n = order.len();
    let spread = processes.max(n);
    let place = |process: usize| match pin {
        // Fewer processes than cores stay together.
        _ if processes <= n => order[process],
        _ => order[process * n / spread],
    };
    Pins((0..processes).map(place).collect())
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
    /// Pins this thread as process `pid` until the guard goes.
    pub(crate) fn hold(&self, pid: usize) -> Pinned {
        let Some(&core) = self.0.get(pid) else {
            return Pinned { before: None };
        };
        let before = affinity();
        if before.is_some() {
            let mut only = Affinity::default();
            only.add(core);
            only.apply();
        }
        Pinned { before }
    }
}

/// Gives the thread its former cores back when it goes.
pub(crate) struct Pinned {
    before: Option<Affinity>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            before.apply();
        }
    }
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

#[cfg(target_os = "linux")]
fn affinity() -> Option<Affinity> {
    let mut set = Affinity::default();
    // SAFETY: the call fills the set.
    let got = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set.0) };
    (got == 0).then_some(set)
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
