//! The machine as the system describes it: cores, shared caches, NUMA nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// One core (hardware thread) that this program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Core {
    /// NUMA node.
    pub node: usize,
    /// Processor package.
    pub package: usize,
    /// The first core that shares this one's last cache.
    pub last_cache: usize,
    /// The physical core, by its first hardware thread.
    pub physical: usize,
    /// The system's number.
    pub number: usize,
}

/// The cores that this program may use, neighbours first, and their caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineTopology {
    /// Sorted so that neighbours share as much as possible.
    pub cores: Vec<Core>,
    /// Size of the last cache in bytes; 0 if the system does not say.
    pub last_cache_bytes: usize,
    /// Processor model.
    pub model: String,
    /// Memory in bytes; 0 if the system does not say.
    pub memory_bytes: usize,
}

/// Reads the machine's topology.
pub fn topology() -> MachineTopology {
    let root = Path::new("/sys/devices/system/cpu");
    let mut cores: Vec<Core> = allowed().into_iter().map(|number| core(root, number)).collect();
    cores.sort_unstable();
    let first = cores.first().map_or(0, |core| core.number);
    MachineTopology {
        last_cache_bytes: last_cache(&root.join(format!("cpu{first}"))).map_or(0, |(_, size)| size),
        cores,
        model: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into()),
        memory_bytes: field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split_whitespace().next()?.parse::<usize>().ok())
            .map_or(0, |kib| kib * 1024),
    }
}

impl MachineTopology {
    /// Sizes of levels for a barrier, outermost first: NUMA nodes, last caches, cores. Levels of
    /// one member are left out, unequal ones are rounded up.
    pub fn levels(&self) -> Vec<usize> {
        let count = |key: fn(&Core) -> usize| {
            let mut seen: Vec<usize> = self.cores.iter().map(key).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len().max(1)
        };
        let (nodes, caches, cores) = (count(|c| c.node), count(|c| c.last_cache), self.cores.len());
        let caches_per_node = caches.div_ceil(nodes);
        let per_cache = cores.div_ceil(nodes * caches_per_node);
        let levels: Vec<usize> =
            [nodes, caches_per_node, per_cache].into_iter().filter(|&n| n > 1).collect();
        if levels.is_empty() { vec![1] } else { levels }
    }
}

impl fmt::Display for MachineTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.model)?;
        writeln!(f, "{} cores usable", self.cores.len())?;
        let mut caches: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for core in &self.cores {
            caches.entry((core.node, core.last_cache)).or_default().push(core.number);
        }
        for ((node, _), cores) in caches {
            let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
            writeln!(f, "node {node}: cores {} share a cache", cores.join(" "))?;
        }
        Ok(())
    }
}

/// The cores that the system lets this process use.
fn allowed() -> Vec<usize> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: a zeroed cpu_set_t is an empty set; the call fills it.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            let size = size_of::<libc::cpu_set_t>();
            (libc::sched_getaffinity(0, size, &mut set) == 0).then_some(set)
        };
        if let Some(set) = set {
            let limit = 8 * size_of::<libc::cpu_set_t>();
            // SAFETY: the numbers are below the set's size.
            return (0..limit).filter(|&n| unsafe { libc::CPU_ISSET(n, &set) }).collect();
        }
    }
    (0..lpf_core::settings::cores()).collect()
}

fn number(path: &Path) -> Option<usize> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The first number of a list like `0-3,8`.
fn first_of_list(path: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(path).ok()?;
    text.trim().split(['-', ',']).next()?.parse().ok()
}

fn core(root: &Path, n: usize) -> Core {
    let dir = root.join(format!("cpu{n}"));
    let node = std::fs::read_dir(&dir).ok().and_then(|entries| {
        entries.flatten().find_map(|entry| {
            entry.file_name().to_str()?.strip_prefix("node")?.parse::<usize>().ok()
        })
    });
    Core {
        node: node.unwrap_or(0),
        package: number(&dir.join("topology/physical_package_id")).unwrap_or(0),
        last_cache: last_cache(&dir).map_or(0, |(first, _)| first),
        physical: first_of_list(&dir.join("topology/thread_siblings_list")).unwrap_or(n),
        number: n,
    }
}

/// The first core that shares the last cache, and the cache's size.
fn last_cache(core: &Path) -> Option<(usize, usize)> {
    let mut last = None;
    for index in 0.. {
        let dir = core.join(format!("cache/index{index}"));
        let Some(level) = number(&dir.join("level")) else { break };
        let size = std::fs::read_to_string(dir.join("size")).unwrap_or_default();
        let first = first_of_list(&dir.join("shared_cpu_list")).unwrap_or(0);
        last = last.max(Some((level, first, bytes(size.trim()))));
    }
    last.map(|(_, first, size)| (first, size))
}

/// `32768K` in bytes.
fn bytes(text: &str) -> usize {
    let (digits, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let factor = match unit {
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => 1,
    };
    digits.parse::<usize>().unwrap_or(0) * factor
}

/// The value of the first line `name : value` of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_the_cores_that_the_standard_library_sees() {
        let found = topology();
        assert!(!found.cores.is_empty());
        assert!(found.levels().iter().product::<usize>() >= found.cores.len());
    }

    #[test]
    fn sizes_of_caches_are_read_with_their_units() {
        assert_eq!(bytes("32768K"), 32 << 20);
        assert_eq!(bytes("2M"), 2 << 20);
        assert_eq!(bytes("512"), 512);
        assert_eq!(bytes(""), 0);
    }

    #[test]
    fn levels_follow_nodes_caches_and_cores() {
        let core = |node, last_cache, number| Core {
            node,
            package: node,
            last_cache,
            physical: number,
            number,
        };
        let cores = (0..16).map(|n| core(n / 8, n / 4 * 4, n)).collect();
        let machine =
            MachineTopology { cores, last_cache_bytes: 0, model: String::new(), memory_bytes: 0 };
        assert_eq!(machine.levels(), [2, 2, 4]);
    }
}
