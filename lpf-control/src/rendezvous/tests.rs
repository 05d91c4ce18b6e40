//! Handshakes without a socket: right ones, wrong ones, and a million's share of nonsense. Then processes
//! that are let in and do not keep to the course.

use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;

use super::error::names;
use super::handshake::{Acceptor, Called, Caller, Fault, Heard, begin, fits, say, understand};
use super::reception::{HANDSHAKE, Reception};
use super::words::{
    Hello, Occasion, Place, Purpose, Reply, ToGuest, ToHost, VERSION, read, written,
};
use super::*;
use crate::connection::frame::{append, decode, encode};
use crate::connection::wire::{Filled, Wire};
use crate::plane::tests::hostile::Random;
use lpf_conformance::allowed;
use mio::Poll;

/// Byte strings for each of the places where a stranger is listened to.
const STRINGS: usize = 100_000;

const OCCASION: Occasion = *b"this rendezvous.";

const BEGIN: Begin = Begin { beats: true, seals: false };

fn me(rank: Rank) -> Identity {
    let secret = Some(Secret::new("correct horse battery staple").unwrap());
    let build = Some(b"build".to_vec());
    Identity {
        rank,
        size: 4,
        job: 9,
        by: By::Member,
        secret,
        build,
        streams: true,
        occasion: OCCASION,
    }
}

fn hello() -> Hello {
    Hello {
        purpose: Purpose::Control,
        rank: 2,
        size: 4,
        job: 9,
        by: By::Member,
        streams: true,
        build: Some(b"build".to_vec()),
        port: Some(4000),
        addresses: Vec::new(),
    }
}

/// What comes of a handshake: what the acceptor says of the caller, else what the caller says.
fn shake(hello: &Hello, caller: &Identity, acceptor: &Identity) -> Result<(), String> {
    let (mut calls, first) = Caller::new(hello, 0, caller.secret.as_ref()).unwrap();
    let mut accepts = Acceptor::Fresh;
    let (answer, mut one) = match accepts.hear(&first, acceptor)? {
        Heard::Answer(answer, seal) => (answer, seal),
        Heard::Refuse(answer, reason) => {
            assert!(calls.hear(&answer).is_err());
            return Err(reason);
        }
        Heard::Proven(_) => panic!("nothing was shown"),
    };
    let mut other = match calls.hear(&answer) {
        Ok(Called::Answer(seal)) => seal,
        Ok(Called::Welcome) => panic!("nothing was shown"),
        Err(Fault::Refused(reason) | Fault::Stranger(reason)) => return Err(reason),
    };
    let (mut record, mut into) =
        ([0; crate::connection::seal::HEAD], [0; crate::connection::seal::HEAD]);
    assert_eq!(other.seal(&[], &[], &mut record), record.len());
    assert_eq!(one.open(&record, &mut into), Ok(0), "both have the same keys");
    let Heard::Proven(heard) = accepts.hear(&[], acceptor)? else { panic!("it was shown") };
    assert_eq!(&heard, hello);
    fits(&heard, acceptor)?;
    assert!(matches!(calls.hear(&written(&Reply::Welcome)), Ok(Called::Welcome)));
    Ok(())
}

fn refusal(hello: Hello) -> String {
    shake(&hello, &me(2), &me(0)).expect_err("it is refused")
}

const UNPROVEN: &str = "it does not prove that it knows the secret";

#[test]
fn two_of_one_job_recognise_each_other() {
    shake(&hello(), &me(2), &me(0)).unwrap();
    let nobodys = |rank| Identity { secret: None, build: None, ..me(rank) };
    shake(&hello(), &nobodys(2), &nobodys(0)).unwrap();
}

