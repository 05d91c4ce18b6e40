//! The facts about a machine that measuring depends on: its name, processor, memory and cache.

use std::fs;

/// A machine, as far as measuring cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name that its table is filed under.
    pub name: String,
    /// The processor's model, as the system reports it; `unknown` if it does not.
    pub cpu: String,
    /// Memory that this process may use, bytes: the machine's, or less if a control group limits it.
    pub memory_bytes: usize,
    /// The largest cache that a core sees, bytes.
    pub last_cache_bytes: usize,
}

/// Where the system tells nothing, a small server of about 2020.
const UNKNOWN_MEMORY: usize = 8 << 30;
const UNKNOWN_CACHE: usize = 32 << 20;

/// What a processor is called where the system does not tell.
pub(crate) const UNKNOWN_CPU: &str = "unknown";

impl Host {
    /// Whether the system tells the processor: if not, most likely neither memory nor caches.
    pub(crate) fn knows_cpu(&self) -> bool {
        self.cpu != UNKNOWN_CPU
    }

    /// The machine this runs on. Reads a few small files.
    pub fn this() -> Self {
        let machine = lpf_pthreads::topology();
        let known = |bytes: usize, unknown| if bytes == 0 { unknown } else { bytes };
        Host {
            name: lpf_core::host::name(),
            cpu: machine.model,
            memory_bytes: limited(known(machine.memory_bytes, UNKNOWN_MEMORY)),
            last_cache_bytes: known(machine.last_cache_bytes, UNKNOWN_CACHE),
        }
    }
}

fn text(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// The machine's memory, or what a control group (version 2 or 1) leaves of it. A limit that is no
/// number means none.
fn limited(memory: usize) -> usize {
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    limits.iter().filter_map(|path| text(path)?.parse::<usize>().ok()).fold(memory, usize::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_memory_and_a_cache() {
        let host = Host::this();
        assert!(!host.name.is_empty());
        assert!(host.memory_bytes > 1 << 20);
        assert!(host.last_cache_bytes > 1 << 10);
    }
}
