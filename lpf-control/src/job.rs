//! A process of a job: it serves sections, begins them, or hooks into them together with all others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lpf_core::process::Maker;
use lpf_core::runtime::{Process, Section};
use lpf_core::{Args, Cause, Error, Pid, Result};
use lpf_messages::{self, Environment, Host, Messages, Network, Rank, SectionId, Transport};

use crate::plane::{ControlPlane, Next};

/// How long a process that leaves waits for the others to hear of it.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long the processes of a job have to close their network, together.
const CLOSING: Duration = Duration::from_secs(10);
/// The same after a failure: who has caused it may never come.
const CLOSING_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The process that has joined a job first.
static JOINED: OnceLock<Maker> = OnceLock::new();

/// Whether this process, or one that it was forked from, is or was a process of a job.
pub fn has_joined() -> bool {
    JOINED.get().is_some()
}

/// Whether this process was forked from one that has joined a job.
pub fn is_forked_from_member() -> bool {
    JOINED.get().is_some_and(|maker| !maker.is_here())
}

/// A process that has joined a job, whose data goes over the network `T`.
#[derive(Debug)]
pub struct Job<T: Transport<Control = ControlPlane>> {
    network: Network<T>,
    control: ControlPlane,
    host: Host,
    /// Sections that began with all processes outside of any, so far.
    sections: u64,
    /// Whether a section has failed.
    has_failed: AtomicBool,
}

impl<T: Transport<Control = ControlPlane>> Job<T> {
    /// Takes over a network of the same processes as its control plane's.
    pub fn new(network: T, host: Host) -> Self {
        JOINED.get_or_init(Maker::this);
        let control = network.control().clone();
        Job {
            network: Network::new(network),
            control,
            host,
            sections: 0,
            has_failed: AtomicBool::new(false),
        }
    }

    /// This process.
    pub fn rank(&self) -> Rank {
        self.network.with(|net| net.rank())
    }

    /// Processes of the job.
    pub fn size(&self) -> Rank {
        self.network.with(|net| net.size())
    }

    /// The processes of this host, and the cores that they share.
    pub fn host(&self) -> Host {
        self.host
    }

    /// Whether this process has joined the job, and was not forked from the one that has.
    pub fn is_here(&self) -> bool {
        self.network.maker().is_here()
    }

    /// The error of a process that was forked from the one that has joined.
    fn here(&self) -> Result<()> {
        let rank = self.network.with(|net| net.rank());
        self.network.maker().check(rank, 0)
    }

    /// Calls `tell` for every death; see [`ControlPlane::on_death`].
    pub fn on_death(&self, tell: impl FnMut(Rank, &str) + Send + 'static) {
        self.control.on_death(tell);
    }

    fn next_section(&mut self) -> SectionId {
        self.sections += 1;
        SectionId(0).child(self.sections, None)
    }

    /// Runs a section on up to `procs` processes of the job. This one, number 0, is process 0 of them and runs `own`; the
    /// others [serve](Self::serve) and run `section`.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused; *fatal* if the section failed: the job goes on.
    pub fn exec<R>(
        &mut self,
        environment: &Arc<Environment>,
        procs: Pid,
        args: Args<'_>,
        section: impl Section<Messages<T>>,
        own: impl FnOnce(Process<Messages<T>>, Args<'_>) -> Result<R>,
    ) -> Result<R> {
        self.here()?;
        let id = self.next_section();
        let free: Vec<Rank> = (1..self.size()).collect();
        self.noted(lpf_messages::exec(
            &self.network,
            environment,
            self.host,
            id,
            procs,
            &free,
            args,
            section,
            own,
        ))
    }

    fn noted<R>(&self, result: Result<R>) -> Result<R> {
        if result.as_ref().is_err_and(Error::is_fatal) {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Runs `f` on all processes of the job, which call this together. It makes a context of
    /// its process with [`run_section`](lpf_core::run_section), which leaves the section. The environment is that of
    /// process 0.
    ///
    /// # Errors
    /// *Fatal* if any process of the section failed; all may hook again while they live.
    pub fn hook<R>(
        &mut self,
        environment: Environment,
        f: impl FnOnce(Process<Messages<T>>) -> Result<R>,
    ) -> Result<R> {
        self.here()?;
        let section = self.next_section();
        self.noted(lpf_messages::hook(&self.network, environment, self.host, section, f))
    }

    /// Begins sections as process 0 orders, until it says that the job is over: then it is time to
    /// [leave](Self::leave).
    ///
    /// # Errors
    /// *Fatal* in four cases. Process 0 has ended, or takes this process for dead. Or this process cannot follow an
    /// order, because it runs another build of the program. Or a section failed because process 0 did not arrive in
    /// time (`LPF_TIMEOUT`), and process 0 is silent for the same time again. Or this process was forked from the one
    /// that joined.
    pub fn serve(&self) -> Result<()> {
        const STEP: Duration = Duration::from_secs(3600);
        let mut late: Option<(Duration, Error)> = None;
        loop {
            // A section returns in a child that was forked inside it, too.
            self.here()?;
            let patience = late.as_ref().map_or(STEP, |(limit, _)| *limit);
            match self.control.next_order(patience) {
                // What went wrong in a section is in its report, which process 0 returns. Who cannot even
                // begin it is of no use to the job, and its user has to know.
                Next::Begin(order) => {
                    let begun =
                        self.noted(lpf_messages::follow(&self.network, self.host, order))?;
                    late = self.noted(begun).err().and_then(late_0);
                }
                Next::Finished => return Ok(()),
                Next::Gone(error) => return Err(error),
                Next::Nothing => late.take().map_or(Ok(()), |(_, error)| Err(error))?,
            }
        }
    }

    /// Leaves the job in order: process 0 says that it is over, and all close their network. In a process that was
    /// forked this does nothing: its parent is in the job.
    pub fn leave(self) {
        if !self.is_here() {
            return;
        }
        let Job { network, control, has_failed, .. } = self;
        let within = if has_failed.into_inner() { CLOSING_AFTER_FAILURE } else { CLOSING };
        if control.rank() == 0 {
            let _ = control.finish();
        }
        // Where the network is broken, or who died is missing, there is nothing to be closed.
        let closed = network.into_transport().map(|network| network.close(within));
        drop(closed);
        control.goodbye(FAREWELL);
    }
}

/// The limit that process 0 did not keep, if that is the error.
fn late_0(error: Error) -> Option<(Duration, Error)> {
    match (error.process(), error.cause()) {
        (Some(0), &Cause::Late { limit, .. }) => Some((limit, error)),
        _ => None,
    }
}