#[test]
fn whatever_does_not_fit_is_named() {
    assert!(
        refusal(Hello { job: 8, ..hello() }).starts_with("another job uses this port (LPF_JOB")
    );
    let text = refusal(Hello { size: 5, ..hello() });
    assert_eq!(text, "the job has 4 processes here and 5 there");
    assert_eq!(refusal(Hello { rank: 4, ..hello() }), "rank 4 is not one of 0 to 3");
    assert!(refusal(Hello { rank: 0, ..hello() }).starts_with("two processes have rank 0: each "));
    let text = refusal(Hello { by: By::Run, ..hello() });
    assert!(
        text.starts_with("process 2 comes by lpf::run and process 0 as a Member: let"),
        "{text}"
    );
    let text = refusal(Hello { streams: false, ..hello() });
    assert_eq!(text, "one side connects pairs, and the other does not");
    let text = refusal(Hello { port: None, ..hello() });
    assert_eq!(text, "process 2 announces no port, and processes of higher rank call it");
    let text = refusal(Hello { build: Some(b"other".to_vec()), ..hello() });
    assert_eq!(text, "it is another build of the program");
}

#[test]
fn the_last_process_needs_no_port_and_for_data_none_does() {
    shake(&Hello { rank: 3, port: None, ..hello() }, &me(3), &me(0)).unwrap();
    shake(&Hello { purpose: Purpose::Data(OCCASION), port: None, ..hello() }, &me(2), &me(0))
        .unwrap();
}

#[test]
fn data_of_another_occasion_is_not_taken() {
    let purpose = Purpose::Data(*b"that rendezvous.");
    assert_eq!(
        refusal(Hello { purpose, ..hello() }),
        "it is of another job, which has the same secret"
    );
    shake(&Hello { purpose: Purpose::Data(OCCASION), ..hello() }, &me(2), &me(0)).unwrap();
}

#[test]
fn who_does_not_know_the_secret_learns_nothing() {
    let other = Some(Secret::random().unwrap());
    for secret in [None, other] {
        let stranger = Identity { secret, ..me(2) };
        assert_eq!(shake(&hello(), &stranger, &me(0)).unwrap_err(), UNPROVEN);
        let without = Identity { secret: None, ..me(0) };
        if stranger.secret.is_some() {
            assert_eq!(shake(&hello(), &stranger, &without).unwrap_err(), UNPROVEN);
        }
    }
}

/// The two ends of a handshake that has not begun, with the caller's first message.
fn begun(word: &[u8], secret: Option<&Secret>) -> (snow::HandshakeState, Vec<u8>) {
    let mut noise = begin(secret, true).unwrap();
    let first = say(&mut noise, word).unwrap();
    (noise, first)
}

#[test]
fn another_version_is_named_on_both_sides() {
    let me = me(0);
    let mut word = written(&hello());
    word[..4].copy_from_slice(&7_u32.to_le_bytes());
    let (mut noise, first) = begun(&word, me.secret.as_ref());
    let heard = Acceptor::Fresh.hear(&first, &me).unwrap();
    let Heard::Refuse(answer, text) = heard else { panic!("another version is taken") };
    assert_eq!(text, format!("it speaks version 7 of the protocol, and this is version {VERSION}"));
    let reply = read::<Reply>(&understand(&mut noise, &answer).unwrap()).unwrap();
    assert_eq!(reply, Reply::Refused(text));

    let (mut caller, first) = Caller::new(&hello(), 0, me.secret.as_ref()).unwrap();
    let mut noise = begin(me.secret.as_ref(), false).unwrap();
    understand(&mut noise, &first).unwrap();
    let mut word = written(&Reply::Challenge { rank: 0 });
    word[..4].copy_from_slice(&7_u32.to_le_bytes());
    let answer = say(&mut noise, &word).unwrap();
    let Err(Fault::Stranger(text)) = caller.hear(&answer) else { panic!() };
    assert!(text.starts_with("the process there speaks version 7"), "{text}");
}

#[test]
fn a_first_message_that_was_heard_earlier_is_answered_and_goes_no_further() {
    let me = me(0);
    let (_, first) = Caller::new(&hello(), 0, me.secret.as_ref()).unwrap();
    let answers = [(); 2].map(|()| match Acceptor::Fresh.hear(&first, &me) {
        Ok(Heard::Answer(answer, _)) => answer,
        _ => panic!("it is answered"),
    });
    // What the first caller would say next is sealed with other keys, so who repeats it says nothing.
    assert_ne!(answers[0], answers[1]);
    let mut acceptor = Acceptor::Fresh;
    acceptor.hear(&first, &me).unwrap();
    assert!(acceptor.hear(b"?", &me).is_err());
    assert!(acceptor.hear(&[], &me).is_err(), "it has one try");
}

