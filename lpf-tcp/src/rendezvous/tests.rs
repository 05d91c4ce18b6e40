//! Handshakes without a socket: right ones, wrong ones, and a million's share of nonsense. Then processes
//! that are let in and do not keep to the course.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread;

use super::error::names;
use super::handshake::{Acceptor, Called, Caller, Fault, Heard};
use super::reception::{HANDSHAKE, Reception};
use super::secret::{Nonce, Side, Tag};
use super::words::{Hello, MAGIC, Place, Proof, Purpose, Reply, ToGuest, ToHost, VERSION, sealed};
use super::*;
use crate::control::frame::{append, decode, encode};
use crate::control::tests::hostile::Random;

/// Byte strings for each of the places where a stranger is listened to.
const STRINGS: usize = 100_000;

fn me(rank: Rank) -> Identity {
    let secret = Some(Secret::new("correct horse battery staple").unwrap());
    let build = Some(b"build".to_vec());
    Identity { rank, size: 4, job: 9, by: By::Member, secret, build, streams: true }
}

fn hello() -> Hello {
    Hello {
        purpose: Purpose::Control,
        rank: 2,
        size: 4,
        job: 9,
        by: By::Member,
        secret: true,
        streams: true,
        build: Some(b"build".to_vec()),
        port: Some(4000),
        addresses: Vec::new(),
        nonce: Nonce::new().unwrap(),
    }
}

/// What comes of a handshake: what the acceptor says of the caller, else what the caller says.
fn shake(hello: &Hello, caller: &Identity, acceptor: &Identity) -> Result<(), String> {
    let (mut calls, mut frame) = Caller::new(hello, 0);
    let mut accepts = Acceptor::Fresh;
    loop {
        let (answer, is_in) = match accepts.hear(&frame, acceptor)? {
            Heard::Answer(answer) => (answer, false),
            Heard::Proven { hello: heard, welcome } => {
                assert_eq!(&heard, hello);
                (welcome, true)
            }
        };
        match calls.hear(&answer, caller.secret.as_ref()) {
            Ok(Called::Answer(proof)) => frame = proof,
            Ok(Called::Welcome) => {
                assert!(is_in);
                return Ok(());
            }
            Err(Fault::Refused(reason) | Fault::Stranger(reason)) => return Err(reason),
        }
    }
}

fn refusal(hello: Hello) -> String {
    shake(&hello, &me(2), &me(0)).expect_err("it is refused")
}

#[test]
fn two_of_one_job_recognise_each_other() {
    shake(&hello(), &me(2), &me(0)).unwrap();
    let nobodys = |rank| Identity { secret: None, build: None, ..me(rank) };
    shake(&Hello { secret: false, ..hello() }, &nobodys(2), &nobodys(0)).unwrap();
}

#[test]
fn whatever_does_not_fit_is_named() {
    let other = Identity { secret: Some(Secret::random().unwrap()), ..me(2) };
    assert_eq!(shake(&hello(), &other, &me(0)).unwrap_err(), "the secrets differ");
    assert!(refusal(Hello { job: 8, ..hello() }).starts_with("another job meets here (LPF_JOB"));
    let text = refusal(Hello { secret: false, ..hello() });
    assert_eq!(text, "this meeting has a secret, and it has none (LPF_SECRET)");
    let text = refusal(Hello { size: 5, ..hello() });
    assert_eq!(text, "the job has 4 processes here and 5 there");
    assert_eq!(refusal(Hello { rank: 4, ..hello() }), "rank 4 is none of 0 to 3");
    assert!(refusal(Hello { rank: 0, ..hello() }).starts_with("rank 0 is taken, "));
    let text = refusal(Hello { by: By::Run, ..hello() });
    assert!(
        text.starts_with("process 2 comes by lpf::run and process 0 as a Member: let"),
        "{text}"
    );
    let text = refusal(Hello { streams: false, ..hello() });
    assert_eq!(text, "one side connects pairs, and the other does not");
    let text = refusal(Hello { build: Some(b"other".to_vec()), ..hello() });
    assert_eq!(text, "it is another build of the program");
}

