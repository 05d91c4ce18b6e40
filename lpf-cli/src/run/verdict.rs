//! What is said when a job is over: exit status, remarks, and the root cause last.

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::output::seconds;

/// A process that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) rank: lpf::Pid,
    pub(super) pid: Pid,
    pub(super) status: ExitStatus,
    /// After the start of the job.
    pub(super) after: Duration,
}

/// The failure of a section, as a process reported it.
#[derive(Debug)]
pub(super) struct Failed {
    /// The process that reported it.
    pub(super) rank: lpf::Pid,
    pub(super) text: String,
    /// The process that the error names.
    pub(super) blamed: Option<lpf::Pid>,
    /// The process that did not arrive in time, if that is the cause.
    pub(super) late: Option<lpf::Pid>,
    /// The process whose end is the cause, if one is.
    pub(super) died: Option<lpf::Pid>,
}

/// A launcher that did not start all processes in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unstarted {
    /// What it is called.
    pub(super) name: &'static str,
    /// How long the next did not come.
    pub(super) patience: Duration,
    /// So many came.
    pub(super) started: usize,
}

/// What became of a job.
#[derive(Debug)]
pub(super) struct Over {
    grace: Duration,
    /// All that have ended, in that order.
    pub(super) ended: Vec<Ended>,
    /// So many of them before they were asked to.
    by_themselves: Option<usize>,
    /// The signal to this program that ended the job.
    pub(super) signal: Option<Signal>,
    /// Who has met the others, as they told.
    pub(super) joined: HashSet<lpf::Pid>,
    /// When process 0 left the job, as it told: it waits some time for the others before it ends.
    pub(super) left: Option<Instant>,
    /// Processes that did not leave the job when process 0 did, after a failure, and were asked to end.
    pub(super) staying: Vec<lpf::Pid>,
    /// The first failure that each process reported, in the order of the reports.
    pub(super) failures: Vec<Failed>,
    /// How the launcher of an MPI ended, where one started the processes.
    pub(super) launcher: Option<ExitStatus>,
    /// It did not start all.
    pub(super) unstarted: Option<Unstarted>,
    /// A process that ended without having met the others, who waited for it until they were asked to end.
    pub(super) absent: Option<lpf::Pid>,
    /// Processes that did not follow process 0; none if only what they had started did not.
    pub(super) lingering: Option<Vec<lpf::Pid>>,
    /// Processes that were stopped when all were asked to end: they may be why.
    pub(super) stopped: Vec<(lpf::Pid, Pid)>,
    /// Processes that had to be killed, and how long after they were asked to end.
    pub(super) killed: Option<(Vec<lpf::Pid>, Duration)>,
    /// Processes that run even so.
    pub(super) unending: Vec<lpf::Pid>,
}

impl Over {
    pub(super) fn new(grace: Duration) -> Self {
        Over {
            grace,
            ended: Vec::new(),
            by_themselves: None,
            signal: None,
            joined: HashSet::new(),
            left: None,
            staying: Vec::new(),
            failures: Vec::new(),
            launcher: None,
            unstarted: None,
            absent: None,
            lingering: None,
            killed: None,
            stopped: Vec::new(),
            unending: Vec::new(),
        }
    }

    /// All that end from now on do so because they are asked to.
    pub(super) fn asked(&mut self) {
        self.by_themselves.get_or_insert(self.ended.len());
    }

    /// Whether processes were asked to end.
    pub(super) fn is_asked(&self) -> bool {
        self.by_themselves.is_some()
    }

    pub(super) fn end_of(&self, rank: lpf::Pid) -> Option<&Ended> {
        self.ended.iter().find(|ended| ended.rank == rank)
    }

    /// The status to exit with.
    pub(super) fn status(&self) -> u8 {
        match (self.signal, self.end_of(0)) {
            (Some(signal), _) => 128 + signal as u8,
            (None, _) if self.unstarted.is_some() => 1,
            // That process 0 went well is not all: another one's failure is the job's. So it is if process 0 had to be
            // ended for it.
            (None, Some(zero)) => {
                let zero = failing(zero.status);
                let another = || self.by_themselves().iter().find_map(|end| failing(end.status));
                let absent = || self.absent.map(|_| 1);
                let own = zero.filter(|_| self.by_itself());
                own.or_else(another).or_else(absent).or(zero).unwrap_or(0)
            }
            (None, None) => self.launcher.and_then(failing).unwrap_or(1),
        }
    }

