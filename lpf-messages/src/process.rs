//! The engine of one process of a section between processes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::control::{Control, SectionId};
use super::job::{Environment, Host, Network, Taken};
use super::links::Rings;
use super::meeting::{Meeting, exchange_for};
use super::protocol::Protocol;
use super::superstep::{Larger, Scratch};
use super::traffic::Traffic;
use super::transport::{Rank, Transport};
use super::watch::{OnNetwork, Watch, now};
use super::wire::Summary;
use lpf_core::arrivals::{Arrival, InboxShape, InboxSlot, Link};
use lpf_core::attr::SyncAttr;
use lpf_core::check::SharedChecks;
use lpf_core::error::{Error, Result};
use lpf_core::machine::Machine;
use lpf_core::process::Maker;
use lpf_core::runtime::links::{OpenLink, Opening};
use lpf_core::runtime::{
    Announced, Engine, LinkCall, LocalState, Process, Purpose, Room, Section, Tables,
};
use lpf_core::wait::Patience;
use lpf_core::{Args, Pid};

/// The message-passing protocol as the engine of one process of a section.
#[derive(Debug)]
pub struct Messages<T: Transport> {
    pub(super) network: Taken<T>,
    pub(super) protocol: Protocol,
    pub(super) environment: Arc<Environment>,
    pub(super) host: Host,
    /// Ranks that an exec from here may use beside this one.
    pub(super) free: Vec<Rank>,
    /// Sections begun from here so far, by exec and by rehook: parts of their names.
    pub(super) sections: u64,
    pub(super) rehooks: u64,
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

/// A member of a section, which counts on it from now on.
///
/// # Errors
/// *Mitigable* if memory is refused.
pub(super) fn enter<T: Transport>(
    network: &Network<T>,
    environment: Arc<Environment>,
    host: Host,
    membership: Membership,
) -> Result<Process<Messages<T>>> {
    let Membership { section, members, pid, context, free, keeps_report } = membership;
    let nprocs = members.len();
    let mut network = network.take();
    let shared = network.get();
    let patience = patience_of(&shared.net, host.processes, host.cores);
    let watch = Watch::new(section, members, pid, patience, environment.timeout);
    let way = environment.exchange.unwrap_or(exchange_for(nprocs));
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
    let protocol = Protocol {
        rings: Rings::new(context, watch.members.clone()),
        watch,
        meeting,
        scratch,
        all: Summary::of(&local, Purpose::Sync),
        traffic: Traffic::new(way),
        context,
    };
    let engine = Messages {
        network,
        protocol,
        environment,
        host,
        free,
        sections: 0,
        rehooks: 0,
        keeps_report,
        quiet: true,
    };
    Ok(Process::of(local, engine).enter())
}

/// How long waits spin among `processes` on `cores`: for one process, and for all.
fn patience_of<T: Transport>(net: &T, processes: usize, cores: usize) -> [Patience; 2] {
    let patience = Patience::for_processes(processes, cores);
    [patience, patience.for_all()].map(|each| net.patience(each))
}

impl<T: Transport> Messages<T> {
    /// The messages that this process has sent.
    pub fn traffic(&self) -> Traffic {
        self.protocol.traffic
    }

    /// Ends links and meetings, and keeps for ever the memory of this context's own that the network will not let go of.
    fn close(&mut self, tables: &mut Tables) {
        let net = self.network.net();
        self.quiet &= self.protocol.rings.close(net, &mut tables.links);
        self.quiet &= self.protocol.meeting.close(net);
        if !self.quiet {
            self.protocol.scratch.keep();
            self.protocol.rings.keep();
            self.protocol.meeting.keep();
        }
    }
}

// SAFETY: only this process writes to its memory: by receives that are posted inside a full sync (or
// for offers), into ranges checked against slots of that time, and that are finished, or cancelled, or
// said not to be quiet, before the sync returns, or `leave` or `give_up` has returned;
// sources are read until their sends have ended, which a full sync and a flush wait for; a cell is
// received into again only after it was released. Copies between processes do not exist here: what is
// moved inside this process is moved while its own thread is inside the call.
unsafe impl<T: Transport> Engine for Messages<T> {
    type Board = <T::Control as Control>::Board;

    #[inline]
    fn maker(&self) -> Maker {
        self.network.maker()
    }

    fn strict(&self) -> bool {
        self.environment.strict
    }

    fn machine(&self, local: &LocalState) -> Machine {
        let parameters = self.environment.parameters.clone();
        let all = self.host.world;
        let machine = Machine::new(all, self.free.len() + 1, local.nprocs, parameters);
        let Host { processes, cores, is_agreed, .. } = self.host;
        if is_agreed && processes == all { machine.on_cores(cores) } else { machine }
    }

    fn now(&self) -> Duration {
        now()
    }

