//! Where the parts of a vector lie that belong to the members of a group.

/// Bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
}

impl Span {
    pub(crate) fn end(self) -> usize {
        self.start + self.bytes
    }
}

/// A boundary between blocks is one between cache lines where elements and lengths allow it: two
/// processes then never write to one line.
const LINE: usize = 64;

/// One block a member, by its place in the group.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Blocks<'a> {
    /// A vector divided evenly; and of each block the bytes from `first` on, at most `most`.
    Even { whole: Span, granule: usize, members: usize, first: usize, most: usize },
    /// Blocks of one length at a constant stride.
    Equal { first: usize, stride: usize, bytes: usize },
    /// Blocks of any length, one behind the other: where each ends, in elements of so many bytes; and of each
    /// the elements from `first` on, at most `most`.
    Any { ends: &'a [usize], element: usize, first: usize, most: usize },
}

/// What stays together where so many bytes of elements are divided: an element, or a line of them where all
/// members have one.
pub(crate) fn granule(bytes: usize, element: usize, members: usize) -> usize {
    let lined = LINE.is_multiple_of(element) && bytes / LINE >= members;
    if lined { LINE } else { element.max(1) }
}

impl Blocks<'_> {
    /// `bytes` bytes of elements of `element` bytes, divided evenly.
    pub(crate) fn even(bytes: usize, element: usize, members: usize) -> Self {
        Self::divided(Span { start: 0, bytes }, granule(bytes, element, members), members)
    }

    /// A part of a vector, divided evenly into blocks of whole granules.
    pub(crate) fn divided(whole: Span, granule: usize, members: usize) -> Self {
        // Nothing is longer than the first one, but the last one with what is left of a granule.
        let longest = [0, members - 1].map(|nth| share(whole, granule, members, nth).bytes);
        let most = longest[0].max(longest[1]);
        Blocks::Even { whole, granule, members, first: 0, most }
    }

    /// Of each block of an evenly divided vector the bytes from `first` on, at most `most`.
    pub(crate) fn piece(self, first: usize, most: usize) -> Self {
        match self {
            Blocks::Even { whole, granule, members, .. } => {
                Blocks::Even { whole, granule, members, first, most }
            }
            other => {
                debug_assert!(false, "other blocks are cut by what they are made of: {other:?}");
                other
            }
        }
    }

    /// The length of the longest block of an evenly divided vector, or of its piece.
    pub(crate) fn longest(&self) -> usize {
        match *self {
            Blocks::Even { most, .. } => most,
            Blocks::Equal { bytes, .. } => bytes,
            Blocks::Any { element, most, .. } => element * most,
        }
    }

    /// Whether blocks lie side by side.
    fn is_dense(&self) -> bool {
        match *self {
            Blocks::Even { whole, granule, members, first, most } => {
                first == 0 && Self::divided(whole, granule, members).longest() <= most
            }
            Blocks::Equal { stride, bytes, .. } => stride == bytes,
            Blocks::Any { .. } => false,
        }
    }

    /// Where the blocks of members `first` to `end - 1` lie in the collectives' own memory: side by side if they do in
    /// the vector, else one.
    pub(crate) fn kept(&self, first: usize, end: usize) -> Span {
        let span = self.between(first, end);
        match *self {
            Blocks::Even { whole, .. } if self.is_dense() => {
                Span { start: span.start - whole.start, ..span }
            }
            _ => Span { start: self.stage(first), ..span },
        }
    }

    /// The block of a member.
    pub(crate) fn of(&self, member: usize) -> Span {
        match *self {
            Blocks::Any { ends, element, first, most } => {
                let start = member.checked_sub(1).map_or(0, |before| ends[before]);
                let count = ends[member] - start;
                let (skipped, taken) = (first.min(count), count.saturating_sub(first).min(most));
                Span { start: element * (start + skipped), bytes: element * taken }
            }
            Blocks::Even { whole, granule, members, first, most } => {
                let block = share(whole, granule, members, member);
                let skipped = first.min(block.bytes);
                let bytes = (block.bytes - skipped).min(most);
                Span { start: block.start + skipped, bytes }
            }
            _ => self.between(member, member + 1),
        }
    }

    /// The same blocks one behind the other, where they are of one length.
    pub(crate) fn packed(&self) -> Self {
        match *self {
            Blocks::Equal { bytes, .. } => Blocks::Equal { first: 0, stride: bytes, bytes },
            other => other,
        }
    }

    /// Where the block of a member waits in a full superstep, apart from all others.
    pub(crate) fn stage(&self, member: usize) -> usize {
        match *self {
            Blocks::Equal { bytes, .. } => member * bytes,
            Blocks::Even { most, .. } => member * most,
            Blocks::Any { element, most, .. } => member * most * element,
        }
    }

    /// Members `first` to `end - 1` in runs whose blocks lie side by side.
    pub(crate) fn runs(&self, first: usize, end: usize, mut each: impl FnMut(usize, usize)) {
        match self.is_dense() {
            true => each(first, end),
            false => (first..end).for_each(|member| each(member, member + 1)),
        }
    }

    /// The blocks of members `first` to `end - 1`, where they lie side by side.
    pub(crate) fn between(&self, first: usize, end: usize) -> Span {
        match *self {
            Blocks::Even { .. } => {
                let (first, last) = (self.of(first), self.of(end - 1));
                Span { start: first.start, bytes: last.end() - first.start }
            }
            Blocks::Equal { first: at, stride, bytes } => {
                debug_assert!(end == first + 1 || stride == bytes);
                Span { start: at + first * stride, bytes: bytes * (end - first) }
            }
            Blocks::Any { .. } => {
                debug_assert_eq!(end, first + 1);
                self.of(first)
            }
        }
    }
}

