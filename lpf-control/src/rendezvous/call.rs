//! Calling another process: again and again until it answers, without waiting for it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lpf_messages::Rank;
use mio::net::TcpStream;
use mio::{Registry, Token};

use super::handshake::{Called, Caller, Fault};
use super::reception::HANDSHAKE;
use super::secret::Secret;
use super::words::{Hello, LONGEST_GREETING};
use crate::connection::frame;
use crate::connection::wire::{Filled, Wire};

/// An address out of several is given so long at first, and twice as long each time that all were tried: what
/// neither answers nor refuses, such as one of a network that is not there, does not hold up the others.
const FIRST_PATIENCE: Duration = Duration::from_millis(200);

/// The first pause before another attempt; it doubles up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LAST_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
enum Stage {
    /// The next attempt is then.
    Pausing(Instant),
    Connecting(Wire, SocketAddr, Instant),
    /// The connection stands; the course has to say hello.
    Connected(Wire),
    Greeting(Wire, Caller, Instant),
    Done,
}

/// What came of a call so far.
#[derive(Debug)]
pub(super) enum Progress {
    /// Nothing is to be done.
    Pending,
    /// It stands: [`Call::greet`] is to be called, with what this end of the connection is.
    Connected(SocketAddr),
    /// The other side is who was called.
    Welcome(Wire),
    /// The other side refuses this process, and would again.
    Refused(String),
}

/// A call to one process.
#[derive(Debug)]
pub(super) struct Call {
    token: Token,
    addresses: Vec<SocketAddr>,
    attempts: usize,
    pause: Duration,
    stage: Stage,
    wanted: Rank,
    /// Why the last attempt at each address failed.
    troubles: BTreeMap<SocketAddr, String>,
}

impl Call {
    /// Calls process `wanted` at the first of `addresses` that answers as one.
    pub(super) fn new(
        token: Token,
        wanted: Rank,
        addresses: Vec<SocketAddr>,
        now: Instant,
    ) -> Self {
        let stage = Stage::Pausing(now);
        let troubles = BTreeMap::new();
        Call { token, addresses, attempts: 0, pause: FIRST_PAUSE, stage, wanted, troubles }
    }

    /// The process called is found at these addresses, as far as is known now.
    pub(super) fn change_addresses(&mut self, addresses: Vec<SocketAddr>, now: Instant) {
        if let Stage::Connecting(_, address, _) = self.stage
            && !addresses.contains(&address)
        {
            self.stage = Stage::Pausing(now);
        }
        self.troubles.retain(|address, _| addresses.contains(address));
        (self.addresses, self.attempts) = (addresses, 0);
    }

