//! Starting the processes of a job one by one: they will meet over TCP.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use lpf::control::rendezvous::{MeetError, Secret, bind_first};
use lpf::launcher::WHERE;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid};

use super::start::{Job, Refused, prepare};
use crate::failure::{Failure, Result};
use crate::output::Standard;

/// A process that was started.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) rank: lpf::Pid,
    pub(super) pid: Pid,
    /// What it writes, where tags were asked for.
    pub(super) streams: [(Standard, Option<OwnedFd>); 2],
}

/// Starts one process after the other.
#[derive(Debug)]
pub(super) struct Starter<'a> {
    job: Job<'a>,
    /// The next to be started.
    rank: lpf::Pid,
    meet: String,
    secret: Secret,
    reports: String,
}

/// Where process 0 will wait for the others, and the address.
pub(super) fn listen() -> Result<(TcpListener, String)> {
    let listener = bind_first("127.0.0.1").map_err(refused)?;
    let address = listener.local_addr().map_err(super::system)?.to_string();
    Ok((listener, address))
}

fn refused(error: MeetError) -> Failure {
    Failure::Failed(error.to_string())
}

impl<'a> Starter<'a> {
    pub(super) fn new(job: Job<'a>, meet: String, reports: String) -> Result<Self> {
        Ok(Starter { rank: 0, meet, secret: Secret::random().map_err(refused)?, reports, job })
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
        let streams = [
            (Standard::Output, child.stdout.take().map(Into::into)),
            (Standard::Errors, child.stderr.take().map(Into::into)),
        ];
        Ok(Started { rank, pid: Pid::from_raw(child.id() as libc::pid_t), streams })
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
        if self.rank > 0 {
            command.stdin(Stdio::null());
        }
        if self.job.tag {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let (parent, inherited) = (getpid(), self.job.inherited);
        // SAFETY: between fork and exec, `prepare` makes system calls on what it is given and nothing
        // else: it allocates nothing and takes no lock.
        unsafe { command.pre_exec(move || prepare(parent, Signal::SIGKILL, &inherited)) };
        command
    }
}
