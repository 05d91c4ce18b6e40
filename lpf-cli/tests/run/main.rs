//! The launcher as a user meets it: what processes are told, how a job ends, and that nobody is left.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use lpf_conformance::{allowed, assert_in_time};

#[cfg(feature = "mpi")]
mod mpi;

/// Tests of processes on each backend: `over_tcp::TEST`, and `over_mpi::TEST` in a build with MPI.
macro_rules! on_each_backend {
    ($($(#[$attribute:meta])* $test:ident)*) => {
        mod over_tcp {
            $(
                #[test]
                $(#[$attribute])*
                fn $test() {
                    super::$test("tcp");
                }
            )*
        }

        #[cfg(feature = "mpi")]
        mod over_mpi {
            $(
                #[test]
                $(#[$attribute])*
                fn $test() {
                    super::$test("mpi");
                }
            )*
        }
    };
}

on_each_backend! {
    a_process_that_is_cut_off_is_the_cause_though_it_blames_the_others
    a_process_that_panics_is_the_cause_though_it_ends_well
    a_program_that_a_process_starts_does_not_take_it_for_itself
    a_prompt_is_shown_before_its_line_ends
    a_wrapper_that_closes_descriptors_does_no_harm
    calls_that_a_sandbox_refuses_are_not_the_fault_of_the_program
    #[ignore = "takes 5 GB of memory: ci/mpi.sh runs it"]
    more_than_two_gibibytes_are_put_and_got_at_once
    nobody_who_reads_ends_the_job
    output_that_is_lost_is_an_error
    progress_of_several_processes_is_shown_soon_and_no_line_has_text_of_two
    standard_input_is_for_process_0
    what_a_process_does_not_read_is_left_for_others
    who_ends_well_and_has_not_come_is_named_soon
}

/// A process's number, in a script under any launcher.
const RANK: &str = "${LPF_RANK:-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}}";

/// Longer than anything takes here, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lpf"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LPF_")) {
        command.env_remove(name);
    }
    command.arg("run").args(arguments).stdin(Stdio::null());
    // SAFETY: signal is safe between fork and exec. Whoever runs the tests in the background, or under
    // nohup, has them ignore signals, and children inherit that.
    unsafe {
        command.pre_exec(|| {
            for number in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE]
            {
                libc::signal(number, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// `lpf run -n N sh -c SCRIPT`
fn shell(n: &str, script: &str) -> Output {
    run(&["-n", n, "sh", "-c", script])
}

/// The same, where who does not end with process 0 is to be ended.
fn hurried(n: &str, script: &str) -> Output {
    run(&["-n", n, "--grace", "0.3", "sh", "-c", script])
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn last(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

/// A job that runs while its test goes on.
struct Running {
    launcher: Child,
    lines: BufReader<ChildStdout>,
    /// What some said before others had begun.
    early: VecDeque<String>,
    /// The processes, by rank.
    pids: Vec<i32>,
}

impl Running {
    /// Starts a script; each process first says its rank and its pid.
    fn start(n: usize, options: &[&str], script: &str) -> Self {
        let (n_text, script) = (n.to_string(), format!("echo $LPF_RANK $$\n{script}"));
        let arguments = [&["-n", &n_text], options, &["sh", "-c", &script]].concat();
        let mut command = command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn().unwrap();
        let lines = BufReader::new(launcher.stdout.take().unwrap());
        let mut running = Running { launcher, lines, early: VecDeque::new(), pids: vec![0; n] };
        while running.pids.contains(&0) {
            let line = running.read();
            match line.split_once(' ') {
                Some((rank, pid)) => {
                    running.pids[rank.parse::<usize>().unwrap()] = pid.parse().unwrap();
                }
                None => running.early.push_back(line),
            }
        }
        running
    }

    fn line(&mut self) -> String {
        self.early.pop_front().unwrap_or_else(|| self.read())
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "the job has ended");
        line.trim_end().into()
    }

    /// Waits for the end without reading: what a job has left to say fits into its pipes.
    fn end_in_time(&mut self) {
        let begin = Instant::now();
        while self.launcher.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < allowed(PATIENCE), "the launcher does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn signal(&self, signal: i32) {
        send(self.launcher.id() as i32, signal);
    }

    /// Waits for the end: the status, what else was written, and what the launcher said.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut said) = (String::new(), String::new());
        assert!(self.early.is_empty());
        drop(self.launcher.stdin.take());
        self.end_in_time();
        self.lines.read_to_string(&mut out).unwrap();
        self.launcher.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = self.launcher.wait().unwrap();
        (status.code(), out, said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After a test that failed; else it has ended.
        let _ = self.launcher.kill();
    }
}

fn send(pid: i32, signal: i32) {
    // SAFETY: kill takes numbers alone; the process was started by this test.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// Whether a process is there and has not ended: a zombie of a launcher that was killed may wait for the
/// system.
fn is_there(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

fn all_end(pids: &[i32]) {
    let begin = Instant::now();
    while let Some(pid) = pids.iter().find(|&&pid| is_there(pid)) {
        assert!(begin.elapsed() < allowed(PATIENCE), "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_process_is_told_its_place() {
    let script = "echo $LPF_RANK $LPF_SIZE $LPF_BACKEND $LPF_MEET $LPF_JOB $LPF_SECRET; ls /proc/self/fd >&2";
    let (first, second) = (shell("3", script), stdout(&shell("1", script)));
    let (first, open) = (stdout(&first), stderr(&first));
    let lines: Vec<Vec<&str>> =
        sorted(&first).into_iter().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines[0][..3], ["0", "3", "tcp"]);
    assert_eq!(lines[1][..3], ["1", "3", "tcp"]);
    assert_eq!(lines[2][..3], ["2", "3", "tcp"]);
    assert!(lines[0][3].starts_with("127.0.0.1:"), "{first}");
    assert!(lines[0][4].parse::<u64>().is_ok(), "{first}");
    assert_eq!(lines[0][5].len(), 32);
    assert!(lines.iter().all(|line| line[3..] == lines[0][3..]), "{first}");
    assert!(!second.contains(lines[0][5]), "each job has a secret of its own");
    // The fourth is that of the folder.
    let descriptors = open.lines().filter(|line| line.parse::<u32>().is_ok()).max();
    assert_eq!(descriptors, Some("3"), "nothing else is handed on: {open}");
}

#[test]
fn a_job_inside_a_job_is_one_of_its_own() {
    let inner = format!(
        "[ $LPF_RANK = 1 ] || exec {} run -n 2 sh -c 'echo $LPF_RANK/$LPF_SIZE'",
        env!("CARGO_BIN_EXE_lpf")
    );
    let output = shell("2", &inner);
    assert_eq!(sorted(&stdout(&output)), ["0/2", "1/2"], "{}", stderr(&output));
}

/// A program between the launcher and the processes that closes all descriptors but the first three.
const CLOSES: &str = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; \"$@\"; exit $?";

fn a_wrapper_that_closes_descriptors_does_no_harm(backend: &str) {
    let program = std::env::current_exe().unwrap();
    let program = [program.to_str().unwrap(), "--exact", "member", "--nocapture", "--quiet"];
    let closes = ["sh", "-c", CLOSES, "sh"];
    // Twice, as two wrappers may.
    for wrapper in [&closes[..], &[closes, closes].concat()] {
        let options = ["-n", "3", "--backend", backend, "--grace", "1", "--"];
        let output = run(&[&options[..], wrapper, &program].concat());
        let (out, said) = (stdout(&output), stderr(&output));
        if is_mpich(backend) {
            // MPICH itself needs a descriptor, without which MPI_Init would end the process.
            assert!(said.contains("it has no connection to MPI's launcher"), "{out}{said}");
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{backend}: {out}{said}");
        assert_eq!(out.matches("counted 3").count(), 1, "{backend}: {out}");
        assert_eq!(said, "", "{backend}");
    }
}

/// Whether processes use MPICH.
#[cfg(feature = "mpi")]
fn is_mpich(backend: &str) -> bool {
    backend == "mpi" && !lpf::mpi::library_version().contains("Open MPI")
}

#[cfg(not(feature = "mpi"))]
fn is_mpich(_backend: &str) -> bool {
    false
}

#[test]
fn a_process_that_cannot_ask_for_its_socket_is_told_why() {
    let program = std::env::current_exe().unwrap();
    let script =
        format!("_LPF_REPORT=x exec {} --exact cannot_meet --nocapture", program.display());
    let mut command = command(&["-n", "2", "--grace", "0.3", "sh", "-c", &script]);
    let output = command.env("CANNOT_MEET", "1").env("LPF_MEET_TIMEOUT", "1").output().unwrap();
    let out = stdout(&output);
    let text = "said: misuse: lpf run did not hand over the socket for 127.0.0.1:";
    assert!(out.contains(text) && out.contains("_LPF_REPORT names where it is asked"), "{out}");
}

#[test]
fn a_job_by_hand_inside_of_a_job_listens_itself() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let program = std::env::current_exe().unwrap();
    // Process 0 of the outer job is both processes of the inner one.
    let script = format!(
        "[ $LPF_RANK = 0 ] || exit 0; export LPF_MEET={free} LPF_SIZE=2
        LPF_RANK=1 {program} --exact member --quiet & exec {program} --exact member --nocapture",
        program = program.display()
    );
    let output = shell("3", &script);
    assert!(stdout(&output).contains("counted 2"), "{}{}", stdout(&output), stderr(&output));
}

/// The program of the next tests, which start this one alone.
#[test]
fn says_whether_its_data_is_sealed() {
    if std::env::var_os("LPF_RANK").is_some() {
        let mut member = lpf::Member::launched().unwrap();
        member.hook(|ctx| ctx.sync()).unwrap();
        println!(
            "{}",
            if format!("{member:?}").contains("is_sealed: true") { "sealed" } else { "bare" }
        );
    }
}

#[test]
fn the_data_of_a_job_on_one_machine_is_sealed_if_the_user_says_so() {
    for (setting, expected) in [(None, "bare"), (Some("0"), "bare"), (Some("1"), "sealed")] {
        let mut command = again(&["-n", "2"], "says_whether_its_data_is_sealed");
        let output = command.envs(setting.map(|value| ("LPF_SEAL_DATA", value))).output().unwrap();
        let out = stdout(&output);
        assert_eq!(out.matches(expected).count(), 2, "{setting:?}: {out}{}", stderr(&output));
    }
}

#[test]
fn the_data_of_a_job_by_hand_is_sealed_unless_process_0_says_no() {
    for (first, other, expected) in [("", "", "sealed"), ("=0", "", "bare"), ("", "=0", "sealed")] {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let setting = |value: &str| match value {
            "" => String::new(),
            value => format!("LPF_SEAL_DATA{value}"),
        };
        // Inside of a job of lpf run, whose data is bare.
        let script = format!(
            "[ $LPF_RANK = 0 ] || exit 0; export LPF_MEET={free} LPF_SIZE=2
            p='{program} --exact says_whether_its_data_is_sealed --nocapture --quiet'
            {other} LPF_RANK=1 $p & {first} LPF_RANK=0 $p; wait",
            program = std::env::current_exe().unwrap().display(),
            first = setting(first),
            other = setting(other),
        );
        let output = shell("1", &script);
        let out = stdout(&output);
        assert_eq!(out.matches(expected).count(), 2, "{first} {other}: {out}{}", stderr(&output));
    }
}

#[test]
fn the_status_is_that_of_process_0() {
    assert_eq!(shell("3", "exit 0").status.code(), Some(0));
    let failed = shell("3", "[ $LPF_RANK = 0 ] && exit 7; exit 0");
    assert_eq!(failed.status.code(), Some(7));
    assert!(last(&stderr(&failed)).contains("process 0 (pid"), "{}", stderr(&failed));
    assert!(last(&stderr(&failed)).contains("ended with status 7 after"), "{}", stderr(&failed));
    let killed = shell("2", "[ $LPF_RANK = 0 ] && kill -SEGV $$; exit 0");
    assert_eq!(killed.status.code(), Some(128 + 11));
    assert!(last(&stderr(&killed)).contains("was ended by SIGSEGV"), "{}", stderr(&killed));
}

#[test]
fn survivors_of_a_killed_process_go_on_and_the_launcher_says_last_what_happened() {
    let script = "[ $LPF_RANK = 0 ] || exec sleep 1000; read line; echo went on; exit 5";
    let mut job = Running::start(4, &["--grace", "0.3"], script);
    send(job.pids[2], libc::SIGKILL);
    all_end(&job.pids[2..3]);
    assert!(is_there(job.pids[0]) && is_there(job.pids[1]) && is_there(job.pids[3]));
    job.launcher.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let pids = job.pids.clone();
    let (status, out, said) = job.end();
    assert_eq!((status, &*out), (Some(5), "went on\n"));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let cause = format!("lpf: process 2 (pid {} on {}) was ended by SIGKILL", pids[2], host.trim());
    assert!(last(&said).starts_with(&cause), "{said}");
    assert!(
        last(&said).contains("; 1 more failed after it. Process 0 ended with status 5"),
        "{said}"
    );
    assert!(
        said.starts_with("lpf: 2 processes were still running 0.300 s after process 0"),
        "{said}"
    );
    all_end(&pids);
}

#[test]
fn a_process_that_fails_is_named_even_if_process_0_ends_well() {
    let script = "[ $LPF_RANK = 0 ] && { read line; exit 0; }; [ $LPF_RANK = 2 ] && exit 3; exit 0";
    let job = Running::start(3, &[], script);
    all_end(&job.pids[1..]);
    let (status, _, said) = job.end();
    assert_eq!(status, Some(3));
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("process 2 (pid") && said.contains("ended with status 3"), "{said}");
}

#[test]
fn of_those_found_dead_at_once_the_killed_one_is_the_root_cause() {
    let script = r#"
        [ $LPF_RANK = 0 ] && { read line; exit 1; }
        trap 'exit 1' TERM; echo set; while :; do sleep 0.1; done"#;
    let mut job = Running::start(3, &[], script);
    (0..2).for_each(|_| assert_eq!(job.line(), "set"));
    job.signal(libc::SIGSTOP);
    send(job.pids[1], libc::SIGTERM);
    send(job.pids[2], libc::SIGKILL);
    all_end(&job.pids[1..]);
    job.signal(libc::SIGCONT);
    let (status, _, said) = job.end();
    assert_eq!(status, Some(1));
    assert!(last(&said).starts_with("lpf: process 2 (pid"), "{said}");
    assert!(
        last(&said).contains("; 2 more failed after it. Process 0 ended with status 1"),
        "{said}"
    );
}

#[test]
fn a_signal_to_the_launcher_reaches_all_and_is_its_status() {
    for (signal, name) in [(libc::SIGTERM, "TERM"), (libc::SIGINT, "INT"), (libc::SIGHUP, "HUP")] {
        let script =
            format!("trap 'echo got; exit 0' {name}; echo set; while :; do sleep 0.1; done");
        let mut job = Running::start(3, &[], &script);
        (0..3).for_each(|_| assert_eq!(job.line(), "set"));
        let pids = job.pids.clone();
        job.signal(signal);
        let (status, out, said) = job.end();
        assert_eq!(status, Some(128 + signal), "{said}");
        assert_eq!(out, "got\n".repeat(3));
        // Shells may say that what they ran was ended.
        assert!(!said.contains("lpf:"), "nothing went wrong: {said}");
        all_end(&pids);
    }
}

#[test]
fn who_fails_before_all_have_met_ends_a_job_that_would_wait_for_him() {
    let script = "[ $LPF_RANK = 1 ] && exit 7; exec sleep 1000";
    let begin = Instant::now();
    let output = hurried("3", script);
    assert!(begin.elapsed() < allowed(PATIENCE));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(last(&said).starts_with("lpf: process 1 (pid "), "{said}");
    assert!(last(&said).contains("ended with status 7"), "{said}");
    assert!(said.contains("after others had failed, and were asked to end"), "{said}");
}

#[test]
fn without_a_launcher_of_mpi_it_is_said_where_one_is() {
    let empty = "/proc/self/fdinfo"; // no program is there
    let output = command(&["--backend", "mpi", "/bin/true"]).env("PATH", empty).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no launcher of") && said.contains("Debian has it in"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// A folder with a launcher of MPI that is the script's, which calls itself what this build asks for.
fn false_launcher(name: &str, script: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("lpf-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (launcher, version) in [("mpirun.openmpi", "Open MPI"), ("mpiexec.mpich", "HYDRA")] {
        let path = folder.join(launcher);
        let script = script.replace("VERSION", version);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }
    folder
}

#[test]
fn a_launcher_of_mpi_that_hangs_is_ended_and_named() {
    // It does not start any; it starts one alone, and does not heed signals; it does not tell its version.
    let one = "until [ x$1 = xshepherd ]; do own=$1; shift; done
        OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 $own \"$@\" &
        trap '' TERM; while :; do sleep 1; done";
    let version = "[ x$1 = x--version ] && echo VERSION && exit";
    let more = "LPF_MEET_TIMEOUT=SECONDS";
    let cases = [
        (
            format!("{version}; exec sleep 1000"),
            "1",
            " started 0 of 2 processes, and no other within 1.00 s",
        ),
        // Long enough for the first on a busy machine.
        (format!("{version}\n{one}"), "5", " started 1 of 2 processes, and no other within 5.00 s"),
        ("exec sleep 1000".into(), "1", " --version did not end within 1.00 s"),
    ];
    for (nth, (script, patience, expected)) in cases.into_iter().enumerate() {
        let folder = false_launcher(&format!("hangs-{nth}"), &script);
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let begin = Instant::now();
        let mut command =
            command(&["-n", "2", "--backend", "mpi", "--grace", "0.3", "sleep", "1000"]);
        let output = command.env("PATH", path).env("LPF_MEET_TIMEOUT", patience).output().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{script}: {said}");
        assert!(last(&said).starts_with("lpf: mpi") && last(&said).contains(expected), "{said}");
        assert!(last(&said).contains(more), "{said}");
        assert_in_time(begin.elapsed(), Duration::from_secs(20));
    }
}

#[test]
fn a_launcher_of_mpi_that_ends_at_once_leaves_its_status_as_all_that_is_known() {
    let version = "[ x$1 = x--version ] && echo VERSION && exit";
    let folder = false_launcher("ends", &format!("{version}; exit 9"));
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = command(&["-n", "2", "--backend", "mpi", "true"]);
    let output = command.env("PATH", path).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(9), "{said}");
    assert!(last(&said).contains("MPI's launcher ended with status 9"), "{said}");
}

#[test]
fn a_signal_that_ends_nothing_is_passed_on() {
    let script = "trap 'echo got; exit 0' USR1; echo set; while :; do sleep 0.1; done";
    let mut job = Running::start(2, &[], script);
    (0..2).for_each(|_| assert_eq!(job.line(), "set"));
    job.signal(libc::SIGUSR1);
    let (status, out, _) = job.end();
    assert_eq!((status, &*out), (Some(0), "got\ngot\n"));
}

#[test]
fn who_does_not_end_when_asked_is_killed_with_all_that_it_started() {
    let script = "trap '' TERM; sleep 1000 & echo $!; wait; :";
    let mut job = Running::start(2, &["--grace", "0.3"], script);
    let mut pids = job.pids.clone();
    (0..2).for_each(|_| pids.push(job.line().parse().unwrap()));
    job.signal(libc::SIGTERM);
    let (status, _, said) = job.end();
    assert_eq!(status, Some(143));
    assert!(last(&said).contains("2 processes were still running"), "{said}");
    assert!(last(&said).contains("after SIGTERM, and killed"), "{said}");
    all_end(&pids);
}

#[test]
fn a_second_signal_kills_at_once() {
    let script = "trap '' TERM; echo set; while :; do sleep 1000; done";
    let mut job = Running::start(2, &["--grace", "1000"], script);
    (0..2).for_each(|_| assert_eq!(job.line(), "set"));
    let pids = job.pids.clone();
    job.signal(libc::SIGTERM);
    // Sooner it would count as the first once more.
    std::thread::sleep(Duration::from_millis(700));
    assert!(pids.iter().all(|&pid| is_there(pid)));
    job.signal(libc::SIGTERM);
    assert_eq!(job.end().0, Some(143));
    all_end(&pids);
}

#[test]
fn a_launcher_that_is_killed_leaves_nobody_behind() {
    let mut job = Running::start(3, &[], "exec sleep 1000");
    job.signal(libc::SIGKILL);
    job.launcher.wait().unwrap();
    all_end(&job.pids);
}

#[test]
fn processes_that_do_not_follow_process_0_are_ended() {
    let script = "[ $LPF_RANK = 0 ] || sleep 1000; exit 0";
    let output = hurried("3", script);
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert!(
        said.contains("2 processes were still running 0.300 s after process 0 had ended"),
        "{said}"
    );
    assert!(!said.contains("pid"), "they were asked to: {said}");
}

#[test]
fn what_a_process_starts_and_leaves_behind_is_ended() {
    let output = hurried("1", "sleep 1000 >/dev/null 2>&1 & echo $!; exit 4");
    assert_eq!(output.status.code(), Some(4));
    all_end(&[stdout(&output).trim().parse().unwrap()]);
    // What ends by itself is left alone.
    let output = shell("1", "(sleep 0.1; echo later) & exit 0");
    assert_eq!((stdout(&output), stderr(&output)), ("later\n".into(), String::new()));
}

fn standard_input_is_for_process_0(backend: &str) {
    let script = format!("[ {RANK} = 0 ] && exec cat; readlink /proc/self/fd/0");
    let options = ["-n", "3", "--backend", backend, "--tag", "sh", "-c", &script];
    let mut command = command(&options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo").unwrap();
    let output = child.wait_with_output().unwrap();
    let out = stdout(&output);
    assert_eq!(sorted(&out), ["0| one", "0| two", "1| /dev/null", "2| /dev/null"], "{backend}");
}

#[test]
fn tags_are_on_both_streams_and_the_end_comes_last() {
    let script = "echo out; echo; echo err >&2; printf rest; [ $LPF_RANK = 0 ] || exit 0; exit 1";
    let output = run(&["-n", "2", "--tag", "sh", "-c", script]);
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(sorted(&out), ["0| ", "0| out", "0| rest", "1| ", "1| out", "1| rest"]);
    assert_eq!(sorted(&said)[..2], ["0| err", "1| err"]);
    assert!(last(&said).starts_with("lpf: process 0"), "{said}");
}

fn a_prompt_is_shown_before_its_line_ends(backend: &str) {
    let script = "[ $LPF_RANK = 1 ] && { printf 'Name? '; read name; echo; exec echo $name; }
        exec cat >/dev/null";
    // Of MPI, process 0 alone has the input: the other ends at once.
    let script = script.replace("$LPF_RANK = 1", &format!("{RANK} = 0"));
    let options = ["-n", "2", "--backend", backend, "--tag", "sh", "-c", &script];
    let mut job = command(&options);
    job.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut job = job.spawn().unwrap();
    let mut shown = [0; 9];
    job.stdout.as_mut().unwrap().read_exact(&mut shown).unwrap();
    assert_eq!(&shown, b"0| Name? ", "{backend}");
    job.stdin.take().unwrap().write_all(b"Bob\n").unwrap();
    let output = job.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "\n0| Bob\n", "{backend}: {}", stderr(&output));
}

fn progress_of_several_processes_is_shown_soon_and_no_line_has_text_of_two(backend: &str) {
    let script = r#"
        i=0; while [ $i -lt 10 ]; do i=$((i+1)); printf "\r$RANK-$i"; sleep 0.1; done
        echo " $RANK-done""#
        .replace("$RANK", RANK);
    let output = run(&["-n", "3", "--backend", backend, "--tag", "sh", "-c", &script]);
    let out = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{backend}: {}", stderr(&output));
    for line in out.lines().flat_map(|line| line.split('\r')).filter(|line| !line.is_empty()) {
        let (rank, text) = line.split_once("| ").expect(line);
        let words = text.split([' ', '-']).filter(|word| word.parse::<u32>().is_ok());
        assert!(line.is_empty() || text.is_empty() || words.count() > 0, "{backend}: {line:?}");
        let others = ["0", "1", "2"].into_iter().filter(|other| *other != rank);
        for other in others {
            assert!(!text.contains(&format!("{other}-")), "{backend}: {line:?}");
        }
    }
    for rank in 0..3 {
        assert_eq!(out.matches(&format!("{rank}-done\n")).count(), 1, "{backend}: {out}");
        assert!(out.contains(&format!("{rank}| {rank}-1")), "{backend}: {out}");
    }
    // Three lines alone if nothing is shown before a line ends.
    assert!(out.lines().count() > 3, "{backend}: {out:?}");
}

#[test]
fn an_answer_at_a_terminal_is_followed_by_a_tag() {
    let (mut user, name) = terminal();
    let open = || File::options().read(true).write(true).open(&name).unwrap();
    let mut command =
        command(&["-n", "1", "--tag", "sh", "-c", "printf 'Name? '; read n; echo Hi $n"]);
    command.stdin(open()).stdout(open()).stderr(open());
    let mut launcher = command.spawn().unwrap();
    drop(command);
    let (mut seen, mut bytes) = (String::new(), [0; 256]);
    while let Ok(n) = user.read(&mut bytes) {
        seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
        if seen == "0| Name? " {
            user.write_all(b"Bob\n").unwrap();
        }
    }
    assert_eq!(launcher.wait().unwrap().code(), Some(0), "{seen}");
    assert_eq!(seen, "0| Name? Bob\r\n\r0| Name? Hi Bob\r\n");
}

fn what_a_process_does_not_read_is_left_for_others(backend: &str) {
    let lpf = env!("CARGO_BIN_EXE_lpf");
    let script = format!(
        "while read line; do {lpf} run -n 2 --backend {backend} sh -c 'test {RANK} = 1 || echo $0' $line; done"
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.stderr(Stdio::null()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"one\ntwo\nthree\n").unwrap();
    let output = shell.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "one\ntwo\nthree\n", "{backend}");
}

fn output_that_is_lost_is_an_error(backend: &str) {
    for options in [&[][..], &["--tag"]] {
        let arguments = [&["-n", "2", "--backend", backend], options, &["echo", "text"]].concat();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command(&arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
    }
}

fn nobody_who_reads_ends_the_job(backend: &str) {
    let lpf = env!("CARGO_BIN_EXE_lpf");
    let script = format!("{lpf} run -n 2 --backend {backend} --tag yes | head -n 3");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(stdout(&output).lines().count(), 3);
    assert!(last(&stderr(&output)).contains("SIGPIPE"), "{}", stderr(&output));
}

#[test]
fn a_program_that_cannot_be_run_is_one_sentence_and_no_job() {
    let folder = std::env::temp_dir().join(format!("lpf-run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("script");
    std::fs::write(&script, "#!/nowhere/sh\n").unwrap();
    let script = script.to_str().unwrap().to_owned();
    let plain = folder.join("plain");
    std::fs::write(&plain, "text").unwrap();
    let plain = plain.to_str().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["/nowhere/program"], "lpf: /nowhere/program does not exist\n"),
        (&["no-such-program"], "lpf: there is no program no-such-program in PATH\n"),
        (&["/"], "lpf: / is a folder, not a program\n"),
        (&[plain], "may not be executed (chmod +x"),
        (&[&script], "exists, but the interpreter in its first line"),
        (&[""], "the name of the program is empty"),
        (&["-n", "0", "true"], "it has to be a number of processes from 1 to 65536"),
        (&["-n", "1000000", "true"], "it has to be a number of processes from 1 to 65536"),
        (&["-n", "0", "true"], " run --help explains more)"),
        (&["-n", "2"], "PROGRAM is missing ("),
        (&["-n", "2"], " run --help explains more)"),
        (&["--frobnicate", "true"], " run --help explains more)"),
        (&["--backend", "threads", "true"], "start the program itself"),
        (&["--backend", "pigeons", "true"], "for the backend \"pigeons\""),
        (&["--backend", "pigeons", "true"], "there are tcp, and mpi for a program built with"),
    ];
    for (arguments, expected) in cases {
        let output = run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn where_the_system_has_no_room_it_is_said_how_many_there_were() {
    // With tags a process needs two descriptors of the launcher. The first process takes them away.
    let script = "[ $LPF_RANK = 0 ] && prlimit --pid $PPID --nofile=20
        echo $$; exec sleep 1000";
    let output = run(&["-n", "400", "--tag", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(" of 400 processes could be started, and these were ended: "), "{said}");
    let out = stdout(&output);
    let pids = out.lines().map(|line| line.split_once("| ").unwrap().1.parse().unwrap());
    all_end(&pids.collect::<Vec<_>>());
}

/// `lpf run` under limits of open files, as `ulimit` sets them.
fn limited(ulimit: &str, options: &[&str]) -> Output {
    let program = std::env::current_exe().unwrap();
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit {ulimit}; exec \"$@\""), env!("CARGO_BIN_EXE_lpf")]);
    limited.args([env!("CARGO_BIN_EXE_lpf"), "run"]).args(options);
    limited.arg("--").arg(program).args(["--exact", "member", "--nocapture"]);
    limited.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_soft_limit_of_open_files_is_raised_to_the_hard_one() {
    for options in [&["-n", "48"][..], &["-n", "48", "--tag"]] {
        let output = limited("-Sn 40", options);
        let (out, said) = (stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{options:?}: {out}{said}");
        assert_eq!(out.matches("counted 48").count(), 1, "{options:?}: {out}{said}");
    }
    // What is no member, and may not expect more, has the limit that it would have had.
    let script =
        format!("ulimit -Sn 40; {} run -n 1 sh -c 'ulimit -Sn'", env!("CARGO_BIN_EXE_lpf"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(stdout(&output), "40\n");
}

#[test]
fn a_hard_limit_of_open_files_that_is_too_small_is_named_at_once() {
    let begin = Instant::now();
    let output = limited("-n 40", &["-n", "48", "--grace", "1"]);
    let said = stdout(&output) + &stderr(&output);
    assert_ne!(output.status.code(), Some(0), "{said}");
    let text = "process 0 cannot connect to the others of 48: this process may have 40 open files (the hard limit, ulimit -Hn), and needs 1";
    assert!(said.contains(text), "{said}");
    assert!(!said.contains("not come"), "{said}");
    assert_in_time(begin.elapsed(), Duration::from_secs(15));
    let output = limited("-n 40", &["-n", "48", "--tag"]);
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    let text = "lpf: no process was started: this process may have 40 open files (the hard limit, ulimit -Hn), and needs 12";
    assert!(said.starts_with(text) && said.ends_with("; or leave --tag out\n"), "{said}");
}

/// From now on the system refuses these calls, in what is started, too.
fn refuse_calls(numbers: &[libc::c_long]) -> std::io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let one = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    // The number of the call is the first word of what is looked at.
    let mut filter = [one(RETURN, 0, libc::SECCOMP_RET_ALLOW); 16];
    filter[0] = one(LOAD, 0, 0);
    for (nth, &number) in numbers.iter().enumerate() {
        filter[nth + 1] = one(EQUAL, (13 - nth) as u8, number as u32);
    }
    filter[15] = one(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    let program = libc::sock_fprog { len: 16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its filter live until the call returns.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn calls_that_a_sandbox_refuses_are_not_the_fault_of_the_program(backend: &str) {
    const CALLS: [libc::c_long; 2] = [libc::SYS_prctl, libc::SYS_prlimit64];
    let program = std::env::current_exe().unwrap();
    let member = [program.to_str().unwrap(), "--exact", "member", "--nocapture", "--quiet"];
    let mut job = command(&[&["-n", "2", "--backend", backend, "--"], &member[..]].concat());
    // SAFETY: system calls alone.
    unsafe { job.pre_exec(|| refuse_calls(&CALLS)) };
    let output = job.output().unwrap();
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{backend}: {out}{said}");
    assert_eq!(out.matches("counted 2").count(), 1, "{backend}: {out}{said}");
    // It is refused nothing else: prctl is, here.
    let mut command = command(&["-n", "1", "setpriv", "--no-new-privs", "true"]);
    // SAFETY: as above.
    unsafe { command.pre_exec(|| refuse_calls(&CALLS)) };
    assert_ne!(command.output().unwrap().status.code(), Some(0));
}

#[test]
fn processes_that_do_not_join_are_told_of() {
    let output = shell("3", "true");
    let expected =
        "lpf: none of the 3 processes joined the others: the program did not call lpf::run";
    let said = stderr(&output);
    assert!(said.starts_with(expected) && said.lines().count() == 1, "{said}");
    assert_eq!(stderr(&shell("1", "true")), "");
}

/// Counts its processes.
fn count(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    ctx.sync()?;
    if ctx.pid() == 0 {
        println!("counted {}", ctx.nprocs());
    }
    Ok(())
}

/// The program of the next test, which starts this one alone.
#[test]
fn member() {
    if std::env::var_os(lpf::launcher::WHERE).is_some() {
        lpf::run(count).unwrap();
    }
}

#[test]
fn processes_that_join_find_each_other() {
    let program = std::env::current_exe().unwrap();
    let output =
        run(&["-n", "3", program.to_str().unwrap(), "--exact", "member", "--nocapture", "--quiet"]);
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{out}{said}");
    assert_eq!(out.matches("counted 3").count(), 1, "{out}");
    assert_eq!(said, "");
}

/// This program as another build of it: a copy with another build id.
fn another_build(folder: &Path) -> PathBuf {
    let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    // A note of the kind 3, of "GNU", and behind it the id (elf(5)).
    let note =
        [&4u32.to_le_bytes()[..], &20u32.to_le_bytes(), &3u32.to_le_bytes(), b"GNU\0"].concat();
    let at = bytes.windows(note.len()).position(|window| window == note).expect("a build id");
    bytes[at + note.len()] ^= 1;
    let program = folder.join("another-build");
    std::fs::write(&program, bytes).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    program
}

#[test]
fn a_process_of_another_build_says_so_and_ends_with_an_error() {
    let folder = std::env::temp_dir().join(format!("lpf-build-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (one, other) = (std::env::current_exe().unwrap(), another_build(&folder));
    let script = format!(
        "[ $LPF_RANK = 1 ] && program={} || program={}; exec $program --exact member --quiet",
        other.display(),
        one.display()
    );
    let output = shell("3", &script);
    std::fs::remove_dir_all(&folder).unwrap();
    let said = stderr(&output);
    let why = "this process runs another build of the program than the one that began the section";
    assert_eq!(said.matches(why).count(), 1, "it is said once: {said}");
    assert!(last(&said).starts_with("lpf: process 1 (pid "), "{said}");
    assert!(last(&said).contains(" ended with status 1 after "), "{said}");
    assert!(last(&said).contains(why), "{said}");
}

fn who_ends_well_and_has_not_come_is_named_soon(backend: &str) {
    is_missed(backend, "1");
    is_missed(backend, "0");
}

/// One of three processes ends with status 0 while the others wait for it to join. Process 2 ignores the request to end:
/// it loses its connection to process 0, which obeys, and reports that. This consequence is not the cause.
fn is_missed(backend: &str, who: &str) {
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "rank={RANK}; [ $rank != 2 ] || trap '' TERM; [ $rank = {who} ] || exec {} --exact member --quiet",
        program.display()
    );
    let options = ["-n", "3", "--backend", backend, "--grace", "1", "sh", "-c", &script];
    let begin = Instant::now();
    let output = run(&options);
    let said = stderr(&output);
    assert_ne!(output.status.code(), Some(0), "{said}");
    let missed = last(&said);
    assert!(missed.starts_with(&format!("lpf: process {who} (pid ")), "{said}");
    assert!(missed.contains(" ended with status 0 after "), "{said}");
    assert!(missed.ends_with(" and had not joined the others, which waited for it"), "{said}");
    // The meeting itself would give up after half a minute, MPI never.
    assert_in_time(begin.elapsed(), Duration::from_secs(20));
}

/// One process computes for ever, from the superstep on that the environment tells.
fn computes_for_ever(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    for superstep in 0..2 {
        while std::env::var("ENDLESS").unwrap() == format!("{} {superstep}", ctx.pid()) {
            std::thread::sleep(Duration::from_millis(10));
        }
        ctx.sync()?;
    }
    Ok(())
}

/// The program of the next test, which starts this one alone.
#[test]
fn endless() {
    if std::env::var_os("LPF_RANK").is_some() {
        let ended = lpf::run(computes_for_ever);
        assert!(ended.unwrap_err().to_string().contains("LPF_TIMEOUT"));
        lpf::leave();
    }
}

#[test]
fn a_process_that_computes_for_ever_holds_up_the_end_no_longer_than_it_has_to() {
    for superstep in 0..2 {
        let begin = Instant::now();
        let mut command = again(&["-n", "3", "--grace", "1"], "endless");
        command.env("LPF_TIMEOUT", "0.5").env("ENDLESS", format!("2 {superstep}"));
        let said = stderr(&command.output().unwrap());
        let took = begin.elapsed();
        // On a busy machine another one may not have left yet, either.
        assert!(said.contains(" still in the job 1.00 s after process 0"), "{said}");
        assert!(last(&said).starts_with("lpf: process 2 (pid "), "{said}");
        assert!(last(&said).contains("was ended by SIGTERM"), "{said}");
        assert!(last(&said).contains("(LPF_TIMEOUT)"), "{said}");
        // Process 0 alone would wait for five seconds.
        assert_in_time(took, Duration::from_secs(4));
    }
}

#[test]
fn who_computes_for_ever_is_named_first_though_the_others_end_before() {
    // The grace is longer than process 0 waits for the others in the end; then it fails.
    let program = std::env::current_exe().unwrap();
    let script = format!("{} --exact endless --quiet; test $LPF_RANK != 0", program.display());
    let mut command = command(&["-n", "3", "--grace", "7", "sh", "-c", &script]);
    command.env("LPF_TIMEOUT", "0.5").env("ENDLESS", "1 1");
    let said = stderr(&command.output().unwrap());
    assert!(last(&said).starts_with("lpf: process 1 (pid "), "{said}");
    assert!(last(&said).contains(" was late, and was ended by SIGTERM after "), "{said}");
    assert!(
        last(&said).contains("; 1 more failed after it. Process 0 ended with status 1"),
        "{said}"
    );
    assert!(last(&said).contains("fatal: process 1, superstep 1: it did not reach"), "{said}");
}

#[test]
fn a_process_0_that_computes_for_ever_is_ended_when_the_others_have_given_it_up() {
    for superstep in 0..2 {
        let mut command = again(&["-n", "3", "--grace", "0.5"], "endless");
        command.env("LPF_TIMEOUT", "0.5").env("ENDLESS", format!("0 {superstep}"));
        let output = command.output().unwrap();
        let said = stderr(&output);
        assert_ne!(output.status.code(), Some(0), "{said}");
        assert!(
            said.contains("process 0 was still running 0.500 s after others had failed"),
            "{said}"
        );
        assert!(last(&said).starts_with("lpf: process 0 (pid "), "{said}");
        assert!(last(&said).contains(" was late, and was ended by SIGTERM after "), "{said}");
        let cause = format!("fatal: process 0, superstep {superstep}: it did not reach");
        assert!(last(&said).contains(&cause), "{said}");
    }
}

/// A job of a test of this program, which `lpf run` starts again.
fn again(options: &[&str], test: &str) -> Command {
    let program = std::env::current_exe().unwrap();
    let program = [program.to_str().unwrap(), "--exact", test, "--nocapture", "--quiet"];
    command(&[options, &["--"], &program].concat())
}

/// Process 1 is killed between two supersteps.
fn killed(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    ctx.sync()?;
    if ctx.pid() == 1 {
        send(std::process::id() as i32, libc::SIGKILL);
    }
    ctx.sync()
}

/// The program of the next test, which starts this one alone.
#[test]
fn saves_its_state() {
    if std::env::var_os("LPF_RANK").is_some() {
        let error = lpf::run(killed).unwrap_err();
        assert!(error.to_string().starts_with("fatal: process 1, superstep "), "{error}");
        std::thread::sleep(Duration::from_secs(2));
        println!("saved");
    }
}

#[test]
fn process_0_survives_all_others_for_as_long_as_it_likes() {
    let output = again(&["-n", "2", "--grace", "0.2"], "saves_its_state").output().unwrap();
    let (out, said) = (stdout(&output), stderr(&output));
    assert!(out.contains("saved\n"), "{out}{said}");
    assert!(last(&said).contains("was ended by SIGKILL"), "{said}");
    assert!(last(&said).contains("Process 0 ended with status 0"), "{said}");
    assert!(!said.contains("asked to end"), "{said}");
    assert_eq!(output.status.code(), Some(128 + libc::SIGKILL), "{said}");
}

/// Process 0 is stopped between two supersteps.
fn stopped(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    ctx.sync()?;
    if ctx.pid() == 0 {
        send(std::process::id() as i32, libc::SIGSTOP);
    }
    ctx.sync()
}

/// The program of the next test, which starts this one alone.
#[test]
fn is_stopped() {
    if std::env::var_os("LPF_RANK").is_some() {
        let _ = lpf::run(stopped);
    }
}

#[test]
fn a_process_0_that_is_stopped_is_ended_when_the_others_have_left_it() {
    let options = ["-n", "2", "--grace", "0.3"];
    let program = std::env::current_exe().unwrap();
    // A shell may stand before it, and is not stopped.
    let script = format!("{} --exact is_stopped --quiet; exit $?", program.display());
    let behind_a_shell = command(&[&options[..], &["sh", "-c", &script]].concat());
    for mut command in [again(&options, "is_stopped"), behind_a_shell] {
        let begin = Instant::now();
        let said = stderr(&command.output().unwrap());
        assert!(begin.elapsed() < allowed(PATIENCE), "{said}");
        assert!(said.contains("after others had failed, and was asked to end"), "{said}");
    }
}

/// The program of the next test, which starts this one alone.
#[test]
fn meets_twice() {
    if std::env::var_os("LPF_RANK").is_some() {
        let mut first = lpf::Member::launched().unwrap();
        first.hook(|ctx| ctx.sync()).unwrap();
        // Beside the first, and after it.
        let mut second = lpf::Member::launched().unwrap();
        second.hook(|ctx| ctx.sync()).unwrap();
        drop((first, second));
        let mut third = lpf::Member::launched().unwrap();
        third.hook(|ctx| ctx.sync()).unwrap();
        println!("met");
    }
}

/// Process 1 ends well, while the others wait for it.
fn leaver(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    ctx.sync()?;
    if ctx.pid() == 1 {
        std::process::exit(0);
    }
    ctx.sync()
}

/// The program of the next test, which starts this one alone.
#[test]
fn leaves_a_section() {
    if std::env::var_os("LPF_RANK").is_some() {
        let ended = lpf::run(leaver);
        std::process::exit(if ended.is_err() { 9 } else { 0 });
    }
}

#[test]
fn who_ends_well_in_a_section_is_the_root_cause() {
    let output = again(&["-n", "3"], "leaves_a_section").output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(9), "{said}");
    assert!(last(&said).starts_with("lpf: process 1 (pid "), "{said}");
    assert!(
        last(&said).contains(" s, while others waited for it in a section; 1 more failed after it"),
        "{said}"
    );
}

/// A child that process 0 forks panics, which is not the job's failure. Then process 2 panics.
fn panics_after_a_child(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    ctx.sync()?;
    if ctx.pid() == 0 {
        // SAFETY: the child is a copy of this thread; waitpid takes a null status.
        unsafe {
            let child = libc::fork();
            assert!(child != 0, "in a child");
            assert!(child > 0 && libc::waitpid(child, std::ptr::null_mut(), 0) == child);
        }
    }
    assert!(ctx.pid() != 2, "of process 2's own");
    ctx.sync()
}

/// The programs of the next test, which start this one alone.
#[test]
fn runs_and_panics() {
    if std::env::var_os(lpf::launcher::WHERE).is_some() {
        let ended = lpf::run(panics_after_a_child);
        std::process::exit(if ended.is_err() { 9 } else { 0 });
    }
}

#[test]
fn hooks_and_panics() {
    if std::env::var_os(lpf::launcher::WHERE).is_some() {
        let mut member = lpf::Member::launched().unwrap();
        let hooked = member.hook(panics_after_a_child);
        assert!(hooked.is_err());
        // As a program that saves what it has, and ends well.
        std::process::exit(if member.rank() == 2 { 0 } else { 9 });
    }
}

fn a_process_that_panics_is_the_cause_though_it_ends_well(backend: &str) {
    panics(backend, "runs_and_panics");
}

#[test]
fn a_member_that_panics_is_the_cause_though_it_ends_well() {
    panics("tcp", "hooks_and_panics");
}

fn panics(backend: &str, test: &str) {
    let output = again(&["-n", "3", "--backend", backend], test).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(9), "{said}");
    assert!(last(&said).starts_with("lpf: process 2 (pid "), "{said}");
    assert!(last(&said).contains(" failed in a section, and ended after "), "{said}");
    let cause =
        "The job failed with: fatal: process 2, superstep 1: it panicked: of process 2's own";
    assert!(last(&said).contains(cause), "{said}");
}

/// What this process has inherited.
static INHERITED: std::sync::OnceLock<Vec<i32>> = std::sync::OnceLock::new();

fn open_descriptors() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
}

/// Shuts all connections of this process that are LPF's: those that it has not inherited of a launcher of MPI, and
/// that are not named in the environment for MPI's library.
fn cut_off() {
    let others = std::env::vars().filter(|(name, _)| !name.starts_with("LPF_"));
    let named: Vec<String> = others.map(|(_, value)| value).collect();
    let inherited = INHERITED.get().unwrap();
    for descriptor in open_descriptors().into_iter().filter(|one| !inherited.contains(one)) {
        let (mut kind, mut length) = (0, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the system writes one number and its length, or an address of the room that it is given; any
        // number may be asked about.
        unsafe {
            let at = (&raw mut kind).cast();
            libc::getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_DOMAIN, at, &raw mut length);
            if kind != libc::AF_INET {
                continue;
            }
            let mut peer: libc::sockaddr_in = std::mem::zeroed();
            let mut length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            libc::getpeername(descriptor, (&raw mut peer).cast(), &raw mut length);
            let port = format!(":{}", u16::from_be(peer.sin_port));
            if !named.iter().any(|value| value.contains(&port)) {
                libc::shutdown(descriptor, libc::SHUT_RDWR);
            }
        }
    }
}

/// A process loses its connections to all others.
fn loses_its_connections(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    ctx.sync()?;
    if std::env::var("CUT_OFF") == Ok(ctx.pid().to_string()) {
        cut_off();
    }
    ctx.sync()?;
    ctx.sync()
}

/// The programs of the next test, which start this one alone.
#[test]
fn is_cut_off() {
    if std::env::var_os("CUT_OFF").is_some() {
        INHERITED.get_or_init(open_descriptors);
        let ended = lpf::run(loses_its_connections);
        std::process::exit(if ended.is_err() { 9 } else { 0 });
    }
}

#[test]
fn member_is_cut_off() {
    if let Ok(cut) = std::env::var("CUT_OFF") {
        INHERITED.get_or_init(open_descriptors);
        let mut member = lpf::Member::launched().unwrap();
        let hooked = member.hook(|ctx| {
            ctx.sync()?;
            if cut == ctx.pid().to_string() {
                cut_off();
            }
            ctx.sync()?;
            ctx.sync()
        });
        // The others are told by process 0 what has failed, before it ends.
        drop(member);
        std::process::exit(if hooked.is_err() { 9 } else { 0 });
    }
}

/// Cuts off each of these of four processes, eight times in all.
fn are_the_cause(cuts: &[&str], backend: &str, test: &str) {
    for (round, cut) in cuts.iter().cycle().take(8).enumerate() {
        let mut command = again(&["-n", "4", "--backend", backend, "--grace", "1"], test);
        let output = command.env("CUT_OFF", cut).output().unwrap();
        let said = stderr(&output);
        let what = format!("{cut}, {round}: {said}");
        assert_ne!(output.status.code(), Some(0), "{what}");
        assert!(last(&said).starts_with(&format!("lpf: process {cut} ")), "{what}");
        let cause = format!("The job failed with: fatal: process {cut}, ");
        assert!(last(&said).contains(&cause), "{what}");
        assert_eq!(said.matches("fatal: ").count(), 1, "it is said once: {what}");
    }
}

fn a_process_that_is_cut_off_is_the_cause_though_it_blames_the_others(backend: &str) {
    are_the_cause(&["1", "2", "3", "0"], backend, "is_cut_off");
}

#[test]
fn a_member_that_is_cut_off_is_the_cause_though_it_blames_the_others() {
    // The members of process 0 may notice that another one has left before they notice the cause, so it is not cut off.
    are_the_cause(&["1", "2", "3"], "tcp", "member_is_cut_off");
}

#[test]
fn processes_of_a_job_may_meet_again() {
    let output = again(&["-n", "3"], "meets_twice").output().unwrap();
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{out}{said}");
    assert_eq!(out.matches("met\n").count(), 3, "{out}{said}");
}

/// A program, run to its end inside of another one.
fn inside(what: &str, command: &mut Command) {
    let begin = Instant::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_in_time(begin.elapsed(), Duration::from_secs(15));
    for line in (stdout(&output) + &stderr(&output)).lines() {
        println!("{what}: {line}");
    }
}

/// A process starts other programs that use LPF, with its environment or without what tells its place.
fn starts_programs(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    ctx.sync()?;
    if std::env::var("STARTS") == Ok(ctx.pid().to_string()) {
        let this = || {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "counts", "--nocapture", "--quiet"]).env("COUNTS", "1");
            command.env("LPF_PROCS", "3");
            command
        };
        inside("inherits", &mut this());
        inside("alone", lpf::alone(&mut this()));
        let lpf = env!("CARGO_BIN_EXE_lpf");
        inside("probe", Command::new(lpf).args(["probe", "--quick", "--seconds", "0.1"]));
        let echo = format!("echo {RANK} of 2");
        inside("job", Command::new(lpf).args(["run", "-n", "2", "--tag", "sh", "-c", &echo]));
    }
    ctx.sync()
}

/// The programs of the next tests, which start this one alone.
#[test]
fn starts() {
    if std::env::var_os("STARTS").is_some() {
        lpf::run(starts_programs).unwrap();
        println!("the job goes on");
    }
}

#[test]
fn counts() {
    if std::env::var_os("COUNTS").is_some() {
        match lpf::run(count) {
            Ok(()) => println!("it ran"),
            Err(error) => println!("said {error}"),
        }
    }
}

/// What [`starts_programs`] has said, whose process `rank` has started other programs.
fn starts_others(rank: &str, command: &mut Command) {
    let output = command.env("STARTS", rank).output().unwrap();
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{out}{said}");
    let why = format!("two processes of this machine have rank {rank} of the job, process ");
    assert!(out.contains(&format!("inherits: said misuse: {why}")), "{out}{said}");
    assert!(
        out.contains(
            "start it by lpf::alone(&mut command), or without these variables: LPF_BACKEND, "
        ),
        "{out}"
    );
    assert!(out.contains("alone: counted 3") && out.contains("alone: it ran"), "{out}{said}");
    assert!(out.contains(&format!("probe: lpf: {why}")), "{out}{said}");
    assert!(out.contains("job: 0| 0 of 2\n") && out.contains("job: 1| 1 of 2\n"), "{out}{said}");
    assert_eq!(out.matches("the job goes on").count(), 1, "{out}{said}");
}

fn a_program_that_a_process_starts_does_not_take_it_for_itself(backend: &str) {
    for rank in ["0", "1"] {
        starts_others(rank, &mut again(&["-n", "2", "--backend", backend], "starts"));
    }
}

#[test]
fn nor_does_it_in_a_job_by_hand() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "starts", "--nocapture", "--quiet"]);
    let job = [("LPF_BACKEND", "tcp"), ("LPF_RANK", "0"), ("LPF_SIZE", "1")];
    starts_others("0", command.envs(job).env("LPF_MEET", free.to_string()));
}

#[test]
fn programs_that_follow_each_other_in_a_process_may_each_join() {
    let program = std::env::current_exe().unwrap();
    let script = format!("for i in 1 2; do {} --exact counts --nocapture; done", program.display());
    let output = command(&["-n", "2", "sh", "-c", &script]).env("COUNTS", "1").output().unwrap();
    let out = stdout(&output);
    assert_eq!(out.matches("counted 2").count(), 2, "{out}{}", stderr(&output));
}

/// The program of the next tests, alone in its job: what it says of the meeting.
#[test]
fn cannot_meet() {
    if std::env::var_os("CANNOT_MEET").is_some() {
        println!("said: {}", lpf::run(count).unwrap_err());
    }
}

/// What a program says that somebody has started in this environment, by hand, and after how long.
fn started_by_hand(environment: &[(&str, &str)]) -> (String, Duration) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LPF_")) {
        command.env_remove(name);
    }
    command.args(["--exact", "cannot_meet", "--nocapture", "--quiet"]);
    let begin = Instant::now();
    let output =
        command.env("CANNOT_MEET", "1").envs(environment.iter().copied()).output().unwrap();
    (stdout(&output) + &stderr(&output), begin.elapsed())
}

#[test]
fn who_is_started_by_hand_waits_for_the_others_as_long_as_the_environment_says() {
    let job = |rank| [("LPF_RANK", rank), ("LPF_SIZE", "2"), ("LPF_MEET_TIMEOUT", "0.4")];
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let free = free.to_string();
    let (said, took) = started_by_hand(&[&job("0")[..], &[("LPF_MEET", &free)]].concat());
    let text = format!(
        "said: fatal: process 1, superstep 0: process 1 has not arrived at {free} within 0.4 s"
    );
    assert!(said.contains(&text), "{said}");
    assert_in_time(took, Duration::from_secs(15));
    let (said, took) = started_by_hand(&[&job("1")[..], &[("LPF_MEET", &free)]].concat());
    assert!(said.contains(&format!("process 0 was not found at {free} within 0.4 s")), "{said}");
    assert_in_time(took, Duration::from_secs(15));
}

#[test]
fn what_is_missing_or_wrong_in_a_job_by_hand_is_named_at_once() {
    let job = |rank, size, meet| [("LPF_RANK", rank), ("LPF_SIZE", size), ("LPF_MEET", meet)];
    let good = job("0", "2", "127.0.0.1:4711");
    let all = "a job needs LPF_RANK, LPF_SIZE and LPF_MEET, all three; lpf run sets them";
    let cases = [
        (good[..2].to_vec(), format!("LPF_MEET is missing: {all}")),
        (good[2..].to_vec(), format!("LPF_RANK and LPF_SIZE are missing: {all}")),
        (
            job("0", "1", "nonsense").into(),
            "LPF_MEET is \"nonsense\"; it has to be the address of process 0, as host:port".into(),
        ),
        (
            job("0", "1", "127.0.0.1:0").into(),
            "LPF_MEET is \"127.0.0.1:0\"; it has to be the address of process 0, as host:port with a port from 1".into(),
        ),
        (
            [&good[..], &[("LPF_SECRET", "password")]].concat(),
            "the secret (LPF_SECRET) has 8 bytes; it needs at least 16".into(),
        ),
    ];
    for (environment, expected) in cases {
        let (said, took) = started_by_hand(&environment);
        assert!(said.contains(&format!("said: misuse: {expected}")), "{environment:?}: {said}");
        assert_in_time(took, Duration::from_secs(15));
    }
}

#[test]
fn processes_of_which_some_run_and_some_are_members_are_told_so() {
    let program = std::env::current_exe().unwrap();
    for (first, second) in [("member", "meets_twice"), ("meets_twice", "member")] {
        let script = format!(
            "[ $LPF_RANK = 0 ] && test={first} || test={second}; exec {} --exact $test --nocapture",
            program.display()
        );
        let output = hurried("2", &script);
        let said = stdout(&output) + &stderr(&output);
        assert_ne!(output.status.code(), Some(0), "{said}");
        assert!(
            said.contains("misuse: process 0 refused this process: process 1 comes "),
            "{said}"
        );
        assert!(last(&stderr(&output)).starts_with("lpf: process 1 (pid "), "{said}");
    }
}

/// A terminal: its side for a user, and its name.
fn terminal() -> (File, String) {
    let mut name: [libc::c_char; 64] = [0; 64];
    // SAFETY: the calls take a descriptor that the first made, and a buffer with its length.
    unsafe {
        let user = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(user >= 0 && libc::grantpt(user) == 0 && libc::unlockpt(user) == 0);
        assert_eq!(libc::ptsname_r(user, name.as_mut_ptr(), name.len()), 0);
        let name = CStr::from_ptr(name.as_ptr()).to_str().unwrap().to_owned();
        (File::from_raw_fd(user), name)
    }
}

#[test]
fn ctrl_c_at_a_terminal_comes_once_to_each() {
    let (mut user, name) = terminal();
    let open = || File::options().read(true).write(true).open(&name).unwrap();
    let script =
        "trap 'echo got; n=1' INT; echo set; while [ -z $n ]; do sleep 0.1; done; sleep 0.3";
    let mut command = command(&["-n", "2", "sh", "-c", script]);
    command.stdin(open()).stdout(open()).stderr(open());
    // SAFETY: system calls alone. The launcher gets a session, with this terminal.
    unsafe {
        command.pre_exec(|| match libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        });
    }
    let mut launcher = command.spawn().unwrap();
    drop(command);
    let (mut seen, mut bytes, mut is_typed) = (String::new(), [0; 256], false);
    // It fails when nobody has the other side open any more.
    while let Ok(n) = user.read(&mut bytes) {
        seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
        if !is_typed && seen.matches("set").count() == 2 {
            user.write_all(b"\x03").unwrap();
            is_typed = true;
        }
    }
    assert_eq!(launcher.wait().unwrap().code(), Some(130), "{seen}");
    assert_eq!(seen.matches("got").count(), 2, "{seen}");
}

/// Process 1 puts more than 2^31 bytes into process 0's memory, in one put, and gets them back in one
/// get. Looked at are the ends, and places on both sides of 2^31.
fn large(ctx: &mut lpf::Context<'_>) -> lpf::Result<()> {
    const BYTES: usize = (1 << 31) + 4099;
    let marks = || [0, 1, (1 << 31) - 1, 1 << 31, BYTES - 1].into_iter().zip(1..);
    ctx.resize(2, 4)?;
    ctx.sync()?;
    let mut area = ctx.area::<u8>(BYTES)?;
    ctx.sync()?;
    if ctx.pid() == 1 {
        marks().for_each(|(at, mark)| ctx.write(&mut area)[at] = mark);
        ctx.put(&area, .., 0, &area, 0)?;
    }
    ctx.sync()?;
    marks().for_each(|(at, mark)| assert_eq!(ctx.read(&area)[at], mark, "byte {at}"));
    if ctx.pid() == 1 {
        ctx.write(&mut area).fill(0xff);
        ctx.get(0, &area, .., &area, 0)?;
    }
    ctx.sync()?;
    marks().for_each(|(at, mark)| assert_eq!(ctx.read(&area)[at], mark, "byte {at}"));
    let others = ctx.read(&area).iter().filter(|&&byte| byte != 0).count();
    assert_eq!(others, marks().count());
    ctx.sync()
}

/// The program of the next test, which starts this one alone.
#[test]
fn is_large() {
    if std::env::var_os(lpf::launcher::WHERE).is_some() {
        lpf::run(large).unwrap();
        println!("all of it has arrived");
    }
}

fn more_than_two_gibibytes_are_put_and_got_at_once(backend: &str) {
    let options = ["-n", "2", "--backend", backend];
    let output = again(&options, "is_large").output().unwrap();
    let (out, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{backend}: {out}{said}");
    assert_eq!(out.matches("all of it has arrived").count(), 1, "{backend}: {out}{said}");
}

#[test]
fn a_secret_is_random_and_one_that_a_job_takes() {
    let secrets = [(); 2].map(|()| {
        let output = Command::new(env!("CARGO_BIN_EXE_lpf")).arg("secret").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        stdout(&output).trim().to_owned()
    });
    assert_ne!(secrets[0], secrets[1]);
    for secret in secrets {
        assert!(secret.len() == 32 && secret.chars().all(|c| c.is_ascii_hexdigit()), "{secret}");
        assert!(lpf::control::rendezvous::Secret::new(secret).is_ok());
    }
}

#[test]
fn a_wrong_setting_is_reported_once_and_starts_no_process() {
    let seconds = "a number of seconds from 0 (0 means off) to below 1e9, or off";
    let cases = [
        ("LPF_TIMEOUT", "soon", seconds),
        ("LPF_BACKEND", "", "threads, tcp or mpi"),
        ("LPF_CHECK", "", "0 or 1"),
        ("LPF_EXCHANGE", "", "auto, direct or bruck"),
        ("LPF_HEARTBEAT", "", "on or off"),
        ("LPF_MEET_TIMEOUT", "", "a number of seconds above 0 and below 1e9"),
        ("LPF_PIN", "", "none, compact, scatter or auto"),
        ("LPF_PROBE", "", seconds),
        ("LPF_PROCS", "", "a number of processes from 1 to 65536"),
        ("LPF_SEAL_DATA", "", "0 or 1"),
        ("LPF_STRICT", "", "0 or 1"),
        ("LPF_TABLE", "", "the name of a folder"),
        ("LPF_TIMEOUT", "", seconds),
        ("LPF_TOPOLOGY", "", "1 to 8 sizes of levels from 1 to 1024, outermost first, as 2x2x2"),
    ];
    for (name, value, expected) in cases {
        let mut command = command(&["-n", "3", "sh", "-c", "echo started"]);
        let output = command.env(name, value).output().unwrap();
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""), "{name}");
        let text = format!("lpf: {name} is \"{value}\"; it has to be {expected}\n");
        assert_eq!(stderr(&output), text);
    }
}

#[test]
fn a_process_that_does_not_find_process_0_is_quoted_in_the_last_line() {
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "[ $LPF_RANK = 1 ] && export LPF_SECRET=another-than-theirs; exec {} --exact member --quiet",
        program.display()
    );
    let mut command = command(&["-n", "2", "--grace", "60", "sh", "-c", &script]);
    let said = stderr(&command.env("LPF_MEET_TIMEOUT", "1").output().unwrap());
    assert!(last(&said).starts_with("lpf: process 1 (pid "), "{said}");
    let failed =
        "The job failed with: fatal: process 1, superstep 0: process 1 has not arrived at ";
    let own = "Process 1 reported: fatal: process 0, superstep 0: process 0 was not found at ";
    assert!(last(&said).contains(failed) && last(&said).contains(own), "{said}");
}

#[test]
fn processes_that_cannot_join_because_another_did_not_arrive_report_it_once() {
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "[ $LPF_RANK = 3 ] && exec sleep 60; exec {} --exact cannot_meet --nocapture",
        program.display()
    );
    let mut command = command(&["-n", "4", "--grace", "0.3", "sh", "-c", &script]);
    let output = command.env("CANNOT_MEET", "1").env("LPF_MEET_TIMEOUT", "5").output().unwrap();
    let (out, said) = (stdout(&output), stderr(&output));
    let text = "fatal: process 3, superstep 0: process 3 has not arrived at 127.0.0.1:";
    assert_eq!(out.matches(&format!("said: {text}")).count(), 1, "{out}{said}");
    assert!(last(&said).starts_with("lpf: process 3 (pid "), "{said}");
    assert!(last(&said).contains(" had not joined the others, and "), "{said}");
    let failed = format!("The job failed with: {text}");
    assert!(last(&said).contains(&failed) && said.matches(text).count() == 1, "{out}{said}");
}