#[test]
fn size_rank_and_build_are_told_to_those_who_know_the_secret_alone() {
    let other = Identity { secret: Some(Secret::random().unwrap()), ..me(2) };
    let hello = Hello { size: 77, rank: 50, build: None, ..hello() };
    assert_eq!(shake(&hello, &other, &me(0)).unwrap_err(), "the secrets differ");
}

#[test]
fn another_version_is_named_on_both_sides() {
    let mut frame = sealed(&hello());
    frame[8..12].copy_from_slice(&7u32.to_le_bytes());
    let text = Acceptor::Fresh.hear(&frame, &me(0)).unwrap_err();
    assert_eq!(text, format!("it speaks version 7 of the protocol, and this is version {VERSION}"));
    let (mut caller, _) = Caller::new(&hello(), 0);
    let mut frame = Acceptor::refuse("no");
    frame[8..12].copy_from_slice(&7u32.to_le_bytes());
    let Err(Fault::Stranger(text)) = caller.hear(&frame, None) else { panic!() };
    assert!(text.contains("speaks version 7"), "{text}");
}

#[test]
fn what_one_side_says_is_no_answer_of_the_other() {
    // The caller's own proof, sent back to it as a welcome.
    let me = me(2);
    let (mut caller, first) = Caller::new(&hello(), 0);
    let challenge = sealed(&Reply::Challenge { rank: 0, nonce: Nonce::new().unwrap() });
    caller.hear(&challenge, me.secret.as_ref()).unwrap();
    let own = Tag::new(me.secret.as_ref(), Side::Caller, &first, &challenge);
    let reflected = caller.hear(&sealed(&Reply::Welcome(own)), me.secret.as_ref());
    let text = "what answers there does not know the secret";
    assert_eq!(reflected, Err(Fault::Stranger(text.into())));
}

#[test]
fn a_proof_is_good_once() {
    let me = me(0);
    let (mut caller, first) = Caller::new(&hello(), 0);
    let mut acceptor = Acceptor::Fresh;
    let Ok(Heard::Answer(challenge)) = acceptor.hear(&first, &me) else { panic!() };
    let Ok(Called::Answer(proof)) = caller.hear(&challenge, me.secret.as_ref()) else { panic!() };
    assert!(matches!(acceptor.hear(&proof, &me), Ok(Heard::Proven { .. })));
    let mut replayed = Acceptor::Fresh;
    replayed.hear(&first, &me).unwrap();
    assert_eq!(replayed.hear(&proof, &me).unwrap_err(), "the secrets differ");
}

#[test]
fn a_welcome_before_the_proof_is_none() {
    let (mut caller, first) = Caller::new(&hello(), 0);
    let tag = Tag::new(None, Side::Acceptor, &first, &[]);
    let text = "what answers there does not keep to the protocol";
    let heard = caller.hear(&sealed(&Reply::Welcome(tag)), None);
    assert_eq!(heard, Err(Fault::Stranger(text.into())));
}

#[test]
fn a_call_that_ends_at_another_process_is_noticed() {
    let (mut caller, _) = Caller::new(&hello(), 1);
    let challenge = sealed(&Reply::Challenge { rank: 3, nonce: Nonce::new().unwrap() });
    let text = "process 3 answers where 1 should";
    assert_eq!(caller.hear(&challenge, None), Err(Fault::Stranger(text.into())));
}

#[test]
fn a_reason_cannot_paint_the_terminal() {
    let (mut caller, _) = Caller::new(&hello(), 0);
    let heard = caller.hear(&Acceptor::refuse("\x1b[31mred\x07\n"), None);
    assert_eq!(heard, Err(Fault::Refused("[31mred".into())));
}

