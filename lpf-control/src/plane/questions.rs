//! Asking whom a wait waits for, in rounds: nobody stands still for an answer.
//!
//! A round begins every [`ASK_AFTER`] of a wait. It asks the processes awaited, then those that these
//! await in turn, and so on; all answers are of this round. When no question is open, or after
//! [`PATIENCE`], the verdict is spoken on what is there; a process that did not answer accuses nobody
//! and is accused of nothing. So the second look at a cycle, in the next round, is on newer answers
//! than the first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lpf_core::Pid;
use lpf_core::waits::{ASK_AFTER, Doing, Fault, Status, Suspicion};

/// A round waits so long for answers.
const PATIENCE: Duration = Duration::from_secs(1);

/// Wants and counts of a status beyond these are not looked through.
const MOST_WANTS: usize = 1 << 12;
const MOST_COUNTS: usize = 1 << 14;

#[derive(Debug)]
struct Round {
    number: u64,
    began: Instant,
    asked: BTreeSet<Pid>,
    answers: BTreeMap<Pid, Option<Status>>,
}

/// What one process remembers of its wait in one section.
#[derive(Debug, Default)]
pub(super) struct Questions {
    suspicion: Suspicion,
    /// When the wait, or its last round, began.
    since: Option<Instant>,
    round: Option<Round>,
    rounds: u64,
}

/// What is to be done next.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    Nothing,
    /// These processes are to be asked, in the round of this number.
    Ask(u64, Vec<Pid>),
    /// The wait never ends.
    Declare(Fault),
}

impl Questions {
    /// The process publishes what it is doing now.
    pub(super) fn publish(&mut self, doing: &Doing, now: Instant) {
        match doing {
            Doing::Waiting(_) => self.since = self.since.or(Some(now)),
            _ if self.since.is_none() => {}
            _ => *self = Questions { rounds: self.rounds, ..Questions::default() },
        }
    }

    /// Called from time to time.
    pub(super) fn tick(&mut self, pid: Pid, processes: Pid, own: &Status, now: Instant) -> Next {
        let Some(since) = self.since else { return Next::Nothing };
        if let Some(round) = &self.round {
            let is_over = now.saturating_duration_since(round.began) >= PATIENCE;
            return if is_over { self.conclude(pid, own) } else { Next::Nothing };
        }
        if now.saturating_duration_since(since) < ASK_AFTER {
            return Next::Nothing;
        }
        self.since = Some(now);
        self.rounds += 1;
        self.round = Some(Round {
            number: self.rounds,
            began: now,
            asked: BTreeSet::new(),
            answers: BTreeMap::new(),
        });
        self.go_on(pid, processes, own)
    }

    /// An answer has come, maybe of a round that is over.
    pub(super) fn answered(
        &mut self,
        (pid, processes): (Pid, Pid),
        own: &Status,
        of: Pid,
        number: u64,
        status: Option<Status>,
    ) -> Next {
        let Some(round) = &mut self.round else { return Next::Nothing };
        if round.number != number || !round.asked.contains(&of) {
            return Next::Nothing;
        }
        let status = status.filter(is_readable);
        round.answers.entry(of).or_insert(status);
        if round.answers.len() < round.asked.len() {
            return Next::Nothing;
        }
        self.go_on(pid, processes, own)
    }

    /// Finds whom else to ask, or speaks the verdict. Looking ahead uses a fresh suspicion: a look at
    /// half of the answers must not count as the first of two. It asks all that the second look at a
    /// cycle needs, because processes that are stuck answer the same again.
    fn go_on(&mut self, pid: Pid, processes: Pid, own: &Status) -> Next {
        let Some(round) = &mut self.round else { return Next::Nothing };
        let mut missing = BTreeSet::new();
        let fetch = |of: Pid| match round.answers.get(&of) {
            Some(status) => status.clone(),
            None => {
                missing.insert(of);
                None
            }
        };
        if let Some(fault) = Suspicion::default().diagnose(pid, own, fetch) {
            self.round = None;
            return Next::Declare(fault);
        }
        missing.retain(|&of| of < processes && of != pid && !round.asked.contains(&of));
        if missing.is_empty() {
            return self.conclude(pid, own);
        }
        round.asked.extend(&missing);
        Next::Ask(round.number, missing.into_iter().collect())
    }

    fn conclude(&mut self, pid: Pid, own: &Status) -> Next {
        let Some(round) = self.round.take() else { return Next::Nothing };
        let fetch = |of: Pid| round.answers.get(&of).cloned().flatten();
        let fault = self.suspicion.diagnose(pid, own, fetch);
        fault.map_or(Next::Nothing, Next::Declare)
    }
}

/// Whether a status is one that a process may have, and looking through it takes a bounded time.
pub(super) fn is_readable(status: &Status) -> bool {
    let wants = match &status.doing {
        Doing::Waiting(wants) => wants.len(),
        _ => 0,
    };
    // Openings are counted from 1.
    let holders = status.counts.values().filter_map(|counts| counts.received.held_by);
    let exist = holders.map(|(_, opening)| opening).all(|opening| opening > 0);
    let bounded = status.counts.len() <= MOST_COUNTS && status.joined.len() <= MOST_COUNTS;
    wants <= MOST_WANTS && bounded && exist
}

