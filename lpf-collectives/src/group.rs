//! The members of a group and the links between them.

use std::panic::Location;
use std::rc::Rc;

use lpf_core::arrivals::{Call, Link, Travel};
use lpf_core::{CallValues, Expect, Lpf, Pid, Raw, Result, SyncAttr};

use crate::algorithms::{Member, doublings};
use crate::kinds::NAMES;
use crate::shared::Shared;

/// One process's view of a group.
#[derive(Debug)]
pub(crate) struct Group {
    /// Processes, by their place in the group.
    members: Rc<[Pid]>,
    me: usize,
    /// The same at every member, and no other group's.
    id: u64,
    /// Collectives called so far.
    calls: u32,
    /// Groups made of it so far.
    pub(crate) children: u64,
    /// The ring that the first member's messages come to, here and at every member.
    rings: Box<[usize]>,
    /// With every member; in strict mode a part of the context has as many again, for its barriers.
    links: Box<[Option<Link>]>,
    /// Puts on each, and how many flushes came before them.
    puts: Box<[(u64, usize)]>,
}

impl Group {
    /// The rings that a group of so many members takes at each.
    pub(crate) fn rings(members: usize, barriers: bool) -> usize {
        members.saturating_mul(if barriers { 2 } else { 1 })
    }

    /// Of these processes, whose rings begin at `rings`.
    pub(crate) fn new(
        members: Rc<[Pid]>,
        me: usize,
        id: u64,
        rings: Box<[usize]>,
        barriers: bool,
    ) -> Self {
        let links = vec![None; Self::rings(members.len(), barriers)].into_boxed_slice();
        let puts = vec![(0, 0); members.len()].into_boxed_slice();
        Group { members, me, id, calls: 0, children: 0, rings, links, puts }
    }

    pub(crate) fn member(&self) -> Member {
        Member { me: self.me, members: self.members.len() }
    }

    pub(crate) fn members(&self) -> &Rc<[Pid]> {
        &self.members
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The process of a member.
    pub(crate) fn pid(&self, member: usize) -> Pid {
        self.members[member]
    }

    /// Whether rounds end in barriers among the members: strict mode, in a part of the context.
    pub(crate) fn has_barriers(&self) -> bool {
        self.links.len() > self.members.len()
    }

    /// Waits for all members: a dissemination of empty messages, on links of its own.
    pub(crate) fn barrier<L: Lpf>(
        &mut self,
        raw: &mut Raw<'_, L>,
        shared: &Shared,
        values: Option<&dyn CallValues>,
    ) -> Result<()> {
        let members = self.members.len();
        for distance in doublings(members) {
            let (to, from) =
                ((self.me + distance) % members, (self.me + members - distance) % members);
            let (out, into) =
                (self.link(raw, shared, members + to)?, self.link(raw, shared, members + from)?);
            let slot = shared.scratch.slot;
            // SAFETY: no byte is sent.
            unsafe { raw.send(out, slot, 0, 0, Travel::Cell)? };
            raw.sync_in_call(SyncAttr::Expected(&[Expect::one(into)]), values)?;
        }
        Ok(())
    }

    /// The link with a member; opened when it is used first.
    #[inline]
    pub(crate) fn link<L: Lpf>(
        &mut self,
        raw: &mut Raw<'_, L>,
        shared: &Shared,
        member: usize,
    ) -> Result<Link> {
        match self.links[member] {
            Some(link) => Ok(link),
            None => self.open(raw, shared, member),
        }
    }

    #[cold]
    fn open<L: Lpf>(
        &mut self,
        raw: &mut Raw<'_, L>,
        shared: &Shared,
        member: usize,
    ) -> Result<Link> {
        // Links of barriers are behind the others.
        let (peer, before) = (member % self.members.len(), member / self.members.len());
        let me = before * self.members.len() + self.me;
        let (own, theirs) = (self.rings[self.me] + member, self.rings[peer] + me);
        let link = raw.open(shared.inbox, own, self.members[peer], theirs)?;
        self.links[member] = Some(link);
        Ok(link)
    }

    /// Puts to a member since flush number `flushes`.
    #[inline]
    pub(crate) fn puts_since(&self, member: usize, flushes: u64) -> usize {
        let (at, puts) = self.puts[member];
        if at == flushes { puts } else { 0 }
    }

    #[inline]
    pub(crate) fn count_put(&mut self, member: usize, flushes: u64) {
        self.puts[member] = (flushes, self.puts_since(member, flushes) + 1);
    }

    /// Says what this member is in: the next collective of the group.
    #[inline]
    #[track_caller]
    pub(crate) fn enter<L: Lpf>(&mut self, raw: &mut Raw<'_, L>, stamp: u32) -> Call {
        self.calls += 1;
        let (number, place) = (self.calls, Some(Location::caller()));
        let call = Call { group: self.id, number, stamp, names: Some(&NAMES), place };
        raw.enter(call);
        call
    }

    /// Links and rings, given up.
    pub(crate) fn take_links(&mut self) -> (Vec<Link>, usize, usize) {
        let links = self.links.iter_mut().filter_map(Option::take).collect();
        (links, self.rings[self.me], self.links.len())
    }
}
