//! A job of one process on each host, and the files that it speaks through.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::goes_wrong::{FAULT, PLACE};
use super::member::{FOLDER, STORY, Story};
use super::outcome::{Outcome, outcomes};
use lpf::Pid;
use lpf_conformance::allowed;

/// The emulation of a cluster.
const HOSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/hosts.sh");

/// Longer than anything takes on a machine that does much else.
const GENEROUS: Duration = Duration::from_secs(45);

/// What processes print, by rank; that of all, where another launcher has started them.
const OUT: &str = "out-";

/// Runs `ci/hosts.sh`, to its end.
fn hosts(arguments: &[&str]) {
    let status = Command::new(HOSTS).args(arguments).status().expect("ci/hosts.sh is there");
    assert!(status.success(), "ci/hosts.sh {arguments:?} ended with {status}");
}

/// Plugs the cable of a process's host, "up" or "down".
pub(crate) fn link(rank: Pid, state: &str) {
    hosts(&["link", &format!("h{}", rank + 1), state]);
}

/// Pulls the cable of a process's host for so long.
pub(crate) fn outage(rank: Pid, time: Duration) {
    link(rank, &time.as_secs_f64().to_string());
}

/// Loses this percentage of the frames on their way to each host, at random.
pub(crate) fn lossy(percent: u32) {
    hosts(&["lossy", &percent.to_string()]);
}

/// Runs a command on a process's host.
pub(crate) fn on(rank: Pid, command: &[&str]) {
    hosts(&[&["on", &format!("h{}", rank + 1)], command].concat());
}

/// Lets what two processes send each other through, "up", or loses it, "down".
pub(crate) fn between(ranks: [Pid; 2], state: &str) {
    let [one, other] = ranks.map(|rank| format!("h{}", rank + 1));
    hosts(&["between", &one, &other, state]);
}

pub(crate) struct Job {
    /// The processes, or their launcher.
    children: Vec<Child>,
    folder: PathBuf,
}

impl Drop for Job {
    fn drop(&mut self) {
        for rank in 0..Self::SIZE {
            self.kill(rank);
        }
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
        // A story that failed may have left it unplugged.
        (0..Self::SIZE).for_each(|rank| link(rank, "up"));
    }
}

/// This program as a member, in `command`, which runs what is added to it somewhere.
fn member(mut command: Command) -> Command {
    command
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_member_of_a_job", "--nocapture", "--test-threads=1"])
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LPF_")) {
        command.env_remove(name);
    }
    command
}

/// A member's part, and where it speaks.
fn tell_story(command: &mut Command, story: Story, folder: &Path) {
    command.env(STORY, story.name()).env(FOLDER, folder);
}

impl Job {
    pub(crate) const SIZE: Pid = 4;

    pub(crate) fn start(backend: &str, story: Story) -> Job {
        Self::start_as(backend, |folder, _, command| tell_story(command, story, folder))
    }

    /// Over TCP; `set` makes each process a special one.
    pub(crate) fn start_with(story: Story, set: impl Fn(Pid, &mut Command)) -> Job {
        Self::start_on_tcp(|folder, rank, command| {
            tell_story(command, story, folder);
            set(rank, command);
        })
    }

    /// One process does something to itself in a place.
    pub(crate) fn start_that_goes_wrong(backend: &str, fault: &str, place: &str) -> Job {
        Self::start_as(backend, |folder, rank, command| {
            let out = File::create(folder.join(format!("{OUT}{rank}"))).expect("a file");
            command.env(FAULT, fault).env(PLACE, place).stdout(out).stderr(Stdio::null());
        })
    }

    fn start_as(backend: &str, set: impl Fn(&Path, Pid, &mut Command)) -> Job {
        match backend {
            "mpi" => Self::start_on_mpi(set),
            _ => Self::start_on_tcp(set),
        }
    }

    fn start_on_tcp(set: impl Fn(&Path, Pid, &mut Command)) -> Job {
        let mut job = Self::empty();
        // A port that is free, most likely still when it is needed.
        let port =
            TcpListener::bind("0.0.0.0:0").and_then(|free| free.local_addr()).unwrap().port();
        for rank in 0..Self::SIZE {
            let mut there = Command::new(HOSTS);
            there.args(["on", &format!("h{}", rank + 1)]);
            let mut command = member(there);
            command
                .env("LPF_RANK", rank.to_string())
                .env("LPF_SIZE", Self::SIZE.to_string())
                .env("LPF_MEET", format!("10.77.0.1:{port}"))
                .env("LPF_SECRET", "what only this job's processes know");
            set(&job.folder, rank, &mut command);
            job.children.push(command.spawn().expect("another process"));
        }
        job
    }

