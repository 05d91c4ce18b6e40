//! The arrival monitor predicts when each member of a group will arrive at its next call.
//!
//! A program marks the beginning of a phase of computation ([`Monitor::begin`]) and, somewhere in it, its progress
//! ([`Monitor::edge`]). From that and from earlier phases, each member's helper thread predicts the end of the phase,
//! and sends it to the others over the board while all members compute. At the end of the phase ([`Monitor::finish`])
//! all members have the same [`Estimates`]. If no agreement is known, these are equal times, by which calls use an
//! arrival-unaware algorithm.
//!
//! (Proficz 2018, Section 3.)

mod agreement;
mod clock;
mod estimator;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use lpf_core::board::{Board, Topic};
use lpf_core::waits::Consult;
use lpf_core::{Cause, Context, Error, Lpf, Pid, Result};
use parking_lot::Mutex;

use self::agreement::{Agreement, Closed, Closer, Gap, KEPT, Word};
use self::clock::Clock;
pub use self::estimator::{Estimator, Exponential, LastValue, MovingAverage};
use crate::arrival_pattern::Estimates;
use crate::collectives::Collectives;
use crate::hash::mixed;
use crate::helper::{Helped, Work, help, wake_all};

/// In a phase a helper looks for an edge soon after where the phase before had its own, and then again after this part
/// of the time since the beginning: others know of an edge before the phase has become so much longer, and a longer
/// phase takes no more of the core.
const PART: u32 = 2;
const SOONEST: Duration = Duration::from_millis(1);
/// How often who waits for an agreement looks, once it sleeps.
const ASK: Duration = Duration::from_micros(200);
/// How often the helper of member 0 looks whether members of other processes ask; and where none has for long.
const SELDOM: Duration = Duration::from_millis(5);
const RARELY: Duration = Duration::from_millis(20);
/// Looks without news after which it looks rarely.
const LONG: u32 = 200;

/// The registers of a monitor, each a topic of the board.
#[derive(Clone, Copy)]
struct Registers {
    id: u64,
}

impl Registers {
    fn topic(self, nth: u64) -> Topic {
        Topic(mixed(self.id, nth))
    }

    fn said(self) -> Topic {
        self.topic(0)
    }

    fn asked(self) -> Topic {
        self.topic(1)
    }

    fn ended(self) -> Topic {
        self.topic(2)
    }

    fn unknown(self) -> Topic {
        self.topic(3)
    }

    fn closed(self, call: u64) -> Topic {
        self.topic(4 + call % KEPT)
    }
}

/// What a member and its helper tell each other.
#[derive(Debug, Default)]
struct Phase {
    /// When this member will arrive at it, as far as that is known.
    word: Option<Word>,
    /// When it began, while it goes on.
    began: Option<Duration>,
    /// How long after its beginning the phase before had its edge.
    edge_after: Duration,
    /// At member 0: the first call whose agreement is not closed.
    next: u64,
}

/// A member's part of the helper's work.
struct Watch<B> {
    board: B,
    registers: Registers,
    members: Vec<Pid>,
    phase: Arc<Mutex<Phase>>,
    /// What was said last.
    said: Option<Word>,
    /// Member 0 closes agreements.
    closer: Option<Closer>,
}

/// The agreement on a call, if it is closed, or if there will be none.
fn closed<B: Board>(
    board: &B,
    registers: Registers,
    first: Pid,
    call: u64,
) -> Result<Option<Agreement>> {
    let record = board.read(first, registers.closed(call))?;
    let agreement = record.and_then(|record| Agreement::from_bytes(&record.bytes));
    if let Some(agreement) = agreement.filter(|agreement| agreement.call == call) {
        return Ok(Some(agreement));
    }
    let gap = board.read(first, registers.unknown())?;
    let gap = gap.and_then(|record| Gap::from_bytes(&record.bytes));
    let ended = board.read(first, registers.ended())?;
    let ended = ended.and_then(|record| Word::from_bytes(&record.bytes));
    let is_unknown =
        gap.is_some_and(|gap| gap.has(call)) || ended.is_some_and(|ended| ended.call <= call);
    Ok(is_unknown.then_some(Agreement { call, arrivals: None }))
}

impl<B: Board> Watch<B> {
    fn close(&mut self) -> Result<bool> {
        let Some(closer) = &mut self.closer else { return Ok(false) };
        let of = |topic| -> Result<Vec<Option<Word>>> {
            let all = self.board.read_all(topic)?;
            let word = |&member: &Pid| Word::from_bytes(&all.get(member)?.as_ref()?.bytes);
            Ok(self.members.iter().map(word).collect())
        };
        // Asked first: who has asked has said what it says before.
        let (asked, said) = (of(self.registers.asked())?, of(self.registers.said())?);
        let mut news = false;
        while let Some(closed) = closer.close(&said, &asked) {
            match closed {
                Closed::Kept(agreement) => {
                    let topic = self.registers.closed(agreement.call);
                    self.board.write(topic, &agreement.to_bytes())?;
                }
                Closed::Unknown(gap) => {
                    self.board.write(self.registers.unknown(), &gap.to_bytes())?
                }
            }
            self.phase.lock().next = closer.next;
            news = true;
        }
        Ok(news)
    }
}

