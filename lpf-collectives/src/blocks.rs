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
    /// A vector divided evenly.
    Even { whole: Span, granule: usize, members: usize },
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
        let granule = granule(bytes, element, members);
        Blocks::Even { whole: Span { start: 0, bytes }, granule, members }
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
            Blocks::Even { whole, .. } => self.of(member).start - whole.start,
            Blocks::Any { element, most, .. } => member * most * element,
        }
    }

    /// Members `first` to `end - 1` in runs whose blocks lie side by side.
    pub(crate) fn runs(&self, first: usize, end: usize, mut each: impl FnMut(usize, usize)) {
        let is_dense = match *self {
            Blocks::Even { .. } => true,
            Blocks::Equal { stride, bytes, .. } => stride == bytes,
            Blocks::Any { .. } => false,
        };
        match is_dense {
            true => each(first, end),
            false => (first..end).for_each(|member| each(member, member + 1)),
        }
    }

    /// The blocks of members `first` to `end - 1`, where they lie side by side.
    pub(crate) fn between(&self, first: usize, end: usize) -> Span {
        match *self {
            Blocks::Even { whole, granule, members } => {
                let start = share(whole, granule, members, first);
                let stop = share(whole, granule, members, end);
                Span { start, bytes: stop - start }
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

/// Where block `nth` of `members` begins: the first ones are a granule longer than the rest.
fn share(whole: Span, granule: usize, members: usize, nth: usize) -> usize {
    let granules = whole.bytes / granule;
    let (least, more) = (granules / members, granules % members);
    let before = nth * least + nth.min(more);
    // What is left of a granule goes with the last block.
    if nth == members { whole.end() } else { whole.start + before * granule }
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