    fn board(&self, local: &LocalState) -> Self::Board {
        let section = self.protocol.watch.section;
        self.network.with(|net| net.control().board(section, local.pid, local.nprocs))
    }

    fn memory_is_quiet(&self) -> bool {
        self.quiet
    }

    fn stand_for(&mut self, local: &LocalState) {
        let Some(residents) = &local.residents else { return };
        let Protocol { watch, rings, .. } = &mut self.protocol;
        rings.nodes = Some(residents.nodes().clone());
        let (net, Host { processes, cores, .. }) = (self.network.net(), self.host);
        // The other members of this host are taken to be nodes like this one.
        let patience = patience_of(net, processes.saturating_mul(residents.processes()), cores);
        watch.stand_for(net.control(), residents, patience);
    }

    fn room(&mut self) -> impl Room + '_ {
        let Protocol { meeting, scratch, .. } = &mut self.protocol;
        Larger { meeting, scratch }
    }

    fn meet(
        &mut self,
        tables: &mut Tables,
        purpose: Purpose,
        attr: SyncAttr<'_>,
    ) -> Result<Announced> {
        self.protocol.meet(self.network.get(), tables, purpose, attr)
    }

    fn end_barrier(&mut self, tables: &mut Tables, purpose: Purpose) -> Result<()> {
        let net = self.network.net();
        self.protocol.send_off(net, tables)?;
        // After the last meeting nobody is met again: some may have left already.
        if purpose == Purpose::Close { Ok(()) } else { self.protocol.finish(net, &tables.local) }
    }

    fn check_superstep(&mut self, tables: &mut Tables) -> Result<()> {
        self.protocol.check_requests(self.network.net(), tables)
    }

    fn agreed(&self, _local: &LocalState) -> lpf_core::runtime::Summary {
        self.protocol.all.common
    }

    fn complete(
        &mut self,
        tables: &mut Tables,
        _announced: Announced,
        found: Result<()>,
    ) -> Result<()> {
        found?;
        self.protocol.phases(self.network.net(), tables)
    }

    fn apply(&mut self, _tables: &mut Tables, announced: Announced) -> Result<()> {
        if announced.has(Announced::RESIZED) {
            self.protocol.scratch.apply();
        }
        self.protocol.rings.let_go_of_removed();
        Ok(())
    }

    #[inline]
    fn end_superstep(&mut self, superstep: u64) {
        self.protocol.watch.supersteps.store(superstep, Ordering::Relaxed);
    }

    fn declare(&mut self, _local: &LocalState, error: Error) -> Error {
        self.network.net().control().declare(self.protocol.watch.section, error)
    }

    fn give_up(&mut self, tables: &mut Tables) {
        self.quiet &= self.protocol.scratch.close(self.network.net());
        self.close(tables);
        self.protocol.rings.keep_shared();
    }

    fn exec<R>(
        &mut self,
        local: &LocalState,
        procs: Pid,
        args: Args<'_>,
        section: impl Section<Self>,
        own: impl FnOnce(Process<Self>, Args<'_>) -> Result<R>,
    ) -> Result<R> {
        self.begin_section(local, procs, args, section, own)
    }

    fn rehook(&mut self, local: &LocalState) -> Result<Process<Self>> {
        self.enter_inner(local)
    }

    fn leave(&mut self, tables: &mut Tables, has_failed: bool) {
        if !has_failed {
            self.close(tables);
        }
        let net = self.network.net();
        net.forget(self.protocol.context);
        if !self.keeps_report {
            self.protocol.watch.sections().for_each(|section| net.control().leave(section));
        }
    }

    fn add_inbox(&mut self, local: &LocalState, shape: InboxShape) -> Result<()> {
        self.protocol.rings.add(self.network.net(), local, shape)
    }

    fn remove_inbox(&mut self, _local: &LocalState, inbox: InboxSlot) {
        self.protocol.rings.remove(inbox, self.quiet);
    }

    fn open(&mut self, tables: &mut Tables, opening: Opening) -> Result<Link> {
        self.protocol.rings.open(self.network.net(), tables, opening)
    }

    fn on_links<C: LinkCall>(&mut self, tables: &mut Tables, call: C) -> Result<C::Output> {
        let Protocol { watch, rings, .. } = &mut self.protocol;
        let net = self.network.net();
        let result = call.run(&mut OnNetwork::new(watch, net, rings), tables);
        self.quiet &= self.protocol.rings.is_quiet;
        result
    }

    fn landing_pays_from(&self, link: &OpenLink) -> usize {
        if self.protocol.rings.is_near(link) {
            usize::MAX
        } else {
            link.shape.cell_bytes.saturating_add(1)
        }
    }

    fn arrival(&self, link: &OpenLink, nth: u64) -> Arrival {
        self.protocol.rings.arrival(link, nth)
    }
}