impl<B: Board> Work for Watch<B> {
    /// Says what is known, closes what can be closed.
    fn go_on(&mut self) -> Result<bool> {
        let word = self.phase.lock().word;
        let mut news = false;
        if let Some(word) = word.filter(|word| Some(*word) != self.said) {
            self.board.write(self.registers.said(), &word.to_bytes())?;
            self.said = Some(word);
            news = true;
        }
        news |= self.close()?;
        Ok(news)
    }

    fn again(&self, quiet: u32) -> Option<Duration> {
        let (began, edge_after) = {
            let phase = self.phase.lock();
            (phase.began, phase.edge_after)
        };
        let edge = began.map(|began| {
            let (elapsed, soon) =
                (self.board.now().saturating_sub(began), edge_after + edge_after / 16);
            let next = if elapsed < soon { soon - elapsed } else { elapsed / PART };
            next.max(SOONEST)
        });
        // Who asks wakes the helper of its own process.
        let is_asked = self.closer.is_some() && !self.board.is_in_one_process();
        let question = is_asked.then_some(if quiet < LONG { SELDOM } else { RARELY });
        edge.into_iter().chain(question).min()
    }
}

/// Predicts the arrivals of a group's members at one call that they make again and again. See the
/// [module](self).
///
/// ```
/// use lpf_collectives::monitor::Monitor;
/// use lpf_collectives::{Collectives, Sum};
/// # lpf_pthreads::Config::new().procs(2).exec(2, lpf_core::Args::none(), |ctx, _args| {
/// ctx.resize(1, 0)?;
/// let mut all = Collectives::new(ctx)?;
/// let mut gradient = ctx.local::<f32>(1000)?;
/// let mut monitor = Monitor::new(ctx, &mut all)?;
/// for _batch in 0..3 {
///     monitor.begin();
///     // Some of the work …
///     monitor.edge(0.4);
///     // … and the rest of it.
///     let arrivals = monitor.finish(ctx)?;
///     all.allreduce_in_place_by_arrival(ctx, &arrivals, &Sum, &mut gradient)?;
/// }
/// # Ok(())
/// # }).unwrap();
/// ```
pub struct Monitor<'s, L: Lpf> {
    board: L::Board,
    registers: Registers,
    members: usize,
    first: Pid,
    is_first: bool,
    clock: Clock,
    phase: Arc<Mutex<Phase>>,
    call: u64,
    /// By the group's clock.
    began_ns: u64,
    /// When the last edge was.
    edge_ns: Option<u64>,
    /// Whether a phase has begun and is not finished.
    computes: bool,
    /// Whether the phase before had an edge: then this one's will say more than the phases before.
    has_edges: bool,
    /// How long phases take, ns, and how many times as long as up to their edge.
    totals: Box<dyn Estimator>,
    beyond: Box<dyn Estimator>,
    predicted: [Option<f64>; 2],
    helped: Option<Helped>,
    section: PhantomData<fn(&'s ()) -> &'s ()>,
}

impl<L: Lpf> std::fmt::Debug for Monitor<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Monitor { members, call, .. } = self;
        f.debug_struct("Monitor")
            .field("members", members)
            .field("call", call)
            .finish_non_exhaustive()
    }
}

impl<'s, L: Lpf> Monitor<'s, L> {
    /// For a group, by the mean of the last 8 phases. One for each call that is predicted: each has its own phases.
    /// Collective over the group; some words to every member, over all connections, which are open then.
    ///
    /// # Errors
    /// *Mitigable* if the system refuses a thread; *fatal* if the section failed.
    #[track_caller]
    pub fn new(ctx: &mut Context<'s, L>, c: &mut Collectives<'s>) -> Result<Self> {
        Self::with(ctx, c, || Box::new(MovingAverage::default()))
    }

