//! Finding segments and senders, without a branch on where they are: that cannot be foretold.
//!
//! Of several chunks it is first seen which words are not zero.

use super::counts::Able;
use super::shape::Shape;
use super::words::Words;

/// Chunks that are looked at together: they have 64 words at most.
const GROUP: usize = 8;

/// Room for them.
pub(super) struct Group<W>([W; GROUP]);

impl<W: Words> Group<W> {
    pub(super) const ZERO: Self = Group([W::ZERO; GROUP]);

    /// Which words of some chunks are not zero; they are kept.
    #[inline(always)]
    fn filled(&mut self, chunks: usize, chunk: impl Fn(usize) -> W) -> u64 {
        let mut filled = 0;
        for (at, kept) in self.0[..chunks].iter_mut().enumerate() {
            *kept = chunk(at);
            filled |= kept.filled() << (at * (W::BITS / 64));
        }
        filled
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        W::words(&self.0)[at]
    }
}

/// The first segment of a process's column that another can send; its own is one of those that can where it is free.
#[inline(always)]
pub(super) fn wanted<W: Words, S: Shape>(
    column: &[W],
    able: &Able<'_, W, S>,
    is_free: bool,
    group: &mut Group<W>,
) -> Option<usize> {
    let free = W::all(is_free);
    let chunk = |at: usize| {
        let low = &able.low[at];
        low.by_two.or(low.by_any.and_not(free)).and(column[at])
    };
    if S::ONE {
        return chunk(0).first();
    }
    for begin in (0..column.len()).step_by(GROUP) {
        let filled = group.filled(GROUP.min(column.len() - begin), |at| chunk(begin + at));
        if filled != 0 {
            let word = filled.trailing_zeros() as usize;
            let bit = group.word(word).trailing_zeros() as usize;
            return Some(begin * W::BITS + 64 * word + bit);
        }
    }
    None
}

/// The same for the sink, which is free and takes what it does not hold, too.
#[inline(always)]
pub(super) fn wanted_by_sink<W: Words, S: Shape>(
    column: &[W],
    able: &Able<'_, W, S>,
) -> Option<usize> {
    for at in S::each(column.len()) {
        let low = &able.low[at];
        if let Some(bit) = low.by_two.or(low.by_any.and_not(column[at])).first() {
            return Some(at * W::BITS + bit);
        }
    }
    None
}

/// The first that is in both, from the head on and round the circle. There is one.
#[inline(always)]
pub(super) fn sender<W: Words, S: Shape>(
    row: &[W],
    free: &S::Of<W>,
    head: usize,
    group: &mut Group<W>,
) -> usize {
    let chunk = |at: usize| row[at].and(free[at]);
    if S::ONE {
        return chunk(0).and(W::behind(head)).first_or(chunk(0));
    }
    if row.len() > GROUP {
        return far(row.len(), chunk, head);
    }
    let filled = group.filled(row.len(), chunk);
    let (begin, behind) = (head / 64, u64::MAX << (head % 64));
    // The head's word comes first for what is behind the head in it, and last for the rest: 64 words round.
    let skipped = u64::from(group.word(begin) & behind == 0);
    let step = (filled.rotate_right(begin as u32) & !skipped).trailing_zeros() as usize;
    let word = (begin + step) % 64;
    let bits = group.word(word) & if step == 0 { behind } else { u64::MAX };
    64 * word + bits.trailing_zeros() as usize
}

/// The same, a chunk after the other.
#[inline(always)]
fn far<W: Words>(chunks: usize, chunk: impl Fn(usize) -> W, head: usize) -> usize {
    let mut at = head / W::BITS;
    if let Some(bit) = chunk(at).and(W::behind(head % W::BITS)).first() {
        return W::BITS * at + bit;
    }
    for _ in 0..chunks {
        at = if at + 1 < chunks { at + 1 } else { 0 };
        if let Some(bit) = chunk(at).first() {
            return W::BITS * at + bit;
        }
    }
    head
}
