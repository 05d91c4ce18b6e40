//! Where a measuring command measures: on threads of this process, in the job that this process is one
//! of, or in jobs of itself that it starts.
//!
//! What is measured is a [`Task`] in all three. On threads it is performed here. In a job every process
//! has come with the same command line: process 0 performs its tasks on all of them and is the only one
//! that prints, the others serve. A process that is in no job starts `lpf run -n P lpf measure` for each
//! number of processes and leaves the tasks to its process 0: an order is a line there and a line back,
//! with lines on how far it is in between (`outside`, `inside`).

mod inside;
mod outside;

use lpf::machine::Growth;
use lpf::measure::task::{Task, Watch, perform, work};
use lpf::measure::unchecked;
use lpf::settings::Exchange;
use lpf::settings::{Launched, Settings, by_mpi_launcher};
use lpf::threads::Config;
use lpf::{Args, Pid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::outside::Jobs;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::measuring::Measuring;
use crate::plot;

use self::inside::Member;
pub(crate) use self::inside::serve;
#[cfg(feature = "mpi")]
pub(crate) use self::inside::{Answer, Order, say};

/// A task that can be handed to another process of this program.
pub(crate) trait Measurement: Task<Found: Serialize + DeserializeOwned> {
    /// What it is called in an order.
    const NAME: &str;
    /// Whether it goes by g and l: then it is told those that programs are told.
    const CHOOSES: bool = false;
}

/// Where it is measured.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) backend: &'static str,
    /// Whether `LPF_CHECK` asks for what has no part in measuring.
    pub(crate) checked: bool,
    at: At,
}

#[derive(Debug)]
enum At {
    Threads,
    Inside(Member),
    Outside(Jobs),
}

impl Place {
    /// The place that `--backend`, the environment and how this process was started come to. Nothing is
    /// begun yet, so that every process of a job finds what is wrong before one waits for another.
    pub(crate) fn find(options: &Measuring) -> Result<Self> {
        let settings = Settings::from_environment()?;
        let (launched, by_launcher) = (Launched::from_environment()?, by_mpi_launcher());
        let backend = match &options.backend {
            Some(name) => lpf::backend(name)?,
            None => lpf::chosen(&settings)?,
        };
        let job = launched.as_ref().map(|job| (job.rank, job.size)).or(by_launcher);
        let member = match (backend, job) {
            (_, None) => None,
            ("tcp", _) => launched.map(|job| (job.rank, job.size)),
            ("mpi", _) => by_launcher,
            _ => None,
        };
        let at = match (member, job) {
            (Some((rank, size)), _) => At::Inside(Member { rank, size, backend }),
            (None, Some((_, size))) => return Err(Failure::Usage(misfit(backend, size))),
            (None, None) if backend == "threads" => At::Threads,
            (None, None) => At::Outside(Jobs::new(backend)),
        };
        let place = Place { backend, checked: settings.check.value, at };
        place.check_processes(options)?;
        Ok(place)
    }

    /// Whether this process is the one that prints.
    pub(crate) fn is_first(&self) -> bool {
        !matches!(&self.at, At::Inside(member) if member.rank > 0)
    }

    /// Whether other processes were started beside this one.
    pub(crate) fn is_in_a_job(&self) -> bool {
        self.size().is_some()
    }

    /// The size of the job that this process is one of.
    pub(crate) fn size(&self) -> Option<Pid> {
        match &self.at {
            At::Inside(member) => Some(member.size),
            At::Threads | At::Outside(_) => None,
        }
    }

    /// Begins: a process of a job that is not its first serves from here on, and ends there. The one that prints heeds
    /// interrupts.
    pub(crate) fn enter(&self) -> Result<()> {
        if let At::Inside(member) = &self.at {
            member.enter()?;
        }
        interrupt::heed()
    }

    /// That the plot that was asked for can be written, by the process that does: found before measuring begins, not after
    /// it.
    pub(crate) fn check_plot(&self, options: &Measuring) -> Result<()> {
        match options.svg.as_ref().filter(|_| self.is_first()) {
            Some(path) => plot::check_plot(path),
            None => Ok(()),
        }
    }

    /// The numbers of processes to measure: those named, else the job's or the machine's size.
    pub(crate) fn processes(&self, options: &Measuring) -> Result<Vec<Pid>> {
        match (self.named(options), &self.at) {
            (named, _) if !named.is_empty() => Ok(named),
            _ => Ok(vec![Settings::from_environment()?.procs.value]),
        }
    }

