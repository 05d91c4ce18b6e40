//! A process of a job: it serves, or performs tasks on all of them; those of its own command, or those
//! that another one orders, which started the job for that.

use std::cell::Cell;
use std::io::{self, BufRead, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use lpf::Pid;
use lpf::measure::task::{Watch, perform, work};
use lpf::settings::{Launched, Settings, by_mpi_launcher};
use serde::{Deserialize, Serialize};

use super::Measurement;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::output;

/// What is asked of process 0 of a job: a line on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) task: String,
    pub(super) p: Pid,
    pub(crate) order: serde_json::Value,
}

/// What it says: lines on its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// How far it is.
    Progress { elapsed: Duration, text: String },
    /// The end of an order.
    Found(serde_json::Value),
    /// The same: the error, for people, and whether what was asked cannot be done at all.
    Failed { text: String, usage: bool },
}

/// This process's place in its job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(super) rank: Pid,
    pub(super) size: Pid,
    pub(super) backend: &'static str,
}

impl Member {
    /// From here on only process 0 goes on: the others serve, and end.
    pub(super) fn enter(&self) -> Result<()> {
        self.set_environment();
        if self.rank == 0 {
            return Ok(());
        }
        // The processes that serve learn from process 0 what they run.
        lpf::run(|_ctx| Ok(()))?;
        Err(Failure::Failed("process 0 released this process before the job was over".into()))
    }

    /// Sections take their settings from the environment: the backend is the one that was chosen, and
    /// nothing is measured in checked mode, nor before it is measured.
    fn set_environment(&self) {
        let settings = [("LPF_BACKEND", self.backend), ("LPF_CHECK", "0"), ("LPF_PROBE", "off")];
        for (name, value) in settings {
            // SAFETY: this program has one thread so far: a section is the first that begins others.
            unsafe { std::env::set_var(name, value) };
        }
    }

    /// Carries out an order for this task.
    pub(crate) fn answer<M: Measurement>(&self, order: Order) -> Result<serde_json::Value> {
        let task = serde_json::from_value(order.order)?;
        let found = self.perform::<M>(order.p, &task, telling())?;
        Ok(serde_json::to_value(found)?)
    }

    /// Performs a task on the first `p` processes.
    pub(super) fn perform<M: Measurement>(
        &self,
        p: Pid,
        order: &M::Order,
        watch: Watch,
    ) -> lpf::Result<M::Found> {
        perform::<M>(order, watch, |args| lpf::run_args(p, args, work::<M>))
    }
}

/// Performs what is ordered on standard input, until there is no more: `perform` knows the tasks by name.
pub(crate) fn serve(perform: impl Fn(&Member, Order) -> Result<serde_json::Value>) -> Result<()> {
    let settings = Settings::from_environment()?;
    let backend = lpf::backend(&settings.backend.value)?;
    let job = match backend {
        "mpi" => by_mpi_launcher(),
        _ => Launched::from_environment()?.map(|job| (job.rank, job.size)),
    };
    let Some((rank, size)) = job else {
        let text = "measure is a part of probe, comply and bench; call one of these";
        return Err(Failure::Usage(text.into()));
    };
    let member = Member { rank, size, backend };
    interrupt::heed_in_a_job();
    member.enter()?;
    let unread = |error| Failure::Failed(format!("the orders cannot be read: {error}"));
    for line in io::stdin().lock().lines() {
        let order: Order = serde_json::from_str(&line.map_err(unread)?)?;
        let found = perform(&member, order);
        say(&match found {
            Ok(found) => Answer::Found(found),
            Err(Failure::Usage(text)) => Answer::Failed { text, usage: true },
            Err(Failure::Failed(text)) => Answer::Failed { text, usage: false },
            Err(other) => return Err(other),
        })?;
    }
    Ok(())
}

/// How far it is, a few times a second.
fn telling() -> Watch {
    const EVERY: Duration = Duration::from_millis(100);
    let next = Cell::new(Instant::now());
    Rc::new(move |elapsed, text| {
        let now = Instant::now();
        if now >= next.get() {
            next.set(now + EVERY);
            // Who does not read any more has ended this job.
            drop(say(&Answer::Progress { elapsed, text: text() }));
        }
    })
}

/// A line for who has ordered.
pub(crate) fn say(answer: &Answer) -> Result<()> {
    let mut out = output::standard();
    serde_json::to_writer(&mut out, answer)?;
    writeln!(out)?;
    Ok(out.flush()?)
}
