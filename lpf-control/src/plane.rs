//! The control plane: failures, published records, and the beginning of sections.
//!
//! Every process keeps one connection to process 0, made by [`rendezvous`](crate::rendezvous), and one
//! helper thread that sleeps on it. They carry messages that must arrive while a program computes or waits:
//! deaths, failures, the board, published waits, orders to begin a section. A [`ControlPlane`] is the
//! handle; any thread may use it.
//!
//! # Words
//! A frame is a length and one word in `postcard`. A process says a word *up* to process 0, and
//! process 0 says words *down*, itself included, so that there is one way through the code. Words
//! from one process arrive in order, but for those of which only the latest counts (beats, records,
//! questions): there a newer one takes the older one's place in a queue.
//!
//! | up | down | meaning |
//! |---|---|---|
//! | `Beat` | `Beat` | I live; upwards with the supersteps published last |
//! | `Enter`, `Leave` | | from the first word of a section to the last |
//! | `Declare` | `Failed` | the first report that reaches process 0 is the report of the section |
//! | | `Died` | a process of the job has died |
//! | `Record` | `Record` | the latest record of a sender and topic |
//! | `Agree`, `Fetched` | `Agreed`, `Decided` | the first wish for a topic closes it |
//! | `Ask`, `Answer` | `Asked`, `Answered` | what are you doing? |
//! | `Order` | `Order` | begin a section |
//! | `Ready` | `Close` | all close their network, or none: MPI is finalised by all its processes or not at all |
//! | `Goodbye` | `Finish`, `Farewell` | the job, or this process's part in it, is over |
//! | `Verdict` | `Verdict` | I take you for dead |
//!
//! # A section at process 0
//! Process 0 learns the members of a section from the first that enters, whether it is a member itself or
//! not. A member is *expected*, then *inside*, then *out*. While it is inside it receives every event. On entering
//! it receives the events so far: the report, or all records and agreements. So no process keeps words of sections
//! that it has not entered, and words of a section that it has left are dropped. Process 0 forgets a section when
//! no member is inside or expected. A section that only waits for members that never enter keeps its report, and is
//! forgotten when a thousand younger ones wait too.
//!
//! # Deaths
//! A closed connection is a death at once. So are [`SILENCE`] without a message, and words that break the
//! protocol. The listener counts its own ticks, and a late tick clears all counts: a process that was stopped, or
//! got no core, accuses no other. After an outage beats may come faster for a while (`hurry.rs`).
//!
//! Process 0 reports a death to every process, and ends every section that expects the dead process or has it inside.
//! It informs the dead process too, and closes its connection: if that process wakes up, every section of its own has
//! failed. A process that hears nothing from process 0 takes it for dead. Then all its sections fail, because no failure
//! could be reported any more.
//!
//! # Why nothing hangs
//! - The helper never blocks: sockets are non-blocking, what they do not take waits in queues, and a
//!   queue that runs over ends the connection.
//! - The lock is held to understand a word or to queue one, never in a system call.
//! - A wait for a word of process 0 ends when it arrives, when process 0 is lost, when the section
//!   has failed, or when its time is up. Each of these wakes it.
//! - If the helper itself panics, every section of this process fails, and its connections close.
//!
//! # Why memory is bounded
//! Frames, records, orders, sections, agreements and queues have bounds, named where they are kept. A
//! length that arrives reserves nothing. A process that exceeds a bound is taken for dead.

mod board;
mod helper;
mod hub;
mod hurry;
mod mail;
mod member;
mod outbox;
mod pulse;
mod questions;
mod rules;
mod shared;
mod state;
#[cfg(test)]
pub(crate) mod tests;
mod words;

pub use board::ControlBoard;
pub use pulse::{BEAT, Beats, SILENCE};

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use lpf_core::process::Maker;
use lpf_core::waits::Status;
use lpf_core::{Cause, Error, Pid, Result};
use lpf_messages::{Control, Order, Rank, SectionId};
use mio::{Poll, Token, Waker};

use crate::connection::wire::Wire;
use helper::{Helper, WAKE};
use member::End;
use rules::fault_of_order;
use shared::Shared;
use state::State;
use words::{LONGEST_ORDER, Up, reportable};

/// Who declares a failure waits so long to hear which one stands.
const WORD: Duration = Duration::from_secs(1);

/// Who closes an agreement waits so long for process 0, where processes beat.
const AGREEMENT: Duration = Duration::from_secs(10);

/// A handle to the control plane.
///
/// A process whose last handle, boards included, is dropped without a [`goodbye`](Self::goodbye) is dead
/// to the others, as if it had ended.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    handle: Arc<Handle>,
}