#[test]
fn what_one_side_says_is_no_answer_of_the_other() {
    let (mut caller, first) = Caller::new(&hello(), 0, me(2).secret.as_ref()).unwrap();
    assert!(matches!(caller.hear(&first), Err(Fault::Stranger(_))));
}

/// What a caller hears of one who knows the secret.
fn heard_of(reply: &Reply, wanted: Rank) -> Result<Called, Fault> {
    let secret = me(0).secret;
    let (mut caller, first) = Caller::new(&hello(), wanted, secret.as_ref()).unwrap();
    let mut noise = begin(secret.as_ref(), false).unwrap();
    understand(&mut noise, &first).unwrap();
    caller.hear(&say(&mut noise, &written(reply)).unwrap())
}

#[test]
fn a_welcome_before_anything_was_shown_is_none() {
    let Err(Fault::Stranger(text)) = heard_of(&Reply::Welcome, 0) else { panic!("it is believed") };
    assert_eq!(text, "the process there does not keep to the protocol");
}

#[test]
fn a_call_that_ends_at_another_process_is_noticed() {
    let Err(Fault::Stranger(text)) = heard_of(&Reply::Challenge { rank: 3 }, 1) else { panic!() };
    assert_eq!(text, "process 3 answers where 1 should");
}

#[test]
fn a_refusal_is_believed_of_one_who_knows_the_secret_and_cannot_paint_the_terminal() {
    let refused = heard_of(&Reply::refused("\x1b[31mred\x07\n"), 0);
    assert_eq!(refused.map(|_| ()).unwrap_err(), Fault::Refused("[31mred".into()));
    let (mut caller, _) = Caller::new(&hello(), 0, me(2).secret.as_ref()).unwrap();
    let stranger = written(&Reply::refused("no"));
    assert!(matches!(caller.hear(&stranger), Err(Fault::Stranger(_))));
}

#[test]
fn strangers_are_refused_whatever_they_send() {
    let (mut random, me) = (Random::new(1), me(0));
    let (_, first) = Caller::new(&hello(), 0, None).unwrap();
    let corpus = [first, written(&hello()), b"GET / HTTP/1.1".to_vec()];
    for _ in 0..STRINGS {
        assert!(Acceptor::Fresh.hear(&random.string(&corpus, 2), &me).is_err(), "it got in");
    }
}

#[test]
fn a_stranger_that_is_called_is_not_believed() {
    let (mut random, me) = (Random::new(2), me(2));
    let mut noise = begin(None, false).unwrap();
    understand(&mut noise, &Caller::new(&hello(), 0, None).unwrap().1).unwrap();
    let answer = say(&mut noise, &written(&Reply::Challenge { rank: 0 })).unwrap();
    let corpus = [answer, written(&Reply::Welcome), b"HTTP/1.1 200 OK".to_vec()];
    // A new call for each takes its time.
    for _ in 0..STRINGS / 100 {
        let (mut caller, _) = Caller::new(&hello(), 0, me.secret.as_ref()).unwrap();
        let heard = caller.hear(&random.string(&corpus, 2));
        assert!(matches!(heard, Err(Fault::Stranger(_))), "it was believed");
    }
}

