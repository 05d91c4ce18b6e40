//! A process of a job, with this machine's settings and parameters.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lpf_control::plane::Beats;
use lpf_control::rendezvous::Meeting;
use lpf_core::machine::{Growth, Parameters};
use lpf_core::settings::Exchange;
use lpf_core::settings::Settings;
use lpf_core::{Args, Error, MAX_P, Pid, Result, captures_nothing};
use lpf_messages::Environment;

use crate::Context;
use crate::any::AnyJob;
use crate::launcher::{Report, say, tell, told};
use crate::measure::{Now, measured_here, measured_now, task};
use crate::tables;

/// A process that has joined others, over TCP or MPI. Together they run sections, any number of times.
///
/// Dropping it leaves the job. If a panic drops it, the others find this process dead.
///
/// ```
/// use lpf::prelude::*;
/// use lpf::control::rendezvous::Meeting;
///
/// # fn main() -> lpf::Result<()> {
/// // A job of one process. Others would join at the same address with numbers of their own.
/// let mut member = lpf::Member::new(Meeting::new("127.0.0.1:4000", 0, 1))?;
/// let own = 7;
/// let answer = member.hook(|ctx| Ok(own * ctx.nprocs()))?;
/// assert_eq!(answer, 7);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Member {
    /// None once it has left.
    job: Option<AnyJob>,
    /// By the number of processes and, where they were measured for it, the time of `LPF_PROBE`.
    known: HashMap<(Pid, Option<Duration>), Known>,
}

/// What is known of this machine for sections of some number of processes.
#[derive(Debug)]
struct Known {
    parameters: Arc<Parameters>,
    /// The cheaper way to exchange, if that was measured.
    exchange: Option<Exchange>,
}

impl Known {
    /// What the saved table says, else a guess.
    fn saved(backend: &str, procs: Pid) -> Self {
        let table = tables::table(backend, procs);
        let exchange = table.as_ref().and_then(|table| table.exchange_for(procs));
        let guess = || Parameters::guess(Growth::MessagePassing);
        let parameters = table.map(|table| table.parameters).unwrap_or_else(guess);
        Known { parameters: Arc::new(parameters), exchange }
    }
}

/// Of a hooked section in which g and l are measured: what process 0 sends with it are parameters of no
/// processes. So it alone decides, and the others need not know its settings before.
fn to_measure(environment: Environment) -> Environment {
    let none = Parameters { p: 0, ..(*environment.parameters).clone() };
    Environment { check: false, parameters: Arc::new(none), ..environment }
}

fn is_to_measure(ctx: &Context<'_>) -> bool {
    ctx.probe().parameters().p == 0
}

impl Member {
    /// Joins the other processes over TCP. All of them call this, each with its own number. There are no
    /// heartbeats if process 0's `meeting` or its `LPF_HEARTBEAT=off` excludes them. The same holds for the seal of data
    /// and `LPF_SEAL_DATA=0`.
    ///
    /// # Errors
    /// *Misuse* for a `meeting` or a setting that cannot be used, or that another process refuses.
    /// *Mitigable* if the system refuses something, for example a port that is taken. *Fatal* if a process did
    /// not arrive in time, or ended meanwhile; the text names it. After each of these all processes may join again.
    pub fn new(mut meeting: Meeting) -> Result<Self> {
        let settings = Settings::from_environment()?;
        if beats(&settings) == Beats::Off {
            meeting.beats = Beats::Off;
        }
        meeting.seal_data &= settings.seal_data.value;
        tell(Report::Meets { rank: meeting.rank });
        let rank = meeting.rank;
        let joined = told(rank, meeting.join().map_err(Error::from))?;
        Ok(Self::joined(lpf_tcp::job(joined)?.into()))
    }

    /// Joins the other processes of the job that this process was started in, by `lpf run` or with `LPF_MEET` and the
    /// variables beside it. Use this if all processes do the same and [hook](Self::hook). Use [`run`](crate::run) if
    /// process 0 leads. All processes of a job use the same of the two. They wait for each other for 30 seconds, or
    /// `LPF_MEET_TIMEOUT`; the time begins anew when a process arrives.
    ///
    /// # Errors
    /// As [`new`](Self::new), and *misuse* if this process was not started in a job.
    pub fn launched() -> Result<Self> {
        Self::new(crate::meeting::meeting()?)
    }
}

