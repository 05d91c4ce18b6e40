//! The contexts that have ended.

/// A set of contexts, kept as ranges: contexts are counted, so those that ended are runs of
/// neighbours, and the set stays small however many there were. A number that this process never
/// heard of leaves a gap, which costs eight bytes.
#[derive(Debug, Default)]
pub struct Forgotten {
    /// First and last of every range, in order, and never touching.
    ranges: Vec<(u32, u32)>,
}

impl Forgotten {
    /// Whether a context has ended.
    pub fn contains(&self, context: u32) -> bool {
        let next = self.ranges.partition_point(|(first, _)| *first <= context);
        next > 0 && context <= self.ranges[next - 1].1
    }

    /// A context ends.
    pub fn insert(&mut self, context: u32) {
        if self.contains(context) {
            return;
        }
        let next = self.ranges.partition_point(|(first, _)| *first <= context);
        let below = next > 0 && self.ranges[next - 1].1 + 1 == context;
        let above = self.ranges.get(next).is_some_and(|(first, _)| context + 1 == *first);
        match (below, above) {
            (true, true) => self.ranges[next - 1].1 = self.ranges.remove(next).1,
            (true, false) => self.ranges[next - 1].1 = context,
            (false, true) => self.ranges[next].0 = context,
            (false, false) => self.ranges.insert(next, (context, context)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_one_range() {
        let mut forgotten = Forgotten::default();
        assert!(!forgotten.contains(0));
        for context in [5, 3, u32::MAX, 0, 4, 4, 1, u32::MAX - 1] {
            forgotten.insert(context);
        }
        assert_eq!(forgotten.ranges, [(0, 1), (3, 5), (u32::MAX - 1, u32::MAX)]);
        let inside: Vec<u32> = (0..9).filter(|context| forgotten.contains(*context)).collect();
        assert_eq!(inside, [0, 1, 3, 4, 5]);
        assert!(forgotten.contains(u32::MAX) && !forgotten.contains(u32::MAX - 2));
    }
}