/// While there is one, the helper runs: in the process that made it. A child that was forked from it has no helper,
/// and must not wait for the lock that the helper may have held.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    beats: Beats,
    maker: Maker,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.maker.is_here() {
            return;
        }
        self.shared.change(|state| state.stopped = true);
    }
}

/// The next action of a process that serves.
#[derive(Clone, Debug)]
pub enum Next {
    /// A section begins.
    Begin(Order),
    /// The job is over.
    Finished,
    /// Process 0 is gone, or has taken this process for dead.
    Gone(Error),
    /// Nothing came in the time given.
    Nothing,
}

impl ControlPlane {
    /// Starts the helper on connections that the rendezvous made: at process 0 one for every other
    /// process, by rank, elsewhere the one to process 0.
    pub(crate) fn start(
        rank: Rank,
        size: Rank,
        mut wires: Vec<Option<Wire>>,
        beats: Beats,
    ) -> std::io::Result<Self> {
        let poll = Poll::new()?;
        for (connection, wire) in wires.iter_mut().enumerate() {
            if let Some(wire) = wire {
                wire.lives_through_outages();
                wire.register(poll.registry(), Token(connection))?;
            }
        }
        let waker = Waker::new(poll.registry(), WAKE)?;
        let changes = Arc::new(AtomicU64::new(0));
        let state = State::new(rank, size, beats, changes.clone(), Instant::now());
        let shared = Arc::new(Shared::new(rank, size, state, changes, waker));
        let helper = Helper::new(shared.clone(), poll, wires);
        std::thread::Builder::new().name("lpf control".into()).spawn(|| helper.run())?;
        let maker = Maker::this();
        Ok(ControlPlane { handle: Arc::new(Handle { shared, beats, maker }) })
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    /// This process.
    pub fn rank(&self) -> Rank {
        self.shared().rank
    }

    /// Processes of the job.
    pub fn size(&self) -> Rank {
        self.shared().size
    }

    /// How a process died, if it did as far as is known here.
    pub fn death(&self, rank: Rank) -> Option<String> {
        self.shared().look(|state| state.member.death(rank).cloned())
    }

    /// Calls `tell` for every death as soon as it is known here, and at once for those known already: for a network that
    /// must not be used after a death. `tell` runs in the helper's thread, and for those known already in the caller's.
    /// It must return quickly, without waiting for another process or thread.
    pub fn on_death(&self, tell: impl FnMut(Rank, &str) + Send + 'static) {
        self.shared().change(|state| state.member.tell_deaths(Box::new(tell)));
    }

    /// Waits for an order, at most so long.
    pub fn next_order(&self, time: Duration) -> Next {
        let until = |state: &mut State| match state.member.end() {
            Some(End::Gone(error)) => Some(Next::Gone(error.clone())),
            Some(End::Finished) => {
                Some(state.member.take_order().map_or(Next::Finished, Next::Begin))
            }
            None => state.member.take_order().map(Next::Begin),
        };
        let deadline = Instant::now().checked_add(time);
        self.shared().wait(|_| {}, until, deadline).unwrap_or(Next::Nothing)
    }

    /// Process 0 announces that the job is over: no more orders follow, and a connection that closes is not a
    /// death. It does not wait for the others.
    ///
    /// # Errors
    /// *Misuse* on another process.
    pub fn finish(&self) -> Result<()> {
        self.shared().change(|state| match &mut state.hub {
            Some(hub) => {
                hub.finish(&mut state.mail);
                state.settle();
                Ok(())
            }
            None => Err(Error::setting("only process 0 says that the job is over")),
        })
    }

    /// Leaves the job in order; the handle is of no more use. Process 0 says that the job is over and
    /// waits for the others to leave, the others wait until process 0 has heard it, each at most
    /// `time`. True if that came.
    ///
    /// A section that this process is still in fails.
    pub fn goodbye(&self, time: Duration) -> bool {
        let deadline = Instant::now().checked_add(time);
        let heard = self.shared().wait(
            |state| {
                state.member.leaving = true;
                match &mut state.hub {
                    Some(hub) => hub.finish(&mut state.mail),
                    None if state.member.end().is_some_and(|end| end.is_gone()) => {}
                    None => state.say(Up::Goodbye),
                }
            },
            |state| match &state.hub {
                Some(hub) => hub.is_alone().then_some(()),
                None => state.member.is_lost().then_some(()),
            },
            deadline,
        );
        self.shared().change(|state| {
            if let Some(hub) = &mut state.hub {
                hub.farewell(&mut state.mail);
            }
            state.member.part();
            state.stopped = true;
        });
        heard.is_some()
    }
}

impl Control for ControlPlane {
    type Board = ControlBoard;