#[test]
fn strangers_are_refused_whatever_they_send() {
    let (mut random, me) = (Random::new(1), me(0));
    let tag = Tag::new(None, Side::Caller, &[], &[]);
    let corpus =
        [sealed(&hello()), sealed(&Proof(tag)), MAGIC.to_vec(), b"GET / HTTP/1.1".to_vec()];
    for _ in 0..STRINGS {
        let mut acceptor = Acceptor::Fresh;
        for _ in 0..2 {
            match acceptor.hear(&random.string(&corpus, 2), &me) {
                Ok(Heard::Answer(_)) => {}
                Ok(Heard::Proven { .. }) => panic!("a stranger got in"),
                Err(_) => break,
            }
        }
    }
}

#[test]
fn a_stranger_that_is_called_is_not_believed() {
    let (mut random, me) = (Random::new(2), me(2));
    let nonce = Nonce::new().unwrap();
    let challenge = sealed(&Reply::Challenge { rank: 0, nonce });
    let welcome = sealed(&Reply::Welcome(Tag::new(None, Side::Acceptor, &[], &challenge)));
    let corpus = [challenge, welcome, Acceptor::refuse("no"), b"HTTP/1.1 200 OK".to_vec()];
    for _ in 0..STRINGS {
        let (mut caller, _) = Caller::new(&hello(), 0);
        for _ in 0..2 {
            match caller.hear(&random.string(&corpus, 2), me.secret.as_ref()) {
                Ok(Called::Answer(_)) => {}
                Ok(Called::Welcome) => panic!("a stranger was believed"),
                Err(_) => break,
            }
        }
    }
}

#[test]
fn words_after_the_handshake_are_read_or_refused() {
    let mut random = Random::new(3);
    let places = vec![Place::At("fd00::2".parse().unwrap(), 5), Place::WithHost(6)];
    let guests = [
        ToGuest::Roster(vec![places]),
        ToGuest::Missing { ranks: vec![1, 2], notes: "so".into() },
        ToGuest::Failed("so".into()),
        ToGuest::Go { beats: true },
    ];
    let hosts = [ToHost::Ready, ToHost::Who, ToHost::GaveUp("so".into())];
    let payload = |frame: Vec<u8>| frame[4..].to_vec();
    let mut corpus: Vec<Vec<u8>> = guests.iter().map(|word| payload(encode(word))).collect();
    corpus.extend(hosts.iter().map(|word| payload(encode(word))));
    for _ in 0..STRINGS {
        let string = random.string(&corpus, 2);
        if let Some(word) = decode::<ToGuest>(&string) {
            let again = decode::<ToGuest>(&payload(encode(&word)));
            assert_eq!(again, Some(word));
        }
        decode::<ToHost>(&string);
    }
}

#[test]
fn those_who_are_missing_are_named_by_number() {
    let text = |ranks: &[Rank]| names(ranks, "has", "have");
    assert_eq!(text(&[3]), "process 3 has");
    assert_eq!(text(&[3, 4]), "processes 3 and 4 have");
    assert_eq!(text(&[1, 3, 5]), "processes 1, 3 and 5 have");
    assert_eq!(text(&[1, 3, 4, 5, 6, 9, 10]), "processes 1, 3 to 6, 9 and 10 have");
    let every_other: Vec<Rank> = (0..100).map(|n| 2 * n).collect();
    assert!(text(&every_other).ends_with("30 and 84 more ranges have"));
}

/// Reads a frame of one who keeps to the protocol.
fn read_frame(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut frame).unwrap();
    frame
}

fn write_frame(stream: &mut TcpStream, payload: &[u8]) {
    let mut frame = Vec::new();
    append(&mut frame, payload);
    stream.write_all(&frame).unwrap();
}

/// Process `rank` of three, let in by process 0, that goes no further by itself.
fn enter(address: SocketAddr, rank: Rank) -> TcpStream {
    enter_for(address, rank, true)
}

fn enter_for(address: SocketAddr, rank: Rank, streams: bool) -> TcpStream {
    enter_as(address, Hello { rank, streams, ..hello() })
}

