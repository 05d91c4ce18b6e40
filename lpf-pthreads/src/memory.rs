//! Whether the memory and the threads of a section fit the machine.
//!
//! The kernel promises more memory than it has, and ends the program when that is used. So what is large is compared
//! with what there is before.

use std::{fmt, fs};

use lpf_core::{Cause, Error, Result};

/// What a process of a section takes without any room, rounded up: 16 KiB for its context and the pages of its stack
/// that it touches (measured with 500 to 8000 processes), and the kernel's own stack and records of the thread.
const PER_PROCESS: usize = 64 << 10;

/// Less than this is not worth a look, which takes some 20 us.
const SMALL: usize = 64 << 20;

/// A thread has four mappings: its stack, the stack on which the standard library's handler of overflows runs, and a
/// guard below each. The library aborts the program if the system refuses the second stack.
const MAPPINGS_PER_THREAD: usize = 4;

/// Mappings that threads leave to the program, for its libraries and large areas.
const SPARE_MAPPINGS: usize = 1 << 10;

/// Refuses a section whose processes need more memory than there is.
///
/// # Errors
/// *Mitigable*, with what is needed and what there is.
pub(crate) fn check_section(processes: usize) -> Result<()> {
    check(processes.saturating_mul(PER_PROCESS), || format!("a section of {processes} processes"))
}

/// Refuses threads beyond a limit of the system.
///
/// # Errors
/// *Mitigable*, with the limit and what it leaves.
pub(crate) fn check_threads(more: usize) -> Result<()> {
    let least = limits().into_iter().min_by_key(|limit| limit.more);
    match least {
        Some(limit) if limit.more < more => {
            let what = format!("{more} more threads").into();
            let reason = format!("{limit}; start fewer processes, or raise it");
            Err(Error::refused(Cause::Refused { what, reason }))
        }
        _ => Ok(()),
    }
}

/// The system's reason for refusing a thread, and the limits that it may stand for.
pub(crate) fn reason_with_limits(error: &std::io::Error) -> String {
    let limits = limits().into_iter().map(|limit| limit.to_string()).chain(limit_of_user());
    format!("{error}; {}", limits.collect::<Vec<_>>().join("; "))
}

/// Refuses what needs more bytes than there are.
///
/// # Errors
/// *Mitigable*, with what is needed and what there is.
pub(crate) fn check(needed: usize, what: impl FnOnce() -> String) -> Result<()> {
    if needed < SMALL {
        return Ok(());
    }
    let Some((available, limit)) = available() else { return Ok(()) };
    if needed <= available {
        return Ok(());
    }
    let what = format!("{} ({limit} leaves {})", what(), size(available));
    Err(Error::refused(Cause::OutOfMemory { what: what.into(), bytes: needed }))
}

/// Bytes as people read them.
fn size(bytes: usize) -> String {
    const GIB: f64 = (1u64 << 30) as f64;
    let gib = bytes as f64 / GIB;
    if gib < 1.0 { format!("{:.0} MiB", gib * 1024.0) } else { format!("{gib:.1} GiB") }
}

/// The number in a file, or the first behind `name` in one of lines.
fn number(path: &str, name: Option<&str>) -> Option<usize> {
    let text = fs::read_to_string(path).ok()?;
    let line = match name {
        None => text.trim(),
        Some(name) => text.lines().find_map(|line| line.strip_prefix(name))?,
    };
    line.split_whitespace().next()?.parse().ok()
}

/// The bytes that this program may still take, and what limits them.
fn available() -> Option<(usize, &'static str)> {
    let machine = number("/proc/meminfo", Some("MemAvailable:"))?.saturating_mul(1024);
    let group = groups("memory").filter_map(|folder| {
        let of = |limit: &str, used: &str| {
            let limit = number(&format!("{folder}/{limit}"), None)?;
            Some(limit.saturating_sub(number(&format!("{folder}/{used}"), None)?))
        };
        of("memory.max", "memory.current")
            .or_else(|| of("memory.limit_in_bytes", "memory.usage_in_bytes"))
    });
    let least = group.min().unwrap_or(usize::MAX);
    Some(match least < machine {
        true => (least, "the control group of this program"),
        false => (machine, "this machine"),
    })
}

