//! What was sent and nobody awaited: looked for when the section ends.

use std::sync::Arc;

use lpf_core::arrivals::left_unread;
use lpf_core::{Error, Pid, Result};

use super::ring::{FREE, InboxMemory, process_of};
use super::{End, OpenLink};
use crate::sync::Ordering;
use crate::threads::Threads;

impl Threads {
    /// Everything that was sent to this process was awaited, or the section fails. Called when all have sent
    /// what they send.
    pub(crate) fn fail_if_unread(&mut self) -> Result<()> {
        let own = &self.comm.peers[self.local.pid as usize];
        let of_link = |open: &OpenLink| {
            let End { own, first_received, .. } = &open.end;
            left_in(own, open.ring, first_received + open.incoming.awaited)
        };
        let left = self.links.iter().find_map(of_link);
        let left = left.or_else(|| self.find_unread(|number| own.inbox(number)));
        self.fail_for(left)
    }

    /// The same for inboxes deregistered before a full sync, which is over: nobody sends into them any more.
    pub(crate) fn let_go_of_removed(&mut self) -> Result<()> {
        let removed = std::mem::take(&mut self.removed);
        if removed.is_empty() {
            return Ok(());
        }
        let left = self.find_unread(|number| {
            let found = removed.iter().find(|(removed, _)| *removed == number);
            found.map(|(_, inbox)| inbox.clone())
        });
        self.fail_for(left)
    }

    fn fail_for(&mut self, left: Option<(u64, Pid)>) -> Result<()> {
        let Some((left, from)) = left else { return Ok(()) };
        let cause = left_unread(left, Some(from));
        let error = Error::fatal(self.local.pid, self.local.superstep, cause);
        Err(self.fail_before(self.meeting + 1, error))
    }

    /// How many messages of which process were sent here, after their link was closed, and not awaited.
    fn find_unread(&self, inbox: impl Fn(usize) -> Option<Arc<InboxMemory>>) -> Option<(u64, Pid)> {
        // Only rings that had a link: nobody sends into others.
        self.links.known.counts.keys().filter(|stream| stream.to == self.local.pid).find_map(
            |stream| {
                let inbox = inbox(stream.inbox)?;
                let owner = inbox.owner(stream.ring);
                let is_closed = owner.granted.load(Ordering::Relaxed) == FREE;
                let released = owner.released.load(Ordering::Relaxed);
                if is_closed { left_in(&inbox, stream.ring, released) } else { None }
            },
        )
    }
}

/// How many messages of which process were sent into a ring beyond the `awaited` ones.
fn left_in(inbox: &InboxMemory, ring: u32, awaited: u64) -> Option<(u64, Pid)> {
    let sender = inbox.sender(ring);
    let left = sender.sent.load(Ordering::Relaxed).saturating_sub(awaited);
    let (from, _) = process_of(sender.served.load(Ordering::Relaxed));
    (left > 0).then_some((left, from))
}
