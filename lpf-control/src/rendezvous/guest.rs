//! The course of every process but 0: find process 0, be let in, connect to all others.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use lpf_messages::Rank;
use mio::{Events, Poll, Token};

use super::address::{Names, address_of, announced, listen_for_pairs, may_use};
use super::call::{Call, Progress};
use super::course::{Connected, Plan, names, sleep, taken};
use super::error::MeetError;
use super::handshake::{Identity, Refusal};
use super::patience::Patience;
use super::reception::{Arrival, Reception};
use super::words::{
    Begin, Hello, LONGEST_ANSWER, LONGEST_PLACE, MOST_ADDRESSES, Occasion, Place, Purpose, ToGuest,
    ToHost, already_there, printable, short,
};
use crate::connection::frame::{decode, encode};
use crate::connection::wire::{Filled, Wire};

/// Who gives up still waits so long to hear who was missing.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Who was let in waits so much longer than its own time, at most half of that again: processes do not begin
/// in the same moment, and the list of process 0, whose time may end later, is the right one.
const LEEWAY: Duration = Duration::from_secs(3);

/// Process 0 receives at most so often which processes this one has connected to, and which it does not reach.
const REPORT: Duration = Duration::from_millis(250);

/// At most so many processes are called at once: on a busy machine, more would all wait for an answer for so long that
/// they are given up and tried again.
const CALLS: usize = 16;

/// Of the connection to process 0.
const HOST: Token = Token(0);

#[derive(Debug)]
pub(super) struct Guest<'a> {
    plan: &'a Plan,
    patience: Patience,
    poll: Poll,
    /// What the address of process 0 stands for.
    names: Names,
    /// The call to process 0, until it is answered.
    call: Call,
    host: Option<Wire>,
    /// How process 0 was reached.
    address: Option<SocketAddr>,
    /// Where those of higher rank will call, until process 0 tells them to.
    listener: Option<TcpListener>,
    reception: Option<Reception>,
    port: Option<u16>,
    /// Calls to processes of lower rank, and on which occasion.
    calls: Vec<Call>,
    occasion: Occasion,
    streams: Vec<Option<Wire>>,
    has_roster: bool,
    ready: bool,
    /// What process 0 knows of its connections, once it makes them.
    reported: Option<Reported>,
    /// Its time is up, and it has asked who is missing: it waits until then for the answer.
    last_word: Option<Instant>,
}

/// What process 0 has received of a process's connections.
#[derive(Debug)]
struct Reported {
    /// When it receives more.
    next: Instant,
    connected: Rank,
    trouble: String,
}

impl<'a> Guest<'a> {
    pub(super) fn new(plan: &'a Plan) -> Result<Self, MeetError> {
        let poll = Poll::new().map_err(MeetError::system)?;
        Ok(Guest {
            names: names(&plan.address, &poll)?,
            call: Call::new(HOST, 0, Vec::new(), Instant::now()),
            patience: plan.patience(),
            plan,
            poll,
            host: None,
            address: None,
            listener: None,
            reception: None,
            port: None,
            calls: Vec::new(),
            occasion: plan.me.occasion,
            streams: (0..plan.me.size).map(|_| None).collect(),
            has_roster: false,
            ready: false,
            reported: None,
            last_word: None,
        })
    }

