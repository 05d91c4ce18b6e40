//! Jobs of this program itself, one for each number of processes: what it orders, they measure.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lpf::Pid;
use lpf::measure::task::Watch;
use lpf::settings::Exchange;
use nix::sys::prctl;
use nix::sys::signal::Signal;

use super::Measurement;
use super::inside::{Answer, Order};
use super::way_name;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::output::Standard;

/// The jobs that have been started.
#[derive(Debug)]
pub(super) struct Jobs {
    backend: &'static str,
    /// The command that its processes are.
    command: &'static str,
    /// How processes exchange what they have for each other, if it is not left to them.
    exchange: Option<Exchange>,
    /// By size, with how they exchange.
    running: BTreeMap<Pid, Vec<(Option<Exchange>, Job)>>,
}

impl Jobs {
    pub(super) fn new(backend: &'static str) -> Self {
        Self::of("measure", backend)
    }

    /// Of another command that takes orders.
    pub(super) fn of(command: &'static str, backend: &'static str) -> Self {
        Jobs { backend, command, exchange: None, running: BTreeMap::new() }
    }

    /// From now on tasks are performed by processes that exchange in this way.
    pub(super) fn exchange_by(&mut self, way: Option<Exchange>) {
        self.exchange = way;
    }

    /// Ends the jobs that exchange in another way than tasks are performed by.
    pub(super) fn end_others(&mut self) {
        self.running.values_mut().for_each(|jobs| jobs.retain(|(way, _)| *way == self.exchange));
    }

    /// Has the job of `p` processes, started now if there is none, perform a task.
    pub(super) fn perform<M: Measurement>(
        &mut self,
        p: Pid,
        order: &M::Order,
        watch: &Watch,
    ) -> Result<M::Found> {
        Ok(serde_json::from_value(self.ask(p, M::NAME, serde_json::to_value(order)?, watch)?)?)
    }

    /// The same by name.
    pub(super) fn ask(
        &mut self,
        p: Pid,
        task: &str,
        order: serde_json::Value,
        watch: &Watch,
    ) -> Result<serde_json::Value> {
        let order = Order { task: task.into(), p, order };
        let jobs = self.running.entry(p).or_default();
        let mut job = match jobs.iter().position(|(way, _)| *way == self.exchange) {
            Some(nth) => jobs.swap_remove(nth).1,
            None => Job::start(self.command, self.backend, p, self.exchange)?,
        };
        let found = job.ask(&order, watch)?;
        // One that could not do it ends here.
        jobs.push((self.exchange, job));
        Ok(found)
    }
}

/// A job under `lpf run`.
#[derive(Debug)]
struct Job {
    p: Pid,
    launcher: Child,
    /// Process 0 ends when this is closed, and the job with it.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Job {
    fn start(what: &str, backend: &str, p: Pid, exchange: Option<Exchange>) -> Result<Self> {
        let refused = |error: io::Error| {
            Failure::Failed(format!("a job of {p} processes could not be started: {error}"))
        };
        let own = std::env::current_exe().map_err(refused)?;
        let mut command = Command::new(&own);
        command.args(["run", "-n", &p.to_string(), "--backend", backend, "--"]);
        command.arg(&own).arg(what).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(exchange.map(|way| ("LPF_EXCHANGE", way_name(way))));
        // What is misspelt has been said.
        for name in lpf::settings::misspelt::unknown() {
            command.env_remove(name);
        }
        let blocked = interrupt::blocked();
        // SAFETY: system calls between fork and exec, that allocate nothing and take no lock. If this program is killed,
        // its jobs are ended in order, unless a sandbox refuses that. And they hear the signals that are read here.
        unsafe {
            command.pre_exec(move || {
                let _ = prctl::set_pdeathsig(Signal::SIGTERM);
                let _ = blocked.thread_set_mask();
                Ok(())
            })
        };
        let mut launcher = interrupt::start(|| command.spawn().map_err(refused))?;
        let (orders, answers) = (launcher.stdin.take(), launcher.stdout.take());
        let answers = BufReader::new(answers.expect("it was asked for"));
        Ok(Job { p, launcher, orders, answers })
    }

    /// Orders, and waits for the end of it.
    fn ask(&mut self, order: &Order, watch: &Watch) -> Result<serde_json::Value> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        let asked = self.orders.as_mut().map(|orders| orders.write_all(line.as_bytes()));
        if !matches!(asked, Some(Ok(()))) {
            return Err(self.ended());
        }
        loop {
            let mut line = String::new();
            if !self.answers.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                return Err(self.ended());
            }
            match serde_json::from_str(&line) {
                Ok(Answer::Progress { elapsed, text }) => watch(elapsed, &|| text.clone()),
                Ok(Answer::Found(found)) => return Ok(found),
                Ok(Answer::Failed { text, usage: true }) => return Err(Failure::Usage(text)),
                Ok(Answer::Failed { text, usage: false }) => return Err(Failure::Failed(text)),
                // What a library writes between our lines is its own.
                Err(_) => drop(Standard::Errors.write_all(line.as_bytes())),
            }
        }
    }

    /// The job has ended before it was told to; why has been said, if there was anything to say.
    fn ended(&mut self) -> Failure {
        let status = interrupt::wait(&mut self.launcher);
        // Who is killed says nothing.
        if let Some(signal) = status.as_ref().ok().and_then(ExitStatusExt::signal) {
            return Failure::Failed(format!(
                "lpf run, which had started the job of {} processes, was ended by signal {signal}",
                self.p
            ));
        }
        match status.ok().and_then(|s| s.code()).and_then(|code| u8::try_from(code).ok()) {
            None | Some(0) => Failure::Failed(format!(
                "the job of {} processes ended before it had measured anything",
                self.p
            )),
            Some(code) => Failure::Ended(code),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        drop(self.orders.take());
        // What it says may matter, how it ends does not: all that was asked has been answered.
        drop(interrupt::wait(&mut self.launcher));
    }
}
