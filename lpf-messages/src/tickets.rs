//! Sends or receives whose end is all that is asked about.

use super::transport::{Broken, Ticket, Transport};
use lpf_core::Pid;

#[derive(Debug, Default)]
pub(super) struct Tickets(Vec<(Pid, Ticket)>);

impl Tickets {
    pub(super) fn with_capacity(tickets: usize) -> Self {
        Tickets(Vec::with_capacity(tickets))
    }

    #[inline]
    pub(super) fn push(&mut self, peer: Pid, ticket: Ticket) {
        self.0.push((peer, ticket));
    }

    /// The peer of one that has not ended, as it was pushed.
    pub(super) fn last(&self) -> Option<Pid> {
        self.0.last().map(|&(peer, _)| peer)
    }

    /// Whether all have ended.
    #[inline]
    pub(super) fn have_ended<T: Transport>(&mut self, net: &mut T) -> Result<bool, Broken> {
        while let Some((_, ticket)) = self.0.last() {
            if net.test(ticket)?.is_none() {
                return Ok(false);
            }
            self.0.pop();
        }
        Ok(true)
    }

    /// Gives all up. False where the network may still touch their memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        self.0.drain(..).fold(true, |quiet, (_, ticket)| net.cancel(ticket) & quiet)
    }
}
