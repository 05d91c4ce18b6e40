//! The questions and the verdict; see the module above for the rules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Doing, Status, Stream, Want, What};
use crate::Pid;
use crate::arrivals::Call;
use crate::error::Cause;

/// A wait that never ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The process that will not do what is awaited; of a cycle the lowest.
    pub process: Pid,
    /// Why, naming both sides.
    pub cause: Cause,
}

/// An edge of a cycle: who waits, for what, and how far the awaited process had come.
#[derive(Clone, Copy, Debug)]
struct Edge {
    waits: Pid,
    want: Want,
    count: u64,
}

/// What a process remembers from one question to the next of the same wait.
#[derive(Debug, Default)]
pub struct Suspicion {
    cycle: Vec<Edge>,
}

/// The answers of one round: every process is asked at most once.
struct Round<'a, F> {
    asker: Pid,
    own: &'a Status,
    fetch: F,
    answers: BTreeMap<Pid, Option<Status>>,
}

impl<F: FnMut(Pid) -> Option<Status>> Round<'_, F> {
    fn status(&mut self, pid: Pid) -> Option<&Status> {
        if pid == self.asker {
            return Some(self.own);
        }
        self.answers.entry(pid).or_insert_with(|| (self.fetch)(pid)).as_ref()
    }

    /// What a want comes down to: a message that was put but has no ring waits for that ring, and whose ring
    /// was opened but not given up waits for the one who has it.
    fn settle(&mut self, want: &Want) -> Want {
        let mut want = *want;
        if want.what == What::Messages
            && let Some(sender) = self.status(want.stream.from)
            && let counts = sender.on(want.stream).sent
            && counts.made >= want.need
            && counts.barred.is_some_and(|first| first <= want.need)
        {
            let (what, need) = (What::Opening, counts.opened);
            want = Want { what, have: need.saturating_sub(1), need, ..want };
        }
        if want.what == What::Opening
            && let Some(receiver) = self.status(want.stream.to)
            && let counts = receiver.on(want.stream).received
            && counts.opened >= want.need
            && let Some((from, need)) = counts.held_by
        {
            let stream = Stream { from, ..want.stream };
            return Want { what: What::Closing, stream, have: need.saturating_sub(1), need };
        }
        want
    }

    /// What `want` has come to at the process it awaits, if that is known and short.
    fn short(&mut self, want: &Want) -> Option<u64> {
        let count = self.status(want.awaited())?.count(want);
        (count < want.need).then_some(count)
    }
}

impl Suspicion {
    /// Whether the wait that `own` publishes is hopeless. Called by process `asker` every
    /// [`ASK_AFTER`](super::ASK_AFTER) of one wait, with a new `Suspicion` for each wait.
    ///
    /// `fetch` gives the present status of another process, or `None` without an answer (which accuses no process). Each
    /// process is asked at most once per call: those awaited, and those that they await in turn.
    pub fn diagnose(
        &mut self,
        asker: Pid,
        own: &Status,
        fetch: impl FnMut(Pid) -> Option<Status>,
    ) -> Option<Fault> {
        let mut round = Round { asker, own, fetch, answers: BTreeMap::new() };
        for want in own.wants() {
            let want = &round.settle(want);
            let process = want.awaited();
            let Some(peer) = round.status(process) else { continue };
            let reason = if peer.count(want) < want.need {
                never_comes(own, want, peer)
            } else {
                never_offered(asker, own, want, peer).or_else(|| closed_again(own, want, peer))
            };
            if let Some(reason) = reason {
                let waiter = describe(asker, own, own, want);
                let cause = Cause::Deadlock(format!("{waiter}, but process {process} {reason}"));
                return Some(Fault { process, cause });
            }
        }
        if !self.cycle.is_empty() && self.cycle.iter().all(|edge| persists(edge, &mut round)) {
            return Some(self.cycle_fault(&mut round));
        }
        self.cycle = find_cycle(&mut round);
        None
    }

    fn cycle_fault<F: FnMut(Pid) -> Option<Status>>(&self, round: &mut Round<'_, F>) -> Fault {
        let lowest = (0..self.cycle.len()).min_by_key(|&i| self.cycle[i].waits).unwrap_or(0);
        let mut cycle = self.cycle.clone();
        cycle.rotate_left(lowest);
        let own = round.own;
        let edges = cycle.iter().filter_map(|edge| {
            Some(describe(edge.waits, own, round.status(edge.waits)?, &edge.want))
        });
        let text = format!("a cycle of waits: {}", edges.collect::<Vec<_>>().join("; "));
        Fault { process: cycle[0].waits, cause: Cause::Deadlock(text) }
    }
}

