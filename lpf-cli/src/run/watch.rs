//! The course of a job after its start; see `run.rs`.

use std::collections::{HashMap, HashSet};
use std::io::PipeReader;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use lpf::launcher::Report;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::descendants::{descendants, descendants_of, is_stopped, is_this_program};
use super::desk::Desk;
use super::milliseconds;
use super::mpi::{self, Launcher};
use super::report::Reports;
use super::signals::{AGAIN, Heard, Signals};
use super::tcp::Started;
use super::verdict::{Ended, Failed, Over, Unstarted};
use crate::output::say;

/// Who left the job together with process 0 has so long to end after it, at least.
const LAST: Duration = Duration::from_millis(500);

/// Killing is repeated after this: meanwhile a process may have started others.
const REPEAT: Duration = Duration::from_millis(50);

/// A launcher has so long to end after its processes were killed: on a machine with other work a second may
/// not do, and one that is killed itself leaves its files behind.
const TIDYING: Duration = Duration::from_secs(3);

/// What killed processes have written is passed on for so long: nobody may be reading.
const REST: Duration = Duration::from_secs(1);

/// A process that does not end so long after it was killed hangs in the system.
const HOPELESS: Duration = Duration::from_secs(10);

/// How far a job is on its way to the end.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Running,
    /// Process 0 has ended, or cannot end by itself; the others are expected to follow, since it left the job
    /// or ended without.
    Following {
        until: Instant,
    },
    /// They were asked to end.
    Asked {
        since: Instant,
    },
    /// They are being killed.
    Killed {
        since: Instant,
        again: Instant,
    },
}

/// What a launcher has started of the processes.
#[derive(Debug)]
struct Starting {
    name: &'static str,
    /// For the next, at most.
    patience: Duration,
    /// When it began, or has started the last.
    since: Instant,
    started: HashSet<lpf::Pid>,
}

#[derive(Debug)]
pub(super) struct Watch {
    signals: Signals,
    grace: Duration,
    began: Instant,
    /// The processes that run, by what the system calls them.
    running: HashMap<Pid, lpf::Pid>,
    size: lpf::Pid,
    reports: Reports,
    desk: Desk,
    /// Another launcher, which has started them.
    launcher: Option<Pid>,
    /// It has not started all of them yet.
    starting: Option<Starting>,
    /// There is no child left, of those started or taken in.
    nobody: bool,
    /// Closed when all output has been passed on.
    output: Option<PipeReader>,
    stage: Stage,
    /// Who waits for the others to come.
    meeting: HashSet<lpf::Pid>,
    /// Who leaves, or has left, the job in order.
    left: HashSet<lpf::Pid>,
    /// Process 0 leaves, and has not left yet.
    zero_leaves: bool,
    /// A process failed meanwhile: what they close together may never be closed.
    leaves_in_vain: bool,
    /// Sections of each process that have failed, and which of them failed because process 0 did not come
    /// in time, counted from 1.
    failures: HashMap<lpf::Pid, u32>,
    late: u32,
    /// Process 0 leaves a job that has failed: who stays is asked to end then.
    hurry: Option<Instant>,
    /// When it was last signalled to end.
    signalled: Option<Instant>,
    over: Over,
}

impl Watch {
    pub(super) fn new(
        signals: Signals,
        reports: Reports,
        desk: Desk,
        output: Option<PipeReader>,
        size: lpf::Pid,
        grace: Duration,
    ) -> Self {
        Watch {
            signals,
            reports,
            desk,
            size,
            launcher: None,
            starting: None,
            grace,
            began: Instant::now(),
            running: HashMap::new(),
            nobody: false,
            output,
            stage: Stage::Running,
            meeting: HashSet::new(),
            left: HashSet::new(),
            zero_leaves: false,
            leaves_in_vain: false,
            failures: HashMap::new(),
            late: 0,
            hurry: None,
            signalled: None,
            over: Over::new(grace),
        }
    }

    /// Watches what another launcher starts.
    pub(super) fn launcher(&mut self, launcher: Launcher) {
        let Launcher { pid, name, patience } = launcher;
        self.launcher = Some(pid);
        let (since, started) = (Instant::now(), HashSet::new());
        self.starting = Some(Starting { name, patience, since, started });
    }

    /// The launcher has started one more, or one that has ended again.
    fn has_started(&mut self, rank: lpf::Pid) {
        if let Some(starting) = &mut self.starting
            && starting.started.insert(rank)
        {
            starting.since = Instant::now();
            let is_all = starting.started.len() >= self.size;
            self.starting.take_if(|_| is_all);
        }
    }

    /// Watches one more.
    pub(super) fn take(&mut self, started: Started) {
        self.running.insert(started.pid, started.rank);
        self.desk.tag(started.rank, started.streams);
    }

