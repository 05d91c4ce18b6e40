//! The backend object: one process of a section between processes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contexts::Contexts;
use super::control::{Control, SectionId};
use super::links::Links;
use super::meeting::{Meeting, Way};
use super::superstep::{Larger, Scratch};
use super::traffic::Traffic;
use super::transport::{Rank, Transport};
use super::watch::Watch;
use super::wire::Summary;
use crate::arrivals::{Arrival, Call, Expect, InboxShape, InboxSlot, Link, Travel};
use crate::attr::SyncAttr;
use crate::check::SharedChecks;
use crate::context::Context;
use crate::error::{AtCaller, Error, Result};
use crate::lpf::{Awaited, Leaving, Lpf, Runtime};
use crate::machine::{Machine, Parameters};
use crate::process::Maker;
use crate::program::Program;
use crate::request;
use crate::runtime::{LocalState, Purpose};
use crate::slot::{GlobalSlot, LocalSlot, Registrant, Slot};
use crate::wait::Patience;
use crate::waits::Consult;
use crate::{Args, Pid};

/// The settings of process 0, which hold for all processes of a section. They are sent with the order to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Checked mode.
    pub check: bool,
    /// Strict mode.
    pub strict: bool,
    /// The longest that a process waits for the others of a superstep.
    pub timeout: Option<Duration>,
    /// The algorithm of the first exchange of a full sync; `None` for the cheaper one.
    pub exchange: Option<Way>,
    /// g and l, as the primitive probe gives them.
    pub parameters: Arc<Parameters>,
}

/// The network of one operating-system process, shared by its contexts: while an inner one runs, what
/// comes for the outer one is put where it belongs.
///
/// It belongs to the process that made it: a child that was forked has the same connections, on which each word of it
/// would be taken for one of its parent's.
#[derive(Debug)]
pub struct Network<T>(Arc<Mutex<Shared<T>>>, Maker);

impl<T> Clone for Network<T> {
    fn clone(&self) -> Self {
        Network(self.0.clone(), self.1)
    }
}

#[derive(Debug)]
pub(super) struct Shared<T> {
    pub(super) net: T,
    pub(super) contexts: Contexts,
}

impl<T: Transport> Network<T> {
    /// The network of this process.
    pub fn new(transport: T) -> Self {
        let contexts = Contexts::of(transport.rank(), transport.size());
        Network(Arc::new(Mutex::new(Shared { net: transport, contexts })), Maker::this())
    }

    /// The process whose network it is.
    #[inline]
    pub fn maker(&self) -> Maker {
        self.1
    }

    /// Only the thread that communicates takes it, so it is free.
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transport, once no section uses it any more; else nothing.
    pub fn into_transport(self) -> Option<T> {
        let shared = Arc::into_inner(self.0)?.into_inner();
        Some(shared.unwrap_or_else(PoisonError::into_inner).net)
    }

    /// Calls `f` with the transport.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock().net)
    }
}

/// Processes of this host and the cores they share, for how long a wait spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Processes of the network on this host.
    pub processes: usize,
    /// Cores they may use.
    pub cores: usize,
    /// Whether all of them say the same of that.
    pub is_agreed: bool,
    /// Processes of the whole network.
    pub world: Pid,
}

/// One process of a section: an operating-system process with a network.
#[derive(Debug)]
pub struct Process<T: Transport> {
    pub(super) local: LocalState,
    pub(super) network: Network<T>,
    pub(super) watch: Watch,
    pub(super) meeting: Meeting,
    pub(super) scratch: Scratch,
    /// What all said of themselves in the last meeting.
    pub(super) all: Summary,
    pub(super) links: Links,
    pub(super) traffic: Traffic,
    pub(super) environment: Arc<Environment>,
    pub(super) host: Host,
    /// The number of this context in the tags of its messages.
    pub(super) context: u32,
    /// Ranks that an exec from here may use beside this one.
    pub(super) free: Vec<Rank>,
    /// Sections begun from here so far, by exec and by rehook: parts of their names.
    pub(super) sections: u64,
    pub(super) rehooks: u64,
    /// Rings that the network can tell apart.
    pub(super) ring_limit: u32,
    /// Set by the first fatal error of this context.
    pub(super) dead: Option<Error>,
    pub(super) left: bool,
    pub(super) keeps_report: bool,
    /// False once somebody may write to this process's memory for ever.
    pub(super) quiet: bool,
}

