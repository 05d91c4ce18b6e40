//! Control words about links, and the receives for them.

use super::super::memory::Memory;
use super::super::tags;
use super::super::transport::{Rank, Ticket, Transport};
use super::super::watch::Stop;
use super::super::wire::{Reader, nonsense};
use lpf_core::Pid;
use lpf_core::waits::Stream;

const BYTES: usize = 24;

/// What a control word reports. All but `Closed` are about a stream on which the receiver of the word sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The receiver of the word has the ring now. The offset of the ring in shared memory, plus one; zero if only the
    /// network reaches it.
    Granted,
    /// The number of messages released. In shared memory the ring itself has it.
    Released,
    /// An offer of this number of bytes for a landing.
    Offered,
    /// The sender has closed its link, on whose stream it has made this number of messages.
    Closed,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Granted, Kind::Released, Kind::Offered, Kind::Closed];
}

/// A control word about link number `opening` of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) kind: Kind,
    pub(super) stream: Stream,
    pub(super) opening: u32,
    pub(super) number: u64,
}

impl Word {
    /// Reads a control word from process `from` to process `to`. `None` if the bytes are not one.
    fn read(bytes: &[u8], from: Pid, to: Pid) -> Option<Word> {
        let mut reader = Reader(bytes);
        let kind = Kind::ALL.get(reader.u32()? as usize).copied()?;
        let (inbox, ring) = (reader.u32()? as usize, reader.u32()? as usize);
        let stream = match kind {
            Kind::Closed => Stream { from, to, inbox, ring },
            _ => Stream { from: to, to: from, inbox, ring },
        };
        Some(Word { kind, stream, opening: reader.u32()?, number: reader.u64()? })
    }

    pub(super) fn bytes(&self) -> [u8; BYTES] {
        let Stream { inbox, ring, .. } = self.stream;
        let words = [self.kind as u32, inbox as u32, ring as u32, self.opening];
        let mut bytes = [0; BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[16..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }
}

/// Receives for control words: one for every process, posted again when it is complete. Words that arrive meanwhile wait
/// in the network: at most two windows and two words for each link.
#[derive(Debug)]
pub(super) struct Postbox {
    pid: Pid,
    context: u32,
    memory: Option<Memory>,
    posted: Vec<Option<Ticket>>,
    /// This process is in the last barrier of the section. A process that has left that barrier may be gone, and sends no
    /// control words.
    is_last: bool,
}

impl Postbox {
    pub(super) fn new(pid: Pid, context: u32, processes: usize) -> Self {
        let posted = (0..processes).map(|_| None).collect();
        Postbox { pid, context, memory: None, posted, is_last: false }
    }

    /// Reserves its memory, before the first inbox is active.
    ///
    /// # Errors
    /// The bytes that were refused.
    pub(super) fn prepare(&mut self) -> Result<(), usize> {
        if self.memory.is_none() {
            self.memory = Some(Memory::new(self.posted.len() * BYTES)?);
        }
        Ok(())
    }

    /// This process enters the last barrier of the section.
    pub(super) fn end(&mut self) {
        self.is_last = true;
    }

    /// The next control word of a process, if it has arrived.
    #[inline]
    pub(super) fn next<T: Transport>(
        &mut self,
        net: &mut T,
        from: Pid,
        rank: Rank,
    ) -> Result<Option<Word>, Stop> {
        let Some(memory) = &self.memory else { return Ok(None) };
        let place = from * BYTES..(from + 1) * BYTES;
        let posted = &mut self.posted[from];
        let ticket = match posted {
            Some(ticket) => ticket,
            None => {
                let piece = memory.piece(place.clone());
                // SAFETY: the memory lives until the links are closed; this part of it is read only after the receive is
                // finished.
                match unsafe { net.receive(rank, tags::link_control(self.context), &[piece]) } {
                    Ok(ticket) => posted.insert(ticket),
                    Err(_) if self.is_last => return Ok(None),
                    Err(broken) => return Err(broken.into()),
                }
            }
        };
        match net.test(ticket) {
            Ok(Some(_)) => *posted = None,
            Ok(None) => return Ok(None),
            Err(_) if self.is_last => return Ok(None),
            Err(broken) => return Err(broken.into()),
        }
        // SAFETY: its receive is finished.
        let word = Word::read(unsafe { memory.bytes(place) }, from, self.pid);
        word.map(Some).ok_or_else(|| Stop::Fatal(nonsense(from)))
    }

    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        let tickets = self.posted.iter_mut().filter_map(Option::take);
        tickets.fold(true, |quiet, ticket| net.cancel(ticket) & quiet)
    }

    pub(super) fn keep(&mut self) {
        lpf_core::leaked::leak(self.memory.take());
    }
}
