//! What ends before it is finished: tickets that are cancelled, contexts that are forgotten, and the
//! network itself.

use std::time::{Duration, Instant};

use lpf_messages::{Broken, Outcome, Rank, Ticket};

use super::super::matching::{Coming, Stage};
use super::super::near::Near;
use super::super::start::is_over;
use super::Network;

/// How long what is given up may take to end, all that is given up together.
const GIVING_UP: Duration = Duration::from_millis(50);
/// What is given up so much later has that time for itself.
const ANEW: Duration = Duration::from_secs(1);

/// How long a network that is dropped waits for what has not left.
const LEAVING: Duration = Duration::from_secs(1);

impl Network {
    pub(crate) fn cancel(&mut self, ticket: &Ticket) -> bool {
        let Some(place) = self.matching.operations.find(ticket.0) else { return true };
        let operation = &mut self.matching.operations[place];
        match operation.stage {
            Stage::Finished | Stage::Lost => {}
            Stage::Waiting => self.matching.withdraw(place),
            Stage::Met => self.part_from_mpi(place),
            Stage::Offered => self.part_with(place),
            Stage::Moving if operation.other.is_some() => self.part_with(place),
            Stage::Moving => {
                if operation.packed.is_some() {
                    // MPI has a buffer of ours.
                    operation.pieces.clear();
                    self.orphans.push(place);
                    return true;
                }
                if !self.ends_soon(place) {
                    self.orphans.push(place);
                    return false;
                }
            }
        }
        self.matching.end(place);
        true
    }

    /// Gives up a receive whose body has not begun, which nobody wants then.
    #[cold]
    fn part_from_mpi(&mut self, place: u32) {
        let from = self.matching.operations[place].peer;
        if let Some(at) = self.met.iter().position(|(receive, _)| *receive == place) {
            let (_, body) = self.met.swap_remove(at);
            self.drop_rest(from, Coming::Mpi(body));
        }
    }

    /// Waits for the end of what is given up, but not long.
    #[cold]
    fn ends_soon(&mut self, place: u32) -> bool {
        let now = Instant::now();
        let since = self.gave_up.filter(|since| now.duration_since(*since) < ANEW).unwrap_or(now);
        self.gave_up = Some(since);
        loop {
            let moved = self.library.may_call().and_then(|()| self.look(None));
            if moved.and_then(|()| self.move_on(place)).is_err() {
                return false;
            }
            if self.matching.operations[place].stage == Stage::Finished {
                return true;
            }
            if since.elapsed() >= GIVING_UP {
                return false;
            }
            std::thread::yield_now();
        }
    }

    pub(crate) fn forget(&mut self, context: u32) {
        let mut gone = Vec::new();
        self.matching.forget(context, |from, rest| gone.push((from, rest)));
        gone.into_iter().for_each(|(from, rest)| self.drop_rest(from, rest));
    }

    /// Receives the rest of a message that nobody wants, or says so.
    #[cold]
    pub(super) fn drop_rest(&mut self, from: Rank, rest: Coming) {
        let body = match rest {
            Coming::Parts { send, .. } => return self.refuse(from, send),
            Coming::Mpi(_) if self.library.may_call().is_err() => return,
            Coming::Mpi(body) => body,
        };
        let Network { sinks, library, peers, .. } = self;
        if let Err(reason) = sinks.add(library, from, peers[from].cut(), body) {
            self.break_off(from, reason);
        }
    }

    pub(super) fn look_after_orphans(&mut self) -> Outcome<()> {
        self.sinks.look(&self.library)?;
        let mut open = 0;
        while open < self.orphans.len() {
            let place = self.orphans[open];
            self.move_on(place)?;
            if self.matching.operations[place].stage == Stage::Finished {
                self.orphans.swap_remove(open);
                self.matching.end(place);
            } else {
                open += 1;
            }
        }
        Ok(())
    }

    /// Whether everything of this process has left, and nothing more is to be dropped.
    pub(crate) fn is_done(&mut self) -> Outcome<bool> {
        self.progress()?;
        let left = self.near.as_mut().is_none_or(Near::let_go);
        let left = self.outgoing.have_left(&self.library)? && left;
        Ok(left && self.orphans.is_empty() && self.sinks.is_empty())
    }

    /// Ends the standing receives, once [`is_done`](Self::is_done): MPI has nothing of ours then.
    pub(crate) fn close(&mut self, end: Instant) -> Outcome<()> {
        self.library.may_call()?;
        self.incoming.cancel(&self.library)?;
        while !self.incoming.have_ended(&self.library)? {
            if Instant::now() >= end {
                let reason = "MPI does not end the receives that were cancelled".into();
                return Err(Broken { peer: None, reason });
            }
            std::thread::yield_now();
        }
        self.closed = true;
        Ok(())
    }
}

impl Drop for Network {
    /// Lets copied messages leave, and gives MPI the time to let go of our buffers. Those that it may
    /// still touch are kept for ever.
    fn drop(&mut self) {
        // In a child that was forked, nothing of this is under way, and MPI must not be called.
        if !(self.closed || self.library.is_here() && self.ends()) {
            self.incoming.leak();
            self.outgoing.leak();
            self.sinks.leak();
        }
        // Operations that were neither finished nor cancelled, and copies that have not left: only now, for
        // those that leave are read until then.
        self.matching.leak();
    }
}

impl Network {
    fn ends(&mut self) -> bool {
        let end = Instant::now() + LEAVING;
        let mut done = Ok(false);
        while matches!(done, Ok(false)) && Instant::now() < end && !is_over() {
            done = self.is_done();
            std::thread::yield_now();
        }
        done == Ok(true) && self.close(end).is_ok()
    }
}