/// What makes a process one of a section.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) section: SectionId,
    pub(super) members: Box<[Rank]>,
    pub(super) pid: Pid,
    pub(super) context: u32,
    pub(super) free: Vec<Rank>,
    /// Whoever began the section asks for its report afterwards.
    pub(super) keeps_report: bool,
}

impl<T: Transport> Process<T> {
    /// A member of a section, which counts on it from now on.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused.
    pub(super) fn new(
        network: Network<T>,
        environment: Arc<Environment>,
        host: Host,
        membership: Membership,
    ) -> Result<Self> {
        let Membership { section, members, pid, context, free, keeps_report } = membership;
        let nprocs = members.len() as Pid;
        let mut shared = network.lock();
        let patience = shared.net.patience(Patience::for_processes(host.processes, host.cores));
        let watch = Watch::new(section, members, pid, patience, environment.timeout);
        let way = environment.exchange.unwrap_or(Way::of(nprocs as usize));
        // First: the others learn of a refusal, too.
        shared.net.control().enter(section, &watch.members);
        shared.net.control().track(section, watch.supersteps.clone());
        let local = LocalState::new(pid, nprocs, environment.check.then(SharedChecks::default))?;
        let meeting = Meeting::new(way, &mut shared.net, &watch, context);
        let mut meeting = meeting.map_err(|error| error.at(&local))?;
        let scratch = match Scratch::new(&local, &meeting) {
            Ok(scratch) => scratch,
            Err(bytes) => {
                meeting.give_up(&mut shared.net, context);
                return Err(local.refused("messages", bytes));
            }
        };
        let ring_limit = shared.net.channels();
        drop(shared);
        let links = Links::new(pid, context, watch.members.clone());
        Ok(Process {
            local,
            network,
            watch,
            meeting,
            scratch,
            all: Summary::of(pid, Purpose::Sync),
            links,
            ring_limit,
            traffic: Traffic::new(way),
            environment,
            host,
            context,
            free,
            sections: 0,
            rehooks: 0,
            dead: None,
            left: false,
            keeps_report,
            quiet: true,
        })
    }

    /// What a resize changes.
    fn with_room(&mut self) -> (&mut LocalState, Larger<'_>) {
        let Process { local, meeting, scratch, .. } = self;
        (local, Larger { meeting, scratch })
    }

    #[inline]
    pub(super) fn alive(&self) -> Result<()> {
        match &self.dead {
            None => self.network.maker().check(self.local.pid, self.local.superstep),
            Some(dead) => Err(dead.clone()),
        }
    }

    /// The error of a process that was forked from the one whose section this is: it must not touch the network.
    pub(super) fn forked(&self) -> Option<Error> {
        self.network.maker().check(self.local.pid, self.local.superstep).err()
    }
}

impl<T: Transport> Process<T> {
    /// Ends this process's part of a failed section: from here on nobody touches its memory, or
    /// [`memory_is_quiet`](Runtime::memory_is_quiet) is false.
    #[cold]
    pub(super) fn die(&mut self, net: &mut T, report: Error) -> Error {
        if let Some(forked) = self.forked() {
            return forked;
        }
        if self.dead.is_none() {
            self.quiet &= self.scratch.close(net);
            self.quiet &= self.links.close(net);
            self.quiet &= self.meeting.close(net);
            self.keep_unless_quiet();
            self.links.keep_shared();
        }
        let local = &self.local;
        self.dead.get_or_insert_with(|| local.with_place(report)).clone()
    }

    /// As [`die`](Self::die), where the network is not at hand.
    #[cold]
    pub(super) fn end_with(&mut self, report: Error) -> Error {
        let network = self.network.clone();
        let mut shared = network.lock();
        self.die(&mut shared.net, report)
    }

