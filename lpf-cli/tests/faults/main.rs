//! What becomes of a job when something goes wrong in one of its processes: every fault in every place, in
//! real processes under `lpf run`, over TCP and, with the feature `mpi`, over MPI.
//!
//! The program is this one, started again. Its process 2 goes wrong; each survivor says what it got, how
//! long it had waited then, and that it lives on. `LPF_FAULTS_TABLE=1` has the outcomes printed, for
//! `benches/faults`.

mod member;
mod outcome;

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use member::{AGAIN, FAULT, PLACE};
use outcome::{FAULTS, GUILTY, SIZE, judge, outcomes, places_of, row};

/// The machine may be busy with other things: so often a fault may be told of too late.
const TRIES: usize = 5;

const BACKENDS: &[&str] = if cfg!(feature = "mpi") { &["tcp", "mpi"] } else { &["tcp"] };

/// This program as processes of a job.
fn job(backend: &str, fault: &str, place: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lpf"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LPF_")) {
        command.env_remove(name);
    }
    command
        .args(["run", "-n", &SIZE.to_string(), "--backend", backend, "--grace", "0.5", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_member_of_a_job", "--nocapture", "--test-threads=1"])
        .env(FAULT, fault)
        .env(PLACE, place)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One fault in one place; what there is to complain about.
fn strike(backend: &str, fault: &str, place: &str, said_of_it: &str) -> Result<String, String> {
    let output = job(backend, fault, place).output().unwrap();
    let errors = text(&output.stderr);
    let complain = |text: String| Err(format!("{backend}, {fault} in {place}: {text}\n{errors}"));
    let outcomes = outcomes(&text(&output.stdout));
    if let Err(complaint) = judge(&outcomes, fault) {
        return complain(complaint);
    }
    let last = errors.lines().last().unwrap_or_default();
    let is_said = match said_of_it {
        "" => true,
        said => last.starts_with(&format!("lpf: process {GUILTY} (pid ")) && last.contains(said),
    };
    if !is_said {
        return complain("the last line is not the root cause".into());
    }
    Ok(row(backend, fault, place, &outcomes))
}

fn every_place(fault: &str) {
    let said = FAULTS.iter().find(|(name, _)| *name == fault).expect("in the list").1;
    for backend in BACKENDS {
        for place in places_of(fault) {
            let mut tries = (0..TRIES).map(|_| strike(backend, fault, place, said));
            let mut last = tries.next().expect("one at least");
            while let (Err(_), Some(next)) = (&last, tries.next()) {
                last = next;
            }
            match last {
                Ok(row) if std::env::var_os("LPF_FAULTS_TABLE").is_some() => {
                    println!("\n{row}")
                }
                Ok(_) => {}
                Err(complaint) => panic!("{complaint}"),
            }
        }
    }
}

#[test]
fn a_killed_process_is_known_to_all_within_a_second() {
    every_place("kill");
}

#[test]
fn a_stopped_process_is_known_to_all_within_three_seconds() {
    every_place("stop");
}

#[test]
fn a_process_that_exits_is_known_to_all_within_a_second_whatever_its_status() {
    every_place("exit0");
    every_place("exit7");
}

#[test]
fn a_panic_is_known_to_all_within_a_second() {
    every_place("panic");
}

#[test]
fn a_process_that_the_system_refuses_memory_is_known_to_all_within_a_second() {
    every_place("memory");
}

/// Jobs in which nothing is wrong, though it may look so: every process ends with status 0. What they said on standard
/// error.
fn is_well(backend: &str, story: &str, settings: &[(&str, &str)]) -> String {
    let output = job(backend, story, "").envs(settings.iter().copied()).output().unwrap();
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{backend}, {story}: {errors}");
    assert_eq!(outcomes(&text(&output.stdout)), [], "{backend}, {story}: {errors}");
    let well = text(&output.stdout).lines().filter(|line| line.starts_with("well ")).count();
    assert_eq!(well, SIZE, "{backend}, {story}: {errors}");
    errors
}

#[test]
fn what_is_no_failure_is_taken_for_none() {
    for backend in BACKENDS {
        is_well(backend, "computes", &[]);
        is_well(backend, "pauses", &[]);
        is_well(backend, "debugged", &[("LPF_HEARTBEAT", "off")]);
        is_well(backend, "suspended", &[]);
        is_well(backend, "refused", &[]);
    }
}

#[test]
fn a_process_that_forks_does_not_harm_its_job() {
    for backend in BACKENDS {
        is_well(backend, "forks", &[]);
        let errors = is_well(backend, "runs and forks", &[]);
        // Two children of process `GUILTY` in each of two sections.
        let ended = errors.matches("was forked inside a section and has returned").count();
        assert_eq!(ended, 4, "{backend}: {errors}");
    }
}

#[test]
#[ignore = "takes a minute: ./test --all runs it"]
fn a_minute_of_computing_is_no_failure() {
    std::thread::scope(|scope| {
        for backend in BACKENDS {
            scope.spawn(|| drop(is_well(backend, "computes a minute", &[])));
        }
    });
}

/// Programs that have nothing to do with a job, and take all cores.
struct BusyCores(Vec<Child>);

impl BusyCores {
    fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        BusyCores((0..8 * cores).map(|_| busy()).collect())
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

#[test]
#[ignore = "takes all cores: ./test --all runs it"]
fn a_machine_without_a_free_core_is_not_a_failure() {
    let _busy = BusyCores::new();
    BACKENDS.iter().for_each(|backend| drop(is_well(backend, "has no free core", &[])));
}

#[test]
fn survivors_meet_and_hook_again_without_the_dead() {
    // A port that is free, most likely still when it is needed.
    let meet = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
    let output = job("tcp", "again", "sync").env(AGAIN, meet.to_string()).output().unwrap();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    let again = said.lines().filter(|line| line.starts_with("again ")).count();
    assert_eq!(again, SIZE - 1, "{said}{errors}");
}

/// What this program does where a test above started it; in an ordinary run, nothing.
#[test]
fn a_member_of_a_job() {
    member::live();
}
