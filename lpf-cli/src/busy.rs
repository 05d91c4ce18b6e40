//! Whether other programs used the cores while something was measured.

use std::collections::HashMap;
use std::fs::{read_dir, read_to_string};

use crate::output::digits;
use crate::place::Place;

/// Cores that others may use before it is worth a remark: what a system does beside.
const FREE: f64 = 0.2;
/// Ticks that may be counted to the wrong program: a core's are counted when its clock ticks.
const ROUNDING: f64 = 5.0;

/// What a measurement makes of checked mode.
const UNCHECKED: &str = "LPF_CHECK=1 has no effect here: checked mode takes time, and the numbers would not be those of the machine";

/// Time that the cores spent up to now, in the system's ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    /// Of all cores together, busy or idle.
    all: f64,
    busy: f64,
    /// In this program and the other processes of its job.
    own: f64,
}

/// The beginning of a measurement.
#[derive(Debug)]
pub(crate) struct Busy {
    cores: Vec<usize>,
    checked: bool,
    /// The process from which all others descend that are not others'.
    root: u32,
    /// None if the system does not say.
    begin: Option<Ticks>,
}

impl Busy {
    pub(crate) fn begin(place: &Place) -> Self {
        let root = if place.is_in_a_job() { launcher() } else { std::process::id() };
        // A process of a job may be bound to a core of its own.
        let status = read_to_string(format!("/proc/{root}/status")).unwrap_or_default();
        let cores = allowed(&status);
        Busy { begin: Ticks::now(&cores, root), cores, checked: place.checked, root }
    }

    /// What a reader should know about all that was measured since the beginning.
    pub(crate) fn remarks(&self) -> Vec<String> {
        self.checked.then(|| UNCHECKED.to_string()).into_iter().chain(self.remark()).collect()
    }

    fn remark(&self) -> Option<String> {
        let others =
            others(self.cores.len().max(1), self.begin?, Ticks::now(&self.cores, self.root)?)?;
        Some(format!(
            "other programs used {} of {} cores meanwhile, so times may be too long: measure again on a quiet machine",
            digits(others),
            self.cores.len()
        ))
    }
}

/// How many cores others used on average, if that matters.
fn others(cores: usize, begin: Ticks, end: Ticks) -> Option<f64> {
    let each = (end.all - begin.all) / cores as f64;
    let others = (end.busy - begin.busy) - (end.own - begin.own);
    (others > FREE * each + ROUNDING).then(|| others / each)
}

impl Ticks {
    fn now(cores: &[usize], root: u32) -> Option<Self> {
        let stat = read_to_string("/proc/stat").ok()?;
        let numbered = |name: &str| name.parse::<u32>().is_ok();
        let entries = read_dir("/proc").ok()?.flatten();
        let entries = entries.filter(|entry| entry.file_name().to_str().is_some_and(numbered));
        // Some may have ended meanwhile.
        let read = entries.filter_map(|entry| read_to_string(entry.path().join("stat")).ok());
        let processes: Vec<_> = read.filter_map(|text| Process::of(&text)).collect();
        Self::of(cores, &stat, descendants(root, &processes))
    }

    /// From the text of `/proc/stat` (proc(5)).
    fn of(cores: &[usize], stat: &str, own: f64) -> Option<Self> {
        let mut ticks = Ticks { own, ..Ticks::default() };
        for core in cores {
            let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{core} ")))?;
            let columns: Option<Vec<f64>> =
                line.split_whitespace().map(|column| column.parse().ok()).collect();
            // Guests, behind these, are counted among the first already.
            let [user, nice, system, idle, iowait, irq, softirq, steal] =
                *columns?.first_chunk::<8>()?;
            let busy = user + nice + system + irq + softirq + steal;
            ticks.busy += busy;
            ticks.all += busy + idle + iowait;
        }
        Some(ticks)
    }
}

/// A process of the system.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Process {
    pid: u32,
    parent: u32,
    /// Its own, and those of its children that have ended.
    ticks: f64,
}