    /// The numbers of processes named; a job that names none means its size.
    pub(crate) fn named(&self, options: &Measuring) -> Vec<Pid> {
        match &self.at {
            At::Inside(member) if options.p.is_empty() => vec![member.size],
            _ => options.named(),
        }
    }

    /// How costs grow with the number of processes.
    pub(crate) fn growth(&self) -> Growth {
        match self.at {
            At::Threads => Growth::SharedMemory,
            At::Inside(_) | At::Outside(_) => Growth::MessagePassing,
        }
    }

    /// Performs a task on `p` processes.
    pub(crate) fn measure<M: Measurement>(
        &mut self,
        p: Pid,
        order: &M::Order,
        watch: Watch,
    ) -> Result<M::Found> {
        match &mut self.at {
            At::Threads => {
                let mut config = unchecked(Config::from_environment()?.procs(p));
                if M::CHOOSES {
                    let settings = Settings::from_environment()?;
                    config = config.parameters(lpf::parameters(&settings, p)?);
                }
                let exec = |args: Args<'_>| lpf::exec_with(&config, p, args, work::<M>);
                Ok(perform::<M>(order, watch, exec)?)
            }
            At::Inside(member) => Ok(member.perform::<M>(p, order, watch)?),
            At::Outside(jobs) => jobs.perform::<M>(p, order, &watch),
        }
    }

    /// Has tasks be performed by processes that exchange what they have for each other in this way; false
    /// where that is not up to this command.
    pub(crate) fn exchange_by(&mut self, way: Exchange) -> bool {
        let At::Outside(jobs) = &mut self.at else { return false };
        jobs.exchange_by(Some(way));
        true
    }

    /// Leaves it to the processes again, or stays with the way chosen last; what processes of another way
    /// there are end.
    pub(crate) fn settle_exchange(&mut self, way: Option<Exchange>) {
        if let At::Outside(jobs) = &mut self.at {
            jobs.exchange_by(way);
            jobs.end_others();
        }
    }

    /// Jobs of a command of MPI's own beside what is measured here; none inside of a job, where nobody may
    /// start another.
    #[cfg(feature = "mpi")]
    pub(crate) fn beside(&self, command: &'static str) -> Option<Beside> {
        (!self.is_in_a_job()).then(|| Beside(Jobs::of(command, "mpi")))
    }

    fn check_processes(&self, options: &Measuring) -> Result<()> {
        let At::Inside(Member { size, .. }) = &self.at else { return Ok(()) };
        match options.p.iter().find(|p| *p > size) {
            None => Ok(()),
            Some(p) => Err(Failure::Usage(format!(
                "-p {p} cannot be measured in this job of {}: start one of {p}, or leave -p out",
                crate::output::processes(*size)
            ))),
        }
    }
}

/// Jobs of a program that is no part of LPF, which takes its orders as ours do.
#[cfg(feature = "mpi")]
#[derive(Debug)]
pub(crate) struct Beside(Jobs);

#[cfg(feature = "mpi")]
impl Beside {
    /// Has the job of `p` processes do something.
    pub(crate) fn ask<F: DeserializeOwned>(&mut self, p: Pid, order: &impl Serialize) -> Result<F> {
        let order = serde_json::to_value(order)?;
        let unwatched = lpf::measure::task::unwatched();
        Ok(serde_json::from_value(self.0.ask(p, "", order, &unwatched)?)?)
    }
}

/// As `LPF_EXCHANGE` has it.
pub(crate) fn way_name(way: Exchange) -> &'static str {
    match way {
        Exchange::Direct => "direct",
        Exchange::Bruck => "bruck",
    }
}

/// That a job was started for another backend.
fn misfit(backend: &str, size: Pid) -> String {
    let job = format!("this process is one of a job of {size}");
    match backend {
        "threads" => format!(
            "{job}, and --backend threads measures a single process: start it without the launcher"
        ),
        "tcp" => format!(
            "{job} that MPI's or Slurm's launcher started; over tcp set LPF_MEET=HOST:PORT to the address of process 0, or use lpf run"
        ),
        _ => format!(
            "{job} that was not started for {backend}: start it by lpf run --backend {backend}, or alone"
        ),
    }
}

/// Whether errors of this process are said by it: of those of a job, which all find the same before they
/// meet, the first says them.
pub(crate) fn speaks() -> bool {
    let launched = Launched::from_environment().ok().flatten().map(|job| job.rank);
    let rank = launched.or(by_mpi_launcher().map(|(rank, _)| rank));
    rank.is_none_or(|rank| rank == 0) || lpf::is_in_anothers_place()
}