fn enter_as(address: SocketAddr, hello: Hello) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let hello = Hello { size: 3, job: 0, secret: false, build: None, ..hello };
    let (mut caller, first) = Caller::new(&hello, 0);
    write_frame(&mut stream, &first);
    let challenge = read_frame(&mut stream);
    let Ok(Called::Answer(proof)) = caller.hear(&challenge, None) else { panic!() };
    write_frame(&mut stream, &proof);
    assert_eq!(caller.hear(&read_frame(&mut stream), None), Ok(Called::Welcome));
    stream
}

/// What processes 0 and 1 of three say when process 2 does `what` once all are there.
fn with_a_third(time: Duration, what: impl FnOnce(TcpStream)) -> [MeetError; 2] {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap();
    let start = |rank, listener| {
        let mut meeting = Meeting::new(address.to_string(), rank, 3);
        (meeting.listener, meeting.time) = (listener, time);
        thread::spawn(|| meeting.join())
    };
    let processes = [start(0, Some(listener)), start(1, None)];
    let mut third = enter(address, 2);
    assert!(matches!(decode(&read_frame(&mut third)), Some(ToGuest::Roster(_))));
    what(third);
    processes.map(|process| process.join().unwrap().map(|joined| joined.rank).unwrap_err())
}

#[test]
fn who_ends_while_pairs_are_connected_ends_the_meeting_for_all() {
    let errors = with_a_third(Duration::from_secs(20), drop);
    let ended = "process 2 ended during the rendezvous: its connection was closed";
    assert_eq!(errors[0].to_string(), ended);
    assert_eq!(errors[1], MeetError::Failed(ended.into()));

    let errors = with_a_third(Duration::from_secs(20), |mut stream| {
        write_frame(&mut stream, b"nonsense");
        thread::sleep(Duration::from_millis(100));
    });
    assert!(errors[0].to_string().ends_with("it did not keep to the protocol"), "{}", errors[0]);
}

#[test]
fn a_connection_that_says_nothing_is_given_up_in_time() {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap();
    let poll = Poll::new().unwrap();
    let mut reception = Reception::new(me(0));
    reception.open(listener, poll.registry()).unwrap();
    let silent: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut later = Instant::now();
    let mut look = |now| assert!(reception.next(poll.registry(), now, |_| Ok(())).is_none());
    look(later);
    let stands = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    later += HANDSHAKE - Duration::from_millis(100);
    look(later);
    assert!(silent.iter().all(stands));
    later += Duration::from_millis(200);
    look(later);
    assert!(!silent.iter().any(stands));
    assert_eq!(reception.due(), None);
}

#[test]
fn who_connects_to_nobody_is_named_when_time_is_up() {
    let time = Duration::from_millis(500);
    let errors = with_a_third(time, |stream| {
        thread::sleep(Duration::from_millis(700));
        drop(stream);
    });
    assert_eq!(errors[0], MeetError::Unconnected { ranks: vec![1, 2], time, notes: String::new() });
    assert!(
        errors[1].to_string().contains("processes 1 and 2 were not connected"),
        "{}",
        errors[1]
    );
}

#[test]
fn who_does_not_reach_whom_is_said_with_the_address_and_the_reason() {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap();
    let start = |rank, listener| {
        let mut meeting = Meeting::new(address.to_string(), rank, 3);
        (meeting.listener, meeting.time) = (listener, Duration::from_secs(2));
        thread::spawn(|| meeting.join())
    };
    let processes = [start(0, Some(listener)), start(2, None)];
    // It announces a port at which nobody listens.
    let port = bind_first("127.0.0.1").unwrap().local_addr().unwrap().port();
    let _first = enter_as(address, Hello { rank: 1, port: Some(port), ..hello() });
    for process in processes {
        let text = process.join().unwrap().map(|joined| joined.rank).unwrap_err().to_string();
        let reason = format!("process 2 did not reach process 1 at 127.0.0.1:{port}: Connection");
        assert!(text.contains(&reason), "{text}");
    }
}

