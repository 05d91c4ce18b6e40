//! Phase 2, second half: answers. Process X sends to process Y in one message:
//!
//! ```text
//! the bytes of Y's short gets from X, consecutive, padded to a word
//! if conflicts were resolved, for each of Y's long puts to X and then for each of X's long gets
//! from Y: how many of its last bytes are to be sent; left out if all are to be sent whole
//! ```

use std::ops::Range;

use super::super::memory::Memory;
use super::super::tickets::Tickets;
use super::super::transport::{Piece, Rank, Tag, Ticket, Transport};
use super::super::watch::Stop;
use super::super::wire::SHORT;
use lpf_core::Pid;

#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The answers of this process.
    pub(super) out: Vec<u8>,
    /// The answers of the others.
    inbox: Memory,
    /// By process, the range of its answer in `inbox`, when it has arrived.
    places: Vec<Range<usize>>,
    posted: Vec<(Pid, Ticket)>,
    at: usize,
    sending: Tickets,
    /// Messages of this superstep.
    pub(super) sent: u64,
}

impl Answers {
    /// Room for the answers of `requests` requests.
    pub(super) fn new(nprocs: usize, eager: usize, requests: usize) -> Result<Self, usize> {
        let room = if requests == 0 {
            0
        } else {
            let each = requests.saturating_mul(SHORT + size_of::<u64>());
            nprocs.saturating_mul(eager + 8).saturating_add(each)
        };
        let mut out = Vec::new();
        out.try_reserve_exact(room).map_err(|_| room)?;
        let mut places = Vec::new();
        places.try_reserve_exact(nprocs).map_err(|_| nprocs)?;
        places.resize(nprocs, 0..0);
        Ok(Answers {
            out,
            inbox: Memory::new(room)?,
            places,
            posted: Vec::with_capacity(nprocs),
            at: 0,
            sending: Tickets::with_capacity(nprocs),
            sent: 0,
        })
    }

    /// Forgets the superstep before.
    pub(super) fn begin(&mut self) {
        self.out.clear();
        self.places.fill(0..0);
        self.at = 0;
        self.sent = 0;
    }

    /// Posts the receive for an answer of at most `bytes` bytes.
    pub(super) fn post<T: Transport>(
        &mut self,
        net: &mut T,
        from: Pid,
        rank: Rank,
        tag: Tag,
        bytes: usize,
    ) -> Result<(), Stop> {
        let range = self.at..self.at + bytes;
        let piece = self.inbox.piece(range.clone());
        self.at = range.end.next_multiple_of(8).min(self.inbox.len());
        // SAFETY: the inbox lives until this is closed; this part of it is read only after the receive is finished.
        let ticket = unsafe { net.receive(rank, tag, &[piece]) }?;
        self.places[from] = range;
        self.posted.push((from, ticket));
        Ok(())
    }

    /// Sends part of `out`, which is not written before all sends are complete.
    pub(super) fn send<T: Transport>(
        &mut self,
        net: &mut T,
        to: Pid,
        rank: Rank,
        tag: Tag,
        range: Range<usize>,
    ) -> Result<(), Stop> {
        let bytes = &self.out[range];
        self.sent += 1;
        if bytes.len() <= 1 << 10 {
            return Ok(net.send_copy(rank, tag, bytes)?);
        }
        // SAFETY: `out` is not written before `have_left` has found the send complete.
        let ticket = unsafe { net.send(rank, tag, &[Piece::of(bytes)]) }?;
        self.sending.push(to, ticket);
        Ok(())
    }

    /// The next process whose answer has arrived.
    pub(super) fn next<T: Transport>(&mut self, net: &mut T) -> Result<Option<Pid>, Stop> {
        for at in 0..self.posted.len() {
            if let Some(bytes) = net.test(&self.posted[at].1)? {
                let (from, _) = self.posted.swap_remove(at);
                let place = &mut self.places[from];
                place.end = place.start + bytes.min(place.len());
                return Ok(Some(from));
            }
        }
        Ok(None)
    }

    /// A process that has not answered, or not received an answer.
    pub(super) fn missing(&self) -> Option<Pid> {
        self.posted.first().map(|&(from, _)| from).or(self.sending.last())
    }

    /// Whether all awaited answers have arrived.
    pub(super) fn have_come(&self) -> bool {
        self.posted.is_empty()
    }

    /// The answer of a process: empty if none was awaited.
    pub(super) fn of(&self, from: Pid) -> &[u8] {
        // SAFETY: asked for once its receive is finished, or nothing was posted.
        unsafe { self.inbox.bytes(self.places[from].clone()) }
    }

    pub(super) fn have_left<T: Transport>(&mut self, net: &mut T) -> Result<bool, Stop> {
        Ok(self.sending.have_ended(net)?)
    }

    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        let quiet = self.sending.close(net);
        self.posted.drain(..).fold(quiet, |quiet, (_, ticket)| net.cancel(ticket) & quiet)
    }
}
