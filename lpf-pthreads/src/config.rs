//! How sections of threads are started.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lpf_core::machine::{Growth, Parameters};
use lpf_core::runtime::Node;
use lpf_core::settings::{MAX_PROCS, Pin, Setting, Settings, Source, cores};
use lpf_core::{Args, Context, Error, MAX_P, Pid, Result, run_section};

use crate::comm::{Comm, Others, Outside};
use crate::environment::Environment;
use crate::hook::Team;
use crate::section;
use crate::threads::{self, Threads};

/// A machine of threads: its size and how its sections run. Cheap to clone; sections of all
/// configurations share one pool of threads.
#[derive(Clone, Debug)]
pub struct Config {
    procs: Setting<Pid>,
    pin: Pin,
    topology: Option<Vec<usize>>,
    timeout: Option<Duration>,
    check: bool,
    strict: bool,
    parameters: Arc<Parameters>,
    cores: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config::new()
    }
}

impl Config {
    /// The defaults, without the environment: as many processors as this program may use
    /// cores, g and l guessed.
    pub fn new() -> Self {
        Config {
            procs: Setting::default_of(cores()),
            pin: Pin::Auto,
            topology: None,
            timeout: None,
            check: false,
            strict: false,
            parameters: Arc::new(Parameters::guess(Growth::SharedMemory)),
            cores: cores(),
        }
    }

    /// The settings of the environment.
    ///
    /// # Errors
    /// *Misuse* for a setting that cannot be understood.
    pub fn from_environment() -> Result<Self> {
        Ok(Self::from_settings(&Settings::from_environment()?))
    }

    /// The given settings.
    pub fn from_settings(settings: &Settings) -> Self {
        Config {
            procs: settings.procs.clone(),
            pin: settings.pin.value.clone(),
            topology: settings.topology.value.clone(),
            timeout: settings.timeout.value,
            check: settings.check.value,
            strict: settings.strict.value,
            ..Config::new()
        }
    }

    /// The machine's size: what [`MAX_P`] stands for, and the most processes that `exec` starts. It may
    /// exceed the number of cores. Without it, as without `LPF_PROCS`, `MAX_P` stands for the cores, and
    /// `exec` starts as many processes as it is asked for.
    pub fn procs(mut self, procs: Pid) -> Self {
        self.procs = Setting::argument(procs.max(1));
        self
    }

    /// The number of processes that `exec(procs, …)` starts.
    pub fn grant(&self, procs: Pid) -> Pid {
        match self.procs.source {
            Source::Default if procs != MAX_P => procs,
            _ => procs.min(self.procs.value),
        }
    }

    /// The cores that its threads have: fewer than those of the machine if other processes of the same program run on it.
    pub fn cores(mut self, cores: usize) -> Self {
        self.cores = cores.max(1);
        self
    }

    /// Where threads run.
    pub fn pin(mut self, pin: Pin) -> Self {
        self.pin = pin;
        self
    }

    /// The levels of the barrier, outermost first; `None` for those of the machine.
    pub fn topology(mut self, levels: Option<Vec<usize>>) -> Self {
        self.topology = levels;
        self
    }

    /// Checked mode.
    pub fn check(mut self, on: bool) -> Self {
        self.check = on;
        self
    }

    /// Strict mode, for collectives.
    pub fn strict(mut self, on: bool) -> Self {
        self.strict = on;
        self
    }

    /// The longest that a process waits for the others of a superstep; `None` for ever.
    pub fn timeout(mut self, limit: Option<Duration>) -> Self {
        self.timeout = limit;
        self
    }

    /// g and l, as the primitive probe gives them.
    pub fn parameters(mut self, parameters: Arc<Parameters>) -> Self {
        self.parameters = parameters;
        self
    }

    /// What the sections of this configuration have in common, on a machine that has room for `procs`
    /// processes.
    pub(crate) fn environment(&self, procs: Pid) -> Arc<Environment> {
        let _ = crate::pin::machine();
        Arc::new(Environment {
            procs: procs.max(self.procs.value),
            cores: self.cores,
            pin: self.pin.clone(),
            topology: self.topology.clone(),
            timeout: self.timeout,
            check: self.check,
            strict: self.strict,
            parameters: self.parameters.clone(),
        })
    }

