//! Who comes to a listener: many at a time, each with a deadline of its own.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use mio::{Interest, Registry, Token};
use nix::sys::resource::{Resource, getrlimit};

use super::address::widen;
use super::error::MeetError;
use super::handshake::{Acceptor, Heard, Identity, Refusal, fits};
use super::words::{Hello, LONGEST_GREETING, Reply, canonical, written};
use crate::connection::frame;
use crate::connection::wire::{Filled, Wire};

/// A handshake takes at most so long.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);

/// So many handshakes may be under way; less where this process may have few descriptors. For one more the
/// oldest are given up, first of those who have not shown that they know the secret: such a process does so
/// with the first that it says, so no number of others keeps it out.
const MOST_PENDING: usize = 256;

/// The part of the descriptors that handshakes may take.
const SHARE: usize = 8;

/// So many callers are accepted before those are heard who have said something.
const AT_ONCE: usize = 32;

/// A pause if the system has no more sockets, and nobody here can be given up for one.
const SHORT_OF_SOCKETS: Duration = Duration::from_millis(20);

/// The tokens of listeners and of connections that are not let in yet are greater.
const FIRST: usize = 1 << 40;

#[derive(Debug)]
struct Pending {
    wire: Wire,
    acceptor: Acceptor,
    deadline: Instant,
    from: SocketAddr,
}

/// A process that knows the secret and was admitted.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) hello: Hello,
    pub(super) wire: Wire,
}

/// Where others call, and whether somebody may wait there.
#[derive(Debug)]
struct Door {
    listener: mio::net::TcpListener,
    token: usize,
    acceptable: bool,
}

/// Listeners, and those who wait there.
#[derive(Debug)]
pub(super) struct Reception {
    doors: Vec<Door>,
    me: Identity,
    pending: BTreeMap<usize, Pending>,
    next: usize,
    most_pending: usize,
    pause: Option<Instant>,
    last_refusal: Option<String>,
}

impl Reception {
    pub(super) fn new(me: Identity) -> Self {
        Reception {
            doors: Vec::new(),
            me,
            pending: BTreeMap::new(),
            next: FIRST,
            most_pending: most_pending(),
            pause: None,
            last_refusal: None,
        }
    }

    /// Hears those who call here, too.
    pub(super) fn open(
        &mut self,
        listener: TcpListener,
        registry: &Registry,
    ) -> Result<(), MeetError> {
        listener.set_nonblocking(true).map_err(MeetError::system)?;
        widen(&listener);
        let mut listener = mio::net::TcpListener::from_std(listener);
        let token = self.token();
        let registered = registry.register(&mut listener, Token(token), Interest::READABLE);
        registered.map_err(MeetError::system)?;
        self.doors.push(Door { listener, token, acceptable: true });
        Ok(())
    }

    /// Whether those who call an address are heard.
    pub(super) fn hears(&self, address: SocketAddr) -> bool {
        let heard = self.doors.iter().filter_map(|door| door.listener.local_addr().ok());
        heard.into_iter().any(|at| {
            // Those who listen at all addresses of IPv6 hear callers of IPv4, too.
            let ip = at.ip();
            let all = ip.is_unspecified() && (ip.is_ipv6() || address.is_ipv4());
            at.port() == address.port() && (all || canonical(at) == canonical(address))
        })
    }

    /// Whether nobody is heard at all.
    pub(super) fn is_deaf(&self) -> bool {
        self.doors.is_empty()
    }