impl Process {
    /// From the text of `/proc/PID/stat` (proc(5)).
    fn of(stat: &str) -> Option<Self> {
        // The name, in parentheses, may hold anything.
        let (begin, columns) = stat.rsplit_once(')')?;
        let columns: Vec<&str> = columns.split_whitespace().collect();
        let spent: Option<Vec<f64>> =
            columns.get(11..15)?.iter().map(|column| column.parse().ok()).collect();
        Some(Process {
            pid: begin.split_whitespace().next()?.parse().ok()?,
            parent: columns.get(1)?.parse().ok()?,
            ticks: spent?.iter().sum(),
        })
    }
}

/// What a process and all that descend from it have spent.
fn descendants(root: u32, processes: &[Process]) -> f64 {
    let parents: HashMap<u32, u32> = processes.iter().map(|one| (one.pid, one.parent)).collect();
    let ancestors = |pid| std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
    // While it was read a number may have been given again: that could be a circle.
    const DEEPEST: usize = 64;
    let descends = |one: &&Process| ancestors(one.pid).take(DEEPEST).any(|pid| pid == root);
    processes.iter().filter(descends).map(|one| one.ticks).sum()
}

/// The cores that a process may use, from the text of `/proc/PID/status` (proc(5)).
fn allowed(status: &str) -> Vec<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.unwrap_or_default().split(',').filter_map(range).flatten().collect()
}

/// The process that has started all those of this process's job on this host.
fn launcher() -> u32 {
    let parent = std::os::unix::process::parent_id();
    let words = read_to_string(format!("/proc/{parent}/cmdline")).unwrap_or_default();
    // Under an MPI's launcher `lpf run` puts a shepherd before each.
    let is_shepherd = words.split('\0').nth(1) == Some("shepherd");
    let stat = read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    let above = Process::of(&stat).filter(|_| is_shepherd).map(|shepherd| shepherd.parent);
    above.unwrap_or(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_used_of_our_cores_is_what_is_busy_and_not_ours() {
        let stat = |busy: u32, idle: u32| {
            format!(
                "cpu 9 9 9 9\ncpu0 {busy} 0 0 {idle} 0 0 0 0 5 5\ncpu1 0 0 {busy} {idle} 0 0 0 0 0 0\ncpu2 99 0 0 0 0 0 0 0 0 0\nintr 1"
            )
        };
        let ticks = |busy, idle, user: u32, system: u32| {
            Ticks::of(&[0, 1], &stat(busy, idle), f64::from(user + system)).unwrap()
        };
        let begin = ticks(100, 1000, 5, 5);
        assert_eq!(others(2, begin, ticks(300, 1800, 205, 205)), None, "all of it ours");
        assert_eq!(others(2, begin, ticks(300, 1800, 105, 105)), None, "a fifth of a core");
        assert_eq!(others(2, begin, ticks(600, 1500, 205, 205)), Some(0.6));
        assert_eq!(others(2, begin, ticks(103, 1005, 5, 5)), None, "too short to tell");
        assert!(Ticks::of(&[7], &stat(1, 1), 2.0).is_none());
    }

    #[test]
    fn the_cores_of_a_process_are_listed_as_numbers_and_ranges() {
        assert_eq!(
            allowed("Name:\ta\nCpus_allowed:\tf\nCpus_allowed_list:\t0-2,5\n"),
            [0, 1, 2, 5]
        );
        assert_eq!(allowed("Cpus_allowed_list:\t7"), [7]);
        assert!(allowed("").is_empty());
    }

    #[test]
    fn the_time_of_a_job_is_that_of_all_who_descend_from_its_launcher() {
        let stat = |pid: u32, parent: u32, ticks: u32| {
            Process::of(&format!("{pid} (a) b c) R {parent} 1 1 0 -1 0 1 2 3 4 {ticks} 1 2 3 20 0"))
                .unwrap()
        };
        let all =
            [stat(1, 0, 100), stat(7, 1, 10), stat(8, 7, 20), stat(9, 8, 30), stat(10, 1, 40)];
        assert_eq!(all[1], Process { pid: 7, parent: 1, ticks: 16.0 });
        assert_eq!(descendants(7, &all), 16.0 + 26.0 + 36.0);
        assert_eq!(descendants(11, &all), 0.0);
    }
}
