//! Process 0's course: let the others in, tell them where they find each other, let them go together.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use lpf_messages::Rank;
use mio::{Events, Poll, Token};

use super::address::{Names, cannot_listen, listen_at, may_use, places};
use super::course::{Connected, Plan, names, sleep, taken};
use super::error::MeetError;
use super::handshake::Refusal;
use super::patience::{Patience, steps};
use super::reception::{Arrival, Reception};
use super::words::{
    Hello, Place, Purpose, ToGuest, ToHost, already_there, printable, short, short_notes,
};
use crate::connection::frame::{decode, encode};
use crate::connection::wire::{Filled, Wire};

/// The longest word of a guest.
const LONGEST: usize = 1024;

/// Progress is reported to the others after so long, all of the meantime at once.
const NEWS: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Guest {
    wire: Wire,
    seen: SocketAddr,
    port: u16,
    addresses: Vec<IpAddr>,
    /// The number of processes to which it is connected.
    connected: Rank,
    ready: bool,
    /// Whom it does not reach, where, and why.
    trouble: Option<String>,
    closed: Option<String>,
}

/// What a guest's wire brought.
enum Came {
    Ready,
    Connected(Rank),
    Trouble(String),
    Who,
    Left(String),
}

#[derive(Debug)]
pub(super) struct Host<'a> {
    plan: &'a Plan,
    patience: Patience,
    /// When to report progress to the others.
    news: Option<Instant>,
    poll: Poll,
    reception: Reception,
    guests: Vec<Option<Guest>>,
    streams: Vec<Option<Wire>>,
    /// Who came and left again, and why.
    left: BTreeMap<Rank, String>,
    complete: bool,
    /// What it listens at stands for; `None` if it was given a listener.
    names: Option<Names>,
    /// Why it cannot listen at an address.
    deaf: Option<MeetError>,
    /// It listens at a loopback address, which other machines may not know to be one.
    is_hidden: bool,
}

impl<'a> Host<'a> {
    /// Process 0, which listens where it is told, or with a listener.
    pub(super) fn new(plan: &'a Plan, listener: Option<TcpListener>) -> Result<Self, MeetError> {
        let poll = Poll::new().map_err(MeetError::system)?;
        let mut reception = Reception::new(plan.me.clone());
        let names = match listener {
            Some(listener) => {
                reception.open(listener, poll.registry())?;
                None
            }
            None => Some(names(&plan.address, &poll)?),
        };
        let size = plan.me.size;
        Ok(Host {
            patience: plan.patience(),
            news: None,
            plan,
            poll,
            reception,
            guests: (0..size).map(|_| None).collect(),
            streams: (0..size).map(|_| None).collect(),
            left: BTreeMap::new(),
            complete: false,
            names,
            deaf: None,
            is_hidden: false,
        })
    }

    /// Meets the others.
    pub(super) fn meet(mut self) -> Result<Connected, MeetError> {
        let mut events = Events::with_capacity(256);
        loop {
            match self.step() {
                Ok(false) => {}
                Ok(true) => return self.go(),
                Err(error) => return Err(self.fail(error)),
            }
            let names = self.names.as_ref().and_then(Names::due);
            let until = self.reception.due().into_iter().chain(names).chain(self.news);
            let until = until.fold(self.patience.deadline(), Instant::min);
            sleep(&mut self.poll, &mut events, until)?;
            for event in events.iter() {
                match self.guests.get_mut(event.token().0) {
                    Some(Some(guest)) => guest.wire.note(event),
                    _ => self.reception.note(event),
                }
            }
        }
    }

    /// Takes what came. True when all are connected to all.
    fn step(&mut self) -> Result<bool, MeetError> {
        self.listen()?;
        self.hear_guests()?;
        self.receive_callers();
        if !self.complete && self.missing().is_empty() {
            self.complete = true;
            self.send_rosters();
        }
        let now = Instant::now();
        self.note_progress(now);
        for guest in self.guests.iter_mut().flatten() {
            // If it is gone, reading will say so.
            let _ = guest.wire.flush();
        }
        if self.complete && self.unconnected().is_empty() {
            return Ok(true);
        }
        match now < self.patience.deadline() {
            true => Ok(false),
            false => Err(self.late()),
        }
    }

    /// Counts the steps that are done, and reports progress.
    fn note_progress(&mut self, now: Instant) {
        let guests = self.guests.iter().flatten();
        let done = guests.map(|guest| steps(guest.connected, guest.ready)).sum();
        if self.patience.advance(done, now) {
            self.news.get_or_insert(now + NEWS);
        }
        if self.news.take_if(|due| *due <= now).is_some() {
            let word = ToGuest::Progress(self.patience.done());
            self.others().for_each(|rank| self.tell(rank, &word));
        }
    }

