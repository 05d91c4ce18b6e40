//! The job of a program, over the network that connects its processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lpf_control::Job;
use lpf_control::plane::ControlPlane;
use lpf_core::runtime::Process;
use lpf_core::settings::Pin;
use lpf_core::{Args, Error, Pid, Result};
use lpf_hybrid::{Hybrid, run_node};
use lpf_messages::{Environment, Messages, Transport};
use lpf_pthreads::Config;
use lpf_tcp::TcpJob;

use super::{AnyEngine, run};
use crate::Context;

/// A process that has joined a job.
#[derive(Debug)]
pub(crate) struct AnyJob {
    network: Network,
    /// Its threads, if it is a node.
    threads: Option<Pid>,
}

/// A process on its network.
#[derive(Debug)]
enum Network {
    Tcp(TcpJob),
    #[cfg(feature = "mpi")]
    Mpi(lpf_mpi::MpiJob),
}

/// The threads of this node, its share of the cores, and whether it has this host alone: for sections that another process
/// begins.
static THREADS: AtomicUsize = AtomicUsize::new(1);
static CORES: AtomicUsize = AtomicUsize::new(1);
static IS_ALONE: AtomicBool = AtomicBool::new(true);

impl From<TcpJob> for AnyJob {
    fn from(job: TcpJob) -> Self {
        AnyJob { network: Network::Tcp(job), threads: None }
    }
}

#[cfg(feature = "mpi")]
impl From<lpf_mpi::MpiJob> for AnyJob {
    fn from(job: lpf_mpi::MpiJob) -> Self {
        AnyJob { network: Network::Mpi(job), threads: None }
    }
}

macro_rules! inside {
    ($any:expr, $job:ident => $result:expr) => {
        match $any {
            Network::Tcp($job) => $result,
            #[cfg(feature = "mpi")]
            Network::Mpi($job) => $result,
        }
    };
}

impl AnyJob {
    /// The name of its backend.
    pub(crate) fn backend(&self) -> &'static str {
        match (&self.network, self.threads) {
            (Network::Tcp(_), None) => "tcp",
            (Network::Tcp(_), Some(_)) => "hybrid:tcp",
            #[cfg(feature = "mpi")]
            (Network::Mpi(_), None) => "mpi",
            #[cfg(feature = "mpi")]
            (Network::Mpi(_), Some(_)) => "hybrid:mpi",
        }
    }

    /// From now on this process is a node of a number of threads: by the setting, else its share of the cores.
    pub(crate) fn become_node(&mut self, threads: Option<Pid>) {
        let host = inside!(&self.network, job => job.host());
        let cores = (host.cores / host.processes.max(1)).max(1);
        let threads = threads.unwrap_or(cores);
        THREADS.store(threads, Ordering::Relaxed);
        CORES.store(cores, Ordering::Relaxed);
        IS_ALONE.store(host.processes == 1, Ordering::Relaxed);
        self.threads = Some(threads);
    }

    pub(crate) fn rank(&self) -> Pid {
        inside!(&self.network, job => job.rank())
    }

    /// Its processes, as far as this one knows: other nodes may have more threads or fewer.
    pub(crate) fn size(&self) -> Pid {
        inside!(&self.network, job => job.size()) * self.threads.unwrap_or(1)
    }

    pub(crate) fn is_here(&self) -> bool {
        inside!(&self.network, job => job.is_here())
    }

    pub(crate) fn serve(&self) -> Result<()> {
        inside!(&self.network, job => job.serve())
    }

    pub(crate) fn leave(self) {
        inside!(self.network, job => job.leave());
    }

    pub(crate) fn hook<F, R>(&mut self, environment: Environment, f: F) -> Result<R>
    where
        F: for<'s> FnOnce(&mut Context<'s>) -> Result<R>,
    {
        if self.threads.is_some() {
            let text = "a node has several processes, and a hook is by one: use lpf::run, or the backend tcp or mpi";
            return Err(Error::setting(text));
        }
        inside!(&mut self.network, job => job.hook(environment, |process| run(process, f)))
    }

    pub(crate) fn exec<F, R>(
        &mut self,
        environment: Environment,
        procs: Pid,
        args: Args<'_>,
        f: F,
    ) -> Result<R>
    where
        F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Copy + Send + Sync,
    {
        let environment = Arc::new(environment);
        inside!(&mut self.network, job => match self.threads {
            None => exec(job, &environment, procs, args, f),
            Some(_) => exec_on_nodes(job, &environment, procs, args, f),
        })
    }
}

fn exec<T, F, R>(
    job: &mut Job<T>,
    environment: &Arc<Environment>,
    procs: Pid,
    args: Args<'_>,
    f: F,
) -> Result<R>
where
    T: Transport<Control = ControlPlane>,
    Messages<T>: Into<AnyEngine>,
    F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Copy + Send + Sync,
{
    let own = move |process: Process<Messages<T>>, args: Args<'_>| run(process, |ctx| f(ctx, args));
    job.exec(environment, procs, args, move |process, args| own(process, args).map(drop), own)
}

/// As [`exec`], each process of the job being a node. Few processes are spread over all nodes first.
fn exec_on_nodes<T, F, R>(
    job: &mut Job<T>,
    environment: &Arc<Environment>,
    procs: Pid,
    args: Args<'_>,
    f: F,
) -> Result<R>
where
    T: Transport<Control = ControlPlane> + 'static,
    Hybrid<Messages<T>>: Into<AnyEngine>,
    F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Copy + Send + Sync,
{
    /// The node that a process of the job is, of a section of `wanted` processes if it is the first one.
    fn node<T, F, R>(process: Process<Messages<T>>, wanted: Pid, args: Args<'_>, f: F) -> Result<R>
    where
        T: Transport<Control = ControlPlane> + 'static,
        Hybrid<Messages<T>>: Into<AnyEngine>,
        F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Copy + Send + Sync,
    {
        let mut config = Config::from_environment()?.cores(CORES.load(Ordering::Relaxed));
        if !IS_ALONE.load(Ordering::Relaxed) {
            // Each node would take the same cores.
            config = config.pin(Pin::None);
        }
        let threads = THREADS.load(Ordering::Relaxed);
        let own = |process: Process<Hybrid<Messages<T>>>, args: Args<'_>| {
            run(process, |ctx| f(ctx, args))
        };
        let others = |process, args: Args<'_>| own(process, args).map(drop);
        run_node(process, &config, (threads, wanted), args, others, own)
    }
    let nodes = procs.min(job.size());
    job.exec(
        environment,
        nodes,
        args,
        move |process, args| node(process, 0, args, f).map(drop),
        move |process, args| node(process, procs, args, f),
    )
}
