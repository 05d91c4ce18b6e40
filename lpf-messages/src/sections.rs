//! Entering and leaving sections: exec on processes that serve, rehook, the closing meeting.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::blob::{Bad, Incoming, Outgoing};
use super::code::CodePlace;
use super::contexts::Contexts;
use super::control::{Control, Order, SectionId};
use super::job::{Environment, Host, Network, Shared};
use super::process::{Membership, Messages, enter};
use super::tags;
use super::transport::{Rank, Transport};
use super::watch::{Stop, Watch};
use super::wire::nonsense;
use lpf_core::Pid;
use lpf_core::args::{Args, Symbol};
use lpf_core::error::{Cause, Error, Result};
use lpf_core::runtime::{LocalState, Medium, Process, Section, Waiting, check_processes};
use lpf_core::wait::Patience;
use lpf_core::waits::Status;

/// What a process that serves is told of the section it is to begin.
#[derive(Debug, Serialize, Deserialize)]
struct Start {
    context: u32,
    environment: Environment,
    /// The function that knows the section's type.
    serve: CodePlace,
    symbols: Vec<[CodePlace; 2]>,
    /// By pid, the ranks that an exec from there may use.
    free: Vec<Vec<Rank>>,
}

/// What a serving process calls.
type Serve<T> = unsafe fn(Process<Messages<T>>, &[Symbol]) -> Result<()>;

/// Runs one process of a section of type `S`.
///
/// # Safety
/// `S` has no size, and the process that gave the order had a value of it.
unsafe fn serve<T: Transport, S: Section<Messages<T>>>(
    process: Process<Messages<T>>,
    symbols: &[Symbol],
) -> Result<()> {
    // SAFETY: a value without size may be read from any aligned address that is not null. It is a copy of the value that
    // the process that gave the order had, and a section may be copied, and sent to another thread.
    let section: S = unsafe { std::ptr::NonNull::<S>::dangling().read() };
    section(process, Args { symbols, ..Args::none() })
}

/// Begins the section of an order, and runs it to its end. A failure of the section is the inner
/// result, and is in the report that process 0 returns.
///
/// # Errors
/// *Fatal* if this process cannot follow such an order, which the other members have learned, too. It will
/// follow none from there: most likely it runs another build.
pub fn follow<T: Transport>(network: &Network<T>, host: Host, order: Order) -> Result<Result<()>> {
    let rank = network.with(|net| net.rank());
    let section = order.section;
    let declare = |error: Error| {
        network.with(|net| net.control().enter(section, &order.members));
        let report = network.with(|net| net.control().declare(section, error));
        network.with(|net| net.control().leave(section));
        report
    };
    // The report that stands may be another process's: what is wrong with this one is said here.
    let fail = |error: Error| {
        declare(error.clone());
        error
    };
    let pid = order.members.iter().position(|&member| member == rank);
    let Some(pid) = pid else {
        let text = "an order came that is not for this process".into();
        return Err(fail(Error::fatal(0, 0, Cause::Protocol(text))));
    };
    let start: Start = match postcard::from_bytes(&order.bytes) {
        Ok(start) => start,
        Err(error) => {
            let text = format!("an order to begin a section cannot be read: {error}");
            return Err(fail(Error::fatal(pid, 0, Cause::Protocol(text))));
        }
    };
    let membership = Membership {
        section,
        members: order.members.clone().into(),
        pid,
        context: start.context,
        free: start.free.get(pid).cloned().unwrap_or_default(),
        keeps_report: false,
    };
    let found = start.serve.address().and_then(|serve| {
        let symbols = start.symbols.iter().map(|[function, signature]| {
            let addresses = [function.address()?, signature.address()?];
            // SAFETY: the addresses of the same places of the same build, as the places' names say.
            Ok(unsafe { Symbol::from_addresses(addresses) })
        });
        Ok((serve, symbols.collect::<std::result::Result<Vec<_>, String>>()?))
    });
    let (serve, symbols) = match found {
        Ok(found) => found,
        Err(text) => return Err(fail(Error::fatal(pid, 0, Cause::Setting(text)))),
    };
    let process = enter(network, Arc::new(start.environment), host, membership);
    let process = match process {
        Ok(process) => process,
        Err(error) => {
            let cause = Cause::Returned { message: error.to_string() };
            return Ok(Err(declare(Error::fatal(pid, 0, cause))));
        }
    };
    // SAFETY: the place is that of `serve::<T, S>` in this very build, because the process that gives orders over
    // this network has the same T; and its `exec` had a value of S, and found that it has no size.
    let ended = unsafe {
        let address = std::ptr::with_exposed_provenance::<()>(serve);
        std::mem::transmute::<*const (), Serve<T>>(address)(process, &symbols)
    };
    Ok(ended)
}