    /// Listens at all that its address stands for, as far as that can be had.
    fn listen(&mut self) -> Result<(), MeetError> {
        let Some(names) = self.names.as_mut().filter(|_| !self.complete) else { return Ok(()) };
        let is_all = self.deaf.is_none() && !self.reception.is_deaf();
        if !names.look(Instant::now()) && is_all {
            return Ok(());
        }
        let secret = self.plan.me.secret.as_ref();
        let (addresses, is_hidden) = names.to_listen(secret);
        addresses.iter().try_for_each(|&address| may_use(address, secret))?;
        (self.is_hidden, self.deaf) = (is_hidden, None);
        let mut is_passing = names.may_change();
        for address in addresses {
            if self.reception.hears(address) {
                continue;
            }
            match listen_at(address) {
                Ok(listener) => self.reception.open(listener, self.poll.registry())?,
                Err(error) => {
                    // A name may stand for another address in a moment.
                    is_passing &= error.kind() == ErrorKind::AddrNotAvailable;
                    self.deaf.get_or_insert(cannot_listen(address, &error));
                }
            }
        }
        match self.deaf.take_if(|_| !is_passing && self.reception.is_deaf()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn others(&self) -> std::ops::Range<Rank> {
        1..self.plan.me.size
    }

    fn missing(&self) -> Vec<Rank> {
        self.others().filter(|&rank| self.guests[rank].is_none()).collect()
    }

    /// Who is not connected to all.
    fn unconnected(&self) -> Vec<Rank> {
        let is_ready = |rank: &Rank| {
            let guest = self.guests[*rank].as_ref();
            let stream = self.streams[*rank].is_some() || !self.plan.me.streams;
            stream && guest.is_some_and(|guest| guest.ready)
        };
        self.others().filter(|rank| !is_ready(rank)).collect()
    }

    fn late(&self) -> MeetError {
        let time = self.plan.time;
        if self.complete {
            let ranks = self.unconnected();
            let trouble = |&rank: &Rank| {
                let trouble = self.guests[rank].as_ref()?.trouble.as_ref()?;
                Some(format!("process {rank} did not reach {trouble}"))
            };
            let notes: Vec<_> = ranks.iter().filter_map(trouble).take(3).collect();
            return MeetError::Unconnected { ranks, time, notes: notes.join("; ") };
        }
        if let Some(names) = self.names.as_ref().filter(|_| self.reception.is_deaf()) {
            let why = self.deaf.as_ref().map_or_else(|| names.trouble(), ToString::to_string);
            let time = time.as_secs_f64();
            let text = format!("process 0 found no address to listen at within {time} s: {why}");
            return MeetError::Setting(text);
        }
        let mut notes: Vec<String> = self
            .missing()
            .iter()
            .filter_map(|rank| Some((rank, self.left.get(rank)?)))
            .map(|(rank, reason)| format!("process {rank} came and left: {reason}"))
            .take(3)
            .collect();
        if let Some(refusal) = self.reception.last_refusal() {
            notes.push(format!("the last connection that was refused came from {refusal}"));
        }
        if self.is_hidden {
            let address = &self.plan.address;
            notes.push(format!(
                "{address} is a loopback address at process 0, where no other machine finds it: for several \
                 machines set LPF_SECRET"
            ));
        }
        let (address, notes) = (self.plan.address.clone(), notes.join("; "));
        MeetError::Missing { ranks: self.missing(), address, time, notes }
    }

    fn hear_guests(&mut self) -> Result<(), MeetError> {
        for rank in self.others() {
            while let Some(guest) = &mut self.guests[rank]
                && let Some(came) = guest.hear()
            {
                self.heed(rank, came)?;
            }
        }
        Ok(())
    }

    fn heed(&mut self, rank: Rank, came: Came) -> Result<(), MeetError> {
        match came {
            Came::Ready => {
                if let Some(guest) = &mut self.guests[rank] {
                    guest.ready = self.complete;
                }
            }
            Came::Connected(number) => {
                let most = self.plan.me.size - 1;
                if let Some(guest) = self.guests[rank].as_mut().filter(|_| self.complete) {
                    guest.connected = number.min(most);
                }
            }
            Came::Trouble(text) => {
                if let Some(guest) = &mut self.guests[rank] {
                    guest.trouble = Some(text);
                }
            }
            Came::Who => self.tell(rank, &word_of(&self.late())),
            Came::Left(reason) if self.complete => return Err(MeetError::Ended { rank, reason }),
            Came::Left(reason) => {
                self.guests[rank] = None;
                self.left.insert(rank, reason);
            }
        }
        Ok(())
    }

    fn receive_callers(&mut self) {
        loop {
            let (guests, streams, complete) = (&self.guests, &self.streams, self.complete);
            let admit = |hello: &Hello| admit(hello, guests, streams, complete);
            let now = Instant::now();
            let Some(arrival) = self.reception.next(self.poll.registry(), now, admit) else {
                return;
            };
            if let Err(error) = self.receive(arrival) {
                // A connection that broke in this very moment: it may come again.
                drop(error);
            }
        }
    }

    fn receive(&mut self, Arrival { hello, mut wire }: Arrival) -> std::io::Result<()> {
        let (rank, registry) = (hello.rank, self.poll.registry());
        match hello.purpose {
            Purpose::Data(_) => {
                wire.deregister(registry)?;
                self.streams[rank] = Some(wire);
            }
            Purpose::Control => {
                wire.reregister(registry, Token(rank))?;
                let (seen, port) = (wire.peer()?, hello.port.unwrap_or(0));
                let addresses = hello.addresses;
                self.guests[rank] = Some(Guest {
                    wire,
                    seen,
                    port,
                    addresses,
                    connected: 0,
                    ready: false,
                    trouble: None,
                    closed: None,
                });
            }
        }
        Ok(())
    }

    fn tell(&mut self, rank: Rank, word: &ToGuest) {
        if let Some(guest) = &mut self.guests[rank] {
            guest.wire.out().extend_from_slice(&encode(word));
        }
    }

    fn send_rosters(&mut self) {
        for to in self.others() {
            let Some(by) = self.guests[to].as_ref().map(|guest| guest.seen) else {
                continue;
            };
            let places: Vec<Vec<Place>> = self.guests[1..]
                .iter()
                .flatten()
                .map(|guest| places(guest.seen, guest.port, &guest.addresses, by))
                .collect();
            self.tell(to, &ToGuest::Roster(self.plan.me.occasion, places));
        }
    }

    /// All begin together.
    fn go(mut self) -> Result<Connected, MeetError> {
        let begin = self.plan.begin;
        let mut wires: Vec<Option<Wire>> = Vec::new();
        for guest in self.guests {
            let wire = guest.map(|guest| {
                let mut wire = guest.wire;
                wire.out().extend_from_slice(&encode(&ToGuest::Go(begin)));
                // What does not leave now, or cannot, is the control plane's to send or to find out.
                let _ = wire.flush();
                wire.deregister(self.poll.registry()).map(|()| wire)
            });
            wires.push(wire.transpose().map_err(MeetError::system)?);
        }
        if !self.plan.me.streams {
            self.streams.clear();
        }
        Ok(Connected { wires, streams: self.streams, begin })
    }

    /// The meeting is over: those who came are told why.
    fn fail(mut self, error: MeetError) -> MeetError {
        let word = word_of(&error);
        for rank in self.others() {
            self.tell(rank, &word);
            if let Some(guest) = &mut self.guests[rank] {
                // A connection that is closed with something unread may lose what was sent last.
                let _ = (guest.wire.flush(), guest.wire.fill());
            }
        }
        error
    }
}

/// What those who came are told.
fn word_of(error: &MeetError) -> ToGuest {
    match error {
        MeetError::Missing { ranks, notes, .. } => {
            ToGuest::Missing { ranks: ranks.clone(), notes: short_notes(notes) }
        }
        other => ToGuest::Failed(short(&other.to_string())),
    }
}

/// Whether one who knows the secret is waited for.
fn admit(
    hello: &Hello,
    guests: &[Option<Guest>],
    streams: &[Option<Wire>],
    complete: bool,
) -> Result<(), Refusal> {
    let first = match hello.purpose {
        Purpose::Control => guests[hello.rank].as_ref().map(|guest| guest.seen),
        Purpose::Data(_) if !complete => {
            return Err("pairs are connected when all are there".into());
        }
        Purpose::Data(_) => taken(&streams[hello.rank]).and_then(|wire| wire.peer().ok()),
    };
    match first {
        Some(first) => Err(already_there(hello.rank, Some(first))),
        None => Ok(()),
    }
}

impl Guest {
    /// The next that came, if anything did.
    fn hear(&mut self) -> Option<Came> {
        if self.wire.is_readable()
            && let Filled::Closed(reason) = self.wire.fill()
        {
            self.closed = Some(reason);
        }
        match self.wire.next(LONGEST) {
            Ok(Some(frame)) => Some(match decode::<ToHost>(frame) {
                Some(ToHost::Ready) => Came::Ready,
                Some(ToHost::Connected(number)) => Came::Connected(number),
                Some(ToHost::Trouble(text)) => Came::Trouble(printable(&text)),
                Some(ToHost::Who) => Came::Who,
                Some(ToHost::GaveUp(reason)) => Came::Left(printable(&reason)),
                None => Came::Left("it did not keep to the protocol".into()),
            }),
            Err(fault) => Some(Came::Left(fault.to_string())),
            Ok(None) => self.closed.take().map(Came::Left),
        }
    }
}
