//! A job as a story has it: its launcher, and a line to each of its processes.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::launch;
use super::roles::{MEET, ROLE, SIZE, Scene, VICTIM, now};
use lpf_conformance::allowed;
use lpf_core::Pid;

/// Longer than anything takes on a machine that does much else.
const GENEROUS: Duration = Duration::from_secs(60);

/// After this, what is waited for has been waited for, and whoever is asked has said what it waits for.
const SETTLED: Duration = Duration::from_millis(700);

/// How a process takes no part any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Killed,
    Stopped,
    Exited,
}

/// What a process has learned of a failure.
pub(crate) struct Learned {
    pub(crate) at: u128,
    pub(crate) process: Option<Pid>,
    pub(crate) superstep: Option<u64>,
    pub(crate) text: String,
}

/// One of the processes.
struct Member {
    pid: i32,
    line: BufReader<UnixStream>,
}

impl Member {
    fn hear(&mut self, word: &str) -> String {
        let mut line = String::new();
        self.line.read_line(&mut line).expect("the process says something");
        let rest = line.trim().strip_prefix(word);
        rest.unwrap_or_else(|| panic!("\"{word}\" and not {line:?}")).trim().to_owned()
    }

    fn tell(&mut self, word: &str) {
        // It may be dead.
        let _ = writeln!(self.line.get_mut(), "{word}");
    }