/// A limit of the system on threads.
struct Limit {
    name: String,
    value: usize,
    /// The threads that it leaves to be started, about.
    more: usize,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, which allows about {} more", self.name, self.value, self.more)
    }
}

/// The limits of which it is known what they leave.
fn limits() -> Vec<Limit> {
    let threads = threads_of_system();
    let of_system = ["kernel.threads-max", "kernel.pid_max"].into_iter().filter_map(|name| {
        let value = number(&format!("/proc/sys/{}", name.replace('.', "/")), None)?;
        Some(Limit { name: name.into(), value, more: value.saturating_sub(threads) })
    });
    let of_groups = groups("pids").filter_map(|folder| {
        let value = number(&format!("{folder}/pids.max"), None)?;
        let more = value.saturating_sub(number(&format!("{folder}/pids.current"), None)?);
        Some(Limit { name: format!("{folder}/pids.max"), value, more })
    });
    of_mappings().into_iter().chain(of_system).chain(of_groups).collect()
}

/// `vm.max_map_count`, of which each thread takes several.
fn of_mappings() -> Option<Limit> {
    let value = number("/proc/sys/vm/max_map_count", None)?;
    let maps = fs::read("/proc/self/maps").ok()?;
    let taken = maps.iter().filter(|&&byte| byte == b'\n').count() + SPARE_MAPPINGS;
    let more = value.saturating_sub(taken) / MAPPINGS_PER_THREAD;
    Some(Limit { name: "vm.max_map_count".into(), value, more })
}

/// The threads of all programs; 0 if that is not known.
fn threads_of_system() -> usize {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let threads = text.split('/').nth(1).and_then(|rest| rest.split(' ').next());
    threads.and_then(|threads| threads.parse().ok()).unwrap_or(0)
}

/// The limit on all threads of a user, which does not hold for privileged ones: what is left of it is not known.
fn limit_of_user() -> Option<String> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    let limit: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(format!("RLIMIT_NPROC (ulimit -u) is {limit} for all threads of this user"))
}

/// The folders of the control groups that limit something here, from this program's own to the root's.
fn groups(controller: &str) -> impl Iterator<Item = String> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let root = match controllers.split(',').any(|name| name == controller) {
            true => format!("/sys/fs/cgroup/{controller}"),
            false if controllers.is_empty() => "/sys/fs/cgroup".into(),
            false => continue,
        };
        let mut group = group.trim_end_matches('/');
        loop {
            folders.push(format!("{root}{group}"));
            let Some(end) = group.rfind('/') else { break };
            group = &group[..end];
        }
    }
    folders.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_let_through_and_the_rest_refused_with_numbers() {
        assert!(check_section(2).is_ok() && check(SMALL - 1, || unreachable!()).is_ok());
        let error = check(1 << 50, || "the test".into()).unwrap_err();
        assert!(error.is_mitigable());
        let text = error.to_string();
        assert!(text.contains("out of memory: 1125899906842624 bytes for the test ("), "{text}");
        assert!(text.contains(" leaves "), "{text}");
        assert!(check_section(usize::MAX).unwrap_err().is_mitigable());
    }

    #[test]
    fn this_machine_has_memory_and_threads() {
        let (bytes, _) = available().unwrap();
        assert!(bytes > 1 << 20);
        assert!(limits().iter().all(|limit| limit.more > 10));
        assert!(check_threads(1).is_ok());
    }

    #[test]
    fn too_many_threads_are_refused_with_the_limit_its_value_and_what_it_leaves() {
        let error = check_threads(1 << 40).unwrap_err();
        assert!(error.is_mitigable());
        let text = error.to_string();
        let least = limits().into_iter().min_by_key(|limit| limit.more).unwrap();
        let (name, value) = (least.name, least.value);
        let begin = format!("refused 1099511627776 more threads: {name} is {value}, which allows");
        assert!(text.contains(&begin), "{text}");
    }

    #[test]
    fn a_refused_thread_names_every_limit() {
        let reason = reason_with_limits(&std::io::Error::from_raw_os_error(libc::EAGAIN));
        for name in ["vm.max_map_count is ", "kernel.threads-max is ", "kernel.pid_max is "] {
            assert!(reason.contains(name), "{reason}");
        }
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        assert_eq!((size(64 << 20), size(3 << 29)), ("64 MiB".into(), "1.5 GiB".into()));
    }
}
