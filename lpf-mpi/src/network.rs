//! The network of one process: what sends and receives do to frames and bodies.

mod giving_up;
mod parts;

use std::time::{Duration, Instant};

use lpf_messages::network::Pace;
use lpf_messages::{Broken, Outcome, Piece, Rank, Tag, Ticket};

use super::bodies::{Body, Buffers, Cut, Given, Layout, Sinks, Way, in_buffer};
use super::frames::{self, Frame, HEADER, Incoming, LONGEST_WHOLE, Outgoing};
use super::library::Library;
use super::matching::{Coming, Matching, Operation, Stage};
use super::near::Near;
use super::pieces::{gather, scatter, total};
use parts::LONGEST_AT_ONCE;

/// The longest sleep: nothing wakes a process when a message comes from another host.
const LONGEST_SLEEP: Duration = Duration::from_micros(200);

/// For so long after a body has begun nobody sleeps: many go in steps, each of which waits for both
/// sides. Four processes on two cores exchange 256 pieces of 4 KiB in 4 ms with MPICH, in 17 if they sleep.
const AWAKE: Duration = Duration::from_millis(20);

/// Frames taken in one look at most, so that it ends.
const FRAMES_A_LOOK: usize = 256;

/// Where all frames go through rings, and MPI has nothing in hand that is known of, one look in so many asks
/// it all the same: the other side of a body may wait for the last word on it.
const LOOKS_PER_QUESTION: u32 = 16;

pub(crate) struct Network {
    pub(crate) library: Library,
    pub(crate) rank: Rank,
    peers: Vec<Peer>,
    /// Bodies are numbered from 1 to this, again and again.
    bodies: u32,
    matching: Matching,
    outgoing: Outgoing,
    incoming: Incoming,
    /// The frames of processes on this host.
    pub(crate) near: Option<Near>,
    looks: u32,
    layout: Layout,
    buffers: Buffers,
    sinks: Sinks,
    /// Operations that nobody has a ticket for.
    orphans: Vec<u32>,
    /// Bodies in MPI's hands, those of them of which there is more to give, and when the last part was
    /// given.
    moving: usize,
    unfinished: Vec<u32>,
    /// Messages that go or come in parts, and the pieces of one.
    in_parts: usize,
    parts: Vec<Piece>,
    /// Receives that have met their bodies in the last look. They begin in the next one: MPI moves a body
    /// before it returns, and meanwhile what came with it waits, perhaps the word to send one the other way.
    met: Vec<(u32, Body)>,
    moved: Instant,
    pub(crate) pace: Pace,
    gave_up: Option<Instant>,
    pub(crate) messages: u64,
    closed: bool,
}

#[derive(Clone, Default)]
struct Peer {
    /// The number of the last body for it.
    body: u32,
    /// It is on another host.
    is_far: bool,
    /// Why it cannot be spoken to any more.
    broken: Option<String>,
}

impl Peer {
    fn cut(&self) -> Cut {
        if self.is_far { Cut::FAR } else { Cut::NEAR }
    }
}

// SAFETY: MPI's handles may be used by any thread, one at a time, and `Library` sees to it that no
// other uses them where MPI does not allow that; the addresses are used as `Transport` says.
unsafe impl Send for Network {}

impl Network {
    /// `far` says by rank who is on another host.
    pub(crate) fn new(
        library: Library,
        rank: Rank,
        far: &[bool],
        near: Option<Near>,
        bodies: u32,
    ) -> Outcome<Self> {
        library.may_call()?;
        let peers = far.iter().map(|&is_far| Peer { is_far, ..Peer::default() });
        Ok(Network {
            incoming: Incoming::new(&library)?,
            library,
            rank,
            peers: peers.collect(),
            bodies,
            matching: Matching::new(far.len()),
            outgoing: Outgoing::new(),
            near,
            looks: 0,
            layout: Layout::default(),
            buffers: Buffers::default(),
            sinks: Sinks::default(),
            orphans: Vec::new(),
            moving: 0,
            unfinished: Vec::new(),
            in_parts: 0,
            parts: Vec::new(),
            met: Vec::new(),
            moved: Instant::now(),
            pace: Pace::new(),
            gave_up: None,
            messages: 0,
            closed: false,
        })
    }