/// The process at the end of the chain of waits that begins at `asker`: the one that the others wait for and that waits
/// for none itself. `None` if no such process is known.
///
/// `own` is the wait of the asker, a full sync or an expected one. `fetch` is asked at most once for each of the
/// `processes`, and gives `None` for one that did not answer; such a process is named only if no other one is found.
pub fn last_of_chain(
    asker: Pid,
    own: &Status,
    processes: Pid,
    fetch: impl FnMut(Pid) -> Option<Status>,
) -> Option<Pid> {
    let mut round = Round { asker, own, fetch, answers: BTreeMap::new() };
    let (mut queue, mut silent) = (VecDeque::from([asker]), None);
    let mut seen = BTreeSet::from([asker]);
    while let Some(pid) = queue.pop_front() {
        let Some(status) = round.status(pid).cloned() else {
            silent = silent.or(Some(pid));
            continue;
        };
        let awaited: Vec<Pid> = match &status.doing {
            Doing::Computing => Vec::new(),
            // The asker has come out of this full sync, so the process has, too.
            Doing::FullSync(superstep) if *superstep < own.superstep => Vec::new(),
            Doing::FullSync(superstep) => {
                let is_absent = |pid: &Pid| match round.status(*pid).map(|status| &status.doing) {
                    Some(Doing::FullSync(other)) => other < superstep,
                    Some(Doing::Left) => false,
                    _ => true,
                };
                (0..processes).filter(is_absent).collect()
            }
            Doing::Left => {
                let is_absent =
                    |pid: &Pid| round.status(*pid).is_none_or(|status| status.doing != Doing::Left);
                (0..processes).filter(is_absent).collect()
            }
            Doing::Waiting(wants) => {
                let mut awaited = Vec::new();
                for want in wants.iter().filter(|want| want.awaited() < processes) {
                    let want = round.settle(want);
                    // What has been done is under way. A process that did not answer has an unknown count.
                    let is_silent = round.status(want.awaited()).is_none();
                    if want.what == What::Answer || is_silent || round.short(&want).is_some() {
                        awaited.push(want.awaited());
                    }
                }
                awaited
            }
        };
        if awaited.is_empty() && pid != asker {
            return Some(pid);
        }
        queue.extend(awaited.into_iter().filter(|&next| seen.insert(next)));
    }
    silent
}

/// Why a count that is short at `peer` stays short, other than by a cycle.
fn never_comes(own: &Status, want: &Want, peer: &Status) -> Option<String> {
    let (ours, theirs) = (&own.call, &peer.call);
    // Releases of what an earlier call sent may come from any call, and so may openings.
    let comparable = own.group == peer.group
        && ours.number > 0
        && theirs.number > 0
        && matches!(want.what, What::Messages | What::Offers | What::Joining);
    let reason = match peer.doing {
        Doing::Left => format!("has left the section in superstep {}", peer.superstep),
        Doing::FullSync(superstep) if superstep >= own.superstep => {
            format!("is in the full sync that ends superstep {superstep}")
        }
        _ if comparable && ours.number == theirs.number && ours.stamp != theirs.stamp => {
            let are_known = !own.values.is_empty() && !peer.values.is_empty();
            let is_named = ours.kind() != theirs.kind() || are_known && own.values != peer.values;
            let how = match !is_named {
                true => format!(" with {}", Call::DIFFERENCES),
                false => String::new(),
            };
            format!("is in {}{how}", called(own, peer))
        }
        _ if comparable && theirs.number > ours.number => {
            format!("has gone on to {}", called(own, peer))
        }
        _ => return None,
    };
    let count = peer.count(want);
    let did = match want.what {
        What::Messages => format!("having sent {count}"),
        What::Releases => format!("having released {count}"),
        What::Offers => format!("having offered {count}"),
        What::Opening if ours.number > 0 => {
            return Some(format!("{reason} and has not taken part"));
        }
        What::Opening => format!("having opened the link {count} times"),
        What::Closing => format!("having closed the link {count} times"),
        What::Joining => return Some(format!("{reason} and has not taken part")),
        What::Answer => return None,
    };
    Some(format!("{reason}, {did}"))
}