    /// There are no more to come.
    pub(super) fn all_started(&mut self) {
        self.desk.close_tags();
    }

    /// Processes of the job.
    pub(super) fn size(&self) -> lpf::Pid {
        self.size
    }

    /// Whether processes were asked to end, so that no more are to be started.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Asked { .. } | Stage::Killed { .. })
    }

    /// Asks all to end.
    pub(super) fn end(&mut self) {
        self.ask(Instant::now());
        self.send(Signal::SIGTERM);
    }

    /// Watches until nobody is left.
    pub(super) fn finish(mut self) -> Over {
        self.reap();
        while !self.is_over() {
            self.advance(Instant::now());
            self.sleep();
            self.hear();
        }
        self.over.unending = if self.nobody { Vec::new() } else { self.still_running() };
        self.over
    }

    fn is_over(&self) -> bool {
        match self.stage {
            Stage::Killed { since, .. } if since.elapsed() > HOPELESS => true,
            Stage::Killed { since, .. } if since.elapsed() > REST => self.nobody,
            _ => self.nobody && self.output.is_none(),
        }
    }

    fn sleep(&mut self) {
        let until = match self.stage {
            Stage::Running => self.hurry,
            Stage::Following { until } => Some(until),
            Stage::Asked { since } => Some(since + self.grace),
            Stage::Killed { again, .. } => Some(again),
        };
        let due = self.starting.as_ref().map(|starting| starting.since + starting.patience);
        let due = due.filter(|_| !self.is_ending());
        let until = until.into_iter().chain(due).min();
        let time = until.map(|until| until.saturating_duration_since(Instant::now()));
        let time = time.map_or(PollTimeout::NONE, milliseconds);
        let mut descriptors = vec![PollFd::new(self.signals.descriptor(), PollFlags::POLLIN)];
        descriptors.extend(self.output.as_ref().map(|o| PollFd::new(o.as_fd(), PollFlags::POLLIN)));
        let output = descriptors.len() - 1;
        descriptors.push(PollFd::new(self.reports.descriptor(), PollFlags::POLLIN));
        // A wait that ends early is one look more.
        let _ = poll(&mut descriptors, time);
        let is_passed_on = output > 0 && descriptors[output].any() == Some(true);
        if is_passed_on {
            self.output = None;
        }
    }

    /// Reacts to all that has come.
    pub(super) fn hear(&mut self) {
        self.read_reports();
        while let Some(heard) = self.signals.next() {
            match heard {
                Heard::Child => self.reap(),
                Heard::PassOn(signal) => self.pass_on(signal),
                Heard::End { signal, to_all } => self.signalled(signal, to_all, Instant::now()),
            }
        }
    }

    /// Takes note of what processes, and their shepherds, have to tell.
    fn read_reports(&mut self) {
        while let Some((report, asked)) = self.reports.next() {
            match report {
                Report::AsksForStreams { rank } => {
                    let handed = asked.map(|asked| self.desk.hand_streams(rank, &asked));
                    if let Some(Err(error)) = handed {
                        // Its shepherd reports that it did not start.
                        say(format!("process {rank} has no standard streams: {error}"));
                    }
                }
                Report::AsksForListener { meet } => {
                    asked.inspect(|asked| self.desk.hand_listener(&meet, asked));
                }
                Report::Started { rank, pid } => {
                    self.has_started(rank);
                    self.running.insert(Pid::from_raw(pid), rank);
                }
                Report::Meets { rank } => {
                    // It may be gone by now.
                    if self.over.end_of(rank).is_none() {
                        self.meeting.insert(rank);
                    }
                }
                Report::Joined { rank } => {
                    self.meeting.remove(&rank);
                    self.over.joined.insert(rank);
                    // Who was left behind may have met anew.
                    self.over.left = self.over.left.filter(|_| rank > 0);
                    self.left.remove(&rank);
                }
                Report::Leaves { rank } => {
                    self.left.insert(rank);
                    if rank == 0 {
                        self.zero_leaves = true;
                        let now = *self.over.left.get_or_insert_with(Instant::now);
                        // Where nothing went wrong they follow, or have work of their own.
                        self.hurry = (!self.over.failures.is_empty()).then_some(now + self.grace);
                    }
                }
                Report::Left { rank: 0 } => {
                    self.hurry = None;
                    self.zero_leaves = false;
                    self.leaves_in_vain = false;
                }
                Report::Left { .. } => {}
                Report::Failed { rank, text, blamed, late, died } => {
                    self.over.failed(Failed { rank, text, blamed, late, died });
                    let failures = self.failures.entry(rank).or_default();
                    *failures += 1;
                    if late == Some(0) {
                        self.late = *failures;
                    }
                }
                Report::Ended { rank, pid, status } => {
                    let (pid, status) = (Pid::from_raw(pid), ExitStatus::from_raw(status));
                    self.running.remove(&pid);
                    self.has_started(rank);
                    self.ended(Ended { rank, pid, status, after: self.began.elapsed() });
                }
            }
        }
    }

    fn signalled(&mut self, signal: Signal, to_all: bool, now: Instant) {
        self.over.signal.get_or_insert(signal);
        match self.signalled {
            Some(before) if now - before < AGAIN => return,
            _ => self.signalled = Some(now),
        }
        match self.stage {
            Stage::Running | Stage::Following { .. } => {
                self.ask(now);
                if !to_all {
                    self.send(signal);
                }
            }
            Stage::Asked { since } => self.kill(since, now),
            Stage::Killed { .. } => {}
        }
    }

    /// Does what has become due.
    fn advance(&mut self, now: Instant) {
        if self.hurry.is_some_and(|hurry| now >= hurry) {
            self.hurry = None;
            if self.over.end_of(0).is_none() {
                self.ask_who_stays();
            }
        }
        if let Some(starting) =
            self.starting.take_if(|one| now >= one.since + one.patience && !self.over.is_asked())
        {
            let Starting { name, patience, started, .. } = starting;
            self.over.unstarted = Some(Unstarted { name, patience, started: started.len() });
            self.ask(now);
            self.send(Signal::SIGTERM);
        }
        match self.stage {
            Stage::Running if self.is_ended() => {
                self.stage = Stage::Following { until: self.follow_until(now) };
            }
            // Process 0 was continued, and goes on.
            Stage::Following { .. } if !self.is_ended() => self.stage = Stage::Running,
            Stage::Following { until } if now >= until => {
                self.over.absent = self.absent();
                self.over.lingering = Some(self.still_running());
                self.ask(now);
                self.send(Signal::SIGTERM);
            }
            Stage::Asked { since } if now >= since + self.grace => self.kill(since, now),
            Stage::Killed { since, again } if now >= again => {
                self.send(Signal::SIGKILL);
                self.stage = Stage::Killed { since, again: now + REPEAT };
            }
            _ => {}
        }
    }

    /// Whether process 0 has ended, or never will by itself.
    fn is_ended(&self) -> bool {
        self.over.end_of(0).is_some() || self.is_hopeless()
    }

    /// Whether process 0 runs, and will not come to an end by itself. A process that failed before any had
    /// met the others is waited for by all, and so is one that ended without having come while others meet.
    /// Who failed while process 0 left may have left it waiting for ever, in the end of MPI itself. And where
    /// process 0 is stopped, or did not come to a superstep in time, the others have taken it for dead; when
    /// all of them have ended, nobody waits for it to go on. Else it is a survivor, which was told of the
    /// failure and ends when it has done what it wants to: it may be saving its state.
    fn is_hopeless(&self) -> bool {
        let has_failed = self.over.ended.iter().any(|ended| !ended.status.success());
        let is_alone = self.over.ended.len() + 1 >= self.size;
        let is_late = self.failures.get(&0).copied().unwrap_or(0) < self.late;
        // It may be a shell, which is not stopped itself.
        let is_lost = || is_late || has_failed && descendants().into_iter().any(is_stopped);
        let is_early = has_failed && self.over.joined.is_empty() || self.absent().is_some();
        is_early || self.leaves_in_vain || is_alone && is_lost()
    }

    /// Who has ended without having met the others, while some wait for all.
    fn absent(&self) -> Option<lpf::Pid> {
        let absent = self.over.ended.iter().find(|ended| !self.over.joined.contains(&ended.rank));
        absent.filter(|_| !self.meeting.is_empty()).map(|ended| ended.rank)
    }

    /// When those that run yet have had time to follow: process 0 may have waited for them already, when it
    /// left the job, before it ended.
    fn follow_until(&self, now: Instant) -> Instant {
        let waits = self.over.end_of(0).is_some() && !self.running.is_empty();
        match self.over.left.filter(|_| waits) {
            Some(left) => (left + self.grace).max(now + self.grace.min(LAST)),
            None => now + self.grace,
        }
    }

    fn still_running(&self) -> Vec<lpf::Pid> {
        let mut ranks: Vec<_> = self.running.values().copied().collect();
        ranks.sort_unstable();
        ranks
    }

    /// A section has failed, and process 0 waits in vain for these to leave the job with it: by itself it
    /// would wait longer.
    fn ask_who_stays(&mut self) {
        let stays = |rank: &lpf::Pid| *rank > 0 && !self.left.contains(rank);
        let staying = self.running.iter().filter(|(_, rank)| stays(rank));
        for (&pid, &rank) in staying {
            // Who is gone already need not be told.
            let _ = kill(pid, Signal::SIGTERM);
            self.over.staying.push(rank);
        }
        self.over.staying.sort_unstable();
    }

    /// From now on no process ends by itself. Failures that processes reported before are causes still.
    fn ask(&mut self, now: Instant) {
        self.read_reports();
        self.over.stopped = self.running.iter().map(|(&pid, &rank)| (rank, pid)).collect();
        self.over.stopped.retain(|&(_, pid)| is_stopped(pid));
        self.over.stopped.sort_unstable_by_key(|&(rank, _)| rank);
        self.over.asked();
        self.stage = Stage::Asked { since: now };
    }

    fn kill(&mut self, asked: Instant, now: Instant) {
        self.over.killed = Some((self.still_running(), now - asked));
        self.send(Signal::SIGKILL);
        self.stage = Stage::Killed { since: now, again: now + REPEAT };
    }

    /// Sends a signal that is the program's business. Launchers of MPI pass such a signal on themselves, to
    /// each process's group, so they are left out: it comes once to each.
    fn pass_on(&self, signal: Signal) {
        if self.launcher.is_none() {
            return self.send(signal);
        }
        // What shepherds have started: it may run before they have reported it.
        let started = descendants().into_iter().filter(|&pid| is_this_program(pid));
        self.send_to(descendants_of(started), &[signal]);
    }

    /// Sends a signal to the whole job, but for a launcher of MPI's: it ends when its processes have, and
    /// removes their files. (It may have had the signal already, with the group or from the terminal, and
    /// leaves the files where they are at a second one.) Where it has not ended a moment after them it is
    /// killed, too.
    fn send(&self, signal: Signal) {
        let is_its_turn = match self.stage {
            Stage::Killed { since, .. } => since.elapsed() >= TIDYING,
            _ => false,
        };
        let mut these = descendants();
        // Before it has started any it is all there is.
        let is_alone = these.iter().all(|&pid| self.launcher == Some(pid));
        these.retain(|&pid| self.launcher != Some(pid) || is_its_turn || is_alone);
        match self.stage {
            // Who is stopped hears of it when he goes on.
            Stage::Asked { .. } => self.send_to(these, &[signal, Signal::SIGCONT]),
            _ => self.send_to(these, &[signal]),
        }
    }

    /// Sends signals to these, and to who is known all the same where descendants cannot be seen.
    fn send_to(&self, mut these: Vec<Pid>, signals: &[Signal]) {
        these.extend(self.running.keys().filter(|pid| !these.contains(pid)).collect::<Vec<_>>());
        for pid in these {
            for &signal in signals {
                // Who is gone already need not be told.
                let _ = kill(pid, signal);
            }
        }
    }

    /// Takes note of who has ended.
    fn reap(&mut self) {
        let mut ended = Vec::new();
        self.nobody = loop {
            match next_dead() {
                Dead::Nobody => break true,
                Dead::NotYet => break false,
                Dead::This(pid, status) => {
                    if self.launcher == Some(pid) {
                        self.read_reports();
                        if status.signal() == Some(Signal::SIGKILL as i32) {
                            mpi::tidy_after(pid);
                        }
                        self.over.launcher = Some(status);
                        self.starting = None;
                        self.desk.close_tags();
                    }
                    // Others are strangers that were taken in.
                    if let Some(rank) = self.running.remove(&pid) {
                        ended.push(Ended { rank, pid, status, after: self.began.elapsed() });
                    }
                }
            }
        };
        // The system does not say in which order they have ended. Who was ended by a signal has hardly
        // followed another, so he comes first; and who failed has not followed one that did well.
        ended.sort_by_key(|ended| (ended.status.signal().is_none(), ended.status.success()));
        ended.into_iter().for_each(|ended| self.ended(ended));
        // Who has ended has reported before.
        self.read_reports();
    }

    fn ended(&mut self, ended: Ended) {
        self.leaves_in_vain |= self.zero_leaves && !ended.status.success();
        self.meeting.remove(&ended.rank);
        if ended.rank == 0 {
            self.desk.close_listener();
        }
        self.over.ended.push(ended);
    }
}

enum Dead {
    This(Pid, ExitStatus),
    NotYet,
    Nobody,
}

/// A child that has ended, of those started and those taken in. (The wait of `nix` has no word for
/// real-time signals, and would lose whom one has ended.)
fn next_dead() -> Dead {
    let mut status = 0;
    // SAFETY: the status is this function's own.
    match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
        0 => Dead::NotYet,
        pid if pid > 0 => Dead::This(Pid::from_raw(pid), ExitStatus::from_raw(status)),
        _ => Dead::Nobody,
    }
}