    pub(crate) fn size(&self) -> Rank {
        self.peers.len()
    }

    /// Whether all processes are on this host, and reached without MPI.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        self.near.as_ref().is_some_and(Near::is_all)
    }

    #[inline]
    fn may_use(&self, peer: Rank) -> Outcome<()> {
        self.library.may_call()?;
        match self.peers.get(peer) {
            Some(Peer { broken: None, .. }) => Ok(()),
            other => Err(Self::unusable(peer, other)),
        }
    }

    #[cold]
    fn unusable(rank: Rank, peer: Option<&Peer>) -> Broken {
        let reason = peer.map(|peer| peer.broken.clone().unwrap_or_default());
        let reason = reason.unwrap_or_else(|| format!("there is no process {rank}"));
        Broken { peer: Some(rank), reason }
    }

    #[cold]
    fn break_off(&mut self, peer: Rank, reason: String) {
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.broken.get_or_insert(reason);
        }
    }

    fn ticket(&self, place: u32) -> Ticket {
        Ticket(self.matching.operations.ticket(place))
    }

    /// The number of the next body for a process.
    ///
    /// None has it already: the other side receives every body, if only to drop it, so one would have
    /// to outlast as many others as there are numbers (32,767 at the least).
    fn next_body(&mut self, to: Rank, bytes: usize) -> Body {
        let peer = &mut self.peers[to];
        peer.body = peer.body % self.bodies + 1;
        Body { number: peer.body, bytes }
    }

    #[inline]
    pub(crate) fn send_copy(&mut self, to: Rank, tag: Tag, bytes: &[u8]) -> Outcome<()> {
        self.may_use(to)?;
        self.messages += 1;
        let pieces = [Piece::of(bytes)];
        if bytes.len() <= self.longest_whole(to) {
            // SAFETY: a slice is valid for reads.
            return unsafe { self.send_whole(to, tag, &pieces, bytes.len()) };
        }
        self.send_long_copy(to, tag, &pieces, bytes.len())
    }

    #[inline]
    fn has_ring(&self, to: Rank) -> bool {
        self.near.as_ref().is_some_and(|near| near.has(to))
    }

    /// A longer message has a body, or goes in parts.
    #[inline]
    fn longest_whole(&self, to: Rank) -> usize {
        match &self.near {
            Some(near) if near.has(to) => near.longest() - HEADER,
            _ => LONGEST_WHOLE,
        }
    }

    /// Sends a message whole.
    ///
    /// # Safety
    /// The pieces are valid for reads, of no more than [`longest_whole`](Self::longest_whole) bytes in all.
    #[inline]
    unsafe fn send_whole(
        &mut self,
        to: Rank,
        tag: Tag,
        pieces: &[Piece],
        bytes: usize,
    ) -> Outcome<()> {
        let Network { outgoing, near, library, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            match near.as_mut().filter(|near| near.has(to)) {
                Some(near) => near.send(to, &frames::whole_header(tag), pieces, HEADER + bytes),
                None => outgoing.send_whole(library, to, tag, pieces, bytes)?,
            }
        }
        Ok(())
    }

    #[cold]
    fn send_long_copy(
        &mut self,
        to: Rank,
        tag: Tag,
        pieces: &[Piece],
        bytes: usize,
    ) -> Outcome<()> {
        let buffer = self.buffers.take(bytes);
        let reason = || format!("no memory for a copy of a message of {bytes} bytes");
        let mut buffer = buffer.ok_or_else(|| Broken { peer: None, reason: reason() })?;
        // SAFETY: the pieces are those of a slice; the buffer has room for them.
        unsafe { gather(pieces, buffer.as_mut_ptr().cast()) };
        let place = self.matching.operation(true, to, tag, 0);
        self.matching.operations[place].packed = Some(buffer);
        let begun = self.begin_send(place, bytes);
        self.orphans.push(place);
        begun
    }

    /// # Safety
    /// As [`Transport::send`](lpf_messages::Transport::send).
    pub(crate) unsafe fn send(&mut self, to: Rank, tag: Tag, pieces: &[Piece]) -> Outcome<Ticket> {
        self.may_use(to)?;
        let bytes = total(pieces).ok_or_else(too_long)?;
        self.messages += 1;
        let place = self.matching.operation(true, to, tag, self.pace.now());
        let longest = self.longest_whole(to).min(LONGEST_AT_ONCE);
        let goes_in_parts = self.has_ring(to);
        let Network { matching, buffers, .. } = self;
        let operation = &mut matching.operations[place];
        if bytes <= longest {
            (operation.stage, operation.bytes) = (Stage::Finished, bytes);
            // SAFETY: the caller's promise.
            unsafe { self.send_whole(to, tag, pieces, bytes) }?;
            return Ok(self.ticket(place));
        }
        let buffer = if goes_in_parts { None } else { buffers.for_pieces(pieces, bytes) };
        match buffer {
            Some(mut buffer) => {
                // SAFETY: the caller's promise; the buffer has room for them.
                unsafe { gather(pieces, buffer.as_mut_ptr().cast()) };
                operation.packed = Some(buffer);
            }
            None => operation.pieces.extend_from_slice(pieces),
        }
        self.begin_send(place, bytes).or_else(|broken| self.unless_begun(place, broken))?;
        Ok(self.ticket(place))
    }

    /// An error at the beginning of a body is told by its ticket where part of it is under way:
    /// without a ticket its memory would be free.
    #[cold]
    fn unless_begun(&mut self, place: u32, broken: Broken) -> Outcome<()> {
        if self.matching.operations[place].requests.is_empty() { Err(broken) } else { Ok(()) }
    }

    /// Tells the receiver of a long message and lets its bytes go.
    fn begin_send(&mut self, place: u32, bytes: usize) -> Outcome<()> {
        let operation = &self.matching.operations[place];
        let (to, tag) = (operation.peer, operation.tag);
        if self.has_ring(to) {
            self.offer(place, bytes);
            return Ok(());
        }
        let body = self.next_body(to, bytes);
        self.outgoing.send_long(&self.library, to, tag, body)?;
        self.transfer(place, body)
    }

    /// Starts what moves the body of an operation.
    fn transfer(&mut self, place: u32, body: Body) -> Outcome<()> {
        self.moving += 1;
        let operation = &mut self.matching.operations[place];
        (operation.stage, operation.bytes) = (Stage::Moving, body.bytes);
        (operation.number, operation.given) = (body.number, Given::default());
        self.give(place)?;
        let operation = &self.matching.operations[place];
        if operation.given.bytes < operation.bytes {
            self.unfinished.push(place);
        }
        Ok(())
    }

    /// Gives MPI as much of a body as it may have at a time.
    fn give(&mut self, place: u32) -> Outcome<()> {
        if let Operation { other: Some(_), sends, .. } = self.matching.operations[place] {
            if sends {
                self.give_parts(place);
            }
            return Ok(());
        }
        let Network { library, layout, matching, peers, moved, .. } = self;
        *moved = Instant::now();
        let Operation { sends, peer, number, bytes, pieces, packed, given, requests, .. } =
            &mut matching.operations[place];
        let cut = peers[*peer].cut();
        let way = Way { sends: *sends, peer: *peer, cut };
        let body = Body { number: *number, bytes: *bytes };
        let packed = packed.as_mut().map(|buffer| in_buffer(buffer, *bytes));
        let pieces = packed.as_ref().map_or(&pieces[..], |packed| packed);
        // SAFETY: the pieces are their owner's promise, until its ticket is finished or cancelled, and
        // an operation that moves is neither before all is given and its requests are complete; the
        // same keeps the buffer.
        unsafe { layout.give(library, way, body, pieces, given, requests) }
    }

    /// # Safety
    /// As [`Transport::receive`](lpf_messages::Transport::receive).
    pub(crate) unsafe fn receive(
        &mut self,
        from: Rank,
        tag: Tag,
        pieces: &[Piece],
    ) -> Outcome<Ticket> {
        self.library.may_call()?;
        total(pieces).ok_or_else(too_long)?;
        if from >= self.size() {
            return Err(Self::unusable(from, None));
        }
        let place = self.matching.operation(false, from, tag, self.pace.now());
        self.matching.operations[place].pieces.extend_from_slice(pieces);
        let Some(message) = self.matching.message_or_post(place) else {
            if let Err(broken) = self.may_use(from) {
                self.matching.withdraw(place);
                self.matching.end(place);
                return Err(broken);
            }
            return Ok(self.ticket(place));
        };
        let Network { matching, .. } = self;
        let (bytes, rest) = (&matching.message(message).bytes[..], matching.message(message).rest);
        let fits = fits(&matching.operations[place], rest.map_or(bytes.len(), Coming::bytes));
        if rest.is_none() && fits.is_ok() {
            // SAFETY: the memory of a receive just made, valid by its caller's promise.
            unsafe { scatter(bytes.as_ptr(), bytes.len(), &matching.operations[place].pieces) };
            let bytes = bytes.len();
            let operation = &mut matching.operations[place];
            (operation.stage, operation.bytes) = (Stage::Finished, bytes);
        }
        self.matching.release(from, message);
        match (fits, rest) {
            (Err(reason), rest) => {
                self.matching.end(place);
                self.break_off(from, reason);
                rest.into_iter().for_each(|rest| self.drop_rest(from, rest));
                self.may_use(from)?;
            }
            (Ok(()), Some(rest)) => {
                let begun = self.begin_receive(place, rest);
                begun.or_else(|broken| self.unless_begun(place, broken))?;
            }
            (Ok(()), None) => {}
        }
        Ok(self.ticket(place))
    }

    /// Receives the rest of a message that has met its receive.
    fn begin_receive(&mut self, place: u32, rest: Coming) -> Outcome<()> {
        match rest {
            Coming::Mpi(body) => {
                let operation = &mut self.matching.operations[place];
                operation.packed = self.buffers.for_pieces(&operation.pieces, body.bytes);
                self.transfer(place, body)
            }
            Coming::Parts { send, bytes } => {
                self.want(place, bytes, send);
                Ok(())
            }
        }
    }

    /// Takes a frame that has come through a ring, of `first` if there is one.
    #[inline]
    fn take_near(&mut self, first: Option<Rank>) -> Outcome<bool> {
        let Network { near: Some(near), matching, peers, .. } = self else { return Ok(false) };
        let Some((from, bytes)) = near.next(first) else { return Ok(false) };
        let length = bytes.len();
        let frame = Frame::read(bytes);
        if let Some(Frame::Message { .. }) | None = frame {
            let delivered = deliver(matching, peers, from, frame);
            near.taken(from, length);
            return self.delivered(from, delivered);
        }
        self.take_of_parts(from, length)
    }

    /// Takes a frame that MPI has.
    fn take(&mut self) -> Outcome<bool> {
        let Network { library, incoming, matching, peers, .. } = self;
        let Some((from, frame)) = incoming.next(library)? else { return Ok(false) };
        let delivered = deliver(matching, peers, from, frame);
        incoming.taken(library)?;
        self.delivered(from, delivered)
    }

    /// Goes on with what a frame has begun.
    #[inline]
    fn delivered(&mut self, from: Rank, delivered: Delivered) -> Outcome<bool> {
        let Delivered { outcome, begins } = delivered;
        if let Err(reason) = outcome {
            self.break_off(from, reason);
        }
        match begins {
            // The parts of a message wait for a word, which costs nothing.
            Some((Some(receive), rest @ Coming::Parts { .. })) => {
                self.begin_receive(receive, rest)?
            }
            Some((Some(receive), Coming::Mpi(body))) => {
                self.matching.operations[receive].stage = Stage::Met;
                self.met.push((receive, body));
            }
            Some((None, rest)) => self.drop_rest(from, rest),
            None => {}
        }
        Ok(true)
    }

    /// Takes the frames that have come, up to the one that finishes an operation that is asked about,
    /// and goes on with what nobody asks about.
    #[inline]
    fn look(&mut self, asked: Option<u32>) -> Outcome<()> {
        let first = asked.map(|place| self.matching.operations[place].peer);
        while let Some((receive, body)) = self.met.pop() {
            self.begin_receive(receive, Coming::Mpi(body))?;
        }
        if let Some(near) = &mut self.near {
            near.let_go();
        }
        let asks_mpi = self.asks_mpi();
        for _ in 0..FRAMES_A_LOOK {
            let took = self.take_near(first)? || asks_mpi && self.take()?;
            if !took {
                if asks_mpi {
                    self.incoming.post_again(&self.library)?;
                    self.outgoing.look(&self.library)?;
                }
                break;
            }
            // To learn that there is no other frame would cost as much as this one.
            let is_finished = |place| self.matching.operations[place].stage == Stage::Finished;
            if asked.is_some_and(is_finished) {
                break;
            }
        }
        if !self.orphans.is_empty() || !self.sinks.is_empty() {
            self.look_after_orphans()?;
        }
        if self.unfinished.is_empty() { Ok(()) } else { self.go_on() }
    }

    /// Whether MPI has to be asked in this look.
    #[inline]
    fn asks_mpi(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.moving > 0
            || self.looks.is_multiple_of(LOOKS_PER_QUESTION)
            || !self.is_near()
            || !self.sinks.is_empty()
    }

    /// Gives more of the bodies of which MPI has not had all, whoever is asked about.
    fn go_on(&mut self) -> Outcome<()> {
        let mut open = 0;
        while let Some(&place) = self.unfinished.get(open) {
            self.move_on(place)?;
            let operation = &self.matching.operations[place];
            if operation.given.bytes < operation.bytes {
                open += 1;
            } else {
                self.unfinished.swap_remove(open);
            }
        }
        Ok(())
    }

    /// Asks MPI about an operation that it has in hand.
    fn move_on(&mut self, place: u32) -> Outcome<()> {
        let Network { library, matching, .. } = self;
        let operation = &mut matching.operations[place];
        if operation.stage != Stage::Moving || operation.other.is_some() && !operation.sends {
            return Ok(());
        }
        while let Some(request) = operation.requests.front_mut() {
            if !library.is_complete(request, Some(operation.peer))? {
                break;
            }
            operation.requests.pop_front();
        }
        if operation.given.bytes < operation.bytes {
            return self.give(place);
        }
        if operation.requests.is_empty() {
            self.finish(place);
        }
        Ok(())
    }

    /// All of a long message has come or gone.
    fn finish(&mut self, place: u32) {
        let operation = &mut self.matching.operations[place];
        if let Some(buffer) = operation.packed.take() {
            if !operation.sends {
                // SAFETY: so many bytes were written; the pieces are valid by the promise of their owner, and
                // none are left once it has cancelled.
                unsafe { scatter(buffer.as_ptr().cast(), operation.bytes, &operation.pieces) };
            }
            self.buffers.give_back(buffer);
        }
        let was = std::mem::replace(&mut operation.stage, Stage::Finished);
        match operation.other {
            Some(_) => self.in_parts -= 1,
            // It was not wanted.
            None if was == Stage::Offered => {}
            None => self.moving -= 1,
        }
    }

    #[inline]
    pub(crate) fn test(&mut self, ticket: &Ticket) -> Outcome<Option<usize>> {
        let Some(place) = self.matching.operations.find(ticket.0) else {
            return Err(Broken { peer: None, reason: "a spent ticket was asked about".into() });
        };
        if self.matching.operations[place].stage != Stage::Finished {
            self.library.may_call()?;
            if self.pace.is_due(&mut self.matching.operations[place].asked) {
                self.look(Some(place))?;
            }
            self.move_on(place)?;
            let operation = &self.matching.operations[place];
            if operation.stage != Stage::Finished {
                return self.may_use(operation.peer).map(|()| None);
            }
        }
        let bytes = self.matching.operations[place].bytes;
        self.matching.end(place);
        Ok(Some(bytes))
    }

    pub(crate) fn progress(&mut self) -> Outcome<()> {
        self.library.may_call()?;
        self.pace.looked();
        self.look(None)
    }

    pub(crate) fn idle(&mut self, time: Duration) {
        if self.moving + self.in_parts > 0 && self.moved.elapsed() <= AWAKE {
            return std::thread::yield_now();
        }
        let time = time.min(LONGEST_SLEEP);
        match &self.near {
            Some(near) => near.sleep(time),
            None => {
                std::thread::yield_now();
                std::thread::sleep(time);
            }
        }
    }
}