    fn enter(&self, section: SectionId, members: &[Rank]) {
        self.shared().change(|state| {
            if let Some(word) = state.member.enter(section, members) {
                state.say(word);
            }
        });
    }

    fn track(&self, section: SectionId, supersteps: Arc<AtomicU64>) {
        self.shared().look(|state| state.member.track(section, supersteps));
    }

    fn leave(&self, section: SectionId) {
        self.shared().change(|state| {
            if let Some(word) = state.member.leave(section) {
                state.say(word);
            }
        });
    }

    #[inline]
    fn failures(&self) -> u64 {
        self.shared().failures()
    }

    fn failure(&self, section: SectionId) -> Option<Error> {
        self.shared().look(|state| state.member.section(section)?.failure.clone())
    }

    fn declare(&self, section: SectionId, error: Error) -> Error {
        let pid = self.shared().look(|state| Some(state.member.section(section)?.pids.start));
        // A section that it is not in has nobody else to tell.
        let Some(pid) = pid else { return error };
        let error = reportable(error, pid);
        let declared = error.clone();
        let standing = self.shared().wait(
            |state| {
                let is_open = |known: &mut member::Section| known.failure.is_none();
                if state.member.section(section).is_some_and(is_open) {
                    state.say(Up::Declare { section, error: declared });
                }
            },
            |state| match state.member.section(section) {
                Some(known) => known.failure.clone().map(Some),
                None => Some(None),
            },
            Instant::now().checked_add(WORD),
        );
        match standing {
            Some(Some(standing)) => standing,
            Some(None) => error,
            // Process 0 is silent: this process goes by its own word from now on.
            None => self.shared().change(|state| {
                state.member.fail(section, error.clone());
                let known = state.member.section(section);
                known.and_then(|known| known.failure.clone()).unwrap_or(error)
            }),
        }
    }

    fn publish(&self, section: SectionId, pid: Pid, status: Status) {
        self.shared().look(|state| state.member.publish(section, pid, status, Instant::now()));
    }

    fn statuses(&self, section: SectionId) -> Vec<Option<Status>> {
        let answers = self.shared().wait(
            |state| {
                let words = state.member.survey(section);
                words.into_iter().for_each(|word| state.say(word));
            },
            |state| state.member.surveyed(section, false),
            Instant::now().checked_add(WORD),
        );
        answers
            .or_else(|| self.shared().look(|state| state.member.surveyed(section, true)))
            .unwrap_or_default()
    }

    fn board(&self, section: SectionId, pid: Pid, processes: Pid) -> ControlBoard {
        ControlBoard::new(self.clone(), section, pid, processes)
    }

    fn order(&self, order: Order) -> Result<()> {
        let refuse = |text| Error::misuse(0, 0, Cause::Setting(text));
        if order.bytes.len() > LONGEST_ORDER {
            let bytes = order.bytes.len();
            let text = format!("an order has {bytes} bytes; the most is {LONGEST_ORDER}");
            return Err(refuse(text));
        }
        if order.members.first() != Some(&self.rank()) {
            return Err(refuse("the process that orders a section must be its process 0".into()));
        }
        if let Some(fault) = fault_of_order(&order.members, self.rank(), self.size()) {
            return Err(refuse(format!("a section is ordered {fault}")));
        }
        self.shared().change(|state| {
            for (pid, &rank) in order.members.iter().enumerate() {
                if let Some(reason) = state.member.death(rank) {
                    let cause = Cause::Died { reason: reason.clone() };
                    return Err(Error::fatal(pid, 0, cause));
                }
            }
            if let Some(End::Gone(error)) = state.member.end() {
                return Err(error.clone());
            }
            state.say(Up::Order(order));
            Ok(())
        })
    }

    fn close_together(&self, can: bool) -> bool {
        // Whoever does not come in time says that it cannot.
        let decided = self.shared().wait(
            |state| state.say(Up::Ready(can)),
            |state| if can { state.member.closes } else { Some(false) },
            None,
        );
        decided.unwrap_or(false)
    }

    fn stays_open(&self) -> bool {
        self.shared().look(|state| state.member.closes == Some(false))
    }
}

impl ControlPlane {
    /// An error in a process that was forked from the one whose control plane this is.
    fn check_process(&self, pid: Pid) -> Result<()> {
        self.handle.maker.check(pid, 0)
    }

    /// The bound on a round trip: where processes do not beat, a debugger may hold process 0.
    fn agreement_deadline(&self) -> Option<Instant> {
        match self.handle.beats {
            Beats::On => Instant::now().checked_add(AGREEMENT),
            Beats::Off => None,
        }
    }
}