    /// Meets the others.
    pub(super) fn meet(mut self) -> Result<Connected, MeetError> {
        let mut events = Events::with_capacity(256);
        loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(begin)) => return self.go(begin),
                Err(error) => return Err(self.fail(error)),
            }
            let until = self.due();
            sleep(&mut self.poll, &mut events, until)?;
            for event in events.iter() {
                self.note(event);
            }
        }
    }

    fn due(&self) -> Instant {
        let deadline = self.deadline();
        let calls = self.calls.iter().take(CALLS).filter_map(Call::due);
        let reception = self.reception.as_ref().and_then(Reception::due);
        let reports = self.reported.as_ref().filter(|_| !self.ready).map(|reported| reported.next);
        let names = self.names.due().filter(|_| self.host.is_none());
        let all = calls.chain(reception).chain(self.call.due()).chain(names).chain(reports);
        all.fold(deadline, Instant::min)
    }

    /// When it gives up, or has waited long enough for the answer to that.
    fn deadline(&self) -> Instant {
        let (deadline, time) = (self.patience.deadline(), self.plan.time);
        let leeway = if self.host.is_some() { LEEWAY.min(time / 2) } else { Duration::ZERO };
        self.last_word.or(deadline.checked_add(leeway)).unwrap_or(deadline)
    }

    fn note(&mut self, event: &mio::event::Event) {
        self.call.note(event);
        self.calls.iter_mut().for_each(|call| call.note(event));
        if let (HOST, Some(wire)) = (event.token(), &mut self.host) {
            wire.note(event);
        }
        if let Some(reception) = &mut self.reception {
            reception.note(event);
        }
    }

    /// Takes what came. When process 0 says so, all begin together, as it has decided.
    fn step(&mut self) -> Result<Option<Begin>, MeetError> {
        let now = Instant::now();
        if self.host.is_none() && (self.names.look(now) || !self.call.has_addresses()) {
            let (found, secret) = (self.names.found(), self.plan.me.secret.as_ref());
            found.iter().try_for_each(|&address| may_use(address, secret))?;
            self.call.change_addresses(found, now);
        }
        self.call_host(now)?;
        if let Some(begin) = self.hear_host(now)? {
            return Ok(Some(begin));
        }
        self.receive_callers(now);
        self.call_others(now)?;
        self.report_all();
        self.report(now);
        if now >= self.deadline() {
            self.give_up(now)?;
        }
        Ok(None)
    }

    fn hello(&self, purpose: Purpose) -> Hello {
        let me = &self.plan.me;
        Hello {
            purpose,
            rank: me.rank,
            size: me.size,
            job: me.job,
            by: me.by,
            streams: me.streams,
            build: me.build.clone(),
            port: self.port.filter(|_| purpose == Purpose::Control),
            addresses: match self.port {
                Some(_) if purpose == Purpose::Control && self.may_be_far() => announced(),
                _ => Vec::new(),
            },
        }
    }

    /// Whether a process of this job may be on another machine.
    fn may_be_far(&self) -> bool {
        self.plan.me.secret.is_some() && !self.names.are_here()
    }

    fn call_host(&mut self, now: Instant) -> Result<(), MeetError> {
        match self.call.step(self.poll.registry(), now) {
            Progress::Pending => {}
            Progress::Connected(local) => {
                self.listen(local)?;
                self.call.greet(&self.hello(Purpose::Control), self.plan.me.secret.as_ref(), now);
                return self.call_host(now);
            }
            Progress::Welcome(wire) => {
                self.address = wire.peer().ok();
                self.host = Some(wire);
            }
            Progress::Refused(reason) => return Err(MeetError::Refused { by: 0, reason }),
        }
        Ok(())
    }

    /// Listens for those of higher rank, once.
    fn listen(&mut self, local: SocketAddr) -> Result<(), MeetError> {
        let me = &self.plan.me;
        if self.port.is_some() || !me.streams || me.rank + 1 == me.size {
            return Ok(());
        }
        let listener = listen_for_pairs(local, self.may_be_far())?;
        self.port = Some(listener.local_addr().map_err(MeetError::system)?.port());
        self.listener = Some(listener);
        Ok(())
    }

    fn hear_host(&mut self, now: Instant) -> Result<Option<Begin>, MeetError> {
        let Some(wire) = &mut self.host else { return Ok(None) };
        if let Err(reason) = wire.flush() {
            return Err(MeetError::Ended { rank: 0, reason });
        }
        // What came behind the welcome is here already.
        let filled = if wire.is_readable() { wire.fill() } else { Filled::All };
        let most = LONGEST_PLACE * (1 + MOST_ADDRESSES) * self.plan.me.size;
        let longest = LONGEST_ANSWER + most;
        loop {
            let Some(wire) = &mut self.host else { return Ok(None) };
            let word = match wire.next(longest) {
                Ok(Some(frame)) => decode::<ToGuest>(frame),
                Ok(None) => break,
                Err(_) => None,
            };
            match word {
                Some(ToGuest::Go(begin)) if self.ready => return Ok(Some(begin)),
                Some(ToGuest::Progress(done)) => {
                    self.patience.advance(done, now);
                }
                Some(ToGuest::Roster(occasion, places)) if !self.has_roster => {
                    self.connect(occasion, &places, now)?;
                }
                Some(ToGuest::Missing { mut ranks, notes }) => {
                    ranks.truncate(self.plan.me.size);
                    let (address, time) = (self.plan.address.clone(), self.plan.time);
                    let notes = printable(&notes);
                    return Err(MeetError::Missing { ranks, address, time, notes });
                }
                Some(ToGuest::Failed(reason)) => {
                    return Err(MeetError::Failed(printable(&reason)));
                }
                _ => {
                    let reason = "it did not keep to the protocol".into();
                    return Err(MeetError::Ended { rank: 0, reason });
                }
            }
        }
        match filled {
            Filled::Closed(reason) => Err(MeetError::Ended { rank: 0, reason }),
            _ => Ok(None),
        }
    }

    /// Calls all of lower rank, and hears those of higher rank.
    fn connect(
        &mut self,
        occasion: Occasion,
        places: &[Vec<Place>],
        now: Instant,
    ) -> Result<(), MeetError> {
        let me = &self.plan.me;
        (self.has_roster, self.occasion) = (true, occasion);
        if !me.streams {
            return Ok(());
        }
        if let Some(listener) = self.listener.take() {
            let mut reception = Reception::new(Identity { occasion, ..me.clone() });
            reception.open(listener, self.poll.registry())?;
            self.reception = Some(reception);
        }
        self.reported = Some(Reported { next: now + REPORT, connected: 0, trouble: String::new() });
        let Some(host) = self.address.filter(|_| places.len() == me.size - 1) else {
            let reason = "it did not keep to the protocol".into();
            return Err(MeetError::Ended { rank: 0, reason });
        };
        let others = places.iter();
        let others = others.map(|all| all.iter().map(|&place| address_of(place, host)).collect());
        for (rank, addresses) in std::iter::once(vec![host]).chain(others).enumerate() {
            if rank < me.rank {
                addresses.iter().try_for_each(|&address| may_use(address, me.secret.as_ref()))?;
                // The token 0 is taken by the control connection; no rank is as great as the size.
                let token = if rank == 0 { me.size } else { rank };
                self.calls.push(Call::new(Token(token), rank, addresses, now));
            }
        }
        // The next lower ranks first: else all would call process 0 at once, then process 1, and so on.
        self.calls.reverse();
        Ok(())
    }

    fn call_others(&mut self, now: Instant) -> Result<(), MeetError> {
        let mut later = self.calls.split_off(CALLS.min(self.calls.len()));
        for mut call in std::mem::take(&mut self.calls) {
            let secret = self.plan.me.secret.as_ref();
            let mut progress = call.step(self.poll.registry(), now);
            if let Progress::Connected(_) = progress {
                call.greet(&self.hello(Purpose::Data(self.occasion)), secret, now);
                progress = call.step(self.poll.registry(), now);
            }
            match progress {
                Progress::Pending | Progress::Connected(_) => match call.is_pausing() {
                    true => later.push(call),
                    false => self.calls.push(call),
                },
                Progress::Refused(reason) => {
                    return Err(MeetError::Refused { by: call.wanted(), reason });
                }
                Progress::Welcome(mut wire) => {
                    wire.deregister(self.poll.registry()).map_err(MeetError::system)?;
                    self.streams[call.wanted()] = Some(wire);
                }
            }
        }
        self.calls.append(&mut later);
        Ok(())
    }

    fn receive_callers(&mut self, now: Instant) {
        let rank = self.plan.me.rank;
        while let Some(reception) = &mut self.reception {
            let streams = &self.streams;
            let admit = |hello: &Hello| admit(hello, rank, streams);
            let Some(arrival) = reception.next(self.poll.registry(), now, admit) else { return };
            let Arrival { hello, mut wire } = arrival;
            // A connection that broke in this very moment may come again.
            if wire.deregister(self.poll.registry()).is_ok() {
                self.streams[hello.rank] = Some(wire);
            }
        }
    }

    /// Tells process 0 once all connections stand.
    fn report_all(&mut self) {
        let me = &self.plan.me;
        let stands = |rank: Rank| rank == me.rank || self.streams[rank].is_some();
        let all_stand = !me.streams || (0..me.size).all(stands);
        if self.has_roster && !self.ready && all_stand {
            self.ready = true;
            self.tell(&ToHost::Ready);
        }
    }

    /// Reports the number of connections, which is progress, and the processes that it does not reach: when the time is
    /// up, all processes receive which did not reach which.
    fn report(&mut self, now: Instant) {
        // Behind its last word, that it is connected to all, process 0 may read words of the control plane.
        if self.ready {
            return;
        }
        let Some(before) = self.reported.take_if(|reported| reported.next <= now) else { return };
        let connected = self.streams.iter().flatten().count();
        let trouble = short(&self.unreached());
        if connected > before.connected {
            self.tell(&ToHost::Connected(connected));
        }
        if !trouble.is_empty() && trouble != before.trouble {
            self.tell(&ToHost::Trouble(trouble.clone()));
        }
        self.reported = Some(Reported { next: now + REPORT, connected, trouble });
    }

    /// Whom it does not reach, where, and why: up to a few.
    fn unreached(&self) -> String {
        let tried = self.calls.iter().map(|call| (call.wanted(), call.trouble()));
        let tried = tried.filter(|(_, trouble)| !trouble.is_empty()).take(2);
        let texts = tried.map(|(rank, trouble)| format!("process {rank} at {trouble}"));
        texts.collect::<Vec<_>>().join(", ")
    }

    fn tell(&mut self, word: &ToHost) {
        if let Some(wire) = &mut self.host {
            wire.out().extend_from_slice(&encode(word));
            // If process 0 is gone, reading will say so.
            let _ = wire.flush();
        }
    }

    /// The time is up: process 0 knows who is missing.
    fn give_up(&mut self, now: Instant) -> Result<(), MeetError> {
        let time = self.plan.time;
        if self.host.is_none() {
            let reason = match self.call.has_addresses() {
                true => self.call.trouble(),
                false => self.names.trouble(),
            };
            let address = self.plan.address.clone();
            // The only address tried is the one that the text names already.
            let of_it = format!("{address}: ");
            let reason = reason.strip_prefix(&of_it).unwrap_or(&reason).to_owned();
            return Err(MeetError::Unreachable { address, time, reason });
        }
        if self.last_word.is_some() {
            let reason = "it gave no answer".into();
            return Err(MeetError::Ended { rank: 0, reason });
        }
        self.last_word = Some(now + LAST_WORD);
        match self.calls.is_empty() {
            false => {
                let text = format!("it did not reach {}", self.unreached());
                self.tell(&ToHost::GaveUp(short(&text)));
            }
            true => self.tell(&ToHost::Who),
        }
        Ok(())
    }

    fn fail(mut self, error: MeetError) -> MeetError {
        self.tell(&ToHost::GaveUp(short(&error.to_string())));
        error
    }

    fn go(mut self, begin: Begin) -> Result<Connected, MeetError> {
        if let Some(wire) = &mut self.host {
            wire.deregister(self.poll.registry()).map_err(MeetError::system)?;
        }
        if !self.plan.me.streams {
            self.streams.clear();
        }
        Ok(Connected { wires: vec![self.host], streams: self.streams, begin })
    }
}

/// Whether one who knows the secret is waited for.
fn admit(hello: &Hello, rank: Rank, streams: &[Option<Wire>]) -> Result<(), Refusal> {
    if hello.purpose == Purpose::Control || hello.rank < rank {
        return Err("only processes of higher rank call here, for data".into());
    }
    match taken(&streams[hello.rank]) {
        Some(wire) => Err(already_there(hello.rank, wire.peer().ok())),
        None => Ok(()),
    }
}