/// Why a message that was put does not leave: it waits for the asker, who waits for it.
fn never_offered(asker: Pid, own: &Status, want: &Want, peer: &Status) -> Option<String> {
    let queued = peer.on(want.stream).sent.queued.filter(|_| want.what == What::Messages)?;
    let offered = own.on(want.stream).received.offered;
    (queued.message <= want.need && offered < queued.landing).then(|| {
        format!(
            "sends message {} as a landing, for which process {asker} would have to make offer {} \
             and has made {offered}",
            queued.message, queued.landing
        )
    })
}

/// Why what waits for a ring never leaves: its receiver was done with the link before.
fn closed_again(own: &Status, want: &Want, peer: &Status) -> Option<String> {
    let closed = peer.on(want.stream).received.closed;
    (want.what == What::Opening && closed >= want.need).then(|| {
        let from = want.stream.from;
        match own.call.number {
            0 => format!("has closed it again and never awaited what process {from} sends there"),
            _ => format!(
                "has given up the group, or its links, and has not taken what process {from} sends in the call"
            ),
        }
    })
}

/// "process 0, in call 7 (broadcast), waits for message 4 of process 1 (3 have come)"
fn describe(pid: Pid, own: &Status, status: &Status, want: &Want) -> String {
    let call = match status.call.number {
        0 => String::new(),
        _ => format!(", in {},", called(own, status)),
    };
    let (awaited, need, have) = (want.awaited(), want.need, want.have);
    let wish = match want.what {
        What::Messages => format!("message {need} of process {awaited} ({have} have arrived)"),
        What::Releases => {
            format!("process {awaited} to release message {need} ({have} are released)")
        }
        What::Offers => format!("offer {need} of process {awaited} ({have} have arrived)"),
        // Links of collectives are opened in the first call that uses them: users know calls, not links.
        What::Opening if status.call.number == 0 => {
            format!("process {awaited} to open its end of their link")
        }
        What::Opening => format!("process {awaited} to take part in it"),
        What::Joining => format!("process {awaited} to take part in it"),
        What::Answer => format!("an answer of the helper thread of process {awaited}"),
        What::Closing => format!(
            "process {awaited} to close the link that still has ring {} at process {}",
            want.stream.ring, want.stream.to
        ),
    };
    format!("process {pid}{call} waits for {wish}")
}

/// What a process is in, by the names that the asker has for calls.
fn called(own: &Status, status: &Status) -> String {
    Call { names: own.call.names, ..status.call }.text(status.place.as_ref(), Some(&status.values))
}

/// Whether an edge is what it was in the round before.
fn persists<F: FnMut(Pid) -> Option<Status>>(edge: &Edge, round: &mut Round<'_, F>) -> bool {
    let wants = round.status(edge.waits).map(|status| status.wants().to_vec()).unwrap_or_default();
    wants.iter().any(|want| round.settle(want).is_still(&edge.want))
        && round.short(&edge.want) == Some(edge.count)
}

/// A shortest cycle of short wants through the asker; empty where there is none. Each process waits
/// for all it wants, so one cycle is enough for a deadlock.
fn find_cycle<F: FnMut(Pid) -> Option<Status>>(round: &mut Round<'_, F>) -> Vec<Edge> {
    let asker = round.asker;
    let mut reached_by: BTreeMap<Pid, Edge> = BTreeMap::new();
    let mut queue = VecDeque::from([asker]);
    while let Some(waits) = queue.pop_front() {
        let wants = round.status(waits).map(|s| s.wants().to_vec()).unwrap_or_default();
        for want in wants {
            let want = round.settle(&want);
            let next = want.awaited();
            let Some(count) = round.short(&want) else { continue };
            if reached_by.contains_key(&next) {
                continue;
            }
            reached_by.insert(next, Edge { waits, want, count });
            if next == asker {
                return path_to(asker, &reached_by);
            }
            queue.push_back(next);
        }
    }
    Vec::new()
}

/// The edges that led from the asker back to it.
fn path_to(asker: Pid, reached_by: &BTreeMap<Pid, Edge>) -> Vec<Edge> {
    let mut path = vec![reached_by[&asker]];
    while path[path.len() - 1].waits != asker {
        path.push(reached_by[&path[path.len() - 1].waits]);
    }
    path.reverse();
    path
}