    /// Process 0 ended before anybody was asked to end.
    fn by_itself(&self) -> bool {
        self.by_themselves().iter().any(|ended| ended.rank == 0)
    }

    fn by_themselves(&self) -> &[Ended] {
        &self.ended[..self.by_themselves.unwrap_or(self.ended.len())]
    }

    /// What there is to say, one remark a line.
    pub(super) fn remarks(&self, size: lpf::Pid, host: &str) -> Vec<String> {
        let cause = self.root_cause(host);
        let is_well = cause.is_none() && self.by_itself();
        let are_well = self.launcher.is_none_or(|status| status.success());
        let is_lonely = is_well && are_well && size > 1 && self.joined.is_empty();
        let lonely = is_lonely.then(|| {
            format!(
                "none of the {size} processes joined the others: the program did not call lpf::run, or make a Member"
            )
        });
        let cause = cause.map(|cause| match self.failure() {
            Some(failure) => {
                let own = self.own_words(failure);
                format!("{cause}. The job failed with: {}{own}", failure.text)
            }
            None => cause,
        });
        let cause = self.unstarted(size).or(cause).or_else(|| self.launcher_failed(size));
        let remarks =
            [self.staying(), self.lingering(), self.killed(), self.unending(), lonely, cause];
        remarks.into_iter().flatten().collect()
    }

    fn staying(&self) -> Option<String> {
        let (who, be) = match &*self.staying {
            [] => return None,
            [rank] => (format!("process {rank}"), "was"),
            [rank, more @ ..] => (format!("process {rank} and {} more", more.len()), "were"),
        };
        let grace = seconds(self.grace);
        Some(format!(
            "{who} {be} still in the job {grace} after process 0 began to leave it, and {be} asked to end"
        ))
    }

    fn lingering(&self) -> Option<String> {
        let (who, be) = match &**self.lingering.as_ref()? {
            [] => ("a program that the processes had started was".into(), "was"),
            [rank] => (were(&[*rank]), "was"),
            ranks => (were(ranks), "were"),
        };
        let grace = seconds(self.grace);
        let after = match (self.absent, self.by_itself(), self.left) {
            (Some(_), _, _) => "another had ended",
            (None, true, Some(_)) => "process 0 had left the job",
            (None, true, None) => "process 0 had ended",
            (None, false, _) => "others had failed",
        };
        Some(format!("{who} still running {grace} after {after}, and {be} asked to end"))
    }

    fn killed(&self) -> Option<String> {
        let (ranks, time) = self.killed.as_ref().filter(|(ranks, _)| !ranks.is_empty())?;
        let (who, time) = (were(ranks), seconds(*time));
        let asked = match self.signal {
            Some(signal) => signal.as_str(),
            None => "SIGTERM",
        };
        Some(format!("{who} still running {time} after {asked}, and killed"))
    }

    fn unstarted(&self, size: lpf::Pid) -> Option<String> {
        let Unstarted { name, patience, started } = self.unstarted?;
        let time = seconds(patience);
        Some(format!(
            "{name} started {started} of {size} processes, and no other within {time}: it was ended. {name} -n {size} hostname shows whether it works at all; LPF_MEET_TIMEOUT=SECONDS waits longer"
        ))
    }

    /// The launcher ended badly, and no process did: what it has said is all there is.
    fn launcher_failed(&self, size: lpf::Pid) -> Option<String> {
        let status = self.launcher.and_then(failing).filter(|_| self.signal.is_none())?;
        let silent = size - self.ended.len().min(size);
        (silent > 0).then(|| {
            format!(
                "MPI's launcher ended with status {status}, and {silent} of the {size} processes are unknown: its message above is the cause"
            )
        })
    }

    fn unending(&self) -> Option<String> {
        let who = were(&self.unending);
        (!self.unending.is_empty())
            .then(|| format!("{who} killed and did not end: the system keeps the process"))
    }

