//! What becomes of a job on several hosts when a cable is pulled, a process killed, all are suspended, and
//! when it is put together wrongly. Over TCP and, with the feature `mpi`, over MPI.
//!
//! `ci/cluster.sh` runs these on the first of the hosts that `ci/hosts.sh` makes. The program is this one,
//! started again, as process r on host r + 1; each process leaves what it has to say in a file.

mod figure;
#[path = "../faults/member.rs"]
mod goes_wrong;
mod job;
mod measure;
mod member;
mod outages;
#[path = "../faults/outcome.rs"]
mod outcome;

use std::time::{Duration, Instant};

use lpf::Pid;
use lpf_conformance::{allowed, assert_in_time};

use job::{Job, between, link};
use member::{Story, now};
use outcome::{FAULTS, GUILTY, judge, places_of, row, survivors_of};

/// Others know of a death after this, of a process that nobody hears of after the second.
const DEATH: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_secs(3);
/// A process that is stuck inside MPI then has this long.
const STUCK: Duration = Duration::from_secs(2);

/// The machine may be busy with other things: so often something may be told of too late.
const TRIES: usize = 3;

const BACKENDS: &[&str] = if cfg!(feature = "mpi") { &["tcp", "mpi"] } else { &["tcp"] };

/// Who dies, or is cut off: process 0 watches over the others.
const VICTIMS: [Pid; 2] = [2, 0];

/// Who does not come to a meeting.
const MISSING: Pid = 2;

/// Tries until nobody was too late.
fn strike(what: &str, bound: Duration, try_it: impl Fn(&str, Pid) -> Vec<(Pid, Duration, String)>) {
    let all = BACKENDS.iter().flat_map(|backend| VICTIMS.map(|victim| (*backend, victim)));
    for (backend, victim) in all {
        for tries in 1.. {
            let heard = try_it(backend, victim);
            let latest = heard.iter().map(|(_, after, _)| *after).max().expect("survivors");
            let millis = latest.as_millis();
            println!("{backend}, {what}, process {victim}: all know after {millis} ms");
            for (rank, after, text) in &heard {
                println!("  process {rank}, {} ms: {}", after.as_millis(), text.trim());
            }
            if latest <= allowed(bound) {
                break;
            }
            assert!(
                tries < TRIES,
                "{backend}, {what}, process {victim}: not all knew within {bound:?}"
            );
        }
    }
}

/// What a process says of the end of its section: when, and what it got.
fn heard(job: &Job, rank: Pid, since: Duration) -> (Pid, Duration, String) {
    read(rank, &job.hear("fatal", rank), since)
}

fn read(rank: Pid, text: &str, since: Duration) -> (Pid, Duration, String) {
    let (at, error) = text.split_once(' ').expect("a time and an error");
    let at = Duration::from_nanos(at.parse().expect("a time"));
    (rank, at.saturating_sub(since), error.to_owned())
}

fn assert_names(victim: Pid, rank: Pid, text: &str) {
    let names = format!("fatal: process {victim}, superstep ");
    assert!(text.starts_with(&names), "process {rank} got: {text}");
}

/// What was written since the error. After one MPI promises nothing, and LPF lets nobody look.
fn assert_memory_is_quiet(job: &Job, backend: &str, ranks: impl Iterator<Item = Pid>) {
    job.tell("look");
    for rank in ranks.filter(|_| backend != "mpi") {
        assert_eq!(job.hear("memory", rank), "quiet", "{backend}, process {rank}");
    }
}

#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn a_pulled_cable_is_known_on_both_sides_within_three_seconds_and_nothing_is_written_after() {
    strike("a pulled cable", SILENCE, |backend, victim| {
        let mut job = Job::start(backend, Story::Exchange);
        // Another, whose processes call nothing that could fail.
        let mut computing = Job::start("tcp", Story::Compute);
        job.await_all();
        computing.await_all();
        let since = now();
        link(victim, "down");
        let mut all = Vec::new();
        for (job, rank) in (0..Job::SIZE).flat_map(|rank| [(&job, rank), (&computing, rank)]) {
            let (rank, after, text) = heard(job, rank, since);
            match rank == victim {
                // It cannot tell whether others are there still.
                true => assert!(text.starts_with("fatal: "), "it got: {text}"),
                false => assert_names(victim, rank, &text),
            }
            all.push((rank, after, text));
        }
        // What was under way comes now, as far as anybody still takes it.
        link(victim, "up");
        std::thread::sleep(Duration::from_secs(2));
        assert_memory_is_quiet(&job, backend, 0..Job::SIZE);
        job.end();
        computing.end();
        all
    });
}