    /// Runs `f` on `procs` processes, which may exceed the number of cores; [`MAX_P`] stands for as many as the
    /// machine has. This thread is process 0; `args` goes to it as [`Args`] says. Returns the value of process 0; those
    /// of the others are dropped.
    ///
    /// A machine whose size was set ([`procs`](Self::procs), `LPF_PROCS`) starts at most that many. If
    /// `LPF_PROCS` is less than `procs`, a line on standard error says so, once in a program.
    ///
    /// # Errors
    /// *Misuse* for no process or more than 65536. *Mitigable* if the system refuses threads or memory:
    /// nothing has run. *Fatal* if any process panicked, returned an error, or left after fewer syncs than
    /// others.
    pub fn exec<F, R>(&self, procs: Pid, args: Args<'_>, f: F) -> Result<R>
    where
        F: for<'s> Fn(&mut Context<'s, Threads>, Args<'_>) -> Result<R> + Sync,
    {
        let own = |process: Threads, args: Args<'_>| run_section(process, |ctx| f(ctx, args));
        self.exec_processes(procs, args, |process, args| own(process, args).map(drop), own)
    }

    /// As [`exec`](Self::exec), for another engine over that of threads: `section` gets each process but the first, which
    /// `own` gets. Both make a context of it with [`run_section`], which leaves the section.
    ///
    /// # Errors
    /// As [`exec`](Self::exec); else what `own` returned.
    pub fn exec_processes<R>(
        &self,
        procs: Pid,
        args: Args<'_>,
        section: impl Fn(Threads, Args<'_>) -> Result<()> + Sync,
        own: impl FnOnce(Threads, Args<'_>) -> Result<R>,
    ) -> Result<R> {
        let granted = self.grant(procs);
        if granted == 0 || granted > MAX_PROCS {
            let text = format!(
                "a section of {procs} processes was asked for; it has 1 to {MAX_PROCS}, or MAX_P for as many as the machine has"
            );
            return Err(Error::setting(text));
        }
        if granted < procs && procs != MAX_P && self.procs.source == Source::Environment {
            tell_of_limit(procs, granted);
        }
        let environment = self.environment(granted);
        let node = (Node::of_all(granted), None);
        section::exec(&environment, node, environment.procs, false, args, section, own)
    }

    /// As [`exec_processes`](Self::exec_processes), for one node of a hybrid section of `processes` processes. Core and
    /// the hybrid engine see to the other nodes.
    ///
    /// # Errors
    /// As there.
    pub fn exec_node<R>(
        &self,
        node: Node,
        (processes, outside): (Pid, Weak<dyn Outside>),
        args: Args<'_>,
        section: impl Fn(Threads, Args<'_>) -> Result<()> + Sync,
        own: impl FnOnce(Threads, Args<'_>) -> Result<R>,
    ) -> Result<R> {
        let environment = self.environment(node.processes);
        let node = (node, Some(Others::new(processes, outside)));
        section::exec(&environment, node, environment.procs, false, args, section, own)
    }

    /// Runs `f` as one process from which the whole machine can be reached by exec: the sequential
    /// part of a program.
    ///
    /// # Errors
    /// What `f` returns; *fatal* if it panics.
    pub fn root<R>(
        &self,
        f: impl for<'s> FnOnce(&mut Context<'s, Threads>) -> Result<R>,
    ) -> Result<R> {
        let environment = self.environment(1);
        let comm = Comm::new((Node::of_all(1), None), &environment, &Pin::None)?;
        let root = threads::process(comm, 0, environment.procs)?.enter();
        run_section(root, f)
    }

    /// A team of `members` existing threads that will hook together.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused.
    pub fn team(&self, members: Pid) -> Result<Team> {
        Team::of(members, &self.environment(members))
    }
}

/// Says that a section gets fewer processes than it was asked for: once, as programs execute sections in loops.
fn tell_of_limit(asked: Pid, granted: Pid) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        // Nothing else can be done about a standard error that is closed.
        let _ = writeln!(
            std::io::stderr(),
            "lpf: a section of {asked} processes was asked for and gets {granted}, because LPF_PROCS is {granted}"
        );
    }
}

/// Runs `f` on `procs` processes of this environment's machine ([`MAX_P`]: as many as it has), without
/// arguments.
///
/// # Errors
/// As [`Config::exec`], and *misuse* for a setting that cannot be understood.
pub fn exec<F, R>(procs: Pid, f: F) -> Result<R>
where
    F: for<'s> Fn(&mut Context<'s, Threads>, Args<'_>) -> Result<R> + Sync,
{
    Config::from_environment()?.exec(procs, Args::none(), f)
}
