//! Processes find each other, and nobody else gets in. Each process is a thread here: the rendezvous
//! keeps nothing outside of its call.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lpf_conformance::{allowed, assert_in_time};
use lpf_messages::Rank;
use nix::sys::resource::Resource::RLIMIT_NOFILE;

use lpf_control::connection::Stream;
use lpf_control::rendezvous::{By, Joined, MeetError, Meeting, Secret, bind_first};

/// Longer than anything takes on a machine that does much else.
const GENEROUS: Duration = Duration::from_secs(20);

type Outcome = Result<Joined, MeetError>;

fn secret() -> Secret {
    Secret::new("correct horse battery staple").unwrap()
}

fn meeting(address: &str, rank: Rank, size: Rank) -> Meeting {
    let mut meeting = Meeting::new(address, rank, size);
    meeting.secret = Some(secret());
    meeting.time = allowed(GENEROUS);
    meeting
}

/// Process 0 at a free port of this machine, which nobody has joined yet.
fn host(size: Rank, change: impl FnOnce(&mut Meeting)) -> (String, JoinHandle<Outcome>) {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut meeting = meeting(&address, 0, size);
    meeting.listener = Some(listener);
    change(&mut meeting);
    (address, thread::spawn(|| meeting.join()))
}

fn guest(address: &str, rank: Rank, size: Rank) -> JoinHandle<Outcome> {
    let meeting = meeting(address, rank, size);
    thread::spawn(|| meeting.join())
}

fn guests(address: &str, size: Rank) -> Vec<JoinHandle<Outcome>> {
    (1..size).map(|rank| guest(address, rank, size)).collect()
}

fn all_join(processes: Vec<JoinHandle<Outcome>>) -> Vec<Joined> {
    let joined = processes.into_iter().map(|process| process.join().unwrap());
    joined.map(|outcome| outcome.expect("it joins")).collect()
}

fn error_of(process: JoinHandle<Outcome>) -> MeetError {
    process.join().unwrap().map(|joined| joined.rank).expect_err("it does not join")
}

/// Every process says its number to every other, on the connection that they share.
fn speak_in_pairs(joined: &[Joined]) {
    for one in joined {
        for (rank, stream) in one.streams.iter().enumerate() {
            assert_eq!(stream.is_some(), rank != one.rank);
            if let Some(mut stream) = stream.as_ref().map(Stream::tcp) {
                assert!(stream.nodelay().unwrap());
                stream.set_nonblocking(false).unwrap();
                stream.write_all(&[one.rank as u8, rank as u8]).unwrap();
            }
        }
    }
    for one in joined {
        for (rank, stream) in one.streams.iter().enumerate() {
            if let Some(mut stream) = stream.as_ref().map(Stream::tcp) {
                let mut said = [0; 2];
                stream.set_read_timeout(Some(GENEROUS)).unwrap();
                stream.read_exact(&mut said).unwrap();
                assert_eq!(said, [rank as u8, one.rank as u8]);
            }
        }
    }
}

#[test]
fn eight_join_and_every_pair_is_connected() {
    let (address, host) = host(8, |_| {});
    let mut processes = guests(&address, 8);
    processes.insert(0, host);
    let joined = all_join(processes);
    for (rank, one) in joined.iter().enumerate() {
        assert_eq!((one.rank, one.size), (rank, 8));
        assert_eq!((one.control.rank(), one.control.size()), (rank, 8));
    }
    speak_in_pairs(&joined);
}

#[test]
fn a_job_of_one_needs_nobody() {
    let joined = Meeting::new("127.0.0.1:1", 0, 1).join().unwrap();
    assert_eq!((joined.rank, joined.size, joined.streams.len()), (0, 1, 0));
}

#[test]
fn they_join_over_ipv6_too() {
    let Ok(listener) = bind_first("::1") else {
        eprintln!("left out: this machine has no IPv6");
        return;
    };
    let address = listener.local_addr().unwrap().to_string();
    assert!(address.starts_with("[::1]:"), "{address}");
    let mut first = meeting(&address, 0, 3);
    first.listener = Some(listener);
    let mut processes = guests(&address, 3);
    processes.insert(0, thread::spawn(|| first.join()));
    speak_in_pairs(&all_join(processes));
}