    /// With estimators of one's own: one is made for how long phases take, and one for how many times as long as up
    /// to their edge.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn with(
        ctx: &mut Context<'s, L>,
        c: &mut Collectives<'s>,
        estimator: impl Fn() -> Box<dyn Estimator>,
    ) -> Result<Self> {
        let registers = Registers { id: c.next_id() };
        let board = ctx.raw().board();
        let clock = Clock::new(ctx, c, &board)?;
        c.warm_up(ctx)?;
        let (members, is_first) = (c.members().to_vec(), c.me() == 0);
        let phase = Arc::new(Mutex::new(Phase { next: 1, ..Phase::default() }));
        let mut monitor = Monitor {
            board: board.clone(),
            registers,
            members: members.len(),
            first: members[0],
            is_first,
            clock,
            phase: phase.clone(),
            call: 0,
            began_ns: clock.now(&board),
            edge_ns: None,
            computes: false,
            has_edges: true,
            totals: estimator(),
            beyond: estimator(),
            predicted: [None; 2],
            helped: None,
            section: PhantomData,
        };
        let closer = is_first.then(Closer::default);
        let watch = Watch { board, registers, members, phase, said: None, closer };
        let refused = |error: std::io::Error| {
            let cause = Cause::Collective(format!("the monitor has no thread: {error}"));
            Error::mitigable(ctx.pid(), ctx.superstep(), cause)
        };
        monitor.helped = Some(help(watch).map_err(refused)?);
        Ok(monitor)
    }

    /// The topic on which each member publishes when it will arrive, for tests.
    #[doc(hidden)]
    pub fn said(&self) -> Topic {
        self.registers.said()
    }

    /// Begins a phase of computation, or begins an unfinished one again. It wakes the helper, by a system call.
    pub fn begin(&mut self) {
        // Calls are counted by all members alike, however often their phases begin.
        self.call += u64::from(!self.computes);
        self.began_ns = self.clock.now(&self.board);
        (self.edge_ns, self.computes) = (None, true);
        self.predicted = [self.totals.estimate(), self.beyond.estimate()];
        let word = self.predicted[0].map(|ns| self.word(ns, self.has_edges));
        {
            let mut phase = self.phase.lock();
            phase.word = word;
            phase.began = Some(self.board.now());
        }
        if let Some(helped) = &self.helped {
            helped.wake();
        }
    }

    /// Reports that `fraction` of the phase is done: above 0 and at most 1; other values are ignored. Less than a
    /// microsecond, without a system call. The last edge counts, as long as the agreement is not closed.
    pub fn edge(&mut self, fraction: f64) {
        let is_part = fraction > 0.0 && fraction <= 1.0;
        if !is_part || !self.computes {
            return;
        }
        let now = self.clock.now(&self.board);
        let took = now.saturating_sub(self.began_ns) as f64;
        self.edge_ns = Some(now);
        let times = self.predicted[1].unwrap_or(1.0 / fraction).max(1.0);
        let word = self.word(took * times, false);
        self.phase.lock().word = Some(word);
    }

    /// That it arrives so long after the phase has begun, by the group's clock.
    fn word(&self, ns: f64, is_early: bool) -> Word {
        // A number that is none is 0; what is beyond the clock is at its end.
        let arrival_ns = self.began_ns.saturating_add(ns as u64).min(1 << 62);
        Word { call: self.call, arrival_ns, is_early }
    }

    /// Ends the phase. Returns the predicted arrivals of all members at the call that follows, the same at every member.
    /// If a member arrives before all have reported their prediction, the result may be [`Estimates::together`], by
    /// which calls use an arrival-unaware algorithm.
    ///
    /// Waits if nothing is agreed yet, for the helper of the group's member 0. Without [`begin`](Self::begin)
    /// before, the phase has taken no time.
    ///
    /// # Errors
    /// *Fatal* if the section failed.
    #[track_caller]
    pub fn finish(&mut self, ctx: &mut Context<'s, L>) -> Result<Estimates> {
        if !self.computes {
            self.begin();
        }
        self.computes = false;
        let edge_after = self.edge_ns.map_or(0, |edge_ns| edge_ns.saturating_sub(self.began_ns));
        {
            let mut phase = self.phase.lock();
            (phase.began, phase.edge_after) = (None, Duration::from_nanos(edge_after));
        }
        let now = self.clock.now(&self.board);
        let took = now.saturating_sub(self.began_ns) as f64;
        self.totals.add(took);
        self.has_edges = self.edge_ns.is_some();
        if let Some(edge_ns) = self.edge_ns {
            self.beyond.add(took / edge_ns.saturating_sub(self.began_ns).max(1) as f64);
        }
        let times =
            self.agreed(ctx, now)?.arrivals.filter(|all| all.times_ns().len() == self.members);
        let times = times.unwrap_or_else(|| Estimates::together(self.members));
        Ok(times.at(self.registers.id))
    }

    /// The agreement on this call, which is asked for where it is not there.
    fn agreed(&self, ctx: &mut Context<'s, L>, now: u64) -> Result<Agreement> {
        let (board, registers, call) = (&self.board, self.registers, self.call);
        if let Some(agreed) = closed(board, registers, self.first, call)? {
            return Ok(agreed);
        }
        let here = Word { call, arrival_ns: now, is_early: false };
        board.write(registers.asked(), &here.to_bytes())?;
        // Of another member's, too, where this process has more than one.
        wake_all();
        let wait = Consult { from: self.first, absent: &Vec::new, look_every: ASK };
        ctx.raw().consult(wait, || closed(board, registers, self.first, call))
    }
}

impl<L: Lpf> Drop for Monitor<'_, L> {
    fn drop(&mut self) {
        // After this nobody closes anything.
        drop(self.helped.take());
        if self.is_first {
            // The others need not wait for what nobody will close. In a section that failed nobody does.
            let word = Word { call: self.phase.lock().next, arrival_ns: 0, is_early: false };
            let _ = self.board.write(self.registers.ended(), &word.to_bytes());
        }
    }
}