    /// Who did not come in time, if that is what the job failed with: those who waited fail for it, and may
    /// end before. Who was ended by a signal has not failed for that, unless it was asked to end.
    fn late(&self, first: &Ended) -> Option<lpf::Pid> {
        let late = self.failure()?.late?;
        let is_asked = self.staying.contains(&first.rank);
        (late == first.rank || is_asked || first.status.signal().is_none()).then_some(late)
    }

    /// Records a failure that a process has reported. Once processes were asked to end, failures are consequences: a
    /// process that ends on request breaks its connections, and a neighbour that still runs reports that.
    pub(super) fn failed(&mut self, failed: Failed) {
        if !self.is_asked() && self.failures.iter().all(|other| other.rank != failed.rank) {
            self.failures.push(failed);
        }
    }

    /// What the job failed with. A process that is cut off from the others takes them for dead, and may be the
    /// first to report it. So the process counts that most reports name, or, of several, the one that process 0
    /// names: it is connected to all others. The process itself knows best what it did, then process 0.
    fn failure(&self) -> Option<&Failed> {
        let names = |blamed| self.failures.iter().filter(move |failed| failed.blamed == blamed);
        let is_of_zero = |blamed| names(blamed).any(|failed| failed.rank == 0);
        // Of equal ones `max_by_key` takes the last: that of the first report, so.
        let all = self.failures.iter().rev();
        let most =
            all.max_by_key(|failed| (names(failed.blamed).count(), is_of_zero(failed.blamed)));
        let blamed = most?.blamed;
        let by = |rank| names(blamed).find(|failed| Some(failed.rank) == rank);
        by(blamed).or_else(|| by(Some(0))).or(most)
    }

    /// What the process that a failure names has reported itself, if it has not joined the others: it knows why.
    fn own_words(&self, failure: &Failed) -> String {
        let mut others = self.failures.iter().filter(|other| other.rank != failure.rank);
        let own = others.find(|other| Some(other.rank) == failure.blamed);
        match own.filter(|own| !self.joined.contains(&own.rank)) {
            Some(Failed { rank, text, .. }) => format!(". Process {rank} reported: {text}"),
            None => String::new(),
        }
    }

    /// The process that the job failed for, and what became of it. Others may be gone before it, and it may have ended
    /// well: the processes of `lpf::run` do, after a panic in a section, too.
    fn blamed(&self, first: &Ended, host: &str) -> Option<(lpf::Pid, String)> {
        let failure = self.failure()?;
        let rank = failure.blamed?;
        let ended = self.by_themselves().iter().find(|ended| ended.rank == rank);
        let is_cause = |ended: &&Ended| failure.died.is_some() || !ended.status.success();
        if let Some(ended) = ended.filter(is_cause) {
            return Some((rank, ended.describe_in_a_section(host)));
        }
        // A process that was ended by a signal has not failed for another.
        if first.rank != rank && first.status.signal().is_some() {
            return None;
        }
        let what = match failure.died {
            Some(_) => "was taken for dead by the others",
            None if self.joined.contains(&rank) => "failed in a section",
            None => "had not joined the others",
        };
        Some((rank, self.describe_one_that(rank, what, host)))
    }

    /// A process whose end does not tell what was wrong with it. Its status is left out if that is 0, as it is where
    /// `lpf::run` ends a process other than 0, whatever happened.
    fn describe_one_that(&self, rank: lpf::Pid, what: &str, host: &str) -> String {
        match self.end_of(rank) {
            Some(Ended { pid, status, after, .. }) if status.success() => {
                let time = seconds(*after);
                format!("process {rank} (pid {pid} on {host}) {what}, and ended after {time}")
            }
            Some(ended) => ended.describe_as(&format!("{what}, and "), host),
            None => format!("process {rank} {what}, and is still running"),
        }
    }