#[test]
fn process_0_is_found_at_each_of_its_addresses() {
    let port = bind_first("127.0.0.1").unwrap().local_addr().unwrap().port();
    let mut all = vec![format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}")];
    if bind_first("::1").is_ok() {
        all.push(format!("[::1]:{port}"));
    }
    let size = 1 + all.len();
    let first = meeting(&all.join(", "), 0, size);
    let mut processes = vec![thread::spawn(|| first.join())];
    processes.extend((1..).zip(&all).map(|(rank, address)| guest(address, rank, size)));
    speak_in_pairs(&all_join(processes));
}

#[test]
fn a_name_that_stays_unknown_is_named_when_time_is_up() {
    // No name server may know it (RFC 6761).
    let name = "nobody.invalid:4711";
    for rank in [0, 1] {
        let mut lost = meeting(name, rank, 2);
        lost.time = Duration::from_millis(1500);
        let error = error_of(thread::spawn(|| lost.join())).to_string();
        assert!(error.contains("within 1.5 s"), "{error}");
        let is_named = error.contains(&format!("\"{name}\" is not known here: "));
        let is_asked = error.contains(&format!("has answered what \"{name}\" stands for"));
        assert!(is_named || is_asked, "{error}");
    }
}

#[test]
fn on_their_own_machine_they_need_no_secret() {
    let (address, host) = host(3, |meeting| meeting.secret = None);
    let mut processes = vec![host];
    for rank in 1..3 {
        let mut meeting = meeting(&address, rank, 3);
        meeting.secret = None;
        processes.push(thread::spawn(|| meeting.join()));
    }
    speak_in_pairs(&all_join(processes));
}

/// A port of this machine under its own name, if that stands for a loopback address here.
fn own_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let address = bind_first(name.trim()).ok()?.local_addr().unwrap();
    if !address.ip().is_loopback() {
        eprintln!("left out: {} stands for {address} here", name.trim());
        return None;
    }
    Some(format!("{}:{}", name.trim(), address.port()))
}

#[test]
fn under_the_name_of_their_own_machine_they_need_no_secret_either() {
    let Some(address) = own_name() else { return };
    let processes = (0..3).map(|rank| {
        let meeting = Meeting::new(&*address, rank, 3);
        thread::spawn(|| meeting.join())
    });
    speak_in_pairs(&all_join(processes.collect()));
}

#[test]
fn without_a_secret_it_is_said_that_no_other_machine_finds_a_loopback_address() {
    let Some(address) = own_name() else { return };
    // Of three, the two that are on this machine.
    let here = [0, 1].map(|rank| {
        let mut meeting = Meeting::new(&*address, rank, 3);
        meeting.time = allowed(Duration::from_millis(400));
        thread::spawn(|| meeting.join())
    });
    for process in here {
        let text = error_of(process).to_string();
        assert!(text.contains("process 2 has not arrived"), "{text}");
        assert!(text.contains(&format!("{address} is a loopback address at process 0")), "{text}");
        assert!(text.ends_with("set LPF_SECRET"), "{text}");
    }
}

#[test]
fn with_a_secret_process_0_is_found_at_any_address_of_a_machine_whose_name_is_loopback_there() {
    let Some(address) = own_name() else { return };
    let first = meeting(&address, 0, 2);
    let mut processes = vec![thread::spawn(|| first.join())];
    // As another machine knows it: by an address that its name does not stand for at its own.
    let port = address.rsplit(':').next().unwrap();
    processes.push(guest(&format!("127.8.7.6:{port}"), 1, 2));
    speak_in_pairs(&all_join(processes));
}

#[test]
fn a_time_beyond_what_the_clock_can_count_is_no_limit() {
    let (address, host) = host(3, |meeting| meeting.time = Duration::MAX);
    let mut processes = vec![host];
    for rank in 1..3 {
        let mut meeting = meeting(&address, rank, 3);
        meeting.time = Duration::MAX;
        processes.push(thread::spawn(|| meeting.join()));
    }
    speak_in_pairs(&all_join(processes));
}

