//! Networks to test, by hand and by threads.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

pub(crate) use lpf_conformance::NoControl;
use lpf_control::connection::Stream;
use lpf_control::rendezvous::{Meeting, Secret, bind_first};
use lpf_messages::{Broken, Outcome, Piece, Rank, Tag, Ticket, Transport};
use lpf_tcp::sockets::Sockets;

/// Nothing here waits longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Net = Sockets<NoControl>;

pub(crate) fn tag(channel: u32) -> Tag {
    Tag { context: 1, channel }
}

/// Both ends of a connection.
pub(crate) fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

pub(crate) fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// The variable that makes the connections of [`networks`] sealed ones.
const SEALED: &str = "LPF_TEST_SEALED";

/// The networks of `p` processes.
pub(crate) fn networks(p: usize) -> Vec<Net> {
    let streams = match std::env::var_os(SEALED) {
        Some(_) => sealed(p),
        None => unsealed(p),
    };
    let network = |(rank, streams)| Sockets::new(rank, streams, NoControl).unwrap();
    (0..).zip(streams).map(network).collect()
}

fn unsealed(p: usize) -> Vec<Vec<Option<Stream>>> {
    let listener = listener();
    // Every process that is added has a stream to each of those before it.
    let mut streams: Vec<Vec<Option<Stream>>> = Vec::new();
    for _ in 0..p {
        let mut own = Vec::new();
        for low in &mut streams {
            let (one, other) = pair(&listener);
            low.push(Some(one.into()));
            own.push(Some(other.into()));
        }
        own.push(None);
        streams.push(own);
    }
    streams
}

/// As a rendezvous with a secret makes them.
fn sealed(p: usize) -> Vec<Vec<Option<Stream>>> {
    let listener = bind_first("127.0.0.1").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut listener = Some(listener);
    let joining: Vec<_> = (0..p)
        .map(|rank| {
            let mut meeting = Meeting::new(&address, rank, p);
            meeting.secret = Some(Secret::new("a secret of these tests").unwrap());
            meeting.listener = listener.take();
            std::thread::spawn(|| meeting.join().unwrap())
        })
        .collect();
    let joined = joining.into_iter().map(|joining| joining.join().unwrap());
    let joined: Vec<_> = joined.collect();
    let streams = joined.into_iter().map(|mut joined| {
        joined.streams.resize_with(p, || None);
        assert!(joined.streams.iter().flatten().all(Stream::is_sealed));
        joined.streams
    });
    streams.collect()
}

/// The network of process 0, and the bare ends of the others' streams.
pub(crate) fn against_bare(p: usize) -> (Net, Vec<TcpStream>) {
    let listener = listener();
    let (mut own, mut bare) = (vec![None], Vec::new());
    for _ in 1..p {
        let (one, other) = pair(&listener);
        own.push(Some(one.into()));
        bare.push(other);
    }
    (Sockets::new(0, own, NoControl).unwrap(), bare)
}

/// Length of a frame's header.
pub(crate) const HEADER: usize = 16;

/// A frame as it travels.
pub(crate) fn frame(tag: Tag, message: &[u8]) -> Vec<u8> {
    let mut frame = header(tag, message.len() as u64);
    frame.extend_from_slice(message);
    frame
}

/// The same with an end behind it, of that letter.
pub(crate) fn ended(tag: Tag, message: &[u8], letter: u8) -> Vec<u8> {
    const LETTER: usize = 7;
    let (mut first, mut end) = (header(tag, message.len() as u64), header(tag, 0));
    (first[LETTER], end[LETTER]) = (b'E', letter);
    [&first, message, &end].concat()
}

/// Its first bytes.
pub(crate) fn header(tag: Tag, bytes: u64) -> Vec<u8> {
    let mut header = tag.context.to_le_bytes().to_vec();
    header.extend_from_slice(&tag.channel.to_le_bytes()[..3]);
    header.push(b'L');
    header.extend_from_slice(&bytes.to_le_bytes()[..6]);
    header.extend_from_slice(b"PF");
    header
}

/// Bytes that differ from those of other seeds and places.
pub(crate) fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        pattern.extend_from_slice(&state.to_le_bytes());
    }
    pattern.truncate(bytes);
    pattern
}

/// Sends a vector that the test keeps until the ticket is finished or cancelled.
pub(crate) fn send(net: &mut Net, to: Rank, tag: Tag, bytes: &[u8]) -> Ticket {
    // SAFETY: every test keeps its vectors and leaves them alone meanwhile.
    unsafe { net.send(to, tag, &[Piece::of(bytes)]) }.unwrap()
}

/// Receives into a vector that the test keeps until the ticket is finished or cancelled.
pub(crate) fn receive(net: &mut Net, from: Rank, tag: Tag, bytes: &mut [u8]) -> Ticket {
    try_receive(net, from, tag, bytes).unwrap()
}

pub(crate) fn try_receive(
    net: &mut Net,
    from: Rank,
    tag: Tag,
    bytes: &mut [u8],
) -> Outcome<Ticket> {
    // SAFETY: as in `send`.
    unsafe { net.receive(from, tag, &[Piece::of_mut(bytes)]) }
}

/// Asks until the ticket is finished.
pub(crate) fn try_wait(net: &mut Net, ticket: &Ticket) -> Outcome<usize> {
    let end = Instant::now() + PATIENCE;
    for round in 0_u64.. {
        if let Some(bytes) = net.test(ticket)? {
            return Ok(bytes);
        }
        match round {
            0..100 => std::thread::yield_now(),
            _ => net.idle(Duration::from_millis(1)),
        }
        assert!(Instant::now() < end, "nothing comes");
    }
    unreachable!()
}

pub(crate) fn wait(net: &mut Net, ticket: &Ticket) -> usize {
    try_wait(net, ticket).unwrap()
}

pub(crate) fn wait_broken(net: &mut Net, ticket: &Ticket) -> Broken {
    try_wait(net, ticket).expect_err("the message came")
}

/// Receives, waits and compares.
pub(crate) fn receives(net: &mut Net, from: Rank, tag: Tag, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    let ticket = receive(net, from, tag, &mut bytes);
    assert_eq!(wait(net, &ticket), expected.len());
    assert!(bytes == expected, "{} bytes of tag {tag:?} differ", expected.len());
}

/// Lets the network look at what is there, until nothing can be left.
pub(crate) fn settle(net: &mut Net) {
    for _ in 0..50 {
        net.progress().unwrap();
        net.idle(Duration::from_micros(200));
    }
}

pub(crate) fn write(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
}

pub(crate) fn read(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_exact(&mut read).unwrap();
    read
}
