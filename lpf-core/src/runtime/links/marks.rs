//! Marks of links, by their places: a bit each, so that a look at 64 links that have none costs a word.

/// A set of places.
#[derive(Debug, Default)]
pub(crate) struct Marks(Vec<u64>);

fn split(place: usize) -> (usize, u64) {
    (place / 64, 1 << (place % 64))
}

impl Marks {
    /// Makes room for `places` places, so that marking allocates nothing.
    pub(crate) fn grow(&mut self, places: usize) {
        let words = places.div_ceil(64).max(self.0.len());
        self.0.resize(words, 0);
    }

    #[inline]
    pub(crate) fn add(&mut self, place: usize) {
        let (word, bit) = split(place);
        let word = &mut self.0[word];
        // No store if nothing changes: a load that follows does not wait for it.
        if *word & bit == 0 {
            *word |= bit;
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, place: usize) {
        let (word, bit) = split(place);
        self.0[word] &= !bit;
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// The marked places, in order.
    #[inline]
    pub(crate) fn iter(&self) -> Places<'_> {
        Places { words: self.0.iter(), bits: 0, next: 0 }
    }

    /// Visits the marked places in order, and keeps the marks of those for which `keep` is true.
    #[inline]
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        for (at, word) in self.0.iter_mut().enumerate() {
            let mut bits = *word;
            while bits != 0 {
                let bit = bits & bits.wrapping_neg();
                bits ^= bit;
                if !keep(at * 64 + bit.trailing_zeros() as usize) {
                    *word ^= bit;
                }
            }
        }
    }
}

/// The marked places, in order.
pub(crate) struct Places<'a> {
    words: std::slice::Iter<'a, u64>,
    /// Those of the present word that were not visited.
    bits: u64,
    /// The first place of the next word.
    next: usize,
}

impl Iterator for Places<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.bits == 0 {
            self.bits = *self.words.next()?;
            self.next += 64;
        }
        let bit = self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(self.next - 64 + bit)
    }
}

#[cfg(test)]
mod tests {
    use super::Marks;

    #[test]
    fn marks_are_visited_in_order_and_kept_as_told() {
        let mut marks = Marks::default();
        marks.grow(130);
        [129, 0, 63, 64, 0].into_iter().for_each(|place| marks.add(place));
        assert_eq!(marks.iter().collect::<Vec<_>>(), [0, 63, 64, 129]);
        marks.remove(63);
        marks.grow(1);
        let mut visited = Vec::new();
        marks.retain(|place| {
            visited.push(place);
            place != 64
        });
        assert_eq!(visited, [0, 64, 129]);
        assert_eq!(marks.iter().collect::<Vec<_>>(), [0, 129]);
        marks.clear();
        assert_eq!(marks.iter().count(), 0);
    }
}
