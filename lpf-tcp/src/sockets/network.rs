//! The network of one process: all its connections, and what sends and receives do to them.

use std::io;
use std::time::{Duration, Instant};

use lpf_control::connection::Stream;
use lpf_core::process::Maker;
use lpf_messages::network::Pace;
use lpf_messages::{Broken, Outcome, Piece, Rank, Tag, Ticket};

use super::connection::Connection;
use super::frame::{Header, Kind, LONG, LONGEST};
use super::incoming::Scratch;
use super::matching::{Matching, Stage};
use super::readiness::Readiness;
use super::socket::Socket;
use super::system;

/// So often a process that waits asks for connections that let nothing through.
const ASKED: Duration = Duration::from_millis(500);

pub(super) struct Network {
    pub(super) rank: Rank,
    /// By rank; this process's own has no stream.
    pub(super) connections: Vec<Connection>,
    pub(super) matching: Matching,
    pub(super) scratch: Scratch,
    /// Where there are several connections. One alone is read without asking whether it is readable.
    readiness: Option<Readiness>,
    pace: Pace,
    pub(super) messages: u64,
    /// When it was last asked which connections are silent.
    asked: Instant,
    pub(super) maker: Maker,
    /// Whether its connections are sealed.
    pub(super) is_sealed: bool,
}

