//! Starting a section of threads with this machine's settings and parameters.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lpf_core::machine::{Growth, Parameters};
use lpf_core::process::PerProcess;
use lpf_core::settings::{Launched, Settings, Source, by_mpi_launcher};
use lpf_core::{Args, Error, Pid, Result};
use lpf_pthreads::{Config, Team, Threads};

use crate::Context;
use crate::any;
use crate::backend;
use crate::launcher::say;
use crate::measure::{Plan, measure_threads};
use crate::tables;
use crate::unknown::say_unknown;

/// Runs `f` as `procs` processes, which are threads, this thread being process 0. Returns the value of process 0; those
/// of the others are dropped.
///
/// `procs` may exceed the number of cores. [`MAX_P`](crate::MAX_P) stands for as many processes as the machine has: its
/// cores, or `LPF_PROCS`. If `LPF_PROCS` is less than `procs`, `LPF_PROCS` processes run, and a line on
/// standard error says so.
///
/// The settings are those of the environment (`LPF_PROCS`, `LPF_PIN`, …). [`Context::probe`] answers with g and l
/// from the table that `lpf probe` saved. Threads stay in a pool between sections. Entry O(P + l), exit O(l).
///
/// Under `mpirun` or `lpf run`, `exec` is refused in a process that has not joined its job, because each process
/// would run a copy: [`run`](crate::run) is for one section on all processes.
///
/// # Errors
/// *Misuse* for a setting that cannot be used and for one of several processes, *mitigable* if the system refuses
/// threads or memory, *fatal* if the section failed. The text names process, superstep and cause.
pub fn exec<F, R>(procs: Pid, f: F) -> Result<R>
where
    F: for<'s> Fn(&mut Context<'s>) -> Result<R> + Sync,
{
    exec_args(procs, Args::none(), |ctx, _args| f(ctx))
}

/// As [`exec`], with arguments: process 0 has `args.input` and `args.output`, all have
/// `args.symbols`.
///
/// # Errors
/// As [`exec`].
pub fn exec_args<F, R>(procs: Pid, args: Args<'_>, f: F) -> Result<R>
where
    F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Sync,
{
    say_unknown();
    let settings = Settings::from_environment()?;
    check_backend(&settings)?;
    exec_with(&configure(&settings, procs)?, procs, args, f)
}

/// As [`exec_args`](crate::exec_args), on a machine of threads that the program configures itself.
///
/// # Errors
/// As [`Config::exec`].
pub fn exec_with<F, R>(config: &Config, procs: Pid, args: Args<'_>, f: F) -> Result<R>
where
    F: for<'s> Fn(&mut Context<'s>, Args<'_>) -> Result<R> + Sync,
{
    let own = |process: Threads, args: Args<'_>| any::run(process, |ctx| f(ctx, args));
    config.exec_processes(procs, args, |process, args| own(process, args).map(drop), own)
}

/// `exec` runs on threads alone. So the settings must not ask for another backend; and of several processes that
/// a launcher has started, each would run a copy of the section, which is an error unless `LPF_BACKEND=threads`
/// asks for it. A process that has joined its job, or uses MPI itself, may run sections on threads beside it.
fn check_backend(settings: &Settings) -> Result<()> {
    let name = backend::backend(&settings.backend.value)?;
    if lpf_control::has_joined() || is_mpi_up() {
        return Ok(());
    }
    if name == "threads" && settings.backend.source != Source::Default {
        return Ok(());
    }
    // The error of a launcher whose backend is not built in.
    backend::chosen(settings)?;
    let instead =
        "for one section on all processes call lpf::run, with a closure that captures nothing";
    let launched = Launched::from_environment()?;
    let by_lpf =
        launched.map(|job| (job.rank, job.size, "lpf run, or LPF_RANK and LPF_SIZE, say so"));
    let by_mpi =
        || by_mpi_launcher().map(|(rank, size)| (rank, size, "a launcher of MPI or Slurm says so"));
    match by_lpf.or_else(by_mpi) {
        Some((rank, size, why)) if size > 1 => Err(Error::setting(format!(
            "this is process {rank} of {size} ({why}), and lpf::exec would run a copy of its section in each of them; {instead}. Or start a single process, or set LPF_BACKEND=threads if each process should run its own section on threads"
        ))),
        _ if name != "threads" => Err(Error::setting(format!(
            "LPF_BACKEND is \"{name}\", but lpf::exec runs on threads alone; {instead}"
        ))),
        _ => Ok(()),
    }
}

/// Whether this process uses MPI itself: its author knows that there are several.
fn is_mpi_up() -> bool {
    #[cfg(feature = "mpi")]
    let is_up = lpf_mpi::is_up();
    #[cfg(not(feature = "mpi"))]
    let is_up = false;
    is_up
}

/// A team of `members` existing threads that will hook together, under the settings of the
/// environment and with this machine's parameters: each calls
/// [`join`](lpf_pthreads::Team::join) on a clone.
///
/// # Errors
/// *Misuse* for a setting that cannot be used, *mitigable* if memory is refused.
pub fn team(members: Pid) -> Result<Team> {
    let settings = Settings::from_environment()?;
    // `LPF_PROCS` is no limit for threads that exist already.
    let parameters = parameters(&settings, members)?;
    Config::from_settings(&settings).parameters(parameters).team(members)
}

/// The threads backend under these settings, for a section that asks for `procs` processes.
pub(crate) fn configure(settings: &Settings, procs: Pid) -> Result<Config> {
    let config = Config::from_settings(settings);
    let parameters = parameters(settings, config.grant(procs))?;
    Ok(config.parameters(parameters))
}

/// The parameters that `probe` answers with in a section of `procs` threads under these settings. They are measured
/// now if `LPF_PROBE` asks for it; else they are those of the saved table for the nearest number of processes, or a
/// stated guess. Looked up once per program and number of processes; Θ(1) after that.
///
/// # Errors
/// Those of measuring: *misuse* for a setting, *mitigable* if memory or threads are refused.
pub fn parameters(settings: &Settings, procs: Pid) -> Result<Arc<Parameters>> {
    type Known = HashMap<(Pid, Option<Duration>), Arc<Parameters>>;
    static KNOWN: PerProcess<Mutex<Known>> = PerProcess::new(Mutex::default);
    let procs = procs.max(1);
    let key = (procs, settings.probe.value);
    let lock = || KNOWN.get().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lock().get(&key) {
        return Ok(known.clone());
    }
    // Not under the lock: measuring takes seconds and runs sections itself.
    let found = Arc::new(match settings.probe.value {
        Some(time) => measured(settings, procs, time)?,
        None => tables::parameters("threads", procs)
            .unwrap_or_else(|| Parameters::guess(Growth::SharedMemory)),
    });
    lock().insert(key, found.clone());
    Ok(found)
}

/// `LPF_PROBE`.
fn measured(settings: &Settings, procs: Pid, time: Duration) -> Result<Parameters> {
    if settings.check.value {
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            say(
                "LPF_PROBE measures without the checked mode that LPF_CHECK asks for: supersteps of this program cost more than that",
            );
        }
    }
    let plan = Plan::new(procs, Growth::SharedMemory, time, false);
    Ok(measure_threads(&Config::from_environment()?, &plan, &|_| {})?.parameters)
}
