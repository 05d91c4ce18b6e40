//! Processes that die, stop and wake up.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use lpf_conformance::{allowed, assert_in_time};
use lpf_messages::Rank;

use crate::roles::{address, now};

/// Longer than anything takes on a machine that does much else.
const GENEROUS: Duration = Duration::from_secs(60);

/// The bound that the design promises.
const DEATH: Duration = Duration::from_secs(1);
/// It promises 3 s where processes are not late themselves; this machine may be busy.
const SILENCE: Duration = Duration::from_secs(4);

/// A process of a job; it ends with the test.
struct Process {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(role: &str, rank: Rank, size: Rank, beats: &str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["roles::member", "--exact", "--nocapture", "--test-threads=1"])
            .env("LPF_TEST_ROLE", role)
            .env("LPF_TEST_RANK", rank.to_string())
            .env("LPF_TEST_SIZE", size.to_string())
            .env("LPF_TEST_BEATS", beats)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let told = stdout.lines().map_while(Result::ok);
            for line in told.filter_map(|line| Some(line.strip_prefix('@')?.to_owned())) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take().unwrap();
        Process { child, stdin, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(GENEROUS).expect("the process says something")
    }

    /// The next line, which begins with `word`: what follows it.
    fn hear(&self, word: &str) -> String {
        let line = self.line();
        let rest = line.strip_prefix(word);
        rest.unwrap_or_else(|| panic!("\"{word}\" and not \"{line}\"")).trim().to_owned()
    }

    /// The next line is `word`, a number, and text.
    fn hear_number(&self, word: &str) -> (u128, String) {
        let rest = self.hear(word);
        let (number, text) = rest.split_once(' ').unwrap_or((&rest, ""));
        (number.parse().unwrap(), text.to_owned())
    }