    /// What went wrong first, in a sentence or two.
    fn root_cause(&self, host: &str) -> Option<String> {
        // It failed nobody's program, and ends it: the others have taken it for dead.
        if let (Some((rank, pid)), None) = (self.stopped.first(), self.signal) {
            let zero = self
                .end_of(0)
                .map(|zero| format!(". Process 0 {} after {}", zero.how(), seconds(zero.after)));
            let more = match self.stopped.len() - 1 {
                0 => String::new(),
                n => format!(", and {n} more"),
            };
            let zero = zero.unwrap_or_default();
            return Some(format!(
                "process {rank} (pid {pid} on {host}) was stopped, by a signal or a debugger{more}{zero}"
            ));
        }
        let by_themselves = self.by_themselves();
        let absent = self.absent.and_then(|absent| self.end_of(absent));
        if let Some(absent) = absent.filter(|absent| absent.status.success()) {
            let text = "and had not joined the others, which waited for it";
            return Some(format!("{}, {text}", absent.describe(host)));
        }
        let at = by_themselves.iter().position(|ended| !ended.status.success())?;
        let (before, first, after) =
            (&by_themselves[..at], by_themselves[at], &by_themselves[at + 1..]);
        let late =
            self.late(&first).map(|late| (late, self.describe_one_that(late, "was late", host)));
        let named = late.or_else(|| self.blamed(&first, host));
        // Process 0 ends last where all is well, and where it has waited for who had to be asked to end.
        let was_last = !self.staying.contains(&first.rank);
        if let (None, Some(zero)) =
            (&named, before.iter().find(|ended| ended.rank == 0 && was_last))
        {
            let failed = after.iter().filter(|ended| !ended.status.success()).count() + 1;
            let who = if failed == 1 { "another".into() } else { format!("{failed} others") };
            return Some(format!("{}, and {who} failed then", zero.describe(host)));
        }
        let (rank, mut text) = named.unwrap_or_else(|| (first.rank, first.describe(host)));
        let others = by_themselves.iter().filter(|ended| ended.rank != rank);
        match others.filter(|ended| !ended.status.success()).count() {
            0 => {}
            1 => text += "; 1 more failed after it",
            n => text += &format!("; {n} more failed after it"),
        }
        if rank > 0
            && let Some(zero) = self.end_of(0)
        {
            text += &format!(". Process 0 {} after {}", zero.how(), seconds(zero.after));
        }
        Some(text)
    }
}

/// A status other than 0.
fn failing(status: ExitStatus) -> Option<u8> {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Some(u8::try_from(code).unwrap_or(1)).filter(|&code| code != 0)
}

fn were(processes: &[lpf::Pid]) -> String {
    match processes {
        [rank] => format!("process {rank} was"),
        several => format!("{} processes were", several.len()),
    }
}

impl Ended {
    /// `process 2 (pid 4711 on node3) was ended by SIGSEGV after 1.32 s`
    fn describe(&self, host: &str) -> String {
        self.describe_as("", host)
    }

    /// Of whom others waited for in a section.
    fn describe_in_a_section(&self, host: &str) -> String {
        let text = self.describe(host);
        if self.status.success() {
            format!("{text}, while others waited for it in a section")
        } else {
            text
        }
    }

    fn describe_as(&self, what: &str, host: &str) -> String {
        let Ended { rank, pid, .. } = self;
        let (how, time) = (self.how(), seconds(self.after));
        format!("process {rank} (pid {pid} on {host}) {what}{how} after {time}")
    }

