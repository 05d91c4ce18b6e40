//! What was sent and nobody awaited: looked for when the section ends.

use std::sync::Arc;

use lpf_core::arrivals::left_unread;
use lpf_core::runtime::Tables;
use lpf_core::{Error, Pid, Result};

use super::End;
use super::ring::{FREE, InboxMemory, process_of};
use crate::sync::Ordering;
use crate::threads::ThreadEngine;

impl ThreadEngine {
    /// Everything that was sent to this process was awaited, or the section fails. Called when all have sent
    /// what they send.
    pub(crate) fn fail_if_unread(&self, tables: &Tables) -> Result<()> {
        let own = self.peer(&tables.local);
        let left = self.ends.iter(&tables.links).find_map(|(open, end)| {
            let End { own, first_received, .. } = end;
            left_in(own, open.to_me.to, open.ring, first_received + open.incoming.awaited)
        });
        let left = left.or_else(|| find_unread(tables, |number| own.inbox(number)));
        fail_for(tables, left)
    }

    /// The same for inboxes deregistered before a full sync, which is over: nobody sends into them any more.
    pub(crate) fn let_go_of_removed(&mut self, tables: &Tables) -> Result<()> {
        let removed = std::mem::take(&mut self.removed);
        if removed.is_empty() {
            return Ok(());
        }
        let left = find_unread(tables, |number| {
            let found = removed.iter().find(|(removed, _)| *removed == number);
            found.map(|(_, inbox)| inbox.clone())
        });
        fail_for(tables, left)
    }
}

fn fail_for(tables: &Tables, left: Option<Unread>) -> Result<()> {
    let Some(Unread { left, from, to, stamp }) = left else { return Ok(()) };
    let (local, call) = (&tables.local, tables.links.call_of(stamp));
    Err(Error::fatal(to, local.superstep, left_unread(left, Some(from), call)))
}

/// How many messages of which process were sent into a ring of which one and not awaited, and the stamp of the first.
struct Unread {
    left: u64,
    from: Pid,
    to: Pid,
    stamp: u64,
}

/// What was sent here, after its link was closed, and not awaited.
fn find_unread(
    tables: &Tables,
    inbox: impl Fn(usize) -> Option<Arc<InboxMemory>>,
) -> Option<Unread> {
    let local = &tables.local;
    // Only rings that had a link: nobody sends into others.
    tables.links.known.counts.keys().filter(|stream| local.is_here(stream.to)).find_map(|stream| {
        let inbox = inbox(stream.inbox)?;
        let ring = local.ring_here(stream, inbox.shape);
        let owner = inbox.owner(ring);
        let is_closed = owner.granted.load(Ordering::Relaxed) == FREE;
        let released = owner.released.load(Ordering::Relaxed);
        if is_closed { left_in(&inbox, stream.to, ring, released) } else { None }
    })
}

/// What was sent into a ring beyond the `awaited` messages.
fn left_in(inbox: &InboxMemory, to: Pid, ring: usize, awaited: u64) -> Option<Unread> {
    let sender = inbox.sender(ring);
    let left = sender.sent.load(Ordering::Relaxed).saturating_sub(awaited);
    let (from, _) = process_of(sender.served.load(Ordering::Relaxed));
    (left > 0).then(|| {
        let stamp = inbox.cell(ring, awaited + 1).stamp.load(Ordering::Relaxed);
        Unread { left, from, to, stamp }
    })
}