    fn token(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// The last that was not let in, and why.
    pub(super) fn last_refusal(&self) -> Option<&String> {
        self.last_refusal.as_ref()
    }

    pub(super) fn note(&mut self, event: &mio::event::Event) {
        let token = event.token().0;
        if let Some(pending) = self.pending.get_mut(&token) {
            pending.wire.note(event);
        } else if let Some(door) = self.doors.iter_mut().find(|door| door.token == token) {
            door.acceptable = true;
        }
    }

    /// When something has to be done though nothing comes.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.pause.is_some() {
            return self.pause;
        }
        let has_more = self.doors.iter().any(|door| door.acceptable);
        let deadlines = self.pending.values().map(|pending| pending.deadline);
        deadlines.chain(has_more.then(Instant::now)).min()
    }

    /// Takes connections that are there, up to a few.
    fn accept(&mut self, registry: &Registry, now: Instant) {
        if self.pause.is_some_and(|until| now < until) {
            return;
        }
        self.pause = None;
        for _ in 0..AT_ONCE {
            let Some(door) = self.doors.iter_mut().find(|door| door.acceptable) else { return };
            match door.listener.accept() {
                Ok((stream, from)) => self.greet(Wire::new(stream), from, registry, now),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => door.acceptable = false,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    // Short of sockets or memory: those who wait longest have to go.
                    _ if self.make_room() => {}
                    _ => {
                        self.pause = Some(now + SHORT_OF_SOCKETS);
                        return;
                    }
                },
            }
        }
    }

    fn greet(&mut self, mut wire: Wire, from: SocketAddr, registry: &Registry, now: Instant) {
        let token = self.token();
        if wire.register(registry, Token(token)).is_err() {
            return;
        }
        if self.pending.len() >= self.most_pending {
            self.make_room();
        }
        let deadline = now + HANDSHAKE;
        self.pending.insert(token, Pending { wire, acceptor: Acceptor::Fresh, deadline, from });
    }

    /// Gives up the oldest quarter of the handshakes, strangers first; whether there was any.
    fn make_room(&mut self) -> bool {
        let (known, strangers): (Vec<_>, Vec<_>) =
            self.pending.iter().partition(|(_, pending)| pending.acceptor.has_answered());
        let oldest = strangers.into_iter().chain(known).map(|(&token, _)| token);
        let oldest: Vec<usize> = oldest.take(self.pending.len().div_ceil(4)).collect();
        oldest.iter().for_each(|token| drop(self.pending.remove(token)));
        !oldest.is_empty()
    }

    /// The next that was let in; `admit` is asked when one has shown that it knows the secret.
    pub(super) fn next(
        &mut self,
        registry: &Registry,
        now: Instant,
        admit: impl Fn(&Hello) -> Result<(), Refusal>,
    ) -> Option<Arrival> {
        self.accept(registry, now);
        let late = |pending: &Pending| pending.deadline <= now;
        self.pending.retain(|_, pending| !late(pending));
        let readable = self.pending.iter().filter(|(_, pending)| pending.wire.is_readable());
        for token in readable.map(|(&token, _)| token).collect::<Vec<_>>() {
            let Some(pending) = self.pending.get_mut(&token) else { continue };
            match pending.hear(&self.me, &admit) {
                Ok(None) => {}
                Ok(Some(hello)) => {
                    let wire = self.pending.remove(&token)?.wire;
                    return Some(Arrival { hello, wire });
                }
                Err(reason) => {
                    self.last_refusal = Some(format!("{}: {reason}", pending.from));
                    self.pending.remove(&token);
                }
            }
        }
        None
    }
}

/// How many handshakes may be under way in this process.
fn most_pending() -> usize {
    let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft as usize);
    (descriptors / SHARE).clamp(16, MOST_PENDING)
}

impl Pending {
    /// Takes what came. The process, once it is let in; an error ends the connection.
    fn hear(
        &mut self,
        me: &Identity,
        admit: &impl Fn(&Hello) -> Result<(), Refusal>,
    ) -> Result<Option<Hello>, Refusal> {
        let filled = self.wire.fill();
        loop {
            let frame = match self.wire.next(LONGEST_GREETING) {
                Ok(None) => break,
                Ok(Some(frame)) => frame.to_vec(),
                Err(_) => return Err("it does not speak the protocol of this rendezvous".into()),
            };
            let heard = match self.acceptor.hear(&frame, me) {
                Ok(Heard::Answer(frame, seal)) => {
                    let is_quiet = self.send(&frame)? && self.wire.seal(seal);
                    if is_quiet { Ok(None) } else { Err("it does not keep to the protocol".into()) }
                }
                Ok(Heard::Refuse(frame, reason)) => {
                    // Whether it hears that or not, it is not let in.
                    let _ = self.send(&frame);
                    Err(reason)
                }
                Ok(Heard::Proven(hello)) => match fits(&hello, me).and_then(|()| admit(&hello)) {
                    Ok(()) => self.send(&written(&Reply::Welcome)).map(|_| Some(hello)),
                    Err(reason) => {
                        let _ = self.send(&written(&Reply::refused(&reason)));
                        Err(reason)
                    }
                },
                // A stranger is told nothing.
                Err(reason) => Err(reason),
            };
            if let Some(hello) = heard? {
                return Ok(Some(hello));
            }
        }
        match filled {
            Filled::All => Ok(None),
            Filled::Some => Err("it sends more than the protocol allows".into()),
            Filled::Closed(reason) => Err(reason),
        }
    }

    /// Sends a frame, and says whether all of it has left: a fresh connection takes these few bytes at once.
    fn send(&mut self, payload: &[u8]) -> Result<bool, Refusal> {
        frame::append(self.wire.out(), payload);
        self.wire.flush()
    }
}