/// Runs `f` on all processes of a network, which call this together. It makes a context of
/// its process with [`run_section`](lpf_core::run_section), which leaves the section. The environment is process 0's.
///
/// # Errors
/// *Fatal* if the section failed; it has, too, if memory is refused to one of them.
pub fn hook<T, F, R>(
    network: &Network<T>,
    environment: Environment,
    host: Host,
    section: SectionId,
    f: F,
) -> Result<R>
where
    T: Transport,
    F: FnOnce(Process<Messages<T>>) -> Result<R>,
{
    let (rank, size) = network.with(|net| (net.rank(), net.size()));
    let members: Box<[Rank]> = (0..size).collect();
    let agreed = {
        let mut taken = network.take();
        taken.net().control().enter(section, &members);
        agree(taken.get(), &members, section, environment, host)
    };
    let process = agreed.and_then(|Agreed { context, environment }| {
        let (pid, free) = (rank, Vec::new());
        let membership = Membership { section, members, pid, context, free, keeps_report: false };
        let process = enter(network, Arc::new(environment), host, membership);
        process.map_err(|error| {
            let cause = Cause::Returned { message: error.to_string() };
            let error = Error::fatal(rank, 0, cause);
            network.with(|net| net.control().declare(section, error))
        })
    });
    let process = process.inspect_err(|_| network.with(|net| net.control().leave(section)))?;
    f(process)
}

/// A process that waits for process 0's word.
struct Hooking;

impl Waiting for Hooking {
    fn status(&self, _medium: &impl Medium) -> Status {
        Status::default()
    }

    fn missing(&self, _medium: &impl Medium) -> Pid {
        0
    }

    fn superstep(&self) -> u64 {
        0
    }

    /// Process 0 says it before it does anything else, so it is on its way whatever has failed.
    fn is_concerned_by(&self, _report: &Error) -> bool {
        false
    }
}

/// What process 0 of a hook tells the others.
#[derive(Debug, Serialize, Deserialize)]
struct Agreed {
    context: u32,
    environment: Environment,
}

/// A number for the section and process 0's environment, at every process.
fn agree<T: Transport>(
    shared: &mut Shared<T>,
    members: &[Rank],
    section: SectionId,
    environment: Environment,
    host: Host,
) -> Result<Agreed> {
    let Shared { net, contexts } = shared;
    let (rank, tag) = (net.rank(), tags::hook(section));
    let patience = Patience::for_processes(host.processes, host.cores);
    // Of process 0's environment nothing is known yet.
    let limit = environment.timeout;
    let mut watch = Watch::new(section, members.into(), rank, [patience; 2], limit);
    if rank == 0 {
        let none = || net.control().declare(section, Error::fatal(0, 0, used_up()));
        let context = contexts.give().ok_or_else(none)?;
        let agreed = Agreed { context, environment };
        let mut out = Outgoing::new(postcard::to_stdvec(&agreed).map_err(Error::setting)?);
        let mut others = members[1..].iter();
        let sent = match others.try_for_each(|&other| out.send(net, other, tag)) {
            Err(stop) => Err(watch.stopped(net.control(), 0, stop)),
            Ok(()) => watch.wait(net, &mut Hooking, |_, net| out.has_left(net)),
        };
        out.give_up(net);
        return sent.map(|()| agreed);
    }
    let bad = || nonsense(0, 0);
    let mut coming = match Incoming::post(net, members[0], tag) {
        Err(stop) => return Err(watch.stopped(net.control(), 0, stop)),
        Ok(coming) => coming,
    };
    let come = watch.wait(net, &mut Hooking, |_, net| {
        coming.has_come(net).map_err(|no| match no {
            Bad::Stopped(stop) => stop,
            Bad::TooLong => Stop::Fatal(bad()),
        })
    });
    if let Err(error) = come {
        coming.give_up(net);
        return Err(error);
    }
    let read = postcard::from_bytes(&coming.into_bytes());
    read.map_err(|_| net.control().declare(section, bad()))
}