    /// Keeps for ever the memory of this context's own that the network will not let go of.
    pub(super) fn keep_unless_quiet(&mut self) {
        if !self.quiet {
            self.scratch.keep();
            self.links.keep();
            self.meeting.keep();
        }
    }

    /// Fails the section for a reason of this process's own.
    #[cold]
    pub(super) fn fail_section(&mut self, error: Error) -> Error {
        if let Some(forked) = self.forked() {
            return forked;
        }
        let report = self.network.lock().net.control().declare(self.watch.section, error);
        self.end_with(report)
    }
}

// SAFETY: only this process writes to its memory: by receives that are posted inside a full sync (or
// for offers), into ranges checked against slots of that time, and that are finished, or cancelled, or
// said not to be quiet, before the sync returns, `leave` has returned or *fatal* is returned (`die`);
// sources are read until their sends have ended, which a full sync and a flush wait for; a cell is
// received into again only after it was released. Copies between processes do not exist here: what is
// moved inside this process is moved while its own thread is inside the call.
unsafe impl<T: Transport> Lpf for Process<T> {
    #[inline]
    fn pid(&self) -> Pid {
        self.local.pid
    }

    #[inline]
    fn nprocs(&self) -> Pid {
        self.local.nprocs
    }

    #[inline]
    fn superstep(&self) -> u64 {
        self.local.superstep
    }

    fn exec<P: Program>(&mut self, procs: Pid, program: P, args: Args<'_>) -> Result<()> {
        self.begin_section(procs, program, args)
    }

    fn rehook<F>(&mut self, args: Args<'_>, f: F) -> Result<()>
    where
        F: for<'r> FnOnce(&mut Context<'r, Self>, Args<'_>) -> Result<()>,
    {
        let inner = self.enter_rehook()?;
        crate::run_section(inner, args, f)
    }

    #[track_caller]
    unsafe fn register_local(
        &mut self,
        base: *mut u8,
        bytes: usize,
        registrant: Registrant,
    ) -> Result<LocalSlot> {
        self.local.register_local(base, bytes, registrant)
    }

    #[track_caller]
    unsafe fn register_global(
        &mut self,
        base: *mut u8,
        bytes: usize,
        shape: u64,
    ) -> Result<GlobalSlot> {
        self.local.register_global(base, bytes, shape)
    }

    #[track_caller]
    fn deregister(&mut self, slot: Slot) -> Result<()> {
        self.links.table.check_unused(&self.local, slot).at_caller()?;
        self.local.deregister(slot)
    }

    #[inline]
    #[track_caller]
    fn put(
        &mut self,
        src: Slot,
        src_offset: usize,
        to: Pid,
        dst: GlobalSlot,
        dst_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.local.request(request::Way::Put, src, src_offset, to, dst, dst_offset, bytes)
    }

    #[inline]
    #[track_caller]
    fn get(
        &mut self,
        from: Pid,
        src: GlobalSlot,
        src_offset: usize,
        dst: Slot,
        dst_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.local.request(request::Way::Get, dst, dst_offset, from, src, src_offset, bytes)
    }

    fn sync(&mut self, attr: SyncAttr<'_>) -> Result<()> {
        match attr {
            SyncAttr::Default | SyncAttr::NoConflict => self.full_sync(attr),
            SyncAttr::Expected(messages) => {
                self.expect_messages(messages)?;
                self.wait_for(Awaited::Messages(messages))
            }
            SyncAttr::Flush => {
                self.expect_messages(&[])?;
                self.wait_for(Awaited::Flushed)
            }
        }
    }

    fn probe(&self) -> Machine {
        let parameters = self.environment.parameters.clone();
        let all = self.host.world;
        let machine = Machine::new(all, self.free.len() as Pid + 1, self.local.nprocs, parameters);
        let Host { processes, cores, is_agreed, .. } = self.host;
        if is_agreed && processes == all as usize { machine.on_cores(cores) } else { machine }
    }

    #[track_caller]
    fn resize_memory_register(&mut self, slots: usize) -> Result<()> {
        let (local, mut room) = self.with_room();
        local.resize_slots(&mut room, slots)
    }

    #[track_caller]
    fn resize_message_queue(&mut self, requests: usize) -> Result<()> {
        let (local, mut room) = self.with_room();
        local.resize_requests(&mut room, requests)
    }
}

impl<T: Transport> crate::Links for Process<T> {
    fn register_inbox(&mut self, shape: InboxShape) -> Result<InboxSlot> {
        self.alive()?;
        self.add_inbox(shape)
    }

