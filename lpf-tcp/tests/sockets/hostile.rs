//! A hostile peer: whatever it sends, nothing panics, and nothing is allocated beyond the limit.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use lpf_messages::{Tag, Ticket, Transport};
use lpf_tcp::sockets::Sockets;

use crate::memory::peak_of;
use crate::support::*;

/// Strings fed in all; fewer under AddressSanitizer, which keeps freed memory of each connection.
const STRINGS: usize = if cfg!(asan) { 15_000 } else { 100_000 };

/// A connection takes so many at most: after the header of a long message all others belong to it.
const A_CONNECTION: usize = 60;

/// What may be kept of a peer, and what this test and the network have beside it.
const LIMIT: isize = (64 << 20) + (2 << 20);

/// A small generator: quicker than strategies, and its seed says everything.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn tag(&mut self) -> Tag {
        Tag { context: self.below(4) as u32, channel: self.below(4) as u32 }
    }

    /// A string as a peer might send it that is broken, or means harm.
    fn string(&mut self, bytes: &mut Vec<u8>) {
        bytes.clear();
        for _ in 0..=self.below(3) {
            let length = self.below(100) as usize;
            match self.below(32) {
                // Noise.
                0 => bytes.extend((0..length).map(|_| self.below(256) as u8)),
                // A header with more to come than comes, sometimes far more.
                1 => {
                    let bits = self.below(64);
                    bytes.extend(header(self.tag(), self.below(1 << bits)));
                }
                // A frame with one byte changed.
                2 => {
                    bytes.extend(frame(self.tag(), &[7; 100][..length]));
                    let at = self.below(bytes.len() as u64) as usize;
                    bytes[at] = self.below(256) as u8;
                }
                // A piece of a frame.
                3 => bytes.extend(&frame(self.tag(), &[7; 100])[length..]),
                // A message with an end: a whole one, one that was given up, or neither.
                4 => bytes.extend(ended(self.tag(), &[7; 100][..length], b'L')),
                5..10 => bytes.extend(ended(self.tag(), &[7; 100][..length], b'E')),
                10..15 => bytes.extend(ended(self.tag(), &[7; 100][..length], b'X')),
                _ => bytes.extend(frame(self.tag(), &[7; 100][..length])),
            }
        }
    }
}

/// A stream that leaves no trace in the system when it is closed, so that thousands can be made.
fn forgettable(stream: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the option's value lives through the call.
    let set = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of_val(&linger) as libc::socklen_t,
        )
    };
    assert_eq!(set, 0);
}

/// A network with a hostile peer.
struct Victim {
    net: Net,
    peer: TcpStream,
    posted: Vec<(Ticket, Box<[u8; 64]>)>,
}

impl Victim {
    fn new(listener: &TcpListener) -> Self {
        let (own, peer) = pair(listener);
        forgettable(&own);
        forgettable(&peer);
        let net = Sockets::new(0, vec![None, Some(own.into())], NoControl).unwrap();
        Victim { net, peer, posted: Vec::new() }
    }

    /// Posts receives, gives some up, and looks at what came. False where the connection is broken.
    fn act(&mut self, random: &mut Random) -> bool {
        for _ in 0..random.below(3) {
            let mut bytes = Box::new([0; 64]);
            match try_receive(&mut self.net, 1, random.tag(), &mut bytes[..]) {
                Ok(ticket) => self.posted.push((ticket, bytes)),
                Err(_) => return false,
            }
        }
        if random.below(100) == 0 {
            self.net.forget(random.below(4) as u32);
        }
        self.net.progress().unwrap();
        while self.posted.len() > random.below(20) as usize {
            let nth = random.below(self.posted.len() as u64) as usize;
            let (ticket, _bytes) = self.posted.swap_remove(nth);
            match self.net.test(&ticket) {
                Ok(Some(bytes)) => assert!(bytes <= 64),
                Ok(None) => assert!(self.net.cancel(ticket)),
                Err(broken) => {
                    assert_eq!(broken.peer, Some(1));
                    return false;
                }
            }
        }
        true
    }
}

#[test]
fn no_byte_string_does_harm() {
    let listener = listener();
    let mut random = Random(0x5eed);
    let mut string = Vec::with_capacity(1000);
    let (mut fed, mut broken, mut connections) = (0, 0, 0);
    let peak = peak_of(|| {
        while fed < STRINGS {
            let mut victim = Victim::new(&listener);
            connections += 1;
            for _ in 0..A_CONNECTION {
                random.string(&mut string);
                fed += 1;
                // It may have been broken by then.
                if victim.peer.write_all(&string).is_err() || !victim.act(&mut random) {
                    broken += 1;
                    break;
                }
            }
        }
    });
    assert!(peak < LIMIT, "{peak} bytes were allocated at once");
    // Strings broke connections, and others did not.
    let expected = (STRINGS / 100..STRINGS / 3, connections / 2..connections);
    assert!(
        expected.0.contains(&broken) && expected.1.contains(&broken),
        "{broken} of {connections}"
    );
}