#[test]
fn for_the_control_plane_alone_no_pairs_are_connected() {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut first = meeting(&address, 0, 3);
    first.listener = Some(listener);
    let others = (1..3).map(|rank| meeting(&address, rank, 3));
    let meetings: Vec<Meeting> = std::iter::once(first).chain(others).collect();
    let processes = meetings.into_iter().map(|m| thread::spawn(|| m.join_without_streams()));
    let joined = all_join(processes.collect());
    assert!(joined.iter().all(|one| one.streams.is_empty()));
}

#[test]
fn process_0_may_be_the_last_to_come() {
    let reserved = bind_first("127.0.0.1").unwrap();
    let address = reserved.local_addr().unwrap().to_string();
    drop(reserved);
    let mut processes = guests(&address, 3);
    thread::sleep(Duration::from_millis(300));
    let last = meeting(&address, 0, 3);
    processes.insert(0, thread::spawn(|| last.join()));
    speak_in_pairs(&all_join(processes));
}

#[test]
fn who_has_another_secret_or_none_learns_nothing_and_the_others_join() {
    let (address, host) = host(3, |_| {});
    for other in [None, Some(Secret::random().unwrap())] {
        let mut stranger = meeting(&address, 2, 3);
        (stranger.secret, stranger.time) = (other, Duration::from_millis(400));
        let error = error_of(thread::spawn(|| stranger.join())).to_string();
        let text = format!("process 0 was not found at {address} within 0.4 s: ");
        assert!(error.starts_with(&text), "{error}");
        let why = "its connection was closed; it may not be process 0 of this job, or may have another LPF_SECRET";
        assert!(
            error.ends_with(&format!("{why}; check that it runs, and that this is its address")),
            "{error}"
        );
    }
    let mut processes = guests(&address, 3);
    processes.insert(0, host);
    speak_in_pairs(&all_join(processes));
}

/// What listens at the address of process 0 says `says` to the first who call, and goes.
fn squatter(says: &'static [u8], times: usize) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let squats = move || {
        for _ in 0..times {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 512]).and_then(|_| stream.write_all(says));
        }
    };
    (address, thread::spawn(squats))
}

#[test]
fn a_squatter_at_the_port_ends_nobody() {
    for says in [&b"LPF/meet\x02\0\0\0\x02\x02no"[..], b"\x04\0\0\0no!!", b"HTTP/1.1 200 OK\r\n"] {
        let (address, squatter) = squatter(says, 5);
        let waits = guest(&address, 1, 2);
        squatter.join().unwrap();
        let first = meeting(&address, 0, 2);
        all_join(vec![thread::spawn(|| first.join()), waits]);
    }
}

#[test]
fn a_wrong_size_is_refused_and_the_others_join() {
    let (address, host) = host(3, |_| {});
    let error = error_of(guest(&address, 3, 5)).to_string();
    let text = "process 0 refused this process: the job has 3 processes here and 5 there";
    assert_eq!(error, text);
    let mut processes = guests(&address, 3);
    processes.insert(0, host);
    all_join(processes);
}

#[test]
fn a_rank_that_is_taken_is_refused_and_the_first_joins() {
    let (address, host) = host(3, |_| {});
    let (first, second) = (guest(&address, 1, 3), guest(&address, 1, 3));
    // One of the two is refused, at once; the other waits for process 2.
    let began = Instant::now();
    while !first.is_finished() && !second.is_finished() {
        assert_in_time(began.elapsed(), GENEROUS);
        thread::sleep(Duration::from_millis(1));
    }
    let (refused, waiting) = if first.is_finished() { (first, second) } else { (second, first) };
    let error = error_of(refused).to_string();
    let text =
        "process 0 refused this process: two processes have rank 1, one of them at 127.0.0.1:";
    assert!(error.starts_with(text), "{error}");
    assert!(error.ends_with("its own LPF_JOB or LPF_SECRET"), "all of it is told: {error}");
    all_join(vec![host, waiting, guest(&address, 2, 3)]);
}

