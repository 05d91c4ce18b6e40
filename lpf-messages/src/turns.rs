//! Large messages leave one after another, each process beginning with the one behind it.
//!
//! Where everybody sends to everybody at once, several streams meet at each receiver, overflow the
//! queues before it and wait for what was lost: over links of 100 Mbit/s a total exchange of 1 MiB per
//! pair took 339 ms on Open MPI, and in turns 273 (the links need 263). Nobody overtakes: with whoever
//! is ready first it took 307. Small messages do not wait, and huge ones share the links well enough by
//! themselves: the system takes megabytes before they have left, so that turns drift apart. 5.6 MB for
//! each of three others took 1.85 s in turns, and 1.46 without (the links need 1.40).

use std::collections::VecDeque;
use std::ops::Range;

use super::tickets::Tickets;
use super::transport::{Broken, Ticket, Transport};
use lpf_core::Pid;

/// Messages of so many bytes wait for their turns.
const LARGE: Range<usize> = 64 << 10..2 << 20;

/// Sends of one superstep.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Who gets large messages, in turn, and whether theirs is ready.
    queue: VecDeque<(Pid, bool)>,
    /// The one that is leaving, if any.
    large: Tickets,
    /// Who gets small ones that are ready.
    small: Vec<Pid>,
    sending: Tickets,
}

impl Turns {
    pub(super) fn new(nprocs: usize) -> Self {
        Turns {
            queue: VecDeque::with_capacity(nprocs),
            large: Tickets::with_capacity(1),
            small: Vec::with_capacity(nprocs),
            sending: Tickets::with_capacity(nprocs),
        }
    }

    /// A message of up to so many bytes will be for a process. To be called in the order of the turns.
    pub(super) fn plan(&mut self, to: Pid, bytes: usize) {
        if LARGE.contains(&bytes) {
            self.queue.push_back((to, false));
        }
    }

    /// It is ready, and has so many bytes.
    pub(super) fn is_ready(&mut self, to: Pid, bytes: usize) {
        let planned = self.queue.iter().position(|&(planned, _)| planned == to);
        match planned {
            Some(planned) if bytes > 0 => self.queue[planned].1 = true,
            Some(planned) => drop(self.queue.remove(planned)),
            None if bytes > 0 => self.small.push(to),
            None => {}
        }
    }

    /// Sends what may leave now, by `send`; whether all have begun.
    #[inline]
    pub(super) fn go_on<T: Transport>(
        &mut self,
        net: &mut T,
        mut send: impl FnMut(&mut T, Pid) -> Result<Ticket, Broken>,
    ) -> Result<bool, Broken> {
        while let Some(to) = self.small.pop() {
            self.sending.push(to, send(net, to)?);
        }
        while let Some(&(to, true)) = self.queue.front() {
            if !self.large.have_ended(net)? {
                break;
            }
            self.queue.pop_front();
            self.large.push(to, send(net, to)?);
        }
        Ok(self.queue.is_empty())
    }

    /// Whether all that have begun have left.
    #[inline]
    pub(super) fn have_left<T: Transport>(&mut self, net: &mut T) -> Result<bool, Broken> {
        Ok(self.large.have_ended(net)? && self.sending.have_ended(net)?)
    }

    /// Who has not taken what was sent to it, or keeps others waiting for their turns.
    pub(super) fn leaves_to(&self) -> Option<Pid> {
        self.large.last().or(self.sending.last()).or(self.queue.front().map(|&(to, _)| to))
    }

    /// Gives everything up. False where the network may still read the memory.
    pub(super) fn close<T: Transport>(&mut self, net: &mut T) -> bool {
        self.queue.clear();
        self.small.clear();
        self.large.close(net) & self.sending.close(net)
    }
}
