//! One clock for all members of a group: ns, by that of member 0.

use lpf_core::board::Board;
use lpf_core::{Context, Lpf, Result};

use crate::collectives::Collectives;
use crate::operators::Max;

/// Rounds of which the shortest tells how far apart clocks are.
const ROUNDS: usize = 12;

/// Member 0's clock, as this process reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Added to the own one.
    offset: i64,
}

/// ns by the clock of this process: no more than 2^62.
fn own(board: &impl Board) -> i64 {
    board.now().as_nanos().min(1 << 62) as i64
}

impl Clock {
    /// Of a group, whose members leave an all-reduction of a word at the same moment, but for the time that it
    /// takes. Collective.
    pub(super) fn new<'s, L: Lpf>(
        ctx: &mut Context<'s, L>,
        c: &mut Collectives<'s>,
        board: &impl Board,
    ) -> Result<Self> {
        // When each round ended, and how long it took.
        let mut rounds = [[0; 2]; ROUNDS];
        for [end, took] in &mut rounds {
            let before = own(board);
            c.allreduce_value(ctx, &Max, before)?;
            *end = own(board);
            *took = *end - before;
        }
        let theirs = c.broadcast_value(ctx, 0, rounds)?;
        let both = rounds.iter().zip(&theirs);
        let best = both.min_by_key(|(own, theirs)| own[1].saturating_add(theirs[1]));
        Ok(Clock { offset: best.map_or(0, |(own, theirs)| theirs[0] - own[0]) })
    }

    /// Now. A process that began to count later than member 0 counts from where that was.
    pub(super) fn now(self, board: &impl Board) -> u64 {
        // So far from 0 that no difference between two processes' beginnings is below it.
        const FAR: i64 = 1 << 61;
        (own(board) + self.offset + FAR) as u64
    }
}