    fn deregister_inbox(&mut self, inbox: InboxSlot) -> Result<()> {
        self.alive()?;
        self.remove_inbox(inbox)
    }

    fn open(&mut self, inbox: InboxSlot, ring: u32, peer: Pid, peer_ring: u32) -> Result<Link> {
        self.open_link(inbox, ring, peer, peer_ring)
    }

    fn close(&mut self, link: Link) -> Result<()> {
        self.alive()?;
        self.close_link(link)
    }

    #[inline]
    #[track_caller]
    fn send(
        &mut self,
        link: Link,
        src: Slot,
        src_offset: usize,
        bytes: usize,
        travel: Travel,
    ) -> Result<()> {
        self.put_on(link, src, src_offset, bytes, travel).at_caller()
    }

    #[track_caller]
    fn offer(&mut self, link: Link, slot: Slot, offset: usize, bytes: usize) -> Result<u64> {
        self.offer_on(link, slot, offset, bytes).at_caller()
    }

    fn landing_pays_from(&self, link: Link) -> Result<usize> {
        self.landing_pays_from_on(link)
    }

    fn longest_part(&self, link: Link) -> Result<usize> {
        self.longest_part_on(link)
    }

    fn post(&mut self) -> Result<()> {
        self.poll_for(Awaited::FlushedOn(&[])).map(|_| ())
    }

    fn expect(&mut self, messages: &[Expect]) -> Result<()> {
        self.expect_messages(messages)
    }

    fn poll(&mut self, awaited: Awaited<'_>) -> Result<bool> {
        self.poll_for(awaited)
    }

    fn arrival(&self, link: Link, nth: u64) -> Result<Arrival> {
        self.arrived(link, nth)
    }

    fn awaited(&self, link: Link) -> Result<u64> {
        self.awaited_on(link)
    }

    fn hold(&mut self, link: Link, nth: u64) -> Result<()> {
        self.links.table.hold(&self.local, link, nth)
    }

    fn release(&mut self, link: Link, nth: u64) -> Result<()> {
        self.links.table.release(&self.local, link, nth, false).map(|_| ())
    }

    fn release_held(&mut self, link: Link, nth: u64) -> Result<()> {
        self.links.table.release(&self.local, link, nth, true).map(|_| ())
    }
}

impl<T: Transport> Runtime for Process<T> {
    type Board = <T::Control as Control>::Board;

    fn leave(&mut self, how: Leaving) -> Result<()> {
        self.leave_section(how)
    }

    fn abandon(&mut self, slot: GlobalSlot, block: usize) {
        self.local.slots.abandon(slot, block);
    }

    #[inline]
    fn abandoned_block(&mut self) -> Option<usize> {
        self.local.slots.abandoned_block()
    }

    fn strict(&self) -> bool {
        self.environment.strict
    }

    #[track_caller]
    fn reserve(&mut self, slots: usize, requests: usize) -> Result<()> {
        let (local, mut room) = self.with_room();
        local.reserve(&mut room, slots, requests)
    }

    fn suspend(&mut self) -> Result<()> {
        self.local.suspend()
    }

    fn restore(&mut self) {
        self.local.restore();
    }

    fn consult<R>(
        &mut self,
        wait: Consult<'_>,
        found: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        self.consult_board(wait, found)
    }

    fn enter(&mut self, call: Call) {
        self.links.table.call = call;
    }

    fn fail(&mut self, error: Error) -> Error {
        self.fail_section(error)
    }

    fn board(&self) -> Self::Board {
        let shared = self.network.lock();
        shared.net.control().board(self.watch.section, self.local.pid, self.local.nprocs)
    }

    fn memory_is_quiet(&self) -> bool {
        self.quiet
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.traffic)
    }
}
