//! A length and then as many bytes from one process: for what is told rarely and may be long.

use super::tickets::Tickets;
use super::transport::{Piece, Rank, Tag, Ticket, Transport};
use super::watch::Stop;

/// One that comes.
#[derive(Debug)]
pub(super) struct Incoming {
    rank: Rank,
    tag: Tag,
    bytes: Vec<u8>,
    has_length: bool,
    ticket: Option<Ticket>,
}

/// Why the bytes that came are none.
#[derive(Debug)]
pub(super) enum Bad {
    /// No memory for so many.
    TooLong,
    /// The wait ended.
    Stopped(Stop),
}

impl From<super::transport::Broken> for Bad {
    fn from(broken: super::transport::Broken) -> Self {
        Bad::Stopped(Stop::Broken(broken))
    }
}

impl Incoming {
    pub(super) fn post<T: Transport>(net: &mut T, rank: Rank, tag: Tag) -> Result<Self, Stop> {
        let mut one = Incoming { rank, tag, bytes: vec![0; 8], has_length: false, ticket: None };
        one.receive(net)?;
        Ok(one)
    }

    fn receive<T: Transport>(&mut self, net: &mut T) -> Result<(), super::transport::Broken> {
        let piece = Piece::of_mut(&mut self.bytes);
        // SAFETY: the vector is not touched before its receive is finished or cancelled.
        self.ticket = Some(unsafe { net.receive(self.rank, self.tag, &[piece]) }?);
        Ok(())
    }

    /// Whether all has come.
    pub(super) fn has_come<T: Transport>(&mut self, net: &mut T) -> Result<bool, Bad> {
        while let Some(ticket) = &self.ticket {
            if net.test(ticket)?.is_none() {
                return Ok(false);
            }
            self.ticket = None;
            if self.has_length {
                break;
            }
            self.has_length = true;
            let length = u64::from_le_bytes(self.bytes[..8].try_into().unwrap_or_default());
            let length = usize::try_from(length).map_err(|_| Bad::TooLong)?;
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(length).map_err(|_| Bad::TooLong)?;
            bytes.resize(length, 0);
            self.bytes = bytes;
            self.receive(net)?;
        }
        Ok(true)
    }

    /// What has come.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Gives it up; memory that the network will not let go of is kept for ever.
    pub(super) fn give_up<T: Transport>(mut self, net: &mut T) {
        if let Some(ticket) = self.ticket.take()
            && !net.cancel(ticket)
        {
            lpf_core::leaked::leak(self.bytes);
        }
    }
}

/// One that goes to several processes.
#[derive(Debug)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    sending: Tickets,
}

impl Outgoing {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Outgoing { bytes, sending: Tickets::default() }
    }

    pub(super) fn send<T: Transport>(
        &mut self,
        net: &mut T,
        rank: Rank,
        tag: Tag,
    ) -> Result<(), Stop> {
        net.send_copy(rank, tag, &(self.bytes.len() as u64).to_le_bytes())?;
        // SAFETY: the vector is not changed, and goes only when all sends have ended or were given up.
        let ticket = unsafe { net.send(rank, tag, &[Piece::of(&self.bytes)]) }?;
        self.sending.push(rank, ticket);
        Ok(())
    }

    pub(super) fn has_left<T: Transport>(&mut self, net: &mut T) -> Result<bool, Stop> {
        Ok(self.sending.have_ended(net)?)
    }

    /// As [`Incoming::give_up`].
    pub(super) fn give_up<T: Transport>(mut self, net: &mut T) {
        if !self.sending.close(net) {
            lpf_core::leaked::leak(self.bytes);
        }
    }
}