/// Process 0 hears of both, so the control plane knows nothing. MPI has no such end: it is the system's.
#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn two_hosts_that_do_not_reach_each_other_are_known_to_all() {
    const BOUND: Duration = Duration::from_secs(6);
    const APART: [Pid; 2] = [1, 2];
    let mut job = Job::start("tcp", Story::Exchange);
    job.await_all();
    let since = now();
    between(APART, "down");
    let heard: Vec<_> = (0..Job::SIZE).map(|rank| heard(&job, rank, since)).collect();
    between(APART, "up");
    for (rank, after, text) in &heard {
        println!("process {rank}, {} ms: {}", after.as_millis(), text.trim());
        let named = APART.map(|one| format!("fatal: process {one}, superstep "));
        assert!(named.iter().any(|name| text.starts_with(name)), "process {rank}: {text}");
        assert!(text.contains("nothing that is sent to process "), "process {rank}: {text}");
        assert_in_time(*after, BOUND);
    }
    assert_memory_is_quiet(&job, "tcp", 0..Job::SIZE);
    job.end();
}

#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn a_process_killed_on_another_host_is_known_to_all_within_a_second() {
    strike("a killed process", DEATH, |backend, victim| {
        let mut job = Job::start(backend, Story::Exchange);
        job.await_all();
        let since = now();
        job.signal(victim, libc::SIGKILL);
        let survivors = || (0..Job::SIZE).filter(|&rank| rank != victim);
        let mut heard = Vec::new();
        for rank in survivors() {
            match job.hear_unless_ended("fatal", rank) {
                Some(text) => heard.push(read(rank, &text, since)),
                // A call of Open MPI's did not return after the death, and LPF has ended the process.
                None if backend == "mpi" => assert_in_time(now() - since, DEATH + STUCK),
                None => panic!("process {rank} has ended and does not say why"),
            }
        }
        heard.iter().for_each(|(rank, _, text)| assert_names(victim, *rank, text));
        assert_memory_is_quiet(&job, backend, survivors());
        job.end();
        heard
    });
}

/// As `faults` has it of the processes of one machine.
#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn every_fault_in_every_place_is_known_on_the_other_hosts() {
    let faults =
        || FAULTS.iter().flat_map(|&(fault, _)| places_of(fault).map(move |at| (fault, at)));
    for (backend, (fault, place)) in
        BACKENDS.iter().flat_map(|&backend| faults().map(move |fault| (backend, fault)))
    {
        for tries in 1.. {
            let mut job = Job::start_that_goes_wrong(backend, fault, place);
            let outcomes = job.outcomes(survivors_of(fault).count());
            if fault == "stop" {
                job.kill(GUILTY);
            }
            job.end();
            match judge(&outcomes, fault) {
                Ok(()) => {
                    println!("\n{}", row(backend, fault, place, &outcomes));
                    break;
                }
                Err(complaint) => {
                    assert!(tries < TRIES, "{backend}, {fault} in {place}: {complaint}");
                }
            }
        }
    }
}

#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn a_job_that_is_suspended_for_ten_seconds_goes_on() {
    for backend in BACKENDS {
        let mut job = Job::start(backend, Story::Count);
        job.await_all();
        (0..Job::SIZE).for_each(|rank| job.signal(rank, libc::SIGSTOP));
        std::thread::sleep(Duration::from_secs(10));
        (0..Job::SIZE).for_each(|rank| job.signal(rank, libc::SIGCONT));
        job.ended().unwrap();
    }
}

#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn without_a_secret_every_process_says_how_to_give_it_one() {
    let mut job = Job::start_with(Story::Meet, |_, command| {
        command.env_remove("LPF_SECRET");
    });
    for rank in 0..Job::SIZE {
        let text = job.hear("refused", rank);
        println!("process {rank}: {text}");
        assert!(text.contains("need a shared secret"), "process {rank}: {text}");
    }
    job.end();
}

#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn who_has_another_secret_is_told_and_the_others_name_who_is_missing() {
    let begin = Instant::now();
    let mut job = Job::start_with(Story::Meet, |rank, command| {
        if rank == MISSING {
            command.env("LPF_SECRET", "another one than the others have");
        }
    });
    for rank in 0..Job::SIZE {
        let text = job.hear("refused", rank);
        println!("process {rank}: {text}");
        let says = if rank == MISSING { "LPF_SECRET" } else { "process 2 has not arrived" };
        assert!(text.contains(says), "process {rank}: {text}");
    }
    assert_in_time(begin.elapsed(), member::MEETING + Duration::from_secs(4));
    job.end();
}

#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn a_host_that_nobody_reaches_is_named_in_time() {
    link(MISSING, "down");
    let begin = Instant::now();
    let mut job = Job::start_with(Story::Meet, |_, _| {});
    for rank in 0..Job::SIZE {
        let text = job.hear("refused", rank);
        println!("process {rank}: {text}");
        let says = if rank == MISSING {
            "process 0 was not found at"
        } else {
            "process 2 has not arrived"
        };
        assert!(text.contains(says), "process {rank}: {text}");
    }
    assert_in_time(begin.elapsed(), member::MEETING + Duration::from_secs(4));
    link(MISSING, "up");
    job.end();
}

