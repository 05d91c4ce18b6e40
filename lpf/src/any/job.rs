//! The job of a program, over the network that connects its processes.

use std::sync::Arc;

use lpf_control::Job;
use lpf_control::plane::ControlPlane;
use lpf_core::runtime::Process;
use lpf_core::{Args, Pid, Result};
use lpf_messages::{Environment, Messages, Transport};
use lpf_tcp::TcpJob;

use super::{AnyEngine, run};
use crate::Context;

/// A process that has joined a job.
#[derive(Debug)]
pub(crate) enum AnyJob {
    Tcp(TcpJob),
    #[cfg(feature = "mpi")]
    Mpi(lpf_mpi::MpiJob),
}

macro_rules! inside {
    ($any:expr, $job:ident => $result:expr) => {
        match $any {
            AnyJob::Tcp($job) => $result,
            #[cfg(feature = "mpi")]
            AnyJob::Mpi($job) => $result,
        }
    };
}

impl AnyJob {
    /// The name of its backend.
    pub(crate) fn backend(&self) -> &'static str {
        match self {
            AnyJob::Tcp(_) => "tcp",
            #[cfg(feature = "mpi")]
            AnyJob::Mpi(_) => "mpi",
        }
    }

    pub(crate) fn rank(&self) -> Pid {
        inside!(self, job => job.rank())
    }

    pub(crate) fn size(&self) -> Pid {
        inside!(self, job => job.size())
    }

    pub(crate) fn is_here(&self) -> bool {
        inside!(self, job => job.is_here())
    }

    pub(crate) fn serve(&self) -> Result<()> {
        inside!(self, job => job.serve())
    }

    pub(crate) fn leave(self) {
        inside!(self, job => job.leave());
    }

    pub(crate) fn hook<F, R>(&mut self, environment: Environment, f: F) -> Result<R>
    where
        F: for<'s> FnOnce(&mut Context<'s>) -> Result<R>,
    {
        inside!(self, job => job.hook(environment, |process| run(process, f)))
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
        inside!(self, job => exec(job, &environment, procs, args, f))
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