    pub(super) fn has_addresses(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Why there is no connection yet: of each address that was tried, up to a few.
    pub(super) fn trouble(&self) -> String {
        const MOST: usize = 4;
        let troubles = self.troubles.iter().take(MOST);
        let texts = troubles.map(|(address, trouble)| format!("{address}: {trouble}"));
        texts.collect::<Vec<_>>().join("; ")
    }

    /// The process called.
    pub(super) fn wanted(&self) -> Rank {
        self.wanted
    }

    pub(super) fn note(&mut self, event: &mio::event::Event) {
        if event.token() != self.token {
            return;
        }
        if let Stage::Connecting(wire, _, _)
        | Stage::Connected(wire)
        | Stage::Greeting(wire, _, _) = &mut self.stage
        {
            wire.note(event);
        }
    }

    /// Whether it waits to be attempted again: it has no connection then.
    pub(super) fn is_pausing(&self) -> bool {
        matches!(self.stage, Stage::Pausing(_))
    }

    /// When something has to be done though nothing comes.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Pausing(due) | Stage::Connecting(_, _, due) | Stage::Greeting(_, _, due) => {
                Some(due)
            }
            Stage::Connected(_) | Stage::Done => None,
        }
    }

    /// The address that was tried last.
    fn tried(&self) -> Option<SocketAddr> {
        let nth = self.attempts.checked_sub(1)?.checked_rem(self.addresses.len())?;
        self.addresses.get(nth).copied()
    }

    fn fail(&mut self, trouble: String, now: Instant) -> Progress {
        if let Some(address) = self.tried() {
            self.troubles.insert(address, trouble);
        }
        self.stage = Stage::Pausing(now + self.pause);
        self.pause = (2 * self.pause).min(LAST_PAUSE);
        Progress::Pending
    }

    /// Does what can be done now.
    pub(super) fn step(&mut self, registry: &Registry, now: Instant) -> Progress {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Pausing(due) if now < due => {
                self.stage = Stage::Pausing(due);
                Progress::Pending
            }
            Stage::Pausing(_) => self.connect(registry, now),
            Stage::Connecting(wire, address, due) => self.look(wire, address, due, now),
            Stage::Connected(wire) => {
                self.stage = Stage::Connected(wire);
                Progress::Pending
            }
            Stage::Greeting(wire, caller, due) => self.hear(wire, caller, due, now),
            Stage::Done => Progress::Pending,
        }
    }

    /// How long the address that was tried last may take.
    fn patience(&self) -> Duration {
        let tried = self.attempts.saturating_sub(1) / self.addresses.len().max(1);
        match self.addresses.len() {
            0 | 1 => HANDSHAKE,
            // After so many times it is the longest.
            _ => HANDSHAKE.min(FIRST_PATIENCE * (1 << tried.min(8))),
        }
    }

    fn connect(&mut self, registry: &Registry, now: Instant) -> Progress {
        self.attempts += 1;
        let Some(address) = self.tried() else {
            return self.fail("it has no address".into(), now);
        };
        self.troubles.entry(address).or_insert_with(|| "nothing answers there".into());
        let connecting = TcpStream::connect(address).and_then(|stream| {
            let mut wire = Wire::new(stream);
            wire.register(registry, self.token)?;
            Ok(wire)
        });
        match connecting {
            Ok(wire) => self.look(wire, address, now + self.patience(), now),
            Err(error) => self.fail(error.to_string(), now),
        }
    }

    /// Whether the connection stands.
    fn look(&mut self, wire: Wire, address: SocketAddr, due: Instant, now: Instant) -> Progress {
        match wire.stream().take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return self.fail(error.to_string(), now),
        }
        let (peer, local) = match (wire.peer(), wire.stream().local_addr()) {
            (Ok(peer), Ok(local)) => (peer, local),
            (Err(error), _) if error.kind() == ErrorKind::NotConnected => {
                if now >= due {
                    return self.fail("nothing answers there".into(), now);
                }
                self.stage = Stage::Connecting(wire, address, due);
                return Progress::Pending;
            }
            (Err(error), _) | (_, Err(error)) => return self.fail(error.to_string(), now),
        };
        // Where nobody listens at a port of the range that callers' ports come from, a socket may
        // find itself there.
        if peer == local {
            // The port must not be kept from who wants to listen there.
            let socket = socket2::SockRef::from(wire.stream());
            let _ = socket.set_linger(Some(Duration::ZERO));
            return self.fail("no process answers there".into(), now);
        }
        self.stage = Stage::Connected(wire);
        Progress::Connected(local)
    }

    /// Says hello on the connection that stands.
    pub(super) fn greet(&mut self, hello: &Hello, secret: Option<&Secret>, now: Instant) {
        let Stage::Connected(mut wire) = std::mem::replace(&mut self.stage, Stage::Done) else {
            return;
        };
        match Caller::new(hello, self.wanted, secret) {
            Ok((caller, first)) => {
                frame::append(wire.out(), &first);
                self.stage = Stage::Greeting(wire, caller, now + self.patience());
            }
            Err(reason) => {
                self.fail(reason, now);
            }
        }
    }

    /// Takes what came.
    fn hear(&mut self, mut wire: Wire, mut caller: Caller, due: Instant, now: Instant) -> Progress {
        if let Err(reason) = wire.flush() {
            return self.fail(reason, now);
        }
        let filled = wire.fill();
        loop {
            let heard = match wire.next(LONGEST_GREETING) {
                Ok(None) => break,
                Ok(Some(frame)) => caller.hear(frame),
                Err(_) => Err(Fault::Stranger("the process there is not one of LPF".into())),
            };
            match heard {
                Ok(Called::Welcome) => return Progress::Welcome(wire),
                Ok(Called::Answer(seal)) => {
                    if !wire.seal(seal) {
                        return self
                            .fail("the process there does not keep to the protocol".into(), now);
                    }
                    frame::append(wire.out(), &[]);
                    if let Err(reason) = wire.flush() {
                        return self.fail(reason, now);
                    }
                }
                Err(Fault::Refused(reason)) => return Progress::Refused(reason),
                Err(Fault::Stranger(reason)) => return self.fail(reason, now),
            }
        }
        match filled {
            Filled::Closed(reason) => {
                let text = format!(
                    "{reason}; it may not be process {} of this job, or may have another LPF_SECRET",
                    self.wanted
                );
                self.fail(text, now)
            }
            _ if now >= due => self.fail("the process there says nothing".into(), now),
            _ => {
                self.stage = Stage::Greeting(wire, caller, due);
                Progress::Pending
            }
        }
    }
}