/// What `/etc/hosts` has is read each time that a name is looked up. These namespaces have one of their own.
fn names_are(lines: &str) {
    static FILE: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
    let file = FILE.get_or_init(|| {
        let file = std::env::temp_dir().join(format!("lpf-names-{}", std::process::id()));
        std::fs::write(&file, "").expect("a file");
        let mut mount = std::process::Command::new("nsenter");
        // Among the mounts of all hosts, not of this one alone.
        mount.args(["--target", "1", "--mount", "mount", "--bind"]).arg(&file).arg("/etc/hosts");
        assert!(mount.status().is_ok_and(|status| status.success()), "{mount:?}");
        file
    });
    std::fs::write(file, lines).expect("a file");
}

/// A job whose processes meet at a name while `happens`; all come together.
fn meets_at_a_name(happens: impl FnOnce()) {
    let mut job = Job::start_with(Story::Count, |_, command| {
        command.env("LPF_MEET", "meeting-place:4711");
    });
    happens();
    job.await_all();
    job.ended().unwrap();
}

#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn a_name_may_become_known_or_change_after_processes_have_begun() {
    const LATER: Duration = Duration::from_secs(3);
    names_are("");
    meets_at_a_name(|| {
        std::thread::sleep(LATER);
        names_are("10.77.0.1 meeting-place\n");
    });
    // An address that no host has.
    names_are("10.77.0.99 meeting-place\n");
    meets_at_a_name(|| {
        std::thread::sleep(LATER);
        names_are("10.77.0.1 meeting-place\n");
    });
}

/// Process 0 is on two networks, process 2 on the second alone.
#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn a_host_of_two_networks_is_found_on_both_and_who_cannot_reach_whom_is_named() {
    names_are("10.77.0.1 meeting-place\n10.78.0.1 meeting-place\nfd77::1 meeting-place\n");
    let addresses = |what: &str, all: &[(Pid, &str)]| {
        for &(rank, address) in all {
            let at_once = if address.contains(':') { &["nodad"][..] } else { &[] };
            job::on(rank, &[&["ip", "addr", what, address, "dev", "eth0"], at_once].concat());
        }
    };
    let second: Vec<_> =
        (0..Job::SIZE).map(|rank| (rank, format!("10.78.0.{}/24", rank + 1))).collect();
    let second: Vec<_> = second.iter().map(|(rank, address)| (*rank, address.as_str())).collect();
    addresses("add", &[(0, "fd77::1/64"), (1, "fd77::2/64"), (2, "fd77::3/64")]);
    addresses("add", &second);
    addresses("del", &[(2, "10.77.0.3/24")]);
    meets_at_a_name(|| {});

    // Process 1 is on the first network and process 2 on the second, each with process 0.
    addresses("del", &[(1, "10.78.0.2/24"), (1, "fd77::2/64")]);
    let mut job = Job::start_with(Story::Meet, |_, command| {
        command.env("LPF_MEET", "meeting-place:4712");
    });
    for rank in 0..Job::SIZE {
        let text = job.hear("refused", rank);
        println!("process {rank}: {text}");
        let pair = "process 2 did not reach process 1 at 10.77.0.2:";
        assert!(text.contains(pair) && text.contains("unreachable"), "process {rank}: {text}");
    }
    job.end();
    addresses("del", &[(0, "10.78.0.1/24"), (2, "10.78.0.3/24"), (3, "10.78.0.4/24")]);
    addresses("del", &[(0, "fd77::1/64"), (2, "fd77::3/64")]);
    addresses("add", &[(2, "10.77.0.3/24")]);
}

/// Prints rows of comma-separated values: `benches/runs` keeps some.
#[test]
#[ignore = "needs the hosts of ci/cluster.sh, and a quiet machine; it judges nothing"]
fn what_communication_costs() {
    println!("\n{}", measure::HEADER);
    let bare: &[_] = if cfg!(feature = "mpi") { &[("mpi", Story::Bare)] } else { &[] };
    let ours = BACKENDS.iter().map(|&backend| (backend, Story::Measure));
    for (backend, story) in ours.chain(bare.iter().copied()) {
        let mut job = Job::start(backend, story);
        print!("{}", job.hear_within("rows", 0, Duration::from_secs(600)));
        job.end();
    }
}

/// Reads what was recorded of the test above.
#[test]
#[ignore = "it writes into benches/runs and docs/src/figures"]
fn the_figure_of_what_communication_costs() {
    figure::make();
}

/// What this program does where a test above started it; in an ordinary run, nothing.
#[test]
fn a_member_of_a_job() {
    member::live();
    goes_wrong::live();
}