    fn start_on_mpi(set: impl Fn(&Path, Pid, &mut Command)) -> Job {
        let mut job = Self::empty();
        let mut launcher = Command::new(HOSTS);
        launcher.args(["mpirun", "1", "--enable-recovery", "--"]);
        let mut command = member(launcher);
        command.env("LPF_BACKEND", "mpi");
        set(&job.folder, 0, &mut command);
        // Puts over messages. What Open MPI 4.1.4 takes by itself fails on these hosts in MPI_Win_create.
        command.env("OMPI_MCA_osc", "pt2pt");
        job.children.push(command.spawn().expect("the launcher"));
        job
    }

    fn empty() -> Job {
        // The number of a process says little: among the hosts it is the same in every run.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let nth = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("lpf-cluster-{}-{nth}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            match std::fs::create_dir(&folder) {
                Ok(()) => return Job { children: Vec::new(), folder },
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("no folder in the temporary folder: {error}"),
            }
        }
    }

    /// Waits until all processes are there.
    pub(crate) fn await_all(&self) {
        (0..Self::SIZE).for_each(|rank| drop(self.hear("there", rank)));
    }

    /// Tells all to end; what a process has to say that did not end as if nothing had happened.
    pub(crate) fn ended(&mut self) -> Result<(), String> {
        self.tell("end");
        let said = (0..Self::SIZE).map(|rank| (rank, self.hear("ended", rank)));
        let complaint = said.into_iter().find(|(_, said)| said != "well");
        self.end();
        complaint.map_or(Ok(()), |(rank, said)| Err(format!("process {rank}: {said}")))
    }

    /// What a process says under a word, as soon as it does.
    pub(crate) fn hear(&self, word: &str, rank: Pid) -> String {
        self.hear_within(word, rank, GENEROUS)
    }

    pub(crate) fn hear_within(&self, word: &str, rank: Pid, time: Duration) -> String {
        let begin = Instant::now();
        loop {
            if let Ok(text) = std::fs::read_to_string(self.folder.join(format!("{word}-{rank}"))) {
                return text;
            }
            assert!(begin.elapsed() < time, "process {rank} does not say \"{word}\"");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// As [`hear`](Self::hear); nothing from a process that has ended without saying it.
    pub(crate) fn hear_unless_ended(&self, word: &str, rank: Pid) -> Option<String> {
        let pid = self.pid(rank).expect("it is there");
        let begin = Instant::now();
        loop {
            // SAFETY: numbers alone; signal 0 is none.
            let is_alive = unsafe { libc::kill(pid, 0) } == 0;
            if let Ok(text) = std::fs::read_to_string(self.folder.join(format!("{word}-{rank}"))) {
                return Some(text);
            }
            if !is_alive {
                return None;
            }
            assert!(begin.elapsed() < GENEROUS, "process {rank} does not say \"{word}\"");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Says a word to all.
    pub(crate) fn tell(&self, word: &str) {
        std::fs::write(self.folder.join(word), "").expect("a file");
    }

    /// All that processes have printed.
    fn printed(&self) -> String {
        let all = (0..Self::SIZE).map(|rank| self.folder.join(format!("{OUT}{rank}")));
        all.filter_map(|path| std::fs::read_to_string(path).ok()).collect()
    }

    /// What so many survivors have to say, or those that have come after some time.
    pub(crate) fn outcomes(&self, survivors: usize) -> Vec<Outcome> {
        let begin = Instant::now();
        loop {
            let outcomes = outcomes(&self.printed());
            if outcomes.len() >= survivors || begin.elapsed() > GENEROUS {
                return outcomes;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn pid(&self, rank: Pid) -> Option<libc::pid_t> {
        let said = std::fs::read_to_string(self.folder.join(format!("there-{rank}"))).ok();
        let printed = || {
            let there = format!("there {rank} ");
            Some(self.printed().lines().find_map(|line| line.strip_prefix(&there))?.to_owned())
        };
        said.or_else(printed)?.parse().ok()
    }

    /// Ends a process, if it is there yet.
    pub(crate) fn kill(&self, rank: Pid) {
        if let Some(pid) = self.pid(rank) {
            // SAFETY: numbers alone; nobody has waited for it.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }

    pub(crate) fn signal(&self, rank: Pid, signal: i32) {
        let pid = self.pid(rank).expect("it is there");
        // SAFETY: numbers alone; nobody has waited for it.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "{}", std::io::Error::last_os_error());
    }

    /// Waits for the end of all, which is near.
    pub(crate) fn end(&mut self) {
        let begin = Instant::now();
        while !self.children.iter_mut().all(|child| matches!(child.try_wait(), Ok(Some(_)))) {
            assert!(begin.elapsed() < allowed(GENEROUS), "a process does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