/// What process 1 of two says of a process 0 that lets it in and then does `what`.
fn with_a_host(time: Duration, what: impl FnOnce(TcpStream)) -> String {
    let listener = bind_first("127.0.0.1").unwrap();
    listener.set_nonblocking(false).unwrap();
    let mut meeting = Meeting::new(listener.local_addr().unwrap().to_string(), 1, 2);
    meeting.time = time;
    let process = thread::spawn(|| meeting.join());
    let me = Identity { rank: 0, size: 2, job: 0, secret: None, build: None, ..me(0) };
    let (mut stream, _) = listener.accept().unwrap();
    let mut acceptor = Acceptor::Fresh;
    loop {
        match acceptor.hear(&read_frame(&mut stream), &me).unwrap() {
            Heard::Answer(answer) => write_frame(&mut stream, &answer),
            Heard::Proven { welcome, .. } => {
                write_frame(&mut stream, &welcome);
                break;
            }
        }
    }
    what(stream);
    process.join().unwrap().map(|joined| joined.rank).unwrap_err().to_string()
}

#[test]
fn a_process_0_that_does_not_keep_to_the_course_is_left() {
    let time = Duration::from_secs(6);
    let garbled = "process 0 ended during the rendezvous: it did not keep to the protocol";
    assert_eq!(with_a_host(time, |mut stream| write_frame(&mut stream, b"nonsense")), garbled);
    let word = |word: ToGuest| {
        with_a_host(time, move |mut stream| stream.write_all(&encode(&word)).unwrap())
    };
    assert_eq!(word(ToGuest::Go { beats: true }), garbled, "before anybody is connected");
    assert_eq!(word(ToGuest::Roster(Vec::new())), garbled, "without anybody on it");
    let closed = "process 0 ended during the rendezvous: its connection was closed";
    assert_eq!(with_a_host(time, drop), closed);
    let place = Place::At("10.1.2.3".parse().unwrap(), 4000);
    let roster = |mut stream: TcpStream| {
        stream.write_all(&encode(&ToGuest::Roster(vec![vec![place]]))).unwrap();
    };
    // Roster and end may come in one piece, and with the welcome.
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(with_a_host(time, roster), closed);
        assert!(began.elapsed() < time, "the end is seen when it comes");
    }
    let silent = |stream| {
        thread::sleep(Duration::from_millis(1500));
        drop(stream);
    };
    let text = with_a_host(Duration::from_millis(200), silent);
    assert_eq!(text, "process 0 ended during the rendezvous: it gave no answer");
}

#[test]
fn who_is_in_and_then_speaks_nonsense_is_dead_to_the_others_who_go_on() {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap();
    let start = |rank, listener| {
        let mut meeting = Meeting::new(address.to_string(), rank, 3);
        meeting.listener = listener;
        thread::spawn(|| meeting.join_without_streams())
    };
    let processes = [start(0, Some(listener)), start(1, None)];
    let mut third = enter_for(address, 2, false);
    assert!(matches!(decode(&read_frame(&mut third)), Some(ToGuest::Roster(_))));
    third.write_all(&encode(&ToHost::Ready)).unwrap();
    assert_eq!(decode(&read_frame(&mut third)), Some(ToGuest::Go { beats: true }));
    let planes = processes.map(|process| process.join().unwrap().unwrap().control);
    let mut random = Random::new(4);
    let nonsense: Vec<u8> = (0..1 << 20).map(|_| random.next() as u8).collect();
    // It may be cut off before all of it is said.
    let _ = third.write_all(&nonsense);
    let began = Instant::now();
    for plane in &planes {
        while plane.death(2).is_none() {
            assert!(began.elapsed() < Duration::from_secs(20));
            thread::sleep(Duration::from_millis(1));
        }
        let reason = plane.death(2).unwrap();
        assert!(reason.starts_with("it broke the protocol of the control plane"), "{reason}");
    }
    assert!(planes[0].death(1).is_none() && planes[1].death(0).is_none());
}
