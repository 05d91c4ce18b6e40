//! Messages that were sent and never awaited: they are counted when the section ends.
//!
//! Every process receives the number of messages that were sent to it, instead of requests, at the barrier
//! [`Purpose::Count`]. A process that awaits fewer messages than are sent to it does not wait, so no check of waits finds
//! it.
//!
//! [`Purpose::Count`]: lpf_core::runtime::Purpose::Count

use super::super::transport::Transport;
use super::super::watch::Stop;
use super::rings::{Links, OnNet, Rings};
use lpf_core::runtime::Carrier;
use lpf_core::waits::Stream;
use lpf_core::{Call, Pid};

impl Rings {
    /// Reserves the memory of [`count`](Links::count).
    ///
    /// # Errors
    /// The bytes that were refused.
    pub(super) fn prepare_count(&mut self) -> Result<(), usize> {
        let (had, needs) = (self.awaited.len(), self.members.len());
        let bytes = needs * size_of::<u16>();
        self.awaited.try_reserve_exact(needs - had).map_err(|_| bytes)?;
        self.awaited.resize(needs, 0);
        Ok(())
    }
}

impl Links<'_> {
    /// Messages sent to each process and awaited of each, in the whole section, modulo 2^16, so that the sum of all counts
    /// for one process fits its word. Two counts differ by less than that: by the messages in the cells.
    pub(in super::super) fn count(&mut self, sent: &mut [u32]) -> Vec<u16> {
        let mut awaited = std::mem::take(&mut self.rings.awaited);
        awaited.fill(0);
        sent.fill(0);
        let mut add = |to: Pid, made: u64, from: Pid, read: u64| {
            let (to, from) = (&mut sent[to], &mut awaited[from]);
            *to = to.wrapping_add(made as u32) & 0xffff;
            *from = from.wrapping_add(read as u16);
        };
        for (stream, counts) in &self.table.known.counts {
            let [to, from] = [stream.to, stream.from].map(|pid| self.rings.with(pid));
            add(to, counts.sent.made, from, counts.received.released);
        }
        for link in self.table.iter() {
            add(link.peer, link.outgoing.made, link.peer, link.incoming.awaited);
        }
        awaited
    }

    /// The stream of a message that has arrived and was never awaited, and its call if that is known. The message is
    /// taken, as the section is over.
    pub(in super::super) fn unread<T: Transport>(
        &mut self,
        net: &mut T,
    ) -> Result<Option<(Stream, Option<Call>)>, Stop> {
        let Links { table, rings } = self;
        let mut found = None;
        for link in table.iter_mut() {
            let mut carrier = OnNet { rings, net };
            if carrier.has_arrived(link)? {
                // A landing that has no offer cannot be taken.
                let head = carrier.take_one(link).ok().flatten();
                found = Some((link.to_me, head.map(|head| head.stamp)));
                break;
            }
        }
        if let Some((stream, stamp)) = found {
            return Ok(Some((stream, stamp.and_then(|stamp| table.call_of(stamp)))));
        }
        let is_open = |stream| table.iter().any(|link| link.to_me == stream);
        let mut closed = rings.closed.iter();
        let left = closed.find(|(stream, closed)| {
            closed.made > table.known.on(**stream).received.released && !is_open(**stream)
        });
        Ok(left.map(|(stream, _)| (*stream, None)))
    }
}
