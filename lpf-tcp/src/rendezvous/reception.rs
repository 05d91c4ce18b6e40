//! Who comes to a listener: many at a time, each with a deadline of its own.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use mio::{Interest, Registry, Token};

use super::MeetError;
use super::address::widen;
use super::handshake::{Acceptor, Heard, Identity, Refusal};
use super::words::{Hello, LONGEST_GREETING, canonical};
use crate::control::frame;
use crate::control::wire::{Filled, Wire};

/// A handshake takes at most so long.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);

/// So many handshakes may be under way; for one more the oldest is given up. A process of ours needs two
/// round trips, so only who opens as many connections in that time keeps it out, and it comes again.
const MOST_PENDING: usize = 1024;

/// A pause where the system has no more sockets.
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
        let deadlines = self.pending.values().map(|pending| pending.deadline);
        deadlines.chain(self.pause).min()
    }

    /// Takes the connections that are there.
    fn accept(&mut self, registry: &Registry, now: Instant) {
        if self.pause.is_some_and(|until| now < until) {
            return;
        }
        self.pause = None;
        while let Some(door) = self.doors.iter_mut().find(|door| door.acceptable) {
            match door.listener.accept() {
                Ok((stream, from)) => self.greet(Wire::new(stream), from, registry, now),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => door.acceptable = false,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    // Short of sockets or memory: the one that waits longest has to go.
                    _ => {
                        self.pending.pop_first();
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
        if self.pending.len() >= MOST_PENDING {
            self.pending.pop_first();
        }
        let deadline = now + HANDSHAKE;
        self.pending.insert(token, Pending { wire, acceptor: Acceptor::Fresh, deadline, from });
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
                Err(_) => return self.refuse("it does not speak the protocol of this rendezvous"),
            };
            let heard = match self.acceptor.hear(&frame, me) {
                Ok(Heard::Answer(frame)) => self.send(&frame).map(|()| None),
                Ok(Heard::Proven { hello, welcome }) => match admit(&hello) {
                    Ok(()) => self.send(&welcome).map(|()| Some(hello)),
                    Err(reason) => return self.refuse(&reason),
                },
                Err(reason) => return self.refuse(&reason),
            };
            if let Some(hello) = heard? {
                return Ok(Some(hello));
            }
        }
        match filled {
            Filled::All => Ok(None),
            Filled::Some => self.refuse("it says more than anybody has to say"),
            Filled::Closed(reason) => Err(reason),
        }
    }

    fn send(&mut self, payload: &[u8]) -> Result<(), Refusal> {
        frame::append(self.wire.out(), payload);
        // A fresh connection takes these few bytes at once.
        self.wire.flush().map(|_| ())
    }

    fn refuse<T>(&mut self, reason: &str) -> Result<T, Refusal> {
        // Whether it hears that or not, it is not let in.
        let _ = self.send(&Acceptor::refuse(reason));
        Err(reason.into())
    }
}
