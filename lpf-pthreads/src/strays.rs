//! Threads and programs that a section has started on a pinned thread, and that stay on its one core.
//!
//! With `LPF_PIN=auto` nobody has asked for that, so it is reported once. A look takes some 10 us for each thread of the
//! program, so only the end of a section that took much longer is worth one.

use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{pin, pool};

/// A section that takes less has no time for a look.
const WORTH_A_LOOK: Duration = Duration::from_millis(20);

/// Reports once if a section that began at `began` and was pinned automatically has left such threads behind.
pub(crate) fn report(began: Instant) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if began.elapsed() < WORTH_A_LOOK || SAID.load(Ordering::Relaxed) {
        return;
    }
    let Some(stray) = strays(began.elapsed()).first().copied() else { return };
    if !SAID.swap(true, Ordering::Relaxed) {
        // Nothing else can be done about a standard error that is closed.
        let _ = writeln!(
            std::io::stderr(),
            "lpf: {stray} was started inside a section and stays on one core, because threads of sections are pinned: start it by lpf::unpinned, or set LPF_PIN=none"
        );
    }
}

/// A thread or a program, by the system's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stray {
    Thread(i32),
    Process(i32),
}

impl std::fmt::Display for Stray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stray::Thread(number) => write!(f, "thread {number} of the system"),
            Stray::Process(number) => write!(f, "process {number} of the system"),
        }
    }
}

/// Threads of this program, and programs that it has started, which are younger than `age` and have one of several
/// cores. Not those of the pool.
pub(crate) fn strays(age: Duration) -> Vec<Stray> {
    let mut found = Vec::new();
    if pin::machine().cores.len() < 2 {
        return found;
    }
    let workers = pool::workers();
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let tasks = tasks.filter_map(|task| task.file_name().to_str()?.parse::<i32>().ok());
    for task in tasks {
        let folder = format!("/proc/self/task/{task}");
        if !workers.contains(&task) && is_stray(task, &folder, age) {
            found.push(Stray::Thread(task));
        }
        // Not every kernel has this file.
        let children = fs::read_to_string(format!("{folder}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|child| child.parse::<i32>().ok());
        let strays = children.filter(|&child| is_stray(child, &format!("/proc/{child}"), age));
        found.extend(strays.map(Stray::Process));
    }
    found
}

fn is_stray(number: i32, folder: &str, age: Duration) -> bool {
    pin::count_cores(number) == Some(1) && is_younger(folder, age) == Some(true)
}

/// Whether a thread or process was started less than `age` ago.
fn is_younger(folder: &str, age: Duration) -> Option<bool> {
    // Of the fields behind the name in parentheses, which may contain anything, this is the 20th.
    const STARTED: usize = 19;
    let text = fs::read_to_string(format!("{folder}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let started: f64 = fields.split_whitespace().nth(STARTED)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    // SAFETY: the call takes a number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    // Both clocks have steps of 10 ms.
    Some(uptime - started / ticks < age.as_secs_f64() + 0.01)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    use super::*;

    /// A thread that waits for the end of the test, and its number.
    fn wait_in_a_thread() -> (i32, mpsc::Sender<()>) {
        let (number, told) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        std::thread::spawn(move || {
            // SAFETY: the call takes nothing.
            number.send(unsafe { libc::gettid() }).unwrap();
            let _ = ends.recv();
        });
        (told.recv().unwrap(), end)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn threads_and_programs_on_one_core_are_found_if_they_are_young() {
        if pin::machine().cores.len() < 2 {
            assert_eq!(strays(Duration::from_secs(60)), []);
            return;
        }
        let here = std::thread::spawn(|| {
            let pins = pin::plan(&lpf_core::settings::Pin::Compact, 2, 1);
            let _pinned = pins.hold();
            let sleep = || {
                Command::new("sleep")
                    .arg("60")
                    .stdin(Stdio::null())
                    .spawn()
                    .expect("sleep is there")
            };
            let threads = (wait_in_a_thread(), crate::unpinned(wait_in_a_thread));
            let mut programs = (sleep(), crate::unpinned(sleep));
            // Between fork and exec it has the cores of this thread in any case.
            let found = strays(Duration::from_secs(60));
            assert!(found.contains(&Stray::Thread(threads.0.0)), "{found:?}");
            assert!(!found.contains(&Stray::Thread(threads.1.0)), "{found:?}");
            let number = |child: &std::process::Child| Stray::Process(child.id() as i32);
            let (pinned, free) = (number(&programs.0), number(&programs.1));
            // SAFETY: the call takes nothing.
            let own = unsafe { libc::gettid() };
            if fs::exists(format!("/proc/self/task/{own}/children")).unwrap() {
                assert!(found.contains(&pinned), "{found:?}");
            }
            assert!(!found.contains(&free), "{found:?}");
            std::thread::sleep(Duration::from_millis(50));
            let old = strays(Duration::from_millis(1));
            assert!(!old.contains(&Stray::Thread(threads.0.0)), "{old:?}");
            for program in [&mut programs.0, &mut programs.1] {
                program.kill().unwrap();
                program.wait().unwrap();
            }
        });
        here.join().unwrap();
    }
}