/// What came of a frame: whether its sender has kept to the protocol, and the body that begins with it, with
/// the receive that it is for.
struct Delivered {
    outcome: Result<(), String>,
    begins: Option<(Option<u32>, Coming)>,
}

/// Brings a frame to who wants it.
#[inline]
fn deliver(
    matching: &mut Matching,
    peers: &[Peer],
    from: Rank,
    frame: Option<Frame<'_>>,
) -> Delivered {
    let mut begins = None;
    let is_broken = peers.get(from).is_none_or(|peer| peer.broken.is_some());
    let outcome = match frame {
        Some(Frame::Message { rest, .. }) if is_broken => {
            begins = rest.map(|rest| (None, rest));
            Ok(())
        }
        Some(Frame::Message { tag, bytes, rest }) => match matching.take_receive(from, tag) {
            Some(receive) => {
                let operation = &mut matching.operations[receive];
                let length = rest.map_or(bytes.len(), Coming::bytes);
                let fits = fits(operation, length);
                if let (Ok(()), None) = (&fits, rest) {
                    // SAFETY: a receive that waited: its memory is valid by its caller's promise.
                    unsafe { scatter(bytes.as_ptr(), length, &operation.pieces) };
                    (operation.stage, operation.bytes) = (Stage::Finished, length);
                }
                if fits.is_err() {
                    operation.stage = Stage::Lost;
                }
                begins = rest.map(|rest| (fits.is_ok().then_some(receive), rest));
                fits
            }
            None if matching.is_forgotten(tag.context) => {
                begins = rest.map(|rest| (None, rest));
                Ok(())
            }
            None => matching.keep(from, tag, bytes, rest),
        },
        _ => Err(format!("process {from} sent an invalid frame")),
    };
    Delivered { outcome, begins }
}

/// Whether a message fits into a receive.
#[inline]
fn fits(receive: &Operation, bytes: usize) -> Result<(), String> {
    let room = receive.pieces.iter().map(|piece| piece.bytes).sum();
    if bytes <= room { Ok(()) } else { Err(too_short(receive, bytes, room)) }
}

#[cold]
fn too_short(receive: &Operation, bytes: usize, room: usize) -> String {
    let Tag { context, channel } = receive.tag;
    format!(
        "a message of {bytes} bytes from process {} is longer than the {room} bytes of its receive \
         (context {context}, channel {channel})",
        receive.peer
    )
}

#[cold]
fn too_long() -> Broken {
    Broken { peer: None, reason: "a message longer than memory".into() }
}