#[test]
fn a_process_of_another_job_is_refused() {
    let (address, host) = host(2, |meeting| meeting.job = 1);
    let error = error_of(guest(&address, 1, 2)).to_string();
    assert!(
        error.starts_with("process 0 refused this process: another job uses this port"),
        "{error}"
    );
    let mut right = meeting(&address, 1, 2);
    right.job = 1;
    all_join(vec![host, thread::spawn(|| right.join())]);
}

#[test]
fn a_second_job_finds_the_port_taken() {
    let (address, host) = host(2, |_| {});
    let second = meeting(&address, 0, 2);
    let error = error_of(thread::spawn(|| second.join()));
    assert!(matches!(error, MeetError::Listen { .. }), "{error}");
    assert!(error.to_string().contains(&address), "{error}");
    assert!(error.to_string().ends_with("choose another port"), "{error}");
    all_join(vec![host, guest(&address, 1, 2)]);
}

#[test]
fn processes_of_two_jobs_at_one_port_are_all_told_so() {
    let (address, host) = host(3, |meeting| {
        meeting.secret = None;
        meeting.time = allowed(Duration::from_millis(600));
    });
    let second = |rank| {
        let mut meeting = meeting(&address, rank, 3);
        meeting.secret = None;
        thread::spawn(|| meeting.join())
    };
    let (one, other) = (second(1), second(1));
    let errors = [host, one, other].map(|process| error_of(process).to_string());
    let told = errors.iter().filter(|error| error.contains("its own LPF_JOB or LPF_SECRET"));
    assert_eq!(told.count(), 3, "process 0, who was refused and who waits: {errors:?}");
    assert!(errors[0].starts_with("process 2 has not arrived"), "{}", errors[0]);
}

#[test]
fn who_is_missing_is_named_on_every_side() {
    let time = allowed(Duration::from_millis(400));
    let (address, host) = host(6, |meeting| meeting.time = time);
    let came = [1, 4].map(|rank| guest(&address, rank, 6));
    let began = Instant::now();
    for process in std::iter::once(host).chain(came) {
        let error = error_of(process);
        let MeetError::Missing { ranks, .. } = &error else { panic!("{error}") };
        assert_eq!(*ranks, [2, 3, 5]);
        let text = format!("processes 2, 3 and 5 have not arrived at {address} within");
        assert!(error.to_string().starts_with(&text), "{error}");
    }
    assert_in_time(began.elapsed(), GENEROUS);
}

#[test]
fn who_gives_up_earlier_asks_who_is_missing() {
    let (short, long) = (allowed(Duration::from_millis(300)), allowed(Duration::from_secs(2)));
    let (address, host) = host(4, |meeting| meeting.time = long);
    // `allowed` may be more than the usual time of a process.
    let mut patient = meeting(&address, 1, 4);
    patient.time = 2 * long;
    let patient = thread::spawn(|| patient.join());
    thread::sleep(short);
    let mut hasty = meeting(&address, 2, 4);
    hasty.time = short;
    let error = error_of(thread::spawn(|| hasty.join()));
    let MeetError::Missing { ranks, time, .. } = &error else { panic!("{error}") };
    assert_eq!((ranks.as_slice(), *time), (&[3][..], short));
    // To the others it is missing then, too.
    for process in [host, patient] {
        let error = error_of(process);
        let MeetError::Missing { ranks, .. } = &error else { panic!("{error}") };
        assert_eq!(*ranks, [2, 3]);
    }
}

#[test]
fn processes_that_arrive_one_after_the_other_are_waited_for() {
    // The last arrives half of the time after process 0 would have given up, had no other process arrived.
    let time = allowed(Duration::from_secs(2)).min(Duration::from_secs(8));
    let (address, host) = host(4, |meeting| meeting.time = time);
    let mut processes = vec![host];
    for rank in 1..4 {
        thread::sleep(time / 2);
        let mut next = meeting(&address, rank, 4);
        next.time = time;
        processes.push(thread::spawn(|| next.join()));
    }
    speak_in_pairs(&all_join(processes));
}

