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
    /// waits in a full superstep, in the receiver's scratch.
    Send { round: u32, to: usize, from: Region, kept: bool, stage: usize },
    /// From a member.
    Receive { round: u32, from: usize, bytes: usize, stage: usize, then: Then },
    /// Inside the member.
    Copy { round: u32, from: Region, to: Region },
}

impl Step {
    pub(crate) fn round(&self) -> u32 {
        match *self {
            Step::Send { round, .. } | Step::Receive { round, .. } | Step::Copy { round, .. } => {
                round
            }
        }
    }
}

/// The steps of one member. Empty transfers are left out: both ends know them.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    steps: Vec<Step>,
    round: u32,
}

impl Schedule {
    /// Room for so many steps, or the bytes that were refused.
    pub(crate) fn with_capacity(steps: usize) -> Result<Self, usize> {
        let mut schedule = Schedule::default();
        schedule.steps.try_reserve_exact(steps).map_err(|_| steps * size_of::<Step>())?;
        Ok(schedule)
    }

    pub(crate) fn clear(&mut self) {
        self.steps.clear();
        self.round = 0;
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Supersteps, the same at every member.
    pub(crate) fn rounds(&self) -> u32 {
        self.round
    }

    /// Ends a round: every member calls it as often.
    pub(crate) fn next_round(&mut self) {
        self.round += 1;
    }

    pub(crate) fn send(&mut self, to: usize, from: Region, kept: bool, stage: usize) {
        if from.span.bytes > 0 {
            self.steps.push(Step::Send { round: self.round, to, from, kept, stage });
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
            self.steps.push(Step::Receive { round: self.round, from, bytes, stage, then });
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
            self.steps.push(Step::Receive { round: self.round, from, bytes, stage, then });
        }
    }

    pub(crate) fn copy(&mut self, from: Region, to: Region) {
        debug_assert_eq!(from.span.bytes, to.span.bytes);
        if from != to && from.span.bytes > 0 {
            self.steps.push(Step::Copy { round: self.round, from, to });
        }
    }
}