#[test]
fn words_after_the_handshake_are_read_or_refused() {
    let mut random = Random::new(3);
    let places = vec![Place::At("fd00::2".parse().unwrap(), 5), Place::WithHost(6)];
    let guests = [
        ToGuest::Roster(OCCASION, vec![places]),
        ToGuest::Missing { ranks: vec![1, 2], notes: "so".into() },
        ToGuest::Failed("so".into()),
        ToGuest::Go(BEGIN),
        ToGuest::Progress(7),
    ];
    let hosts = [ToHost::Ready, ToHost::Connected(3), ToHost::Who, ToHost::GaveUp("so".into())];
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

/// One end of a connection, by hand: it waits for what it is to read.
struct Line(Wire);

impl Line {
    fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(true).unwrap();
        Line(Wire::new(mio::net::TcpStream::from_std(stream)))
    }

    fn read(&mut self) -> Vec<u8> {
        let began = Instant::now();
        loop {
            if let Some(frame) = self.0.next(1 << 20).unwrap() {
                return frame.to_vec();
            }
            assert!(began.elapsed() < allowed(Duration::from_secs(20)), "it says nothing");
            thread::sleep(Duration::from_millis(1));
            assert!(!matches!(self.0.fill(), Filled::Closed(_)), "it was closed");
        }
    }

    /// The next word of process 0 that is not about progress.
    fn read_word(&mut self) -> ToGuest {
        loop {
            match decode(&self.read()).unwrap() {
                ToGuest::Progress(_) => {}
                word => return word,
            }
        }
    }

    fn read_roster(&mut self) {
        let word = self.read_word();
        assert!(matches!(word, ToGuest::Roster(..)), "{word:?}");
    }

    fn write(&mut self, payload: &[u8]) {
        append(self.0.out(), payload);
        self.0.flush().unwrap();
    }

    fn write_all(&mut self, bytes: &[u8]) {
        self.0.out().extend_from_slice(bytes);
        self.0.flush().unwrap();
    }
}

/// Process `rank` of three, let in by process 0, that goes no further by itself.
fn enter(address: SocketAddr, rank: Rank) -> Line {
    enter_for(address, rank, true)
}

fn enter_for(address: SocketAddr, rank: Rank, streams: bool) -> Line {
    enter_as(address, Hello { rank, streams, ..hello() })
}

fn enter_as(address: SocketAddr, hello: Hello) -> Line {
    let mut line = Line::new(TcpStream::connect(address).unwrap());
    let hello = Hello { size: 3, job: 0, build: None, ..hello };
    let (mut caller, first) = Caller::new(&hello, 0, None).unwrap();
    line.write(&first);
    let Ok(Called::Answer(seal)) = caller.hear(&line.read()) else { panic!() };
    assert!(line.0.seal(seal));
    line.write(&[]);
    assert!(matches!(caller.hear(&line.read()), Ok(Called::Welcome)));
    line
}