#[test]
fn process_0_says_to_all_what_it_saw_of_those_who_are_missing() {
    let time = allowed(Duration::from_millis(500));
    let (address, host) = host(3, |meeting| meeting.time = time);
    let mut other = meeting(&address, 2, 3);
    other.time = time;
    let other = thread::spawn(|| other.join());
    let mut stranger = meeting(&address, 1, 3);
    (stranger.secret, stranger.time) = (Some(Secret::random().unwrap()), time / 2);
    error_of(thread::spawn(|| stranger.join()));
    for process in [host, other] {
        let error = error_of(process).to_string();
        let time = time.as_secs_f64();
        let text =
            format!("process 1 has not arrived at {address} within {time} s; the last connection");
        assert!(error.starts_with(&text), "{error}");
        assert!(error.contains("refused came from 127.0.0.1:"), "{error}");
        assert!(error.ends_with("it does not prove that it knows the secret"), "{error}");
    }
}

#[test]
fn where_nobody_listens_the_time_runs_out() {
    let mut alone = meeting("127.0.0.1:9", 1, 2);
    alone.time = Duration::from_millis(300);
    let error = error_of(thread::spawn(|| alone.join())).to_string();
    let text = "process 0 was not found at 127.0.0.1:9 within 0.3 s: Connection refused";
    assert!(error.starts_with(text), "{error}");
}

/// An address that neither answers nor refuses, as long as what else is returned lives: nobody takes calls
/// from its queue, which is full.
fn dead_address() -> (String, (TcpListener, Vec<TcpStream>)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    socket2::SockRef::from(&listener).listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
        queue.push(stream);
    }
    (address.to_string(), (listener, queue))
}

#[test]
fn an_address_that_is_dead_holds_up_no_other() {
    let (address, host) = host(2, |_| {});
    let (dead, _kept) = dead_address();
    // It accepts, and then says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|address| (address, silent)).unwrap();
    let began = Instant::now();
    all_join(vec![host, guest(&format!("{dead},{},{address}", silent.0), 1, 2)]);
    // The dead ones are not waited for.
    assert_in_time(began.elapsed(), Duration::from_secs(2));
}

#[test]
fn a_list_of_who_is_missing_is_process_0s_also_where_another_came_first() {
    let time = allowed(Duration::from_secs(2));
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let early = [1, 3].map(|rank| {
        let mut early = meeting(&address, rank, 4);
        early.time = time;
        let process = thread::spawn(|| early.join());
        thread::sleep(Duration::from_millis(150));
        process
    });
    let mut last = meeting(&address, 0, 4);
    (last.time, last.listener) = (time, Some(listener));
    let host = thread::spawn(|| last.join());
    for process in std::iter::once(host).chain(early) {
        let error = error_of(process);
        let MeetError::Missing { ranks, .. } = &error else { panic!("{error}") };
        assert_eq!(*ranks, [2], "{error}");
    }
}

#[test]
fn what_is_no_process_of_ours_is_not_joined() {
    for (says, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "the process there is not one of LPF"),
        (&b"\x05\x00\x00\x00LPF/m"[..], "the process there does not know the secret"),
        (&b""[..], "its connection was closed; it may not be process 0"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut alone = meeting(&listener.local_addr().unwrap().to_string(), 1, 2);
        alone.time = allowed(Duration::from_millis(400));
        let process = thread::spawn(|| alone.join());
        listener.set_nonblocking(true).unwrap();
        while !process.is_finished() {
            if let Ok((mut stream, _)) = listener.accept() {
                stream.set_nonblocking(false).unwrap();
                // The hello has to be read, or closing would take the answer with it. Who ran out of
                // time has closed.
                let heard = stream.read_exact(&mut [0; 50]);
                let _ = heard.and_then(|()| stream.write_all(says));
            }
            thread::sleep(Duration::from_millis(1));
        }
        let error = error_of(process).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn strangers_at_the_door_disturb_nobody() {
    let (address, host) = host(4, |_| {});
    let connect = || TcpStream::connect(&address).unwrap();
    // Port scanners, connections that stay half open, nonsense, a length beyond all bounds, and one
    // who says hello too slowly.
    (0..200).for_each(|_| drop(connect()));
    let silent: Vec<TcpStream> = (0..200).map(|_| connect()).collect();
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 4096], &[0xff; 4096], b"\x03\0\0\0abc"] {
        let mut stream = connect();
        stream.write_all(nonsense).unwrap();
        stream.set_read_timeout(Some(GENEROUS)).unwrap();
        let mut answer = Vec::new();
        // It may be reset, as more was sent than is ever read.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "strangers get no answer: {answer:?}");
    }
    let slow = thread::spawn({
        let mut stream = connect();
        move || {
            let hello = [&100u32.to_le_bytes()[..], b"LPF/meet"].concat();
            hello.iter().all(|&byte| {
                thread::sleep(Duration::from_millis(20));
                stream.write_all(&[byte]).is_ok()
            })
        }
    });
    let began = Instant::now();
    let mut processes = guests(&address, 4);
    processes.insert(0, host);
    let joined = all_join(processes);
    // The time-outs of strangers are not waited for.
    assert_in_time(began.elapsed(), Duration::from_secs(3));
    speak_in_pairs(&joined);
    slow.join().unwrap();
    drop(silent);
}

