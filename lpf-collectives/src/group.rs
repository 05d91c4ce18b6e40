//! The members of a group and the links between them.

use std::rc::Rc;

use lpf_core::arrivals::{Call, Link, call_name};
use lpf_core::{Lpf, Pid, Raw, Result};

use crate::algorithms::Member;
use crate::shared::{Shared, Stamp};

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
    rings: Box<[u32]>,
    links: Box<[Option<Link>]>,
    /// Puts on each, and how many flushes came before them.
    puts: Box<[(u64, usize)]>,
}

impl Group {
    /// Of these processes, whose rings begin at `rings`.
    pub(crate) fn new(members: Rc<[Pid]>, me: usize, id: u64, rings: Box<[u32]>) -> Self {
        let links = vec![None; members.len()].into_boxed_slice();
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
        let (own, theirs) =
            (self.rings[self.me] + member as u32, self.rings[member] + self.me as u32);
        let link = raw.open(shared.inbox, own, self.members[member], theirs)?;
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
    pub(crate) fn enter<L: Lpf>(
        &mut self,
        raw: &mut Raw<'_, L>,
        name: &'static str,
        hash: u32,
    ) -> Stamp {
        self.calls += 1;
        let (number, name) = (self.calls, call_name(name));
        raw.enter(Call { group: self.id, number, stamp: hash, name });
        Stamp { number, hash }
    }

    /// Links and rings, given up.
    pub(crate) fn take_links(&mut self) -> (Vec<Link>, u32, u32) {
        let links = self.links.iter_mut().filter_map(Option::take).collect();
        (links, self.rings[self.me], self.members.len() as u32)
    }
}
