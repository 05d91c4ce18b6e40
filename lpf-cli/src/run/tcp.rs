//! Starting the processes of a job one by one: they will meet over TCP.

use std::io;
use std::io::PipeReader;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use lpf::launcher::WHERE;
use lpf::tcp::rendezvous::{Secret, bind_first};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid};

use super::start::{Job, Refused, prepare};
use super::tags::Tags;
use crate::failure::{Failure, Result};
use crate::output::Standard;

/// A process that was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub(super) rank: lpf::Pid,
    pub(super) pid: Pid,
}

/// Starts one process after the other.
#[derive(Debug)]
pub(super) struct Starter<'a> {
    job: Job<'a>,
    /// The next to be started.
    rank: lpf::Pid,
    /// Where process 0 will wait for the others.
    listener: Arc<TcpListener>,
    meet: String,
    secret: Secret,
    reports: String,
    /// Where tags were asked for.
    tags: Option<Tags>,
}

impl<'a> Starter<'a> {
    pub(super) fn new(job: Job<'a>, reports: String) -> Result<Self> {
        let refused = |error: lpf::tcp::rendezvous::MeetError| Failure::Failed(error.to_string());
        let listener = bind_first("127.0.0.1").map_err(refused)?;
        Ok(Starter {
            rank: 0,
            meet: listener.local_addr().map_err(super::system)?.to_string(),
            listener: Arc::new(listener),
            secret: Secret::random().map_err(refused)?,
            reports,
            tags: job.tag.then(Tags::new).transpose().map_err(super::system)?,
            job,
        })
    }

    /// How many have been started.
    pub(super) fn rank(&self) -> lpf::Pid {
        self.rank
    }

    /// Starts the next process. It is killed when the thread that calls this ends.
    pub(super) fn start(&mut self) -> std::result::Result<Started, Refused> {
        let rank = self.rank;
        let spawned = self.command().spawn();
        let mut child = spawned.map_err(|error| Refused::new(self.job.program, error))?;
        self.rank += 1;
        if let Some(tags) = &mut self.tags {
            tags.add(rank, Standard::Output, child.stdout.take().map(Into::into));
            tags.add(rank, Standard::Errors, child.stderr.take().map(Into::into));
        }
        Ok(Started { rank, pid: Pid::from_raw(child.id() as libc::pid_t) })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.job.program);
        command
            .args(self.job.arguments)
            .env("LPF_BACKEND", "tcp")
            .env("LPF_RANK", self.rank.to_string())
            .env("LPF_SIZE", self.job.size.to_string())
            .env("LPF_MEET", &self.meet)
            .env("LPF_SECRET", self.secret.text())
            .env("LPF_JOB", std::process::id().to_string())
            .env(WHERE, &self.reports);
        let listener = (self.rank == 0).then(|| Arc::clone(&self.listener));
        match &listener {
            Some(listener) => command.env("LPF_MEET_FD", listener.as_raw_fd().to_string()),
            // A job may be started by a process of another, which has one.
            None => command.env_remove("LPF_MEET_FD").stdin(Stdio::null()),
        };
        if self.tags.is_some() {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let (parent, mask) = (getpid(), self.job.mask);
        // SAFETY: between fork and exec, `prepare` makes system calls on what it is given and nothing
        // else: it allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || prepare(parent, Signal::SIGKILL, &mask, listener.as_deref()))
        };
        command
    }

    /// From now on what all those started write is passed on, where tags were asked for; what is
    /// returned is closed when that is done.
    pub(super) fn finish(self) -> io::Result<Option<PipeReader>> {
        self.tags.map(Tags::pass_on).transpose()
    }
}