#[cfg(test)]
mod tests {
    use super::*;
    use lpf_core::InboxSlot;
    use lpf_core::waits::{Stream, Want, What};

    fn waits_for(from: Pid, to: Pid) -> Status {
        let stream = Stream::new(from, to, InboxSlot::new(0), 0);
        let want = Want { what: What::Messages, stream, have: 0, need: 1 };
        Status { doing: Doing::Waiting(vec![want]), ..Status::default() }
    }

    /// Runs rounds of process 0 until it speaks, at most `rounds`; `answer` is what others say.
    fn ask(rounds: u32, own: &Status, answer: impl Fn(Pid) -> Option<Status>) -> Option<Fault> {
        let (mut questions, mut now) = (Questions::default(), Instant::now());
        questions.publish(&own.doing, now);
        for _ in 0..rounds {
            now += ASK_AFTER;
            let mut next = questions.tick(0, 4, own, now);
            while let Next::Ask(round, pids) = next {
                let answers = pids
                    .into_iter()
                    .map(|of| questions.answered((0, 4), own, of, round, answer(of)));
                next = answers.last().unwrap();
            }
            if let Next::Declare(fault) = next {
                return Some(fault);
            }
        }
        None
    }

    #[test]
    fn a_process_that_left_is_found_in_one_round() {
        let gone = Status { doing: Doing::Left, ..Status::default() };
        assert_eq!(ask(1, &waits_for(2, 0), |_| Some(gone.clone())).unwrap().process, 2);
    }

    #[test]
    fn a_cycle_is_found_in_the_second_round_and_not_in_the_first() {
        let cycle = |of: Pid| Some(waits_for((of + 1) % 4, of));
        assert_eq!(ask(1, &waits_for(1, 0), cycle), None);
        let fault = ask(2, &waits_for(1, 0), cycle).unwrap();
        assert_eq!(fault.process, 0);
        assert!(fault.cause.to_string().contains("process 3 waits for message 1 of process 0"));
    }

    #[test]
    fn who_computes_or_does_not_answer_accuses_nobody() {
        assert_eq!(ask(5, &waits_for(1, 0), |_| Some(Status::default())), None);
        assert_eq!(ask(5, &waits_for(1, 0), |_| None), None);
        let names_nobody = |of: Pid| {
            assert!(of < 4, "process {of} does not exist");
            Some(waits_for(77, 1))
        };
        assert_eq!(ask(5, &waits_for(1, 0), names_nobody), None);
    }

    #[test]
    fn a_status_that_no_process_has_is_no_answer() {
        let stream = Stream::new(0, 1, InboxSlot::new(0), 0);
        let want = Want { what: What::Opening, stream, have: 0, need: 1 };
        let own = Status { doing: Doing::Waiting(vec![want]), ..Status::default() };
        let mut odd = Status { doing: Doing::Left, ..Status::default() };
        odd.on_mut(stream).received.opened = 1;
        odd.on_mut(stream).received.held_by = Some((2, 0));
        assert_eq!(ask(3, &own, |_| Some(odd.clone())), None);
    }

    #[test]
    fn a_round_without_answers_ends_and_the_next_begins() {
        let (mut questions, start) = (Questions::default(), Instant::now());
        let own = waits_for(1, 0);
        questions.publish(&own.doing, start);
        assert_eq!(questions.tick(0, 4, &own, start), Next::Nothing);
        let first = questions.tick(0, 4, &own, start + ASK_AFTER);
        assert_eq!(first, Next::Ask(1, vec![1]));
        assert_eq!(questions.tick(0, 4, &own, start + 2 * ASK_AFTER), Next::Nothing);
        assert_eq!(questions.tick(0, 4, &own, start + ASK_AFTER + PATIENCE), Next::Nothing);
        let second = questions.tick(0, 4, &own, start + 2 * ASK_AFTER + PATIENCE);
        assert_eq!(second, Next::Ask(2, vec![1]));
        let late = Some(Status { doing: Doing::Left, ..Status::default() });
        assert_eq!(questions.answered((0, 4), &own, 1, 1, late), Next::Nothing);
    }

    #[test]
    fn a_wait_that_ended_is_forgotten() {
        let (mut questions, start) = (Questions::default(), Instant::now());
        let own = waits_for(1, 0);
        questions.publish(&own.doing, start);
        questions.tick(0, 4, &own, start + ASK_AFTER);
        questions.publish(&Doing::Computing, start + ASK_AFTER);
        let gone = Some(Status { doing: Doing::Left, ..Status::default() });
        assert_eq!(questions.answered((0, 4), &own, 1, 1, gone), Next::Nothing);
        assert_eq!(questions.tick(0, 4, &own, start + 3 * ASK_AFTER), Next::Nothing);
    }
}
