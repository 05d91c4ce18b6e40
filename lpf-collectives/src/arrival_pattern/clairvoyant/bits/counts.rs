//! Numbers of segments. They lie across: bit k of all that are in a chunk is its plane k, lowest first.

use super::shape::Shape;
use super::words::Words;

/// Planes that change with each transfer.
const LOW: usize = 4;
/// So often two are taken off a number before its low part can have borrowed twice.
pub(super) const TIMES: usize = (1 << LOW) / 2;

/// Of numbers up to this one.
pub(super) fn planes(most: usize) -> usize {
    LOW.max((usize::BITS - most.leading_zeros()) as usize)
}

/// Planes of both kinds of counts, but for the low ones.
pub(super) fn kept(most: usize) -> usize {
    2 * planes(most) - LOW
}

/// How many members hold each segment. The planes are of numbers in Gray's code, which changes in one bit when a
/// number becomes less by one: the plane of the number's lowest bit.
pub(super) struct Holders<'a, W> {
    counts: &'a mut [u32],
    planes: &'a mut [W],
    /// Planes of a chunk.
    each: usize,
}

impl<'a, W: Words> Holders<'a, W> {
    /// Nobody holds any: all are zero.
    #[inline(always)]
    pub(super) fn new(planes: &'a mut [W], counts: &'a mut [u32], chunks: usize) -> Self {
        let each = planes.len() / chunks;
        Holders { counts, planes, each }
    }

    /// One more holds all of them.
    #[inline(always)]
    pub(super) fn join(&mut self) {
        let n = self.counts.len();
        for count in self.counts.iter_mut() {
            *count += 1;
        }
        for (chunk, planes) in self.planes.chunks_exact_mut(self.each).enumerate() {
            for at in (1..planes.len()).rev() {
                planes[at - 1] = planes[at - 1].xor(planes[at]);
            }
            let mut carry = W::whole(chunk, n);
            for plane in planes.iter_mut() {
                (*plane, carry) = (plane.xor(carry), plane.and(carry));
            }
            for at in 1..planes.len() {
                planes[at - 1] = planes[at - 1].xor(planes[at]);
            }
        }
    }

    /// One less holds this one.
    #[inline(always)]
    pub(super) fn leave(&mut self, segment: usize) {
        let count = self.counts[segment];
        self.counts[segment] = count - 1;
        let plane = segment / W::BITS * self.each + count.trailing_zeros() as usize;
        W::flip(std::slice::from_mut(&mut self.planes[plane]), segment % W::BITS);
    }
}

/// Of one chunk, what changes with each transfer.
#[derive(Clone, Copy)]
pub(super) struct Low<W> {
    planes: [W; LOW],
    /// What is still to be taken off the high planes: one at most of each number.
    borrowed: W,
    /// Where the high planes make one at least, and two.
    one: W,
    two: W,
    /// What anybody can send, and what two can.
    pub(super) by_any: W,
    pub(super) by_two: W,
}

impl<W: Words> Low<W> {
    const ZERO: Self = Low {
        planes: [W::ZERO; LOW],
        borrowed: W::ZERO,
        one: W::ZERO,
        two: W::ZERO,
        by_any: W::ZERO,
        by_two: W::ZERO,
    };

    #[inline(always)]
    fn look(&mut self) {
        let high = self.one.and_not(self.borrowed).or(self.two);
        self.by_two = self.planes[1..].iter().fold(high, |all, plane| all.or(*plane));
        self.by_any = self.by_two.or(self.planes[0]);
    }
}

/// How many can send each segment in this round.
///
/// What a sender held is taken off the low planes alone; what these borrow is taken off the others once in [`TIMES`]
/// transfers.
pub(super) struct Able<'a, W: Words, S: Shape> {
    pub(super) low: S::Of<Low<W>>,
    high: &'a mut [W],
    /// High planes of a chunk.
    each: usize,
}

impl<'a, W: Words, S: Shape> Able<'a, W, S> {
    #[inline(always)]
    pub(super) fn new(high: &'a mut [W], chunks: usize) -> Self {
        let each = high.len() / chunks;
        Able { low: S::of(Low::ZERO, chunks), high, each }
    }

    /// All that hold one.
    #[inline(always)]
    pub(super) fn begin(&mut self, chunk: usize, holders: &Holders<'_, W>) {
        let gray = &holders.planes[chunk * holders.each..][..holders.each];
        let high = &mut self.high[chunk * self.each..][..self.each];
        let low = &mut self.low[chunk];
        let mut above = W::ZERO;
        for (plane, gray) in high.iter_mut().zip(&gray[LOW..]).rev() {
            above = above.xor(*gray);
            *plane = above;
        }
        for at in (0..LOW).rev() {
            above = above.xor(gray[at]);
            low.planes[at] = above;
        }
        low.borrowed = W::ZERO;
        self.settle(chunk);
    }

    /// One less of what the sender held, and of what was received.
    #[inline(always)]
    pub(super) fn take(&mut self, chunk: usize, sent: W, received: W) {
        let low = &mut self.low[chunk];
        let once = sent.xor(received);
        let mut borrow = once.and_not(low.planes[0]).or(received);
        low.planes[0] = low.planes[0].xor(once);
        for plane in &mut low.planes[1..] {
            (*plane, borrow) = (plane.xor(borrow), borrow.and_not(*plane));
        }
        low.borrowed = low.borrowed.or(borrow);
        low.look();
    }

    /// Takes what is borrowed off the high planes.
    #[inline(always)]
    pub(super) fn settle(&mut self, chunk: usize) {
        let low = &mut self.low[chunk];
        let (mut borrow, mut one, mut two) = (low.borrowed, W::ZERO, W::ZERO);
        for (at, plane) in self.high[chunk * self.each..][..self.each].iter_mut().enumerate() {
            (*plane, borrow) = (plane.xor(borrow), borrow.and_not(*plane));
            one = one.or(*plane);
            two = if at > 0 { two.or(*plane) } else { two };
        }
        (low.borrowed, low.one, low.two) = (W::ZERO, one, two);
        low.look();
    }
}
