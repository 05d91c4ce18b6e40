//! Whether the memory and the threads of a section fit the machine.
//!
//! The kernel promises more memory than it has, and ends the program when that is used. So what is large is compared
//! with what there is before.

use std::fs;

use lpf_core::{Cause, Error, Result};

/// What a process of a section takes without any room, rounded up: 16 KiB for its context and the pages of its stack
/// that it touches (measured with 500 to 8000 processes), and the kernel's own stack and records of the thread.
const PER_PROCESS: usize = 64 << 10;

/// Less than this is not worth a look, which takes some 20 us.
const SMALL: usize = 64 << 20;

/// A thread has two mappings, its stack and the guard below it.
const MAPPINGS_PER_THREAD: usize = 2;

/// Refuses a section whose threads do not fit.
///
/// # Errors
/// *Mitigable*, with what is needed and what there is.
pub(crate) fn check_threads(processes: usize) -> Result<()> {
    let needed = processes.saturating_mul(PER_PROCESS);
    if needed < SMALL {
        return Ok(());
    }
    let what = || format!("a section of {processes} processes");
    check(needed, what)?;
    let Some((most, limit)) = threads() else { return Ok(()) };
    if processes <= most {
        return Ok(());
    }
    let reason = format!("it needs {processes} threads, and {limit} allows about {most}");
    Err(Error::refused(Cause::Refused { what: what().into(), reason }))
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

/// The threads that this program may have, and what limits them.
fn threads() -> Option<(usize, &'static str)> {
    let mappings = number("/proc/sys/vm/max_map_count", None);
    let group = groups("pids").filter_map(|folder| {
        let limit = number(&format!("{folder}/pids.max"), None)?;
        Some(limit.saturating_sub(number(&format!("{folder}/pids.current"), None)?))
    });
    [
        (mappings.map(|most| most / MAPPINGS_PER_THREAD), "vm.max_map_count"),
        (number("/proc/sys/kernel/threads-max", None), "kernel.threads-max"),
        (number("/proc/sys/kernel/pid_max", None), "kernel.pid_max"),
        (group.min(), "the control group of this program"),
    ]
    .into_iter()
    .filter_map(|(most, name)| Some((most?, name)))
    .min()
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
        assert!(check_threads(2).is_ok() && check(SMALL - 1, || unreachable!()).is_ok());
        let error = check(1 << 50, || "the test".into()).unwrap_err();
        assert!(error.is_mitigable());
        let text = error.to_string();
        assert!(text.contains("out of memory: 1125899906842624 bytes for the test ("), "{text}");
        assert!(text.contains(" leaves "), "{text}");
        let error = check_threads(usize::MAX).unwrap_err();
        assert!(error.is_mitigable(), "{error}");
    }

    #[test]
    fn this_machine_has_memory_and_threads() {
        let (bytes, _) = available().unwrap();
        assert!(bytes > 1 << 20);
        let (most, _) = threads().unwrap();
        assert!(most > 10);
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        assert_eq!((size(64 << 20), size(3 << 29)), ("64 MiB".into(), "1.5 GiB".into()));
    }
}
