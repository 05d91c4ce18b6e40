//! Who descends from a process, and who is stopped.

use std::collections::HashMap;
use std::fs;

use nix::unistd::{Pid, getpid};

/// This process's children, their children, and so on: a look at a moment, for what comes and goes.
pub(super) fn descendants() -> Vec<Pid> {
    descendants_of([getpid()])
}

/// The same of several processes.
pub(super) fn descendants_of(these: impl IntoIterator<Item = Pid>) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // It may have ended meanwhile.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found: Vec<_> = these.into_iter().map(Pid::as_raw).collect();
    let these = found.len();
    let mut at = 0;
    while at < found.len() {
        found.extend(children.remove(&found[at]).unwrap_or_default());
        at += 1;
    }
    found.into_iter().skip(these).map(Pid::from_raw).collect()
}

/// Whether a process is stopped, by a signal or by a debugger.
pub(super) fn is_stopped(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let columns = stat.rsplit_once(')').map_or("", |(_, columns)| columns);
    matches!(columns.split_whitespace().next(), Some("T" | "t"))
}

/// Whether a process runs this very program.
pub(super) fn is_this_program(pid: Pid) -> bool {
    let program = |of: String| fs::read_link(format!("/proc/{of}/exe")).ok();
    program(pid.to_string()).is_some_and(|its| program("self".into()) == Some(its))
}

/// The fourth column of `/proc/PID/stat` (proc(5)); the second, in parentheses, may hold anything.
fn parent(stat: &str) -> Option<i32> {
    let (_, columns) = stat.rsplit_once(')')?;
    columns.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_hides_no_parent() {
        assert_eq!(parent("12 (a) b) 3 ) S 7 12 12 0"), Some(7));
        assert_eq!(parent(""), None);
    }
}
