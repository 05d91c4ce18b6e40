//! How a backend starts sections, and how fast it is.

use std::sync::Arc;
use std::time::Duration;

use lpf_core::machine::{Growth, Parameters};
use lpf_core::settings::Exchange;
use lpf_core::{Args, Context, Lpf, Pid, Result};
use lpf_messages::Environment;

/// The processes that the largest cases need.
pub const PROCS: Pid = 8;

/// The settings that a section of the suite runs under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// The checked mode, `LPF_CHECK=1`.
    pub check: bool,
    /// Strict mode, `LPF_STRICT=1`.
    pub strict: bool,
    /// How long a superstep may take, `LPF_TIMEOUT`; off by default.
    pub timeout: Option<Duration>,
}

impl Mode {
    /// The same for a section between processes, with the first exchange made in one way.
    pub fn between_processes(self, exchange: Exchange) -> Environment {
        Environment {
            check: self.check,
            strict: self.strict,
            timeout: self.timeout,
            exchange: Some(exchange),
            parameters: Arc::new(Parameters::guess(Growth::MessagePassing)),
        }
    }
}

/// How one hooked process ended.
#[derive(Clone, Debug)]
pub struct Hooked {
    /// What `hook` returned there, an error as its text.
    pub result: std::result::Result<(), String>,
    /// What the story left in its output.
    pub output: Vec<u8>,
}

/// What every process of a section runs: a function or a closure without captures, which can run in other processes.
pub trait Story<L: Lpf>:
    for<'n> Fn(&mut Context<'n, L>, Args<'_>) -> Result<()> + Copy + Send + Sync
{
}

impl<L, F> Story<L> for F
where
    L: Lpf,
    F: for<'n> Fn(&mut Context<'n, L>, Args<'_>) -> Result<()> + Copy + Send + Sync,
{
}

/// How a backend starts sections; the suite asks for nothing else.
pub trait Harness: Sync {
    /// One process of its sections.
    type Process: Lpf;

    /// The machine's size: an `exec` gets at most that many processes. At least [`PROCS`].
    fn procs(&self) -> Pid {
        PROCS
    }

    /// Runs `story` in a fresh section of up to `procs` processes.
    ///
    /// # Errors
    /// What `exec` returns.
    fn exec(
        &self,
        mode: Mode,
        procs: Pid,
        story: impl Story<Self::Process>,
        args: Args<'_>,
    ) -> Result<()>;

    /// Hooks as many existing processes as there are `inputs`, each with its own input and room
    /// for `output_bytes` bytes of output. `None` where the backend has no hook.
    fn hook(
        &self,
        _mode: Mode,
        _inputs: &[Vec<u8>],
        _output_bytes: usize,
        _story: impl Story<Self::Process>,
    ) -> Option<Vec<Hooked>> {
        None
    }

    /// Whether address space that is reserved and hardly used may be registered. False where
    /// registering pins memory.
    fn registers_sparse_memory(&self) -> bool {
        true
    }

    /// Whether sections are spread over nodes, which give their processors to the processes there.
    fn spreads_over_nodes(&self) -> bool {
        false
    }

    /// What runs the sections.
    fn pace(&self) -> Pace {
        Pace::Threads
    }
}

/// How fast a superstep is, which says how long a case may take and how many of a kind are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Threads of a process.
    Threads,
    /// Processes of one host.
    Processes,
    /// Processes of several hosts, whose links may be slow.
    Hosts,
    /// No backend but a model of one, whose time says nothing.
    Model,
}

impl Pace {
    /// Of processes: whether they are on several hosts.
    pub fn of_processes(are_apart: bool) -> Self {
        if are_apart { Pace::Hosts } else { Pace::Processes }
    }

    /// What bounds on time are multiplied by.
    pub(crate) fn slowdown(self) -> u32 {
        match self {
            Pace::Threads | Pace::Processes => 1,
            Pace::Hosts => 3,
            Pace::Model => 30,
        }
    }

    /// Random programs per run.
    pub(crate) fn random_programs(self) -> u32 {
        match self {
            Pace::Threads | Pace::Model => 64,
            Pace::Processes => 32,
            Pace::Hosts => 8,
        }
    }
}

/// What every case begins with.
#[doc(hidden)]
pub fn begin<H: Harness>(harness: &H) {
    crate::panics::show_guarded();
    crate::verdict::slow_down(harness.pace().slowdown());
}