/// Block `nth` of `members`: the first ones are a granule longer than the rest.
fn share(whole: Span, granule: usize, members: usize, nth: usize) -> Span {
    let granules = whole.bytes / granule;
    let (least, more) = (granules / members, granules % members);
    let begin = |nth: usize| {
        let before = nth * least + nth.min(more);
        // What is left of a granule goes with the last block.
        if nth == members { whole.end() } else { whole.start + before * granule }
    };
    Span { start: begin(nth), bytes: begin(nth + 1) - begin(nth) }
}

/// Divides a span into two, the lower half first and no shorter.
pub(crate) fn halves(span: Span, granule: usize) -> (Span, Span) {
    let lower = (span.bytes / granule).div_ceil(2) * granule;
    let lower = lower.min(span.bytes);
    let upper = Span { start: span.start + lower, bytes: span.bytes - lower };
    (Span { start: span.start, bytes: lower }, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_blocks_cover_the_vector_and_hold_whole_elements() {
        for (elements, element, members) in
            [(0, 8, 3), (1, 8, 3), (7, 12, 3), (100, 8, 7), (1000, 4, 9), (64, 1, 64), (5, 0, 2)]
        {
            let bytes = elements * element;
            let blocks = Blocks::even(bytes, element, members);
            let mut at = 0;
            for member in 0..members {
                let block = blocks.of(member);
                assert_eq!(block.start, at);
                assert_eq!(block.bytes % element.max(1), 0);
                at = block.end();
            }
            assert_eq!(at, bytes);
            assert_eq!(blocks.between(0, members), Span { start: 0, bytes });
        }
    }

    #[test]
    fn pieces_of_even_blocks_cover_each_of_them() {
        for (bytes, element, members) in [(8 * 103, 8, 7), (64 * 9 + 24, 8, 3), (40, 8, 9)] {
            let whole = Blocks::even(bytes, element, members);
            assert!(whole.is_dense());
            for most in [8, 24, whole.longest() + 8] {
                let pieces = whole.longest().div_ceil(most);
                for member in 0..members {
                    let block = whole.of(member);
                    let of_piece = |nth: usize| whole.piece(nth * most, most);
                    let covered: usize =
                        (0..pieces).map(|nth| of_piece(nth).of(member).bytes).sum();
                    assert_eq!(covered, block.bytes);
                    for nth in 0..pieces {
                        let piece = of_piece(nth);
                        assert_eq!(piece.is_dense(), pieces == 1);
                        let span = piece.of(member);
                        assert!(span.start >= block.start && span.end() <= block.end());
                        assert!(
                            piece.is_dense()
                                || piece.kept(member, member + 1).start == member * most
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_of_any_length_lie_side_by_side() {
        let spans = |first, most| -> Vec<(usize, usize)> {
            let blocks = Blocks::Any { ends: &[2, 2, 5], element: 8, first, most };
            (0..3).map(|m| blocks.of(m)).map(|s| (s.start, s.bytes)).collect()
        };
        assert_eq!(spans(0, 9), [(0, 16), (16, 0), (16, 24)]);
        assert_eq!(spans(1, 1), [(8, 8), (16, 0), (24, 8)]);
        assert_eq!(spans(2, 9), [(16, 0), (16, 0), (32, 8)]);
    }
}
