//! What the processes of a test do. The test binary starts itself again, with the name of [`member`] and
//! a role; in a usual run that test does nothing.

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use lpf_control::plane::{Beats, ControlPlane, Next};
use lpf_control::rendezvous::{Meeting, Secret, bind_first};
use lpf_core::{Cause, Error};
use lpf_messages::{Control, Order, Rank, SectionId};

pub(crate) const SECTION: SectionId = SectionId(1);

/// Nanoseconds of the machine's clock, which all processes share.
pub(crate) fn now() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()
}

/// Tells the test something. In one call, so that nothing gets between.
fn tell(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n@{text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Waits for a line of the test.
fn told() -> String {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    line.trim().into()
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is set by the test"))
}

fn join() -> ControlPlane {
    let rank: Rank = variable("LPF_TEST_RANK").parse().unwrap();
    let size: Rank = variable("LPF_TEST_SIZE").parse().unwrap();
    let mut meeting = Meeting::new("", rank, size);
    meeting.secret = Some(Secret::new("correct horse battery staple").unwrap());
    if std::env::var("LPF_TEST_BEATS").is_ok_and(|beats| beats == "off") {
        meeting.beats = Beats::Off;
    }
    match rank {
        0 => {
            let listener = bind_first("127.0.0.1").unwrap();
            tell(&format!("address {}", listener.local_addr().unwrap()));
            meeting.listener = Some(listener);
        }
        _ => meeting.address = told(),
    }
    let began = now();
    let control = meeting.join().unwrap().control;
    tell(&format!("joined {}", now() - began));
    control
}

#[test]
fn member() {
    let Ok(role) = std::env::var("LPF_TEST_ROLE") else { return };
    let control = join();
    match role.as_str() {
        "watch" => watch(&control),
        "declare" => declare(&control),
        "serve" => serve(&control),
        "idle" => idle(&control),
        other => panic!("no role {other}"),
    }
}

fn all(control: &ControlPlane) -> Vec<Rank> {
    (0..control.size()).collect()
}

/// Waits for a failure, and says when it came and what it is.
fn watch(control: &ControlPlane) {
    let mut seen = control.failures();
    control.enter(SECTION, &all(control));
    tell("ready");
    loop {
        std::thread::sleep(Duration::from_millis(1));
        let failures = control.failures();
        if failures == seen {
            continue;
        }
        seen = failures;
        if let Some(error) = control.failure(SECTION) {
            assert!(error.is_fatal());
            tell(&format!("failed {} {error}", now()));
            break;
        }
    }
    // It goes on living, as a program that has other things to do.
    told();
}

/// Declares a failure when told to.
fn declare(control: &ControlPlane) {
    control.enter(SECTION, &all(control));
    tell("ready");
    told();
    let began = now();
    let cause = Cause::Panicked { message: format!("told by {}", control.rank()) };
    let standing = control.declare(SECTION, Error::fatal(control.rank(), 5, cause));
    tell(&format!("stands {} {standing}", now() - began));
    told();
}

/// Process 0 orders two sections and ends the job; the others serve.
fn serve(control: &ControlPlane) {
    if control.rank() == 0 {
        for (section, members) in [(10, vec![0, 2]), (11, vec![0, 1, 2])] {
            let order = Order { section: SectionId(section), members, bytes: vec![7; 3] };
            control.order(order).unwrap();
        }
        tell("ready");
        if told() == "finish" {
            control.finish().unwrap();
            tell(&format!("left {}", control.goodbye(Duration::from_secs(10))));
        }
        return;
    }
    loop {
        match control.next_order(Duration::from_secs(60)) {
            Next::Begin(order) => {
                tell(&format!("begin {} {:?}", order.section.0, order.members));
            }
            Next::Finished => {
                tell("finished");
                tell(&format!("left {}", control.goodbye(Duration::from_secs(10))));
                return;
            }
            Next::Gone(error) => {
                tell(&format!("gone {} {error}", now()));
                return;
            }
            Next::Nothing => panic!("no order in a minute"),
        }
    }
}

/// Computes nothing, and says how much time of a core that took.
fn idle(control: &ControlPlane) {
    control.enter(SECTION, &all(control));
    tell("ready");
    std::thread::sleep(Duration::from_millis(500));
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(2));
    tell(&format!("ticks {}", ticks() - before));
    told();
}

/// The address that process 0 told.
pub(crate) fn address(line: &str) -> SocketAddr {
    line.strip_prefix("address ").expect("an address").parse().unwrap()
}