/// Of a process 0 that a test starts as a process of its own: its port, where strangers come, and when it ends.
const HOST: &str = "HOST_OF_RENDEZVOUS_TESTS";

/// What this program does where a test below started it; in an ordinary run, nothing.
#[test]
fn process_0_of_a_job_of_two() {
    if std::env::var_os(HOST).is_none() {
        return;
    }
    let listener = bind_first("127.0.0.1").unwrap();
    println!("\nlistens at {}", listener.local_addr().unwrap());
    loop {
        let mut meeting = meeting("unused", 0, 2);
        meeting.listener = Some(listener.try_clone().unwrap());
        drop(meeting.join().unwrap());
    }
}

/// Process 0 with few descriptors, again and again.
struct Host(std::process::Child, String);

impl Host {
    fn start() -> Self {
        use std::io::{BufRead, BufReader};
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", "ulimit -n 1024; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "process_0_of_a_job_of_two", "--nocapture"])
            .env(HOST, "1")
            .stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address =
            lines.find_map(|line| Some(line.ok()?.strip_prefix("listens at ")?.to_owned()));
        Host(child, address.expect("it says where it listens"))
    }

    /// How long a legal process takes to join.
    fn join(&self) -> Duration {
        let began = Instant::now();
        all_join(vec![guest(&self.1, 1, 2)]);
        began.elapsed()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A join beside strangers takes some milliseconds, and no longer than this on a quiet machine.
const AT_ONCE: Duration = Duration::from_secs(1);

#[test]
fn two_thousand_silent_strangers_do_not_delay_who_knows_the_secret() {
    let (_, hard) = nix::sys::resource::getrlimit(RLIMIT_NOFILE).unwrap();
    // As many of this process's own as may be.
    nix::sys::resource::setrlimit(RLIMIT_NOFILE, hard.min(4096), hard).unwrap();
    let most = 2000.min(hard as usize / 2);
    let host = Host::start();
    let silent: Vec<TcpStream> =
        (0..most).map_while(|_| TcpStream::connect(&host.1).ok()).collect();
    let took = host.join();
    eprintln!("beside {} silent strangers: {took:?}", silent.len());
    assert_in_time(took, AT_ONCE);
}

#[test]
fn new_strangers_without_end_do_not_delay_who_knows_the_secret() {
    let host = Host::start();
    let ends = Arc::new(AtomicBool::new(false));
    let strangers = thread::spawn({
        let (address, ends) = (host.1.clone(), ends.clone());
        move || {
            // Some hundred at a time, so that this process has descriptors left for others.
            let mut all = std::collections::VecDeque::new();
            while !ends.load(Relaxed) {
                all.extend(TcpStream::connect(&address));
                if all.len() > 300 {
                    all.pop_front();
                }
                thread::sleep(Duration::from_millis(2));
            }
        }
    });
    thread::sleep(Duration::from_millis(1500));
    let times = [(); 5].map(|()| host.join());
    ends.store(true, Relaxed);
    strangers.join().unwrap();
    eprintln!("beside 500 new strangers a second: {times:?}");
    times.into_iter().for_each(|took| assert_in_time(took, AT_ONCE));
}

#[test]
fn without_a_secret_nobody_listens_or_calls_beyond_this_machine() {
    for rank in [0, 1] {
        for address in ["0.0.0.0:4000", "10.1.2.3:4000", "[::]:4000", "[fd00::1]:4000"] {
            let mut open = meeting(address, rank, 2);
            // It is said before anybody is waited for.
            (open.secret, open.time) = (None, Duration::MAX);
            let error = open.join().map(|joined| joined.rank).unwrap_err();
            assert!(matches!(error, MeetError::Setting(_)), "{error}");
            assert!(error.to_string().contains("need a shared secret"), "{error}");
        }
    }
    let mut open = meeting("unused", 0, 2);
    (open.secret, open.listener) = (None, Some(bind_first("0.0.0.0").unwrap()));
    let error = open.join().map(|joined| joined.rank).unwrap_err().to_string();
    assert!(error.contains("need a shared secret"), "{error}");
}

#[test]
fn what_cannot_be_is_said_at_once() {
    let error = |meeting: Meeting| meeting.join().map(|joined| joined.rank).unwrap_err();
    let text = error(meeting("127.0.0.1:1", 3, 3)).to_string();
    assert_eq!(text, "rank 3 is not one of 0 to 2");
    assert!(error(meeting("127.0.0.1:1", 0, 0)).to_string().contains("1 to 65536 processes"));
    // Also where nobody is to be found at it.
    for (rank, size) in [(0, 1), (0, 2), (1, 2)] {
        for none in ["nowhere", "localhost:port", "localhost:99999", "localhost:0", "127.0.0.1:0"] {
            let text = error(meeting(none, rank, size)).to_string();
            assert!(
                text.contains("is not an address: host:port with a port from 1"),
                "{rank} of {size}: {text}"
            );
        }
    }
    let mut named = meeting("127.0.0.1:1", 0, 2);
    named.build = Some(vec![0; 65]);
    assert_eq!(error(named).to_string(), "a build id has at most 64 bytes");
    let mut second = meeting("127.0.0.1:1", 1, 2);
    second.listener = Some(bind_first("127.0.0.1").unwrap());
    assert_eq!(error(second).to_string(), "only process 0 is given a listener");
}

#[test]
fn a_place_that_somebody_left_can_be_taken_again() {
    let (address, host) = host(3, |_| {});
    let mut hasty = meeting(&address, 1, 3);
    hasty.time = Duration::from_millis(100);
    error_of(thread::spawn(|| hasty.join()));
    let mut processes = guests(&address, 3);
    processes.insert(0, host);
    speak_in_pairs(&all_join(processes));
}

#[test]
fn two_builds_of_a_program_do_not_meet() {
    let (address, host) = host(2, |meeting| meeting.build = Some(b"one".to_vec()));
    let mut other = meeting(&address, 1, 2);
    other.build = Some(b"another".to_vec());
    let error = error_of(thread::spawn(|| other.join())).to_string();
    assert!(error.ends_with("it is another build of the program"), "{error}");
    // Who does not say which it is may come.
    all_join(vec![host, guest(&address, 1, 2)]);
}

#[test]
fn who_comes_by_run_and_who_as_a_member_do_not_meet_and_both_are_told() {
    let (address, host) = host(2, |meeting| {
        meeting.by = By::Run;
        meeting.time = allowed(Duration::from_millis(500));
    });
    let error = error_of(guest(&address, 1, 2)).to_string();
    let text = "process 1 comes as a Member and process 0 by lpf::run: let all processes of the job use \
                one of the two";
    assert_eq!(error, format!("process 0 refused this process: {text}"));
    let error = error_of(host).to_string();
    assert!(error.starts_with("process 1 has not arrived") && error.ends_with(text), "{error}");
}

#[test]
fn many_join_at_once() {
    const SIZE: Rank = 24;
    let (address, host) = host(SIZE, |_| {});
    let mut processes = guests(&address, SIZE);
    processes.insert(0, host);
    speak_in_pairs(&all_join(processes));
}