    fn signal(&self, signal: i32) {
        // SAFETY: kill takes numbers only; the launcher has not waited for it, or it would not be there.
        let done = unsafe { libc::kill(self.pid, signal) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

/// Stories measure time: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) struct Job {
    launcher: Child,
    /// By rank.
    members: Vec<Member>,
    victim: Pid,
    scene: Scene,
    folder: PathBuf,
    /// Exit statuses are noted.
    notes: bool,
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Job {
    fn drop(&mut self) {
        // A story that failed may have left any of them.
        if !matches!(self.launcher.try_wait(), Ok(Some(_))) {
            for member in &self.members {
                // SAFETY: as in `signal`.
                unsafe { libc::kill(member.pid, libc::SIGKILL) };
            }
            let _ = self.launcher.kill();
            let _ = self.launcher.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nth = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("lpf-mpi-deaths-{}-{nth}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder in the temporary folder");
    folder
}

fn launched(mut launcher: Command, scene: Scene, victim: Pid, folder: &Path) -> Child {
    launcher
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "member", "--nocapture", "--test-threads=1"])
        .env(ROLE, format!("{scene:?}"))
        .env(VICTIM, victim.to_string())
        .env(MEET, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the launcher was found")
}

impl Job {
    /// Starts a job whose survivors live on, each behind a shell that notes its exit status.
    pub(crate) fn start(scene: Scene, victim: Pid) -> Job {
        let mut launcher = launch::launcher(SIZE);
        launch::keep_going(&mut launcher);
        Self::meet(launcher, scene, victim, true)
    }

    /// The same without that shell.
    pub(crate) fn start_bare(scene: Scene, victim: Pid) -> Job {
        let mut launcher = launch::launcher(SIZE);
        launch::keep_going(&mut launcher);
        Self::meet(launcher, scene, victim, false)
    }

    /// Starts a job as it is usually started.
    pub(crate) fn start_plain(scene: Scene) -> Job {
        Self::meet(launch::launcher(SIZE), scene, SIZE, false)
    }

    fn meet(mut launcher: Command, scene: Scene, victim: Pid, notes: bool) -> Job {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = folder();
        let listener = UnixListener::bind(folder.join("meet")).expect("a socket in the folder");
        listener.set_nonblocking(true).expect("plain");
        let note = concat!(
            r#""$0" "$@"; s=$?; "#,
            r#"echo $s >"$LPF_TEST_MEET/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exit $s"#
        );
        if notes {
            launcher.args(["sh", "-c", note]);
        }
        let launcher = launched(launcher, scene, victim, &folder);
        let mut job =
            Job { launcher, members: Vec::new(), victim, scene, folder, notes, _alone: alone };
        let begin = Instant::now();
        let mut came = Vec::new();
        while came.len() < SIZE {
            match listener.accept() {
                Ok((stream, _)) => came.push(first_word(stream)),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
            if let Some(status) = job.launcher.try_wait().expect("a process of this one's own") {
                panic!("MPI's launcher ended with {status}");
            }
            assert!(begin.elapsed() < allowed(GENEROUS), "the processes do not come");
            std::thread::sleep(Duration::from_millis(2));
        }
        came.sort_by_key(|(rank, _)| *rank);
        job.members = came.into_iter().map(|(_, member)| member).collect();
        job
    }

    /// Waits until everybody is at its place, and has been there for a while.
    pub(crate) fn wait_until_there(&mut self) {
        self.members.iter_mut().for_each(|member| drop(member.hear("there")));
        std::thread::sleep(SETTLED);
    }

    /// The time from which on the victim was not there any more.
    pub(crate) fn let_die(&mut self, death: Death) -> u128 {
        let victim = &mut self.members[self.victim];
        let since = now();
        match death {
            Death::Killed => victim.signal(libc::SIGKILL),
            Death::Stopped => victim.signal(libc::SIGSTOP),
            Death::Exited => victim.tell("exit"),
        }
        since
    }

    pub(crate) fn wake(&mut self) {
        let victim = &mut self.members[self.victim];
        victim.signal(libc::SIGCONT);
        victim.tell("on");
    }

    pub(crate) fn hear_of_failure(&mut self, rank: Pid) -> Learned {
        let text = self.members[rank].hear("failed");
        let mut words = text.splitn(4, ' ');
        let mut number = || words.next().expect("a number").parse::<u128>().ok();
        let (at, process, superstep) = (number(), number(), number());
        Learned {
            at: at.expect("a time"),
            process: process.map(|rank| rank as Pid),
            superstep: superstep.map(|superstep| superstep as u64),
            text: words.next().unwrap_or_default().into(),
        }
    }

    /// Lets those who live end, and gives their exit statuses.
    pub(crate) fn end(mut self, death: Death) -> Vec<(Pid, i32)> {
        let dies = death != Death::Stopped;
        let living: Vec<Pid> = (0..SIZE).filter(|&rank| !dies || rank != self.victim).collect();
        for &rank in &living {
            let said = self.members[rank].hear("left");
            assert_eq!(said, "", "{:?}, process {rank}: MPI was called", self.scene);
        }
        self.end_all(&living)
    }

    /// Waits until all have left the job, lets them end, and gives what each has called in between.
    pub(crate) fn let_leave(mut self) -> Vec<String> {
        let all: Vec<Pid> = (0..SIZE).collect();
        let called = all.iter().map(|&rank| self.members[rank].hear("left")).collect();
        self.end_all(&all);
        called
    }

    fn end_all(&mut self, living: &[Pid]) -> Vec<(Pid, i32)> {
        for &rank in living {
            self.members[rank].tell("end");
            self.members[rank].hear("ends");
        }
        self.launcher_ends();
        if !self.notes {
            return Vec::new();
        }
        let status = |rank: Pid| {
            let noted = std::fs::read_to_string(self.folder.join(rank.to_string()));
            let noted = noted.unwrap_or_else(|error| panic!("process {rank} did not end: {error}"));
            noted.trim().parse().expect("a number")
        };
        living.iter().map(|&rank| (rank, status(rank))).collect()
    }

    fn launcher_ends(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            match self.launcher.try_wait().expect("a process of this one's own") {
                Some(status) => return status,
                None => assert!(begin.elapsed() < allowed(GENEROUS), "the launcher does not end"),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for the end of a job in order.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.launcher_ends()
    }
}

/// Who has come.
fn first_word(stream: UnixStream) -> (Pid, Member) {
    stream.set_nonblocking(false).expect("plain");
    stream.set_read_timeout(Some(GENEROUS)).expect("plain");
    let mut member = Member { pid: 0, line: BufReader::new(stream) };
    let said = member.hear("rank");
    let (rank, pid) = said.split_once(' ').expect("two numbers");
    member.pid = pid.parse().expect("a number");
    (rank.parse().expect("a number"), member)
}