    fn says_nothing_for(&self, time: Duration) {
        match self.lines.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => {}
            other => panic!("the process says {other:?}"),
        }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Stops it, and waits until it stands: the signal takes a moment.
    fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let stat = format!("/proc/{}/stat", self.child.id());
        let began = Instant::now();
        while let Ok(stat) = std::fs::read_to_string(&stat) {
            if stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')) {
                return;
            }
            assert!(began.elapsed() < allowed(GENEROUS));
            std::thread::sleep(Duration::from_micros(100));
        }
        // No such file: this is another system.
        std::thread::sleep(Duration::from_millis(100));
    }

    fn signal(&self, signal: i32) {
        // SAFETY: kill takes numbers only; the child has not been waited for, so its number is its own.
        let done = unsafe { libc::kill(self.child.id() as i32, signal) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

/// Starts a job, which has joined.
fn job_with(role: &str, size: Rank, beats: &str) -> Vec<Process> {
    let mut processes: Vec<Process> =
        (0..size).map(|rank| Process::start(role, rank, size, beats)).collect();
    let address = address(&processes[0].line());
    for process in &mut processes[1..] {
        process.tell(&address.to_string());
    }
    let joining = processes.iter().map(|process| process.hear_number("joined").0);
    let longest = Duration::from_nanos(joining.max().unwrap() as u64);
    eprintln!("{size} processes, {role}: the last to join took {longest:?}");
    processes
}

fn job(role: &str, size: Rank) -> Vec<Process> {
    let processes = job_with(role, size, "on");
    processes.iter().for_each(|process| assert_eq!(process.hear("ready"), ""));
    processes
}

/// All of these learn of a failure within `bound` of `since`, and of the same one, which says `text`.
fn all_learn(processes: &[Process], since: u128, bound: Duration, text: &str) {
    let mut latest = Duration::ZERO;
    for process in processes {
        let (at, report) = process.hear_number("failed");
        assert!(report.contains(text), "\"{report}\" says \"{text}\"");
        let took = Duration::from_nanos(at.saturating_sub(since) as u64);
        assert_in_time(took, bound);
        latest = latest.max(took);
    }
    eprintln!("{} processes know after {latest:?}: {text}", processes.len());
}

#[test]
fn who_is_killed_is_missed_within_a_second() {
    let mut processes = job("watch", 8);
    let dead = processes.remove(5);
    let since = now();
    dead.signal(libc::SIGKILL);
    let text = "process 5, superstep 0: it was lost: its connection was closed";
    all_learn(&processes, since, DEATH, text);
}

#[test]
fn process_0_is_missed_within_a_second() {
    let mut processes = job("watch", 4);
    let dead = processes.remove(0);
    let since = now();
    dead.signal(libc::SIGKILL);
    let text = "process 0, superstep 0: it was lost: its connection was closed";
    all_learn(&processes, since, DEATH, text);
}

#[test]
fn who_is_stopped_is_missed_within_three_seconds_and_learns_of_it_when_it_wakes() {
    let mut processes = job("watch", 4);
    let stopped = processes.remove(1);
    let since = now();
    stopped.stop();
    let text = "process 1, superstep 0: it was lost: it gave no sign of life for 2.75 s";
    all_learn(&processes, since, SILENCE, text);
    let since = now();
    stopped.signal(libc::SIGCONT);
    all_learn(&[stopped], since, DEATH, "it gave no sign of life for 2.75 s");
}

#[test]
fn process_0_stopped_is_missed_within_three_seconds_and_learns_of_it_when_it_wakes() {
    let mut processes = job("watch", 3);
    let stopped = processes.remove(0);
    let since = now();
    stopped.stop();
    let text = "process 0, superstep 0: it was lost: it gave no sign of life for 2.75 s";
    all_learn(&processes, since, SILENCE, text);
    let since = now();
    stopped.signal(libc::SIGCONT);
    all_learn(&[stopped], since, DEATH, "it gave up process 0: it gave no sign of life for 2.75 s");
}

#[test]
fn frozen_and_thawed_processes_accuse_nobody() {
    let processes = job("watch", 3);
    // All of them, longer than the bound on silence, as when a machine sleeps.
    processes.iter().for_each(|process| process.stop());
    std::thread::sleep(Duration::from_millis(3200));
    processes.iter().for_each(|process| process.signal(libc::SIGCONT));
    // One of them, shorter than that.
    std::thread::sleep(Duration::from_millis(500));
    for process in &processes {
        process.stop();
        std::thread::sleep(Duration::from_millis(800));
        process.signal(libc::SIGCONT);
    }
    for process in &processes {
        process.says_nothing_for(Duration::from_millis(700));
    }
}

#[test]
fn without_heartbeats_a_stopped_process_is_waited_for_and_a_dead_one_is_not() {
    let mut processes = job_with("watch", 3, "off");
    processes.iter().for_each(|process| assert_eq!(process.hear("ready"), ""));
    processes[1].stop();
    processes[0].says_nothing_for(Duration::from_millis(3200));
    processes[1].signal(libc::SIGCONT);
    processes[2].says_nothing_for(Duration::from_millis(300));
    let dead = processes.remove(1);
    let since = now();
    dead.signal(libc::SIGKILL);
    all_learn(&processes, since, DEATH, "process 1, superstep 0: it was lost");
}

#[test]
fn who_declares_while_process_0_is_silent_goes_by_its_own_word() {
    let mut processes = job_with("declare", 3, "off");
    processes.iter().for_each(|process| assert_eq!(process.hear("ready"), ""));
    processes[0].stop();
    let began = Instant::now();
    processes[1].tell("now");
    let (took, standing) = processes[1].hear_number("stands");
    let took = Duration::from_nanos(took as u64);
    assert_eq!(standing, "fatal: process 1, superstep 5: it panicked: told by 1");
    assert!(took > Duration::from_millis(900), "{took:?}");
    assert_in_time(took, Duration::from_secs(5));
    assert!(began.elapsed() < allowed(GENEROUS));
    // The others have nobody to hear it from until process 0 wakes up.
    processes[0].signal(libc::SIGCONT);
    processes[2].tell("now");
    let (_, standing) = processes[2].hear_number("stands");
    assert_eq!(standing, "fatal: process 1, superstep 5: it panicked: told by 1");
}

#[test]
fn servers_follow_orders_until_the_job_is_over() {
    let mut processes = job_with("serve", 3, "on");
    processes[0].hear("ready");
    assert_eq!(processes[2].hear("begin"), "10 [0, 2]");
    for process in &processes[1..] {
        assert_eq!(process.hear("begin"), "11 [0, 1, 2]");
    }
    processes[0].tell("finish");
    for process in &processes[1..] {
        process.hear("finished");
        assert_eq!(process.hear("left"), "true");
    }
    assert_eq!(processes[0].hear("left"), "true");
    for process in &mut processes {
        assert!(process.child.wait().unwrap().success());
    }
}

#[test]
fn servers_learn_that_process_0_is_gone() {
    let mut processes = job_with("serve", 3, "on");
    processes[0].hear("ready");
    processes[2].hear("begin");
    processes[1..].iter().for_each(|process| drop(process.hear("begin")));
    let since = now();
    // It leaves without a word of farewell, as with a call of exit.
    processes[0].tell("exit");
    for process in &mut processes[1..] {
        let (at, error) = process.hear_number("gone");
        assert!(error.contains("it was lost: its connection was closed"), "{error}");
        assert_in_time(Duration::from_nanos(at.saturating_sub(since) as u64), DEATH);
        assert!(process.child.wait().unwrap().success());
    }
}

#[test]
fn a_job_that_waits_uses_no_core() {
    if !std::path::Path::new("/proc/self/stat").exists() {
        return;
    }
    let processes = job("idle", 3);
    for process in &processes {
        // A hundredth of a second each: of two seconds, no more than a tenth.
        let (ticks, _) = process.hear_number("ticks");
        assert!(ticks <= 20, "{ticks} hundredths of a second in two seconds");
    }
}