    fn how(&self) -> String {
        let Some(number) = self.status.signal() else {
            return format!("ended with status {}", self.status.code().unwrap_or(1));
        };
        let name = match Signal::try_from(number) {
            Ok(Signal::SIGKILL) => {
                "SIGKILL (sent by a user, or by a system short of memory)".into()
            }
            Ok(Signal::SIGPIPE) => "SIGPIPE (no process reads its output)".into(),
            Ok(signal) => signal.as_str().into(),
            Err(_) => format!("signal {number}"),
        };
        let core = if self.status.core_dumped() { " (core dumped)" } else { "" };
        format!("was ended by {name}{core}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait status: exit statuses in the second byte, signals in the first (wait(2)).
    fn over(ended: &[(lpf::Pid, i32)]) -> Over {
        let mut over = Over::new(Duration::from_secs(5));
        over.ended = (1..)
            .zip(ended)
            .map(|(tenths, &(rank, status))| Ended {
                rank,
                pid: Pid::from_raw(100 + rank as i32),
                status: ExitStatus::from_raw(status),
                after: Duration::from_millis(100 * tenths),
            })
            .collect();
        over
    }

    const FAILED: i32 = 3 << 8;

    fn failed(
        rank: lpf::Pid,
        blamed: Option<lpf::Pid>,
        late: Option<lpf::Pid>,
        died: Option<lpf::Pid>,
    ) -> Failed {
        Failed { rank, text: format!("by {rank}"), blamed, late, died }
    }

    #[test]
    fn the_process_counts_that_most_name_and_of_two_views_that_of_process_0() {
        // Who reports, and which process is named; which report counts.
        type Report = (lpf::Pid, Option<lpf::Pid>);
        let cases: &[(&[Report], lpf::Pid)] = &[
            // One is cut off, and the first to report.
            (&[(1, Some(0)), (0, Some(1))], 0),
            (&[(0, Some(1)), (1, Some(0))], 0),
            (&[(2, Some(0)), (3, Some(2)), (1, Some(2)), (0, Some(2))], 0),
            (&[(2, Some(0)), (3, Some(2)), (1, Some(2))], 3),
            // It is process 0.
            (&[(0, Some(1)), (3, Some(0)), (1, Some(0))], 3),
            // Two and two: the half with process 0.
            (&[(2, Some(0)), (3, Some(0)), (0, Some(2)), (1, Some(2))], 0),
            // A process knows best what it did itself.
            (&[(0, Some(1)), (1, Some(1)), (2, Some(1))], 1),
            (&[(2, None), (1, None)], 2),
        ];
        for (reports, expected) in cases {
            let mut over = over(&[]);
            for &(rank, blamed) in *reports {
                over.failed(failed(rank, blamed, None, blamed));
            }
            assert_eq!(over.failure().unwrap().rank, *expected, "{reports:?}");
            // A second failure of a process does not count.
            let again = reports[0].0;
            over.failed(failed(again, Some(again), None, None));
            assert_eq!(over.failures.len(), reports.len());
        }
    }

    #[test]
    fn a_process_that_is_cut_off_is_the_cause_whether_it_ends_or_not() {
        let cause = |ended: &[(lpf::Pid, i32)], asked: usize| {
            let mut over = over(ended);
            over.failed(failed(2, Some(0), None, Some(0)));
            over.failed(failed(1, Some(2), None, Some(2)));
            over.failed(failed(0, Some(2), None, Some(2)));
            over.joined.extend(0..3);
            over.by_themselves = Some(ended.len() - asked);
            over.remarks(3, "h").join("\n")
        };
        let text = "process 2 (pid 102 on h) ended with status 3 after 0.200 s; 2 more failed after it. Process 0 ended with status 3 after 0.300 s. The job failed with: by 0";
        assert_eq!(cause(&[(1, FAILED), (2, FAILED), (0, FAILED)], 0), text);
        let text = "process 2 (pid 102 on h) was taken for dead by the others, and was ended by SIGTERM after 0.300 s; 2 more failed after it. Process 0 ended with status 3 after 0.200 s. The job failed with: by 0";
        assert_eq!(cause(&[(1, FAILED), (0, FAILED), (2, 15)], 1), text);
    }

    #[test]
    fn a_process_that_panicked_is_named_though_the_others_end_before() {
        let mut over = over(&[(0, FAILED), (1, FAILED)]);
        over.failed(failed(0, Some(1), None, None));
        let text = "process 1 (pid 101 on h) ended with status 3 after 0.200 s; 1 more failed after it. Process 0 ended with status 3 after 0.100 s";
        assert_eq!(over.root_cause("h").as_deref(), Some(text));
        // It has lived on, and ended well.
        over.ended[1].status = ExitStatus::from_raw(0);
        over.joined.extend([0, 1]);
        let text = "process 1 (pid 101 on h) failed in a section, and ended after 0.200 s; 1 more failed after it. Process 0 ended with status 3 after 0.100 s";
        assert_eq!(over.root_cause("h").as_deref(), Some(text));
        // A process that crashes has not failed for another.
        over.ended[0].status = ExitStatus::from_raw(11);
        let text = "process 0 (pid 100 on h) was ended by SIGSEGV after 0.100 s";
        assert_eq!(over.root_cause("h").as_deref(), Some(text));
    }

    #[test]
    fn a_process_that_others_waited_for_in_vain_before_they_joined_is_the_cause() {
        let mut over = over(&[(0, FAILED), (1, 15)]);
        over.failed(failed(0, Some(1), None, None));
        over.failed(failed(1, Some(0), None, None));
        over.by_themselves = Some(1);
        let text = "process 1 (pid 101 on h) had not joined the others, and was ended by SIGTERM after 0.200 s; 1 more failed after it. Process 0 ended with status 3 after 0.100 s. The job failed with: by 0. Process 1 reported: by 1";
        assert_eq!(over.remarks(2, "h"), [text]);
        // Process 0 returned its error to a program that went on and ended well.
        over.ended[0].status = ExitStatus::from_raw(0);
        over.ended[1].status = ExitStatus::from_raw(FAILED);
        over.by_themselves = None;
        let text = "process 1 (pid 101 on h) ended with status 3 after 0.200 s. Process 0 ended with status 0 after 0.100 s";
        assert_eq!(over.root_cause("h").as_deref(), Some(text));
    }

    #[test]
    fn the_first_to_fail_is_the_root_cause_and_the_others_are_counted() {
        let cases: &[(&[(lpf::Pid, i32)], &str)] = &[
            (&[(0, FAILED)], "process 0 (pid 100 on h) ended with status 3 after 0.100 s"),
            (
                &[(0, FAILED), (1, FAILED)],
                "process 0 (pid 100 on h) ended with status 3 after 0.100 s; 1 more failed after it",
            ),
            (
                &[(2, 11), (1, FAILED), (3, 6), (0, 0)],
                "process 2 (pid 102 on h) was ended by SIGSEGV after 0.100 s; 2 more failed after it. Process 0 ended with status 0 after 0.400 s",
            ),
            (
                &[(1, 11 | 0x80), (0, FAILED)],
                "process 1 (pid 101 on h) was ended by SIGSEGV (core dumped) after 0.100 s; 1 more failed after it. Process 0 ended with status 3 after 0.200 s",
            ),
            (
                &[(1, 40), (0, 0)],
                "process 1 (pid 101 on h) was ended by signal 40 after 0.100 s. Process 0 ended with status 0 after 0.200 s",
            ),
            // All left in order.
            (
                &[(2, 0), (1, 0), (0, FAILED)],
                "process 0 (pid 100 on h) ended with status 3 after 0.300 s",
            ),
            (
                &[(0, 0), (1, FAILED), (2, FAILED)],
                "process 0 (pid 100 on h) ended with status 0 after 0.100 s, and 2 others failed then",
            ),
        ];
        for (ended, expected) in cases {
            assert_eq!(over(ended).root_cause("h").as_deref(), Some(*expected));
        }
        assert_eq!(over(&[(1, 0), (0, 0)]).root_cause("h"), None);
    }

    #[test]
    fn who_was_late_is_the_cause_though_those_who_waited_end_before_it() {
        let failed = |late| vec![failed(0, late, late, None)];
        let cause = |ended: &[(lpf::Pid, i32)], asked: usize, staying: &[lpf::Pid]| {
            let mut over = over(ended);
            (over.failures, over.staying) = (failed(Some(2)), staying.into());
            over.by_themselves = Some(ended.len() - asked);
            over.root_cause("h").unwrap()
        };
        let text = "process 2 (pid 102 on h) was late, and was ended by SIGTERM after 0.300 s; 2 more failed after it. Process 0 ended with status 3 after 0.100 s";
        assert_eq!(cause(&[(0, FAILED), (1, FAILED), (2, 15)], 1, &[]), text);
        let text = "process 2 (pid 102 on h) was late, and was ended by SIGTERM after 0.200 s; 2 more failed after it. Process 0 ended with status 3 after 0.300 s";
        assert_eq!(cause(&[(3, 15), (2, 15), (0, FAILED)], 0, &[2, 3]), text);
        let text = "process 2 (pid 102 on h) was late, and was ended by SIGTERM after 0.200 s. Process 0 ended with status 0 after 0.100 s";
        assert_eq!(cause(&[(0, 0), (2, 15)], 0, &[2]), text);
        // It may come later, and go on.
        let text = "process 2 (pid 102 on h) was late, and ended after 0.200 s; 1 more failed after it. Process 0 ended with status 3 after 0.100 s";
        assert_eq!(cause(&[(0, FAILED), (2, 0)], 0, &[]), text);
        assert_eq!(
            cause(&[(0, FAILED)], 0, &[]),
            "process 2 was late, and is still running; 1 more failed after it. Process 0 ended with status 3 after 0.100 s"
        );
        // Who crashes has not waited.
        assert!(
            cause(&[(1, 11), (2, 0), (0, 0)], 0, &[]).starts_with("process 1 (pid 101 on h) was")
        );
        let mut other = over(&[(1, FAILED), (2, 0), (0, 0)]);
        other.failures = failed(None);
        assert!(other.root_cause("h").unwrap().starts_with("process 1 (pid 101 on h) ended"));
    }

    #[test]
    fn who_ended_in_a_section_is_the_cause_though_others_are_gone_before_it() {
        let cause = |ended: &[(lpf::Pid, i32)], died| {
            let mut over = over(ended);
            over.failures = vec![failed(0, Some(died), None, Some(died))];
            over.root_cause("h").unwrap()
        };
        let text =
            "process 0 (pid 100 on h) was ended by SIGTERM after 0.200 s; 1 more failed after it";
        assert_eq!(cause(&[(2, FAILED), (0, 15)], 0), text);
        let text = "process 1 (pid 101 on h) ended with status 0 after 0.200 s, while others waited for it in a section; 1 more failed after it. Process 0 ended with status 3 after 0.100 s";
        assert_eq!(cause(&[(0, FAILED), (1, 0)], 1), text);
        let text = "process 1 was taken for dead by the others, and is still running; 1 more failed after it. Process 0 ended with status 3 after 0.100 s";
        assert_eq!(cause(&[(0, FAILED)], 1), text);
        // A process that crashes has not failed for another.
        assert!(
            cause(&[(2, 11), (0, FAILED)], 1).starts_with("process 2 (pid 102 on h) was ended")
        );
    }

    #[test]
    fn who_was_stopped_is_the_cause_of_what_followed() {
        let mut over = over(&[(0, FAILED), (1, FAILED)]);
        over.stopped = vec![(2, Pid::from_raw(102))];
        let text = "process 2 (pid 102 on h) was stopped, by a signal or a debugger. Process 0 ended with status 3 after 0.100 s";
        assert_eq!(over.root_cause("h").as_deref(), Some(text));
        over.signal = Some(Signal::SIGINT);
        assert!(!over.root_cause("h").unwrap().contains("stopped"));
    }

    #[test]
    fn who_ends_because_he_is_asked_is_no_cause() {
        let mut over = over(&[(0, 0)]);
        over.asked();
        over.ended.extend(super::tests::over(&[(1, 15)]).ended);
        over.failed(failed(2, Some(1), None, Some(1)));
        assert!(over.failure().is_none(), "a failure after the request is a consequence");
        assert_eq!(over.root_cause("h"), None);
    }

    #[test]
    fn the_status_is_that_of_process_0_unless_a_signal_ended_the_job() {
        assert_eq!(over(&[(1, FAILED), (0, 0)]).status(), 3);
        assert_eq!(over(&[(1, 0), (0, 0)]).status(), 0);
        assert_eq!(over(&[(1, 0), (0, FAILED)]).status(), 3);
        assert_eq!(over(&[(0, 9)]).status(), 137);
        // Process 0 had to be ended, because another one failed, or ended well without joining.
        let mut asked = over(&[(1, FAILED), (0, 15)]);
        asked.by_themselves = Some(1);
        assert_eq!(asked.status(), 3);
        asked.ended[0].status = ExitStatus::from_raw(0);
        asked.absent = Some(1);
        assert_eq!(asked.status(), 1);
        let mut ended = over(&[(0, 0)]);
        ended.signal = Some(Signal::SIGINT);
        assert_eq!(ended.status(), 130);
    }

    #[test]
    fn that_nobody_joined_is_said_of_a_job_in_which_nothing_else_went_wrong() {
        let remarks = |over: &Over, size| over.remarks(size, "h").join("\n");
        let mut good = over(&[(1, 0), (0, 0)]);
        assert!(remarks(&good, 2).contains("none of the 2 processes joined"));
        assert_eq!(remarks(&good, 1), "");
        good.launcher = Some(ExitStatus::from_raw(0));
        assert!(remarks(&good, 2).contains("did not call lpf::run"));
        good.joined.insert(0);
        assert_eq!(remarks(&good, 2), "");
        assert!(!remarks(&over(&[(0, FAILED)]), 2).contains("joined"));
    }
}
