//! What one member does in a collective: an algorithm as data.
//!
//! An algorithm writes, for one member of a group, its sends, receives and copies in order, in rounds.
//! It is then carried out in one of two ways that give the same bits ([`run`](crate::run)), and can be
//! carried out in memory for all members at once, which is how algorithms are tested.

use crate::blocks::Span;

/// What a collective works on, at every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    /// What the member contributes.
    Input,
    /// Its result. May be the same memory.
    Output,
    /// The collective's own memory.
    Scratch,
}

/// Some bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) buffer: Buffer,
    pub(crate) span: Span,
}

impl Region {
    pub(crate) fn new(buffer: Buffer, span: Span) -> Self {
        Region { buffer, span }
    }
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It goes there.
    Keep(Region),
    /// It is combined with what is `with`, as the left or the right operand, and the result goes to
    /// `into`.
    Combine { with: Region, into: Region, left: bool },
}

/// One step of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To a member. `kept` says that the receiver keeps the message as it is; `stage` is where it
    /// waits in a full superstep, in the receiver's scratch: bytes from behind the part that the algorithm
    /// keeps there ([`Scratch::kept`](crate::scratch::Scratch)), the same number at both ends.
    Send { to: usize, from: Region, kept: bool, stage: usize },
    /// From a member. Messages of one round have stages that do not overlap.
    Receive { from: usize, bytes: usize, stage: usize, then: Then },
    /// Inside the member.
    Copy { from: Region, to: Region },
}

impl Step {
    /// The link of a transfer, and whether it is out.
    fn link(&self) -> Option<(bool, usize)> {
        match *self {
            Step::Send { to, .. } => Some((true, to)),
            Step::Receive { from, .. } => Some((false, from)),
            Step::Copy { .. } => None,
        }
    }
}

/// Numbers the messages of each link in a round, from 0: those of one link are side by side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbering {
    last: Option<(bool, usize)>,
    nth: usize,
}

impl Numbering {
    /// Which message of its link the next step is; 0 for one that is none.
    pub(crate) fn next(&mut self, step: &Step) -> usize {
        let link = step.link();
        self.nth = if link.is_some() && link == self.last { self.nth + 1 } else { 0 };
        self.last = link;
        self.nth
    }
}

/// What carrying out a round needs to know of its steps before it begins.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Where its first receive is, if it has one.
    comes: Option<usize>,
    end: usize,
    /// The most messages on one link and way, and the longest that is kept.
    most: usize,
    longest: usize,
}

/// The steps of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps<'a> {
    /// Those before the first receive.
    pub(crate) before: &'a [Step],
    /// The others.
    pub(crate) after: &'a [Step],
    /// The most messages on one link and way.
    pub(crate) most: usize,
    /// The longest message that is kept, bytes.
    pub(crate) longest: usize,
}

impl<'a> Steps<'a> {
    /// All of them.
    pub(crate) fn all(self) -> impl Iterator<Item = &'a Step> + Clone {
        self.before.iter().chain(self.after)
    }
}

/// The steps of one member. Empty transfers are left out: both ends know them.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    steps: Vec<Step>,
    rounds: Vec<Round>,
    /// The round that is being written.
    round: Round,
    numbering: Numbering,
}

impl Schedule {
    /// Room for so many steps and rounds, or the bytes that were refused.
    pub(crate) fn with_capacity(steps: usize, rounds: usize) -> Result<Self, usize> {
        let mut schedule = Schedule::default();
        schedule.steps.try_reserve_exact(steps).map_err(|_| steps * size_of::<Step>())?;
        schedule.rounds.try_reserve_exact(rounds).map_err(|_| rounds * size_of::<Round>())?;
        Ok(schedule)
    }

    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.rounds.clear();
        self.begin_round();
    }

    /// Becomes as another one, if that fits its memory.
    pub(crate) fn copy_from(&mut self, other: &Schedule) -> bool {
        let fits = other.steps.len() <= self.steps.capacity()
            && other.rounds.len() <= self.rounds.capacity();
        if fits {
            self.steps.clone_from(&other.steps);
            self.rounds.clone_from(&other.rounds);
        }
        fits
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The rounds: as many supersteps, the same at every member.
    pub(crate) fn rounds(&self) -> impl ExactSizeIterator<Item = Steps<'_>> {
        let mut begin = 0;
        self.rounds.iter().map(move |&Round { comes, end, most, longest }| {
            let comes = comes.unwrap_or(end);
            let (before, after) = (&self.steps[begin..comes], &self.steps[comes..end]);
            begin = end;
            Steps { before, after, most, longest }
        })
    }

    /// What is done when the last round has ended.
    pub(crate) fn rest(&self) -> &[Step] {
        &self.steps[self.rounds.last().map_or(0, |round| round.end)..]
    }

    /// Ends a round: every member calls it as often.
    pub(crate) fn next_round(&mut self) {
        let Round { comes, most, longest, .. } = self.round;
        self.rounds.push(Round { comes, end: self.steps.len(), most, longest });
        self.begin_round();
    }

    /// (One field at a time: a pair of them goes through memory, and is slower.)
    #[inline]
    fn begin_round(&mut self) {
        self.round = Round::default();
        self.numbering = Numbering::default();
    }

    fn push(&mut self, step: Step) {
        let kept = match step {
            Step::Receive { bytes, then: Then::Keep(_), .. } => bytes,
            Step::Send { from, kept: true, .. } => from.span.bytes,
            _ => 0,
        };
        self.round.longest = self.round.longest.max(kept);
        if matches!(step, Step::Receive { .. }) {
            self.round.comes.get_or_insert(self.steps.len());
        }
        let nth = self.numbering.next(&step);
        self.round.most = self.round.most.max(nth + usize::from(step.link().is_some()));
        self.steps.push(step);
    }

    pub(crate) fn send(&mut self, to: usize, from: Region, kept: bool, stage: usize) {
        if from.span.bytes > 0 {
            self.push(Step::Send { to, from, kept, stage });
        }
    }

    /// Sends what the receiver keeps.
    pub(crate) fn give(&mut self, to: usize, from: Region, stage: usize) {
        self.send(to, from, true, stage);
    }

    /// Receives what stays as it is.
    pub(crate) fn take(&mut self, from: usize, to: Region, stage: usize) {
        if to.span.bytes > 0 {
            let (bytes, then) = (to.span.bytes, Then::Keep(to));
            self.push(Step::Receive { from, bytes, stage, then });
        }
    }

    /// Receives an operand: `left` where it comes before what is there.
    pub(crate) fn fold(
        &mut self,
        from: usize,
        with: Region,
        into: Region,
        left: bool,
        stage: usize,
    ) {
        debug_assert_eq!(with.span.bytes, into.span.bytes);
        let bytes = into.span.bytes;
        if bytes > 0 {
            let then = Then::Combine { with, into, left };
            self.push(Step::Receive { from, bytes, stage, then });
        }
    }

    pub(crate) fn copy(&mut self, from: Region, to: Region) {
        debug_assert_eq!(from.span.bytes, to.span.bytes);
        if from != to && from.span.bytes > 0 {
            self.push(Step::Copy { from, to });
        }
    }
}