/// What processes 0 and 1 of three say when process 2 does `what` once all are there.
fn with_a_third(time: Duration, what: impl FnOnce(Line)) -> [MeetError; 2] {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap();
    let start = |rank, listener| {
        let mut meeting = Meeting::new(address.to_string(), rank, 3);
        (meeting.listener, meeting.time) = (listener, time);
        thread::spawn(|| meeting.join())
    };
    let processes = [start(0, Some(listener)), start(1, None)];
    let mut third = enter(address, 2);
    third.read_roster();
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
        stream.write(b"nonsense");
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
        // The others connect to each other meanwhile, and their time begins anew.
        thread::sleep(4 * time);
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
fn with_a_host(time: Duration, what: impl FnOnce(Line)) -> String {
    let me = Identity { size: 2, secret: None, ..me(0) };
    with_this_host(me, 1, time, |line, _| what(line)).to_string()
}

/// The error of process `rank` with this process 0, which does `what` with the hello when it has let it in.
fn with_this_host(
    me: Identity,
    rank: Rank,
    time: Duration,
    what: impl FnOnce(Line, Hello),
) -> MeetError {
    let listener = bind_first("127.0.0.1").unwrap();
    listener.set_nonblocking(false).unwrap();
    let mut meeting = Meeting::new(listener.local_addr().unwrap().to_string(), rank, me.size);
    (meeting.time, meeting.job, meeting.secret) = (time, me.job, me.secret.clone());
    let process = thread::spawn(|| meeting.join());
    let (stream, _) = listener.accept().unwrap();
    let mut line = Line::new(stream);
    let mut acceptor = Acceptor::Fresh;
    let Ok(Heard::Answer(answer, seal)) = acceptor.hear(&line.read(), &me) else { panic!() };
    line.write(&answer);
    assert!(line.0.seal(seal));
    let Ok(Heard::Proven(hello)) = acceptor.hear(&line.read(), &me) else { panic!() };
    line.write(&written(&Reply::Welcome));
    what(line, hello);
    process.join().unwrap().map(|joined| joined.rank).unwrap_err()
}

#[test]
fn a_job_with_a_loopback_address_is_not_found_at_other_addresses_of_its_machine() {
    with_this_host(me(0), 1, Duration::from_secs(20), |_, hello| {
        assert_eq!(hello.addresses, [] as [IpAddr; 0]);
        let port = hello.port.unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert!(TcpStream::connect(("127.0.0.2", port)).is_err(), "it listens everywhere");
    });
}

#[test]
fn a_process_calls_at_most_sixteen_others_at_once() {
    const SIZE: Rank = 40;
    let silent = bind_first("127.0.0.1").unwrap();
    silent.set_nonblocking(true).unwrap();
    let place = Place::At([127, 0, 0, 1].into(), silent.local_addr().unwrap().port());
    let is_open = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        loop {
            match stream.read(&mut [0; 4096]) {
                Ok(1..) => {}
                Ok(0) => return false,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    };
    let me = Identity { size: SIZE, ..me(0) };
    with_this_host(me, SIZE - 1, Duration::from_secs(20), |mut line, _| {
        let places = vec![vec![place]; SIZE - 1];
        line.write_all(&encode(&ToGuest::Roster(OCCASION, places)));
        let (began, mut called) = (Instant::now(), Vec::new());
        while called.len() < 16 {
            assert!(began.elapsed() < allowed(Duration::from_secs(20)), "it does not call");
            called.extend(silent.accept());
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(100));
        called.extend(std::iter::from_fn(|| silent.accept().ok()));
        // Those that were given up meanwhile are closed.
        let open = called.iter().filter(|(stream, _)| is_open(stream)).count();
        assert!(open <= 16, "{open} calls at once");
    });
}

#[test]
fn a_process_that_joins_again_and_again_does_not_prolong_the_wait() {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap();
    let mut first = Meeting::new(address.to_string(), 0, 3);
    (first.listener, first.time) = (Some(listener), Duration::from_secs(1));
    let waits = thread::spawn(|| first.join());
    let began = Instant::now();
    // Process 2 never arrives.
    while !waits.is_finished() {
        assert!(began.elapsed() < allowed(Duration::from_secs(20)), "it waits on");
        let mut joins = Meeting::new(address.to_string(), 1, 3);
        joins.time = Duration::from_millis(50);
        joins.join().map(|joined| joined.rank).unwrap_err();
    }
    let error = waits.join().unwrap().map(|joined| joined.rank).unwrap_err();
    assert!(matches!(error, MeetError::Missing { .. }), "{error}");
}

#[test]
fn a_process_0_that_does_not_keep_to_the_course_is_left() {
    let time = Duration::from_secs(6);
    let garbled = "process 0 ended during the rendezvous: it did not keep to the protocol";
    assert_eq!(with_a_host(time, |mut stream| stream.write(b"nonsense")), garbled);
    let word =
        |word: ToGuest| with_a_host(time, move |mut stream| stream.write_all(&encode(&word)));
    assert_eq!(word(ToGuest::Go(BEGIN)), garbled, "before anybody is connected");
    assert_eq!(word(ToGuest::Roster(OCCASION, Vec::new())), garbled, "without anybody on it");
    let closed = "process 0 ended during the rendezvous: its connection was closed";
    assert_eq!(with_a_host(time, drop), closed);
    let place = Place::At("10.1.2.3".parse().unwrap(), 4000);
    let roster = |mut stream: Line| {
        stream.write_all(&encode(&ToGuest::Roster(OCCASION, vec![vec![place]])));
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
    third.read_roster();
    third.write_all(&encode(&ToHost::Ready));
    assert_eq!(third.read_word(), ToGuest::Go(BEGIN));
    let planes = processes.map(|process| process.join().unwrap().unwrap().control);
    let mut random = Random::new(4);
    let nonsense: Vec<u8> = (0..1 << 20).map(|_| random.next() as u8).collect();
    // It may be cut off before all of it is said.
    third.write_all(&nonsense);
    let began = Instant::now();
    for plane in &planes {
        while plane.death(2).is_none() {
            assert!(began.elapsed() < allowed(Duration::from_secs(20)));
            thread::sleep(Duration::from_millis(1));
        }
        let reason = plane.death(2).unwrap();
        assert!(reason.starts_with("it broke the protocol of the control plane"), "{reason}");
    }
    assert!(planes[0].death(1).is_none() && planes[1].death(0).is_none());
}