#[cfg(feature = "mpi")]
mod mpi {
    use lpf_control::rendezvous::By;
    use lpf_core::settings::by_mpi_launcher;

    use super::*;
    use crate::claim::claim_of_mpi;
    use crate::launcher::{is_told_to_lpf_run, say_at_once};
    use crate::mpi::{MpiJob, World, join, refused};

    /// How long the processes of an MPI job have to come together, unless `LPF_MEET_TIMEOUT` says it.
    const COMING: Duration = Duration::from_secs(60);

    impl Member {
        /// Joins the processes of a world: of a communicator of a program that uses MPI itself, and may go on to use
        /// it. Collective over them.
        ///
        /// # Errors
        /// *Misuse* for a setting that cannot be used; *mitigable* if MPI or the system refuses
        /// something; *fatal* if a process does not arrive within a minute, or `LPF_MEET_TIMEOUT`.
        pub fn of_world(world: World) -> Result<Self> {
            Self::coming(world, By::Member, &Settings::from_environment()?)
        }

        fn coming(world: World, by: By, settings: &Settings) -> Result<Self> {
            let job = join(world, by, beats(settings), time_to_come(settings))?;
            if !is_told_to_lpf_run() {
                say_who_dies(&job);
            }
            Ok(Self::joined(job.into()))
        }

        /// Initialises MPI and takes all its processes, for [`run`](crate::run).
        pub(crate) fn with_mpi() -> Result<Self> {
            claim_of_mpi()?;
            if let Some((rank, _)) = by_mpi_launcher() {
                tell(Report::Meets { rank });
            }
            let settings = Settings::from_environment()?;
            let world = World::init(time_to_come(&settings)).map_err(refused)?;
            Self::coming(world, By::Run, &settings)
        }
    }

    fn time_to_come(settings: &Settings) -> Duration {
        settings.meet_timeout.value.unwrap_or(COMING)
    }

    /// MPI's launchers end all processes when one has died, and do not say which was the first: the
    /// lowest of the others says so before.
    fn say_who_dies(job: &MpiJob) {
        let (own, mut deaths) = (job.rank(), 0);
        job.on_death(move |rank, reason| {
            deaths += 1;
            if deaths == 1 && own == usize::from(rank == 0) {
                say_at_once(format!("process {rank} of the job ended: {reason}"));
            }
        });
    }
}

/// Says that a section gets fewer processes than it was asked for: once, as programs execute sections in loops.
fn tell_of_fewer(asked: Pid, size: Pid) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        say(&format!(
            "a section of {asked} processes was asked for and gets {size}, all of the job"
        ));
    }
}

/// What process 0 says of heartbeats.
fn beats(settings: &Settings) -> Beats {
    if settings.heartbeat.value { Beats::On } else { Beats::Off }
}

impl Member {
    fn joined(job: AnyJob) -> Self {
        tell(Report::Joined { rank: job.rank() });
        Member { job: Some(job), known: HashMap::new() }
    }

    /// From now on this process is a node: see [`AnyJob::become_node`].
    pub(crate) fn on_nodes(mut self) -> Result<Self> {
        let threads = Settings::from_environment()?.hybrid.value;
        self.job_mut().become_node(threads);
        Ok(self)
    }

    fn job(&self) -> &AnyJob {
        self.job.as_ref().expect("it is there until it is dropped")
    }

    fn job_mut(&mut self) -> &mut AnyJob {
        self.job.as_mut().expect("it is there until it is dropped")
    }

    /// This process, from 0.
    pub fn rank(&self) -> Pid {
        self.job().rank()
    }

    /// Processes of the job.
    pub fn size(&self) -> Pid {
        self.job().size()
    }

    /// What the settings say, and what is known of this machine, for sections of `procs` processes; and for
    /// how long g and l are to be measured before, if `LPF_PROBE` asks for that and it has not been done. The
    /// saved table is read once for each number of processes.
    fn environment(&mut self, procs: Pid) -> Result<(Environment, Option<Duration>)> {
        let settings = Settings::from_environment()?;
        let backend = self.job().backend();
        let (saved, probed) = ((procs, None), (procs, settings.probe.value));
        self.known.entry(saved).or_insert_with(|| Known::saved(backend, procs));
        let is_there = self.known.contains_key(&probed);
        let known = &self.known[if is_there { &probed } else { &saved }];
        let environment = Environment {
            check: settings.check.value,
            strict: settings.strict.value,
            timeout: settings.timeout.value,
            exchange: settings.exchange.value.or(known.exchange),
            parameters: known.parameters.clone(),
        };
        Ok((environment, settings.probe.value.filter(|_| !is_there)))
    }