impl Network {
    pub(super) fn new(rank: Rank, streams: Vec<Option<Stream>>) -> io::Result<Self> {
        let size = streams.len();
        let expected = |(peer, stream): (Rank, &Option<_>)| stream.is_some() == (peer != rank);
        if size <= rank || !(0..).zip(&streams).all(expected) {
            let text = format!("process {rank} of {size} needs one stream to each of the others");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let is_sealed = streams.iter().flatten().any(Stream::is_sealed);
        let mut connections = Vec::with_capacity(size);
        for (peer, stream) in (0..).zip(streams) {
            connections.push(Connection::new(peer, stream.map(Socket::new).transpose()?));
        }
        let several = size > 2;
        Ok(Network {
            rank,
            matching: Matching::new(size),
            scratch: Scratch::new(),
            readiness: several.then(|| Readiness::new(&mut connections)).transpose()?,
            connections,
            pace: Pace::new(),
            messages: 0,
            asked: Instant::now(),
            maker: Maker::this(),
            is_sealed,
        })
    }

    pub(super) fn connection(&mut self, peer: Rank) -> Outcome<&mut Connection> {
        let size = self.connections.len();
        self.connections.get_mut(peer).ok_or_else(|| Broken {
            peer: Some(peer),
            reason: format!("process {peer} is not one of {size}"),
        })
    }

    /// A new operation, in no queue.
    fn operation(&mut self, sends: bool, peer: Rank, tag: Tag, pieces: &[Piece]) -> Outcome<u32> {
        let place = self.matching.operations.take();
        let operation = &mut self.matching.operations[place];
        (operation.sends, operation.peer, operation.tag) = (sends, peer, tag);
        (operation.stage, operation.asked) = (Stage::Waiting, self.pace.now());
        if !operation.pieces.set(pieces) {
            self.end(place);
            let reason = format!("a message of more than {LONGEST} bytes");
            return Err(Broken { peer: None, reason });
        }
        operation.bytes = operation.pieces.left();
        Ok(place)
    }

    /// The end of an operation: its ticket is spent.
    pub(super) fn end(&mut self, place: u32) {
        self.matching.operations[place].pieces.clear();
        self.matching.operations.give_back(place);
    }

    fn ticket(&self, place: u32) -> Ticket {
        Ticket(self.matching.operations.ticket(place))
    }

    pub(super) fn send_copy(&mut self, to: Rank, tag: Tag, bytes: &[u8]) -> Outcome<()> {
        self.connection(to)?.can_send()?;
        self.messages += 1;
        if to == self.rank {
            return self.send_copy_to_oneself(tag, bytes);
        }
        let connection = &mut self.connections[to];
        let header = Header { tag, bytes: bytes.len(), kind: Kind::Plain };
        connection.send_copy(header, bytes, &mut self.scratch);
        self.wrote(to)?;
        self.connections[to].can_send()
    }

    /// # Safety
    /// As [`Transport::send`](lpf_messages::Transport::send).
    pub(super) unsafe fn send(&mut self, to: Rank, tag: Tag, pieces: &[Piece]) -> Outcome<Ticket> {
        self.connection(to)?.can_send()?;
        let place = self.operation(true, to, tag, pieces)?;
        self.messages += 1;
        if to == self.rank {
            self.send_to_oneself(place);
            return Ok(self.ticket(place));
        }
        let send = &mut self.matching.operations[place];
        let kind = if send.bytes > LONG { Kind::Ended } else { Kind::Plain };
        send.header = Header { tag, bytes: send.bytes, kind }.encode();
        let ticket = self.ticket(place);
        let connection = &mut self.connections[to];
        let first = connection.outgoing.is_empty();
        connection.outgoing.push(place);
        if first {
            connection.write(&mut self.matching, &mut self.scratch);
            if let Err(broken) = self.wrote(to) {
                // Without a ticket its memory is the caller's.
                self.cancel(&ticket);
                return Err(broken);
            }
        }
        Ok(ticket)
    }

    /// # Safety
    /// As [`Transport::receive`](lpf_messages::Transport::receive).
    pub(super) unsafe fn receive(
        &mut self,
        from: Rank,
        tag: Tag,
        pieces: &[Piece],
    ) -> Outcome<Ticket> {
        self.connection(from)?;
        let place = self.operation(false, from, tag, pieces)?;
        let outcome = match self.matching.take_message(from, tag) {
            Some(message) => self.deliver(from, message, place),
            None => self.connections[from].can_receive(),
        };
        if let Err(broken) = outcome {
            self.end(place);
            return Err(broken);
        }
        if self.matching.operations[place].stage == Stage::Waiting {
            self.matching.post(place);
        }
        Ok(self.ticket(place))
    }

    /// Gives a message that waited, and is in no queue any more, to its receive.
    fn deliver(&mut self, from: Rank, message: u32, receive: u32) -> Outcome<()> {
        let connection = &mut self.connections[from];
        let arriving = connection.incoming.met(message, receive);
        let fits = self.matching.fits(receive, self.matching.kept[message].bytes);
        match (&fits, self.matching.kept[message].sender) {
            (Ok(()), None) => {
                let arrived = &self.matching.kept[message].arrived;
                // SAFETY: the memory of a receive just made, valid by its caller's promise.
                unsafe { self.matching.operations[receive].pieces.write(arrived) };
            }
            (Ok(()), Some(send)) => self.copy_to_oneself(send, receive),
            (Err(_), Some(send)) => self.matching.operations[send].stage = Stage::Moving,
            (Err(_), None) => {}
        }
        self.matching.kept.release(from, message);
        self.matching.operations[receive].stage =
            if arriving { Stage::Moving } else { Stage::Finished };
        if arriving {
            // It may have been held back, and what has come since was told of once.
            self.connections[from].readable = true;
            self.wrote(from)?;
        }
        fits.or_else(|reason| {
            self.break_off(from, reason);
            self.connections[from].can_receive()
        })
    }

    pub(super) fn break_off(&mut self, peer: Rank, reason: String) {
        self.connections[peer].break_off(reason, &mut self.matching);
    }

    pub(super) fn test(&mut self, ticket: &Ticket) -> Outcome<Option<usize>> {
        let Some(place) = self.matching.operations.find(ticket.0) else {
            return Err(Broken { peer: None, reason: "a spent ticket was asked about".into() });
        };
        if self.matching.operations[place].stage != Stage::Finished {
            if self.pace.is_due(&mut self.matching.operations[place].asked) {
                self.look()?;
            }
            let operation = &self.matching.operations[place];
            if operation.stage != Stage::Finished {
                let connection = &self.connections[operation.peer];
                let possible =
                    if operation.sends { connection.can_send() } else { connection.can_receive() };
                return possible.map(|()| None);
            }
        }
        let bytes = self.matching.operations[place].bytes;
        self.end(place);
        Ok(Some(bytes))
    }

    pub(super) fn cancel(&mut self, ticket: &Ticket) {
        let Some(place) = self.matching.operations.find(ticket.0) else { return };
        let operation = &self.matching.operations[place];
        let (peer, own) = (operation.peer, operation.peer == self.rank);
        match (operation.stage, operation.sends) {
            (Stage::Finished, _) => {}
            (Stage::Waiting, true) if own => {
                let (tag, message) = (operation.tag, operation.message);
                self.matching.discard(self.rank, tag, message);
            }
            (_, true) => {
                self.connections[peer].outgoing.withdraw(place, &self.matching.operations);
            }
            (Stage::Waiting, false) => self.matching.withdraw(place),
            (Stage::Moving, false) => self.connections[peer].incoming.give_up(place),
        }
        self.end(place);
    }

    pub(super) fn forget(&mut self, context: u32) {
        for peer in 0..self.connections.len() {
            let connection = &mut self.connections[peer];
            if connection.incoming.forget(context, &mut self.matching) {
                // It may have been held back, and what has come since was told of once.
                connection.readable = true;
                // What is wrong with waiting for events the next look tells.
                let _ = self.wrote(peer);
            }
        }
        self.matching.forget(context);
        // This process may wait outside of sections now, where it does not look at the network.
        for peer in 0..self.connections.len() {
            self.prove(peer);
        }
    }

    pub(super) fn progress(&mut self) -> Outcome<()> {
        self.pace.looked();
        if self.is_sealed {
            // A process that looks again and again never waits for events.
            self.doubt();
        }
        self.look()
    }

    /// Reads what is readable, writes what is writable.
    fn look(&mut self) -> Outcome<()> {
        let (matching, scratch) = (&mut self.matching, &mut self.scratch);
        if let Some(readiness) = &mut self.readiness {
            return readiness.progress(&mut self.connections, matching, scratch).map_err(own_side);
        }
        for connection in &mut self.connections {
            connection.read(matching, scratch);
            if connection.has_unsent() {
                connection.write(matching, scratch);
            }
        }
        Ok(())
    }

    fn wrote(&mut self, to: Rank) -> Outcome<()> {
        let connection = &mut self.connections[to];
        match &mut self.readiness {
            Some(readiness) => readiness.wrote(to, connection).map_err(own_side),
            None => Ok(()),
        }
    }

    pub(super) fn look_again(&mut self) {
        self.pace.hurry();
    }

    pub(super) fn idle(&mut self, time: Duration) {
        match &self.readiness {
            Some(readiness) => {
                if let Some(descriptor) = readiness.descriptor() {
                    system::wait(Some(descriptor), false, time);
                }
            }
            None => {
                let alone = self.connections.iter().find(|connection| connection.socket.is_some());
                if !alone.is_some_and(Connection::has_unread) {
                    let descriptor = alone.and_then(|one| Some(one.socket.as_ref()?.descriptor()));
                    system::wait(descriptor, alone.is_some_and(Connection::has_unsent), time);
                }
            }
        }
        self.doubt();
    }

    /// Looks for connections that let nothing through, or not everything. A process that dies, or is not heard of by
    /// process 0, is reported by the control plane; what lies between two others only they can see.
    fn doubt(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.asked) < ASKED {
            return;
        }
        self.asked = now;
        for peer in 0..self.connections.len() {
            let connection = &mut self.connections[peer];
            let Some(socket) = &mut connection.socket else { continue };
            if let Some(time) = connection.doubt.silence(socket.stream()) {
                let text = format!(
                    "nothing that is sent to process {peer} arrives: for {:.1} s its host has acknowledged nothing; is there a firewall between the hosts, or a link down?",
                    time.as_secs_f64()
                );
                self.break_off(peer, text);
            } else {
                socket.shrink();
                self.prove(peer);
            }
        }
    }

    /// Lets a process find out whether something that was sent to it was left out on its way.
    fn prove(&mut self, peer: usize) {
        if self.is_sealed
            && let Some(socket) = &mut self.connections[peer].socket
            && socket.prove().is_ok()
        {
            // What is wrong with waiting for events the next look tells.
            let _ = self.wrote(peer);
        }
    }
}

/// An error that is about no connection.
fn own_side(error: io::Error) -> Broken {
    Broken { peer: None, reason: format!("waiting for the network's events failed: {error}") }
}