/// Runs a section on up to `procs` processes, this one being process 0, which runs `own`, the others taken from `free`.
///
/// # Errors
/// *Mitigable* if memory is refused, *fatal* if the section failed.
#[allow(clippy::too_many_arguments)]
pub fn exec<T: Transport, R>(
    network: &Network<T>,
    environment: &Arc<Environment>,
    host: Host,
    id: SectionId,
    procs: Pid,
    free: &[Rank],
    args: Args<'_>,
    section: impl Section<Messages<T>>,
    own: impl FnOnce(Process<Messages<T>>, Args<'_>) -> Result<R>,
) -> Result<R> {
    check_processes(procs)?;
    let others = (procs - 1).min(free.len());
    let (chosen, spare) = free.split_at(others);
    let this = network.with(|net| net.rank());
    let members: Vec<Rank> = std::iter::once(this).chain(chosen.iter().copied()).collect();
    let shares = share(spare, members.len());
    let context = network.take().get().contexts.give().ok_or_else(|| Error::refused(used_up()))?;
    let mine = shares[0].clone();
    if others > 0 {
        let place = |address: usize| CodePlace::of(address).map_err(Error::setting);
        let symbols = args.symbols.iter().map(|symbol| {
            let [function, signature] = symbol.to_addresses();
            Ok([place(function)?, place(signature)?])
        });
        let start = Start {
            context,
            environment: (**environment).clone(),
            serve: place(serve_of(&section) as usize)?,
            symbols: symbols.collect::<Result<_>>()?,
            free: shares,
        };
        let bytes = postcard::to_stdvec(&start).map_err(Error::setting)?;
        let order = Order { section: id, members: members.clone(), bytes };
        network.with(|net| net.control().order(order))?;
    }
    let membership = Membership {
        section: id,
        members: members.into(),
        pid: 0,
        context,
        free: mine,
        keeps_report: true,
    };
    let process = enter(network, environment.clone(), host, membership);
    let process = process.inspect_err(|error| {
        network.with(|net| {
            if others > 0 {
                // The others have begun.
                let cause = Cause::Returned { message: error.to_string() };
                net.control().declare(id, Error::fatal(0, 0, cause));
            }
            net.control().leave(id);
        });
    })?;
    let result = own(process, args);
    // In a child that was forked inside, the control plane is its parent's.
    if !network.maker().is_here() {
        let fatal = result.err().filter(Error::is_fatal);
        return Err(fatal.unwrap_or_else(|| network.maker().forked(0, 0)));
    }
    // Whoever failed, it is the section's failure that ends it: the same for all, with its place.
    let report = network.with(|net| {
        let report = net.control().failure(id);
        net.control().leave(id);
        report
    });
    match report {
        Some(report) => Err(report),
        None => result,
    }
}

/// The function by which another process serves a section of this type.
///
/// # Panics
/// If the section captures variables. The calls of users do not compile then.
fn serve_of<T: Transport, S: Section<Messages<T>>>(_section: &S) -> Serve<T> {
    assert!(size_of::<S>() == 0, "a section of other processes captures nothing");
    serve::<T, S>
}

/// After two thousand million sections of process 0's, or what the others share.
#[cold]
fn used_up() -> Cause {
    Cause::Setting("no section can begin: all numbers of sections are used".into())
}

/// Even shares of what is free, the remainder to low numbers.
fn share(free: &[Rank], processes: usize) -> Vec<Vec<Rank>> {
    let mut rest = free;
    (0..processes)
        .map(|pid| {
            let count = free.len() / processes + usize::from(pid < free.len() % processes);
            let (own, others) = rest.split_at(count);
            rest = others;
            own.to_vec()
        })
        .collect()
}

impl SectionId {
    /// The `nth` section begun from this one by process `pid`; by all processes, if that is `None`.
    pub fn child(self, nth: u64, pid: Option<Pid>) -> Self {
        let mut hash = self.0 ^ 0x9e37_79b9_7f4a_7c15;
        for word in [nth, pid.map_or(u64::MAX, |pid| pid as u64)] {
            hash = (hash.rotate_left(23) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
            hash ^= hash >> 31;
        }
        SectionId(hash)
    }
}

impl<T: Transport> Messages<T> {
    pub(super) fn begin_section<R>(
        &mut self,
        local: &LocalState,
        procs: Pid,
        args: Args<'_>,
        section: impl Section<Self>,
        own: impl FnOnce(Process<Self>, Args<'_>) -> Result<R>,
    ) -> Result<R> {
        self.sections += 1;
        let id = self.protocol.watch.section.child(self.sections, Some(local.pid));
        let Messages { network, environment, host, free, .. } = self;
        exec(network.put_back(), environment, *host, id, procs, free, args, section, own)
    }

    /// This process of the inner context, after the meeting.
    pub(super) fn enter_inner(&mut self, local: &LocalState) -> Result<Process<Self>> {
        let context = self.protocol.all.context;
        if context == Contexts::NONE {
            return Err(Error::fatal(0, local.superstep, used_up()));
        }
        self.rehooks += 1;
        let section = self.protocol.watch.section.child(self.rehooks, None);
        let membership = Membership {
            section,
            members: self.protocol.watch.members.clone(),
            pid: local.pid,
            context,
            free: self.free.clone(),
            keeps_report: false,
        };
        let network = self.network.put_back();
        let inner = enter(network, self.environment.clone(), self.host, membership);
        inner.inspect_err(|error| {
            let cause = Cause::Returned { message: error.to_string() };
            let error = Error::fatal(local.pid, 0, cause);
            network.with(|net| {
                net.control().declare(section, error);
                net.control().leave(section);
            });
        })
    }
}