    /// Keeps what was measured for `LPF_PROBE`.
    fn measured(&mut self, procs: Pid, time: Duration, parameters: Parameters) {
        let exchange = self.known.get(&(procs, None)).and_then(|known| known.exchange);
        let known = Known { parameters: Arc::new(parameters), exchange };
        self.known.insert((procs, Some(time)), known);
    }

    /// Runs `f` on all processes of the job, which call this together, and returns the value of this process. The
    /// settings are process 0's. Under its `LPF_PROBE` a section that measures runs before.
    ///
    /// # Errors
    /// *Misuse* for a setting that cannot be used; *fatal* if a process of the section failed. All may hook again
    /// while they live.
    pub fn hook<F, R>(&mut self, f: F) -> Result<R>
    where
        F: for<'s> FnOnce(&mut Context<'s>) -> Result<R>,
    {
        /// What a section was for.
        enum Ended<R> {
            Ran(R),
            Measured(Parameters),
        }
        let (rank, size) = (self.rank(), self.size());
        let mut f = Some(f);
        loop {
            let (environment, time) = self.environment(size)?;
            let environment = if time.is_some() { to_measure(environment) } else { environment };
            let hooked = self.job_mut().hook(environment, |ctx| {
                // Which kind of section this is has come with it: other processes may be told otherwise by
                // their own environment.
                match f.take_if(|_| !is_to_measure(ctx)) {
                    Some(f) => f(ctx).map(Ended::Ran),
                    None => measured_here(ctx, time.unwrap_or_default()).map(Ended::Measured),
                }
            });
            let found = match told(rank, hooked)? {
                Ended::Ran(value) => return Ok(value),
                Ended::Measured(found) => found,
            };
            if let (0, Some(time)) = (rank, time) {
                self.measured(size, time, found);
            }
        }
    }

    /// Runs `f` on `procs` processes of the job, this one, number 0, being process 0 of them; the others
    /// [serve](Self::serve). Returns the value of process 0. [`MAX_P`](crate::MAX_P) stands for all processes of the job.
    /// If the job has fewer than `procs`, `f` runs on all of them, and a line on standard error says so, once in a
    /// program.
    ///
    /// # Errors
    /// *Misuse* for a setting that cannot be used; *mitigable* if memory is refused; *fatal* if the
    /// section failed: the job goes on.
    pub fn exec<F, R>(&mut self, procs: Pid, args: Args<'_>, f: F) -> Result<R>
    where
        F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Copy + Send + Sync,
    {
        const { captures_nothing::<F>() };
        self.start(procs, args, f)
    }

    /// As [`exec`](Self::exec), whose caller has found that `f` captures nothing.
    pub(crate) fn start<F, R>(&mut self, procs: Pid, args: Args<'_>, f: F) -> Result<R>
    where
        F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Copy + Send + Sync,
    {
        if procs != MAX_P && procs > self.size() {
            tell_of_fewer(procs, self.size());
        }
        let procs = procs.min(self.size());
        let (mut environment, time) = self.environment(procs)?;
        if let Some(time) = time {
            let unchecked = Environment { check: false, ..environment };
            let found = measured_now(procs, time, |args| {
                self.job_mut().exec(unchecked, procs, args, task::work::<Now>)
            })?;
            self.measured(procs, time, found);
            environment = self.environment(procs)?.0;
        }
        told(self.rank(), self.job_mut().exec(environment, procs, args, f))
    }

    /// Takes part in what process 0 executes, until it leaves.
    ///
    /// # Errors
    /// *Fatal* if process 0 has ended, if it takes this process for dead, or if this process runs another build of the
    /// program and cannot execute the order. Also *fatal* in a child that was forked from the process that joined.
    pub fn serve(&self) -> Result<()> {
        self.job().serve()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(job) = self.job.take()
            && job.is_here()
            && !std::thread::panicking()
        {
            let rank = job.rank();
            tell(Report::Leaves { rank });
            job.leave();
            tell(Report::Left { rank });
        }
    }
}
